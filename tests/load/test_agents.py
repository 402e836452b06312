"""Agents against a real TLS server, in a real driver process, over the real protocol."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from scaletest.core.access import ApiAccess, Credential
from scaletest.core.errors import EnvironmentProblem
from scaletest.load.protocol import FlowChanged, SetRate, SetServers, SetTarget
from tests.load.harness import Authority, Drivers, TestServer

QUICK = {"onError": {"first": "100ms", "most": "200ms", "jitter": 0}}
NO_RETRY = {"onError": {"first": "60s", "most": "60s", "jitter": 0, "honorRetryAfter": False}}


@pytest.mark.parametrize(
    ("path", "body_bytes"),
    [
        ("/ok?bytes=100000", 100_000),
        ("/ok?bytes=0", 0),
        ("/ok?bytes=3000000", 3_000_000),
        ("/chunked?bytes=100000", 100_000),
        ("/until-close?bytes=5000", 5000),
        ("/hundred?bytes=77", 77),
        ("/status/204", None),
    ],
)
def test_a_good_answer_is_counted_with_its_body_bytes(
    drivers: Drivers, server: TestServer, path: str, body_bytes: Any
) -> None:
    flow = "good" + "".join(c for c in path if c.isalnum())

    result = drivers.run(flow, server, [{"get": path, "label": "it"}])

    assert {"204" if "204" in path else "200": 1} == result.outcomes("it")
    assert (0 if body_bytes is None else body_bytes) == result.total("bytes")
    assert 1 == result.histogram("latency_us").count
    assert 1 == result.histogram("connect_us").count
    assert 0 == result.histogram("failed_us").count


def test_gzip_bytes_are_counted_as_they_came(drivers: Drivers, server: TestServer) -> None:
    result = drivers.run("gzip", server, [{"list": "/gzip", "gzip": True, "label": "it"}])

    plain = drivers.run("plain", server, [{"list": "/gzip", "label": "it"}])
    assert result.total("bytes") == plain.total("bytes") < 5000
    assert "Accept-Encoding: gzip" in server.log("gzip")[0]["headers"]
    assert "Accept-Encoding: identity" in server.log("plain")[0]["headers"]


@pytest.mark.parametrize(
    ("path", "outcome"),
    [
        ("/status/403", "403"),
        ("/status/500", "500"),
        ("/silent", "timeout"),
        ("/trickle?s=0.05", "timeout"),
        ("/cut", "cut_short"),
        ("/rst", "reset"),
        ("/garbage", "malformed"),
    ],
)
def test_failures_are_told_apart(drivers: Drivers, server: TestServer, path: str, outcome: str) -> None:
    flow = "bad" + "".join(c for c in path if c.isalnum())

    result = drivers.run(flow, server, [{"get": path, "label": "it", "timeout": "400ms"}], options=NO_RETRY)

    assert {outcome: 1} == result.outcomes()
    assert 1 == result.histogram("failed_us").count
    assert 0 == result.histogram("latency_us").count
    assert [outcome] == [sample["outcome"] for sample in result.samples]


def test_the_deadline_is_that_of_the_whole_request_not_of_a_read(drivers: Drivers, server: TestServer) -> None:
    result = drivers.run("deadline", server, [{"get": "/trickle?s=0.05", "timeout": "400ms"}], options=NO_RETRY)

    assert 300_000 <= (result.histogram("failed_us").maximum or 0) <= 3_000_000
    assert 1 <= result.total("bytes") <= 20


def test_a_server_that_does_not_listen_refuses(drivers: Drivers, server: TestServer) -> None:
    access = ApiAccess(("https://127.0.0.1:1",), server.access.ca_file, server.credential)

    result = drivers.run("refused", server, [{"list": "pods"}], access=access, options=NO_RETRY)

    assert {"refused": 1} == result.outcomes()


def test_a_server_of_another_authority_is_not_spoken_to(
    drivers: Drivers, server: TestServer, foreign_ca_file: Path
) -> None:
    access = ApiAccess((server.url,), foreign_ca_file, server.credential)

    result = drivers.run("foreign", server, [{"list": "pods"}], access=access, options=NO_RETRY)

    assert {"tls": 1} == result.outcomes()
    assert [] == server.log("foreign")


@pytest.mark.parametrize(("greeting", "outcome"), [(b"", "timeout"), (b"HTTP/1.0 400 Bad Request\r\n\r\n", "tls")])
def test_a_server_that_does_not_speak_tls(drivers: Drivers, server: TestServer, greeting: bytes, outcome: str) -> None:
    def greet(listener: socket.socket) -> None:
        peer, _ = listener.accept()
        with peer, contextlib.suppress(ConnectionResetError):
            if greeting:
                peer.sendall(greeting)
            while peer.recv(1000):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=greet, args=(listener,))
        thread.start()
        access = ApiAccess(
            (f"https://127.0.0.1:{listener.getsockname()[1]}",), server.access.ca_file, server.credential
        )
        flow = f"mute-{outcome}"
        result = drivers.run(flow, server, [{"list": "pods", "timeout": "400ms"}], access=access, options=NO_RETRY)
        thread.join(10)

    assert {outcome: 1} == result.outcomes()


def test_agents_are_rolled_out_at_their_rate(drivers: Drivers, server: TestServer) -> None:
    began_s = time.monotonic()
    options = {"agents": {"count": 20, "rollout": "40/s"}}
    drivers.run(
        "paced", server, [{"get": "/ok"}], agents=20, options=options,
        until=lambda r: r.outcomes().get("200", 0) == 20,
    )  # fmt: skip
    times = [entry["time_s"] for entry in server.log("paced")]

    assert time.monotonic() - began_s >= 19 / 40
    assert times[-1] - times[0] >= 19 / 40 - 0.25
    assert 20 == len({entry["connection"] for entry in server.log("paced")})


def test_a_failed_answer_leaves_its_reason_in_a_sample(drivers: Drivers, server: TestServer) -> None:
    result = drivers.run(
        "sampled", server, [{"get": "/status/403", "label": "it"}], options=NO_RETRY, agents=10, nodes=("node-a",),
        until=lambda result: result.outcomes().get("403", 0) == 10,
    )  # fmt: skip

    assert 3 == len(result.samples)
    sample = result.samples[0]
    expected = ("it", "403", 403, "Forbidden", 'pods is forbidden: no "luck"', "node-a")
    assert expected == tuple(sample[key] for key in ("step", "outcome", "status", "reason", "message", "node"))


def test_retry_after_is_honoured_and_each_attempt_counts(drivers: Drivers, server: TestServer) -> None:
    result = drivers.run("retried", server, [{"get": "/retry?n=4"}], until=lambda result: "200" in result.outcomes())

    assert {"429": 4, "200": 1} == result.outcomes()


def test_an_agent_keeps_its_connection_over_many_requests(drivers: Drivers, server: TestServer) -> None:
    result = drivers.run(
        "kept-open", server, [{"get": "/ok", "every": "10ms"}], until=lambda r: r.outcomes().get("200", 0) >= 20
    )

    assert 1 == len({entry["connection"] for entry in server.log("kept-open")})
    assert 1 == result.histogram("connect_us").count
    assert {"agent"} == {name for entry in server.log("kept-open") for name in entry["subject"]}


def test_connection_close_is_obeyed(drivers: Drivers, server: TestServer) -> None:
    result = drivers.run(
        "closing", server, [{"get": "/close", "every": "10ms"}], until=lambda r: r.outcomes().get("200", 0) >= 5
    )

    log = server.log("closing")
    assert len(log) == len({entry["connection"] for entry in log}) == result.histogram("connect_us").count
    assert {"200"} == set(result.outcomes())
    assert 0 == result.total("reconnects")


def test_a_kept_connection_that_the_server_closed_is_replaced_silently_and_said_so(
    drivers: Drivers, server: TestServer
) -> None:
    result = drivers.run(
        "replaced", server, [{"get": "/drop", "every": "10ms"}], until=lambda r: r.outcomes().get("200", 0) >= 5
    )

    assert {"200"} == set(result.outcomes())
    assert 4 <= result.total("reconnects")


def test_steps_run_in_order_and_only_those_with_a_period_repeat(drivers: Drivers, server: TestServer) -> None:
    steps = [
        {"get": "/ok?a", "label": "first"},
        {"get": "/ok?b", "label": "second"},
        {"get": "/ok?c", "label": "again", "every": "50ms"},
    ]

    result = drivers.run("ordered", server, steps, until=lambda r: r.outcomes("again").get("200", 0) >= 3)

    assert ["/ok?a", "/ok?b", "/ok?c"] == [entry["target"] for entry in server.log("ordered")][:3]
    assert ({"200": 1}, {"200": 1}) == (result.outcomes("first"), result.outcomes("second"))


def test_pages_are_followed_to_the_end_without_naming_a_version(drivers: Drivers, server: TestServer) -> None:
    result = drivers.run(
        "paged", server, [{"list": "/pages", "limit": 2}], until=lambda r: r.outcomes().get("200", 0) >= 3
    )

    queries = [entry["query"] for entry in server.log("paged")]
    assert [
        {"limit": "2", "resourceVersion": "0"},
        {"limit": "2", "continue": "two/+"},
        {"limit": "2", "continue": "three"},
    ] == queries
    assert {"200": 3} == result.outcomes()


def test_an_expired_page_is_followed_by_the_whole_list(drivers: Drivers, server: TestServer) -> None:
    result = drivers.run(
        "expired", server, [{"list": "/expired", "limit": 2}], until=lambda r: r.outcomes().get("200", 0) >= 2
    )

    assert {"200": 2, "410": 1} == result.outcomes()
    assert {"resourceVersion": "0"} == server.log("expired")[-1]["query"]


def test_a_list_and_its_watch_share_a_version_and_the_watch_resumes_from_its_last_event(
    drivers: Drivers, server: TestServer
) -> None:
    result = drivers.run(
        "watched", server, [{"list": "/list"}, {"watch": "/watch?x=1", "label": "w"}],
        until=lambda r: r.outcomes("w").get("200", 0) >= 3,
    )  # fmt: skip

    versions = [entry["query"]["resourceVersion"] for entry in server.log("watched") if "watch" in entry["query"]]
    assert ["0", "45", "45"] == versions[:3]
    assert 3 * result.outcomes("w")["200"] >= result.total("events", "w") >= 6
    assert 2 == len({entry["connection"] for entry in server.log("watched")})


def test_an_error_event_410_reopens_the_watch_at_version_0(drivers: Drivers, server: TestServer) -> None:
    result = drivers.run(
        "gone", server, [{"list": "/list?a"}, {"watch": "/watch-gone", "label": "w", "consistency": "quorum"}],
        options=QUICK, until=lambda r: r.total("events", "w") >= 2,
    )  # fmt: skip

    assert {"200": 2, "410": 1} == result.outcomes("w")
    assert [("410", 410, "Expired")] == [(s["outcome"], s["status"], s["reason"]) for s in result.samples]


def test_a_watch_that_breaks_counts_once_more_as_it_broke(drivers: Drivers, server: TestServer) -> None:
    result = drivers.run(
        "broken", server, [{"watch": "/watch-broken", "label": "w"}], options=QUICK,
        until=lambda r: r.outcomes().get("cut_short", 0) >= 2,
    )  # fmt: skip

    versions = [entry["query"]["resourceVersion"] for entry in server.log("broken")]
    assert ["0", "77"] == versions[:2]
    assert result.outcomes()["cut_short"] <= result.outcomes()["200"] == result.histogram("latency_us").count


def test_protobuf_events_are_counted_by_their_frames(drivers: Drivers, server: TestServer) -> None:
    result = drivers.run(
        "protobuf", server, [{"watch": "/protobuf-watch", "accept": "protobuf"}], until=lambda r: r.total("events") >= 2
    )

    assert 2 * result.outcomes()["200"] >= result.total("events") >= 2
    accept = "Accept: application/vnd.kubernetes.protobuf;stream=watch,application/json;stream=watch"
    assert accept in server.log("protobuf")[0]["headers"]


def test_a_watch_list_is_over_with_its_initial_events_and_takes_a_connection_each_time(
    drivers: Drivers, server: TestServer
) -> None:
    result = drivers.run(
        "states", server, [{"watchList": "pods", "every": "50ms", "consistency": "quorum", "label": "state"}],
        until=lambda r: r.outcomes("state").get("200", 0) >= 3,
    )  # fmt: skip

    asked = server.log("states")
    assert {"200"} == set(result.outcomes())
    assert [("true", "", "NotOlderThan")] * 3 == [
        (entry["query"]["sendInitialEvents"], entry["query"]["resourceVersion"], entry["query"]["resourceVersionMatch"])
        for entry in asked[:3]
    ]
    assert len(asked) == len({entry["connection"] for entry in asked})
    # Until the last initial event: the server keeps the watch open for ever.
    assert (result.histogram("latency_us").maximum or 0) < 30e6


def test_a_watch_list_that_ends_before_its_state_is_whole_is_cut_short(drivers: Drivers, server: TestServer) -> None:
    steps = [{"watchList": "pods", "namespace": "ended", "label": "state"}]

    result = drivers.run("unwhole", server, steps, options=NO_RETRY)

    assert {"cut_short": 1} == result.outcomes()


def test_the_client_side_limit_holds_requests_back(drivers: Drivers, server: TestServer) -> None:
    began_s = time.monotonic()

    drivers.run(
        "limited", server, [{"get": "/ok", "every": "1ms"}], options={"limit": {"qps": 10, "burst": 2}},
        until=lambda r: r.outcomes().get("200", 0) >= 7,
    )  # fmt: skip

    assert time.monotonic() - began_s > 0.45


def test_each_agent_is_its_node_with_its_own_credential(
    drivers: Drivers, server: TestServer, authority: Authority
) -> None:
    nodes = ("node-a", "node-b", "node-c")
    credentials = tuple(authority.credential(node) for node in nodes)

    drivers.run(
        "nodes", server, [{"list": "pods", "fieldSelector": "spec.nodeName={node}"}], agents=6, options=NO_RETRY,
        nodes=nodes, node_credentials=credentials, until=lambda r: r.outcomes().get("404", 0) == 6,
    )  # fmt: skip

    seen = sorted((entry["query"]["fieldSelector"], *entry["subject"]) for entry in server.log("nodes"))
    assert sorted([(f"spec.nodeName={node}", node) for node in nodes] * 2) == seen


def test_a_bearer_token_is_sent_and_kept_out_of_the_journal(
    drivers: Drivers, server: TestServer, tmp_path: Path
) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("s3cret-t0ken\n")
    access = ApiAccess((server.url,), server.access.ca_file, Credential("sa", token_file=token_file))

    drivers.run("token", server, [{"get": "/ok"}], access=access)

    entry = server.log("token")[0]
    assert "Authorization: Bearer s3cret-t0ken" in entry["headers"]
    assert [] == entry["subject"]
    assert "s3cret" not in drivers.journal.read_text()


def test_agents_are_spread_over_source_addresses(drivers: Drivers, server: TestServer) -> None:
    drivers.run(
        "spread", server, [{"get": "/ok"}], agents=4, source_addresses=("127.0.1.1", "127.0.1.2"),
        until=lambda r: r.outcomes().get("200", 0) == 4,
    )  # fmt: skip

    assert ["127.0.1.1", "127.0.1.1", "127.0.1.2", "127.0.1.2"] == sorted(e["peer"] for e in server.log("spread"))


def test_a_flow_grows_and_shrinks_and_its_newest_agents_go_first(drivers: Drivers, server: TestServer) -> None:
    def gauges(result: Any) -> tuple[int, int, int]:
        return tuple(result.flows[-1][key] for key in ("target", "started", "connected")) if result.flows else (0, 0, 0)

    drivers.start("sized", server, [{"get": "/ok?{node}", "every": "50ms"}], agents=3, nodes=("n0", "n1", "n2"))
    drivers.wait_for("sized", lambda r: gauges(r) == (3, 3, 3))
    drivers.do(drivers.driver.set_target(SetTarget("sized", 5, 500.0, nodes=("n3", "n4"))))
    drivers.wait_for("sized", lambda r: gauges(r) == (5, 5, 5))
    drivers.do(drivers.driver.set_target(SetTarget("sized", 2)))
    drivers.wait_for("sized", lambda r: gauges(r) == (2, 2, 2))
    time.sleep(0.2)
    before = len(server.log("sized"))
    time.sleep(0.3)
    last = {entry["target"] for entry in server.log("sized")[before:]}
    drivers.do(drivers.driver.stop_flow("sized"))

    assert {"/ok?n0", "/ok?n1"} == last
    assert (2, 2, 2) == gauges(drivers.result("sized"))


def test_agents_of_nodes_that_are_gone_stop_and_new_nodes_get_theirs(drivers: Drivers, server: TestServer) -> None:
    drivers.start("moved", server, [{"get": "/ok?{node}", "every": "50ms"}], agents=3, nodes=("n0", "n1", "n2"))
    drivers.wait_for("moved", lambda r: bool(r.flows) and r.flows[-1]["connected"] == 3)
    drivers.do(drivers.driver.set_target(SetTarget("moved", 3, nodes=("n3",), gone=("n1",))))
    drivers.wait_for("moved", lambda r: r.flows[-1]["connected"] == 3 and "/ok?n3" in targets(server, "moved"))
    before = len(server.log("moved"))
    time.sleep(0.3)
    drivers.do(drivers.driver.stop_flow("moved"))

    assert {"/ok?n0", "/ok?n2", "/ok?n3"} == {entry["target"] for entry in server.log("moved")[before:]}


def test_agents_of_several_processes_each_stand_on_a_node_of_their_own(drivers: Drivers, server: TestServer) -> None:
    nodes = tuple(f"n{index}" for index in range(5))
    options = {"agents": {"perNode": 1, "rollout": "100/s", "processes": 2}}
    steps = [{"get": "/ok?{node}", "every": "50ms"}]
    drivers.start("many-processes", server, steps, agents=5, nodes=nodes, options=options)
    try:
        drivers.wait_for("many-processes", lambda r: bool(r.flows) and r.flows[-1]["connected"] == 5)
        change = SetTarget("many-processes", 7, nodes=("n5", "n6", "n7"), gone=("n0",))
        drivers.do(drivers.driver.set_target(change))
        wanted = {f"/ok?n{index}" for index in range(1, 8)}
        drivers.wait_for("many-processes", lambda r: r.flows[-1]["connected"] == 7)
        before = len(server.log("many-processes"))
        time.sleep(0.4)
        asked = server.log("many-processes")[before:]
        with pytest.raises(EnvironmentProblem, match="neither arrivals nor churn"):
            drivers.do(drivers.driver.set_rate(SetRate("many-processes", 5.0)))
    finally:
        drivers.do(drivers.driver.stop_flow("many-processes"))

    assert wanted == {entry["target"] for entry in asked}
    assert 7 == len({entry["connection"] for entry in asked})


def test_what_a_command_ended_is_counted(drivers: Drivers, server: TestServer) -> None:
    nodes = ("n0", "n1", "n2", "n3")
    drivers.start("ended", server, [{"watch": "/silent"}, {"get": "/silent"}], agents=4, nodes=nodes)
    drivers.wait_for("ended", lambda _: len(server.log("ended")) == 8)
    shrunk = drivers.do(drivers.driver.set_target(SetTarget("ended", 3, gone=("n1",))))
    lowered = drivers.do(drivers.driver.set_target(SetTarget("ended", 2)))
    blocked = drivers.do(drivers.driver.block("ended"))
    again = drivers.do(drivers.driver.block("ended"))
    drivers.do(drivers.driver.stop_flow("ended"))

    # Each agent has a request without an answer and a standing watch.
    assert FlowChanged("ended", 1, 2, 2) == shrunk
    assert FlowChanged("ended", 1, 2, 2) == lowered
    assert FlowChanged("ended", 0, 4, 4) == blocked
    assert FlowChanged("ended", 0, 0, 0) == again


def test_an_answer_that_nobody_waits_for_is_not_taken_for_the_next_one(drivers: Drivers, server: TestServer) -> None:
    async def give_up_and_ask_again() -> Any:
        driver = drivers.driver
        given_up = [asyncio.create_task(driver.set_target(SetTarget("given-up", 3))) for _ in range(3)]
        await asyncio.sleep(0)
        for task in given_up:
            task.cancel()
        return await driver.block("given-up")

    drivers.start("given-up", server, [{"get": "/silent"}], agents=4)
    drivers.wait_for("given-up", lambda _: len(server.log("given-up")) == 4)
    blocked = drivers.do(give_up_and_ask_again())
    drivers.do(drivers.driver.stop_flow("given-up"))

    assert FlowChanged("given-up", 0, 3, 3) == blocked


def test_a_command_about_a_flow_that_does_not_run_is_refused(drivers: Drivers) -> None:
    with pytest.raises(EnvironmentProblem, match="no flow 'nobody' is running"):
        drivers.do(drivers.driver.block("nobody"))


def targets(server: TestServer, flow: str) -> set[str]:
    return {entry["target"] for entry in server.log(flow)}


def test_a_blocked_path_refuses_and_an_unblocked_one_is_used_again(drivers: Drivers, server: TestServer) -> None:
    drivers.start("cut-off", server, [{"get": "/ok", "every": "50ms"}, {"watch": "/watch-gone?v=0"}], options=QUICK)
    drivers.wait_for("cut-off", lambda r: r.outcomes().get("200", 0) >= 3)
    drivers.do(drivers.driver.block("cut-off"))
    drivers.wait_for("cut-off", lambda r: r.outcomes().get("refused", 0) >= 3)
    drivers.wait_for("cut-off", lambda r: (r.flows[-1]["connected"], r.flows[-1]["blocked"]) == (0, 1))
    seen = len(server.log("cut-off"))
    drivers.do(drivers.driver.unblock("cut-off"))
    drivers.wait_for("cut-off", lambda r: (r.flows[-1]["connected"], r.flows[-1]["blocked"]) == (1, 0))
    drivers.do(drivers.driver.stop_flow("cut-off"))

    assert {"200", "refused", "reset"} >= set(drivers.result("cut-off").outcomes())
    assert seen < len(server.log("cut-off"))


def test_driver_records_say_lag_cpu_memory_and_sockets(drivers: Drivers, server: TestServer) -> None:
    def looked_at() -> list[Any]:
        drove = [record for record in drivers.records if record["kind"] == "driver" and record["sockets"] >= 3]
        return [record["unread_share"] for record in drove if record["unread_share"] is not None]

    before = len(looked_at())
    drivers.run("load", server, [{"get": "/silent"}], agents=3, until=lambda _: len(looked_at()) > before)

    records = [record for record in drivers.records if record["kind"] == "driver"]
    assert 0.0 == looked_at()[-1]
    last = records[-1]
    assert last["rss_bytes"] > 2**20
    assert last["cpu_s"] > 0
    assert last["lag_us"]["c"]


def test_the_journal_holds_the_same_records_as_the_pipe(drivers: Drivers, server: TestServer) -> None:
    drivers.run("same", server, [{"get": "/ok"}])

    journal = [json.loads(line) for line in Path(drivers.journal).read_text().splitlines()]
    assert drivers.result("same").records == [record for record in journal if record.get("flow") == "same"]
    assert {"driver"} == {record["src"] for record in journal}


def test_new_connections_choose_among_added_servers_and_old_ones_stay(drivers: Drivers, server: TestServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        port = elsewhere.getsockname()[1]
    drivers.start("elsewhere", server, [{"get": "/ok?bytes=1", "label": "it", "every": "50ms"}], options=QUICK)
    drivers.wait_for("elsewhere", lambda result: result.outcomes().get("200", 0) > 2)

    drivers.do(drivers.driver.set_servers(SetServers("elsewhere", (f"https://127.0.0.1:{port}",))))
    good = drivers.result("elsewhere").outcomes()["200"]
    drivers.wait_for("elsewhere", lambda result: result.outcomes()["200"] > good + 3)
    assert "refused" not in drivers.result("elsewhere").outcomes()
    drivers.do(drivers.driver.block("elsewhere"))
    drivers.do(drivers.driver.unblock("elsewhere"))
    drivers.wait_for("elsewhere", lambda result: "refused" in result.outcomes())
    drivers.do(drivers.driver.stop_flow("elsewhere"))
