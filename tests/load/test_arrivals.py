"""Arrivals against a real TLS server, in a real driver process, over the real protocol."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import socket
import statistics
import time
from pathlib import Path
from typing import Any

import pytest

from scaletest.core.access import ApiAccess
from scaletest.core.errors import EnvironmentProblem
from scaletest.core.histogram import Histogram
from scaletest.load.protocol import FlowStart, SetRate, SetTarget
from scaletest.profile.schema import FlowSpec
from tests.load.harness import Drivers, FlowResult, TestServer

OK = {"get": "/ok", "label": "ok"}


def begin(
    drivers: Drivers,
    flow: str,
    server: TestServer,
    mix: list[dict[str, Any]],
    *,
    access: ApiAccess | None = None,
    nodes: tuple[str, ...] = (),
    **arrivals: Any,
) -> None:
    spec = FlowSpec.model_validate({"arrivals": {"connections": 4} | arrivals, "mix": mix})
    drivers.do(drivers.driver.start_flow(FlowStart(flow, spec, access or server.access, spec.target(0), nodes)))


def run(
    drivers: Drivers,
    flow: str,
    server: TestServer,
    mix: list[dict[str, Any]],
    *,
    requests: int = 1,
    access: ApiAccess | None = None,
    **arrivals: Any,
) -> FlowResult:
    """Run a flow until so many requests have ended, then stop it."""
    begin(drivers, flow, server, mix, access=access, **arrivals)
    try:
        drivers.wait_for(flow, lambda result: sum(result.outcomes().values()) >= requests)
    finally:
        drivers.do(drivers.driver.stop_flow(flow))
    return drivers.result(flow)


def arrivals_of(result: FlowResult, key: str) -> int:
    return sum(record["arrivals"][key] for record in result.flows)


def socket_descriptors(drivers: Drivers) -> set[str]:
    """File descriptors of the driver process that are sockets."""
    directory = Path(f"/proc/{drivers.driver.process_id.pid}/fd")
    found: set[str] = set()
    for link in directory.iterdir():
        # One may be closed meanwhile.
        with contextlib.suppress(FileNotFoundError):
            if str(link.readlink()).startswith("socket:"):
                found.add(link.name)
    return found


def lag_us(result: FlowResult) -> Histogram:
    return Histogram.merged(Histogram.from_json(record["arrivals"]["lag_us"]) for record in result.flows)


def test_every_arrival_is_sent_and_counted_once(drivers: Drivers, server: TestServer) -> None:
    result = run(drivers, "counted", server, [OK], rate="200/s", requests=60)

    requests = result.outcomes()["200"]
    assert {"200": requests} == result.outcomes()
    assert requests == arrivals_of(result, "due") == arrivals_of(result, "sent") == len(server.log("counted"))
    assert requests * 100 == result.total("bytes")
    assert requests == result.histogram("latency_us").count == result.histogram("service_us").count
    assert requests == lag_us(result).count
    assert 0 == arrivals_of(result, "dropped") == result.flows[-1]["arrivals"]["in_flight"]
    assert 200.0 == result.flows[0]["arrivals"]["rate_per_s"]


def test_connections_are_opened_before_the_first_arrival_and_kept(drivers: Drivers, server: TestServer) -> None:
    result = run(drivers, "kept", server, [OK], rate="200/s", requests=40, connections=3)

    assert 3 == result.histogram("connect_us").count
    assert 3 == len({entry["connection"] for entry in server.log("kept")})
    assert {3} == {record["target"] for record in result.flows} == {record["connected"] for record in result.flows}


def test_without_keep_alive_each_request_has_its_own_connection(drivers: Drivers, server: TestServer) -> None:
    result = run(drivers, "fresh", server, [OK], rate="50/s", requests=10, keepAlive=False)

    log = server.log("fresh")
    assert len(log) == len({entry["connection"] for entry in log}) == result.histogram("connect_us").count


def test_latency_counts_from_the_intended_start_and_service_from_the_send(drivers: Drivers, server: TestServer) -> None:
    # One connection that is busy for 0.1 s with each request, and an arrival every 25 ms: the queue grows.
    slow = {"get": "/slow?s=0.1", "label": "slow"}

    result = run(drivers, "queue", server, [slow], rate="40/s", process="even", connections=1, requests=6)

    latency, service = result.histogram("latency_us"), result.histogram("service_us")
    assert latency.quantile(1) > 3 * service.quantile(1)
    assert lag_us(result).quantile(0.5) < service.quantile(0.5)
    assert max(record["arrivals"]["waiting"] for record in result.flows) > 2


def test_arrivals_beyond_the_most_in_flight_are_dropped_and_counted(drivers: Drivers, server: TestServer) -> None:
    begin(drivers, "full", server, [{"get": "/silent", "label": "it"}], rate="200/s", maxInFlight=6)
    result = drivers.wait_for("full", lambda result: arrivals_of(result, "dropped") > 20)
    drivers.do(drivers.driver.stop_flow("full"))

    result = drivers.result("full")
    assert 6 == arrivals_of(result, "due") - arrivals_of(result, "dropped")
    assert {4} == {record["connected"] for record in result.flows}
    # What had not ended when the flow was stopped is not lost: 4 on the wire, 2 that waited.
    assert (
        6
        == result.flows[-1]["arrivals"]["in_flight"]
        == max(record["arrivals"]["in_flight"] for record in result.flows)
    )
    assert {} == result.outcomes()


def test_a_time_out_counts_from_the_intended_start_also_of_those_that_wait(
    drivers: Drivers, server: TestServer
) -> None:
    silent = {"get": "/silent", "label": "it", "timeout": "300ms"}

    result = run(drivers, "late", server, [silent], rate="40/s", connections=1, requests=12)

    assert {"timeout"} == set(result.outcomes())
    failed = result.histogram("failed_us")
    assert failed.minimum is not None
    assert failed.minimum >= 300_000
    # The connection of a request that timed out is not used again.
    assert result.histogram("connect_us").count >= 2
    assert arrivals_of(result, "sent") < sum(result.outcomes().values())


@pytest.mark.parametrize(
    ("path", "outcome"),
    [
        ("/status/403", "403"),
        ("/status/503", "503"),
        ("/cut", "cut_short"),
        ("/rst", "reset"),
        ("/garbage", "malformed"),
    ],
)
def test_a_failure_has_its_outcome_and_a_reason(drivers: Drivers, server: TestServer, path: str, outcome: str) -> None:
    flow = "failure" + "".join(c for c in path if c.isalnum())

    result = run(drivers, flow, server, [{"get": path, "label": "it"}], rate="100/s", requests=8)

    assert {outcome} == set(result.outcomes())
    assert 0 == result.histogram("latency_us").count
    assert 3 == len(result.samples)
    if outcome.isdigit():
        assert "Forbidden" == result.samples[0]["reason"]


@pytest.mark.parametrize(
    ("path", "body_bytes"),
    [
        ("/ok?bytes=0", 0),
        ("/ok?bytes=3000000", 3_000_000),
        ("/chunked?bytes=100000", 100_000),
        ("/until-close?bytes=5000", 5000),
        ("/hundred?bytes=77", 77),
        ("/close?bytes=8", 8),
    ],
)
def test_a_good_answer_is_counted_with_its_body_bytes(
    drivers: Drivers, server: TestServer, path: str, body_bytes: int
) -> None:
    flow = "arrive" + "".join(c for c in path if c.isalnum())

    result = run(drivers, flow, server, [{"get": path, "label": "it"}], rate="40/s", requests=3)

    assert {"200"} == set(result.outcomes())
    assert result.outcomes()["200"] * body_bytes == result.total("bytes")


def test_nobody_listening_is_refused_and_does_not_stop_the_pacer(drivers: Drivers, server: TestServer) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        access = ApiAccess(
            (f"https://127.0.0.1:{closed.getsockname()[1]}",), server.authority.ca_file, server.credential
        )

        result = run(drivers, "nobody", server, [OK], access=access, rate="100/s", requests=10)

    assert {"refused"} == set(result.outcomes())
    assert 0 == arrivals_of(result, "sent")


def test_a_kept_connection_that_the_server_closed_is_replaced_silently(drivers: Drivers, server: TestServer) -> None:
    result = run(drivers, "dropped", server, [{"get": "/drop", "label": "it"}], rate="50/s", connections=1, requests=8)

    assert {"200"} == set(result.outcomes())
    assert result.total("reconnects") >= 3


def test_a_create_that_finds_all_names_taken_deletes_one_first(drivers: Drivers, server: TestServer) -> None:
    mix = [{"create": "configmaps", "label": "make"}]

    result = run(drivers, "writes", server, mix, rate="60/s", objects=50, requests=30)

    posts = [entry for entry in server.log("writes") if entry["method"] == "POST"]
    names = [json.loads(entry["content"])["metadata"]["name"] for entry in posts]
    # All 50 are made beforehand; a create then follows the delete of the one that it makes again.
    assert 50 == len(set(names))
    assert {"201"} == set(result.outcomes("make"))
    assert {"200"} == set(result.outcomes("delete-configmaps"))
    # As many as there are connections may be under way.
    assert abs(sum(result.outcomes("make").values()) - sum(result.outcomes("delete-configmaps").values())) <= 4


def test_writes_are_about_objects_of_its_own_and_differ_each_time(drivers: Drivers, server: TestServer) -> None:
    mix: list[dict[str, Any]] = [
        {"get": "configmaps", "label": "get"},
        {"put": "configmaps", "label": "put", "size": "2KB"},
        {"patch": "configmaps", "label": "merge"},
        {"patch": "configmaps", "patchType": "apply", "label": "apply"},
        {"delete": "configmaps", "label": "delete", "weight": 0.5},
        {"create": "configmaps", "label": "create", "weight": 0.5},
    ]

    result = run(drivers, "own", server, mix, rate="300/s", objects=20, requests=150)

    assert {"200", "201"} == set(result.outcomes())
    log = [entry for entry in server.log("own") if not entry["path"].endswith("/configmaps")]
    assert {f"scaletest-own-{index:06}" for index in range(20)} == {entry["path"].split("/")[-1] for entry in log}
    puts = [entry["content"] for entry in log if entry["method"] == "PUT"]
    assert len(puts) == len({json.loads(content)["data"]["revision"] for content in puts}) > 5
    assert {2000} == {len(content) for content in puts}
    for entry in log:
        if entry["method"] == "PUT":
            assert json.loads(entry["content"])["metadata"]["name"] == entry["path"].split("/")[-1]
    kinds = {next(h for h in entry["headers"] if h.startswith("Content-Type")) for entry in log if entry["content"]}
    assert {
        "Content-Type: application/json",
        "Content-Type: application/merge-patch+json",
        "Content-Type: application/apply-patch+yaml",
    } == kinds
    # At the end, all of them are removed.
    last = server.log("own")[-1]
    assert ("DELETE", "scaletest.dev/flow=own") == (last["method"], last["query"]["labelSelector"])


def test_objects_that_cannot_be_made_end_the_start_with_the_reason(drivers: Drivers, server: TestServer) -> None:
    with pytest.raises(EnvironmentProblem, match=r"its secrets could not be made: 404: not found"):
        begin(drivers, "unmade", server, [{"patch": "secrets"}], rate="10/s")

    assert [] == drivers.result("unmade").flows


def test_the_pages_of_a_list_follow_each_other(drivers: Drivers, server: TestServer) -> None:
    mix = [{"list": "/pages", "limit": 2, "label": "it"}]

    result = run(drivers, "pages", server, mix, rate="20/s", requests=9)

    pages = [entry["query"].get("continue", "") for entry in server.log("pages")]
    assert pages.count("") == arrivals_of(result, "sent") == arrivals_of(result, "due")
    assert pages.count("") == pages.count("two/+") == pages.count("three")
    assert len(pages) == result.outcomes()["200"]


def test_a_watch_list_ends_with_its_initial_events(drivers: Drivers, server: TestServer) -> None:
    mix = [{"watchList": "pods", "label": "it"}]

    result = run(drivers, "state", server, mix, rate="20/s", requests=4)

    assert {"200"} == set(result.outcomes())
    assert "true" == server.log("state")[0]["query"]["sendInitialEvents"]
    assert len(server.log("state")) == len({entry["connection"] for entry in server.log("state")})


def test_a_closed_loop_asks_again_when_it_was_answered(drivers: Drivers, server: TestServer) -> None:
    slow = {"get": "/slow?s=0.02", "label": "slow"}

    result = run(drivers, "closed", server, [slow], process="closed", connections=3, requests=20)

    assert 3 == len({entry["connection"] for entry in server.log("closed")})
    assert max(record["arrivals"]["in_flight"] for record in result.flows) == 3
    latency, service = result.histogram("latency_us"), result.histogram("service_us")
    assert latency.total - service.total < 0.05 * latency.total


def test_the_number_of_connections_can_change(drivers: Drivers, server: TestServer) -> None:
    slow = {"get": "/slow?s=0.02", "label": "slow"}
    begin(drivers, "resized", server, [slow], process="closed", connections=1)

    drivers.do(drivers.driver.set_target(SetTarget("resized", 5)))
    drivers.wait_for("resized", lambda result: bool(result.flows) and result.flows[-1]["connected"] == 5)
    drivers.do(drivers.driver.set_target(SetTarget("resized", 2)))
    drivers.wait_for("resized", lambda result: result.flows[-1]["connected"] == 2)
    drivers.do(drivers.driver.stop_flow("resized"))

    assert {"200"} == set(drivers.result("resized").outcomes())


def test_the_rate_can_change_without_a_new_connection(drivers: Drivers, server: TestServer) -> None:
    begin(drivers, "rate", server, [OK], rate="20/s", process="even")
    drivers.wait_for("rate", lambda result: sum(result.outcomes().values()) > 3)

    drivers.do(drivers.driver.set_rate(SetRate("rate", 300.0)))
    result = drivers.wait_for("rate", lambda result: sum(result.outcomes().values()) > 100)
    drivers.do(drivers.driver.stop_flow("rate"))

    assert 4 == result.histogram("connect_us").count
    assert {20.0, 300.0} == {record["arrivals"]["rate_per_s"] for record in result.flows}
    times = [entry["time_s"] for entry in server.log("rate")]
    late, early = times[-50:], times[:4]
    assert (late[-1] - late[0]) / 49 < (early[-1] - early[0]) / 3 / 5
    assert [300.0] == [item["rate_per_s"] for item in result.records if item["kind"] == "flow.rate"]


def test_agents_have_no_rate_to_set(drivers: Drivers, server: TestServer) -> None:
    drivers.start("agents-no-rate", server, [{"get": "/ok", "every": "1s"}])
    with pytest.raises(EnvironmentProblem, match="has neither arrivals nor churn"):
        drivers.do(drivers.driver.set_rate(SetRate("agents-no-rate", 10.0)))
    drivers.do(drivers.driver.stop_flow("agents-no-rate"))


def test_a_blocked_path_refuses_arrivals_until_it_is_opened(drivers: Drivers, server: TestServer) -> None:
    begin(drivers, "blocked", server, [OK], rate="100/s")
    drivers.wait_for("blocked", lambda result: result.outcomes().get("200", 0) > 5)

    changed = drivers.do(drivers.driver.block("blocked"))
    drivers.wait_for("blocked", lambda result: result.outcomes().get("refused", 0) > 5)
    before = len(server.log("blocked"))
    drivers.do(drivers.driver.unblock("blocked"))
    drivers.wait_for("blocked", lambda result: len(server.log("blocked")) > before)
    drivers.do(drivers.driver.stop_flow("blocked"))

    assert 4 == changed.connections_closed
    assert {"200", "refused", "reset"} >= set(drivers.result("blocked").outcomes())


def test_what_was_cut_does_not_disturb_the_connections_that_get_its_descriptors(
    drivers: Drivers, server: TestServer
) -> None:
    # Agents close by gevent, which throws into who reads, later; arrivals have watchers of their own in the same loop.
    others = socket_descriptors(drivers)
    drivers.start("cut", server, [{"watch": "/silent"}, {"get": "/silent"}], agents=4)
    drivers.wait_for("cut", lambda _: len(server.log("cut")) == 8)
    cut = socket_descriptors(drivers) - others

    changed = drivers.do(drivers.driver.block("cut"))
    begin(drivers, "after", server, [OK], rate="200/s", connections=8)
    reused = cut & socket_descriptors(drivers)
    drivers.wait_for("after", lambda result: sum(result.outcomes().values()) >= 40)
    drivers.do(drivers.driver.stop_flow("after"))
    drivers.do(drivers.driver.stop_flow("cut"))

    result = drivers.result("after")
    assert 8 == changed.connections_closed
    assert reused
    assert {"200"} == set(result.outcomes())
    assert 8 == result.histogram("connect_us").count
    assert {"reset": 8} == {key: count for key, count in drivers.result("cut").outcomes().items() if key != "refused"}


def test_requests_are_mixed_by_weight(drivers: Drivers, server: TestServer) -> None:
    mix: list[dict[str, Any]] = [
        {"get": "/ok", "label": "often", "weight": 3},
        {"get": "/ok?bytes=7", "label": "seldom"},
    ]

    result = run(drivers, "mixed", server, mix, rate="400/s", requests=300)

    often, seldom = (sum(result.outcomes(step).values()) for step in ("often", "seldom"))
    total = often + seldom
    # Three standard deviations of a binomial.
    assert abs(seldom - total / 4) < 3 * math.sqrt(total * 0.25 * 0.75)


def test_names_of_a_range_are_drawn(drivers: Drivers, server: TestServer) -> None:
    mix = [{"get": "nodes", "name": "gpu-[08-11]", "label": "it", "consistency": "quorum"}]

    result = run(drivers, "range", server, mix, rate="200/s", requests=40)

    assert {"404"} == set(result.outcomes())
    assert {f"/api/v1/nodes/gpu-{number}" for number in ("08", "09", "10", "11")} == {
        entry["target"] for entry in server.log("range")
    }


@pytest.mark.parametrize("bytes_", [200_000, 300_000, 5_000_000])
def test_large_bodies_are_read_whole_at_several_at_once(drivers: Drivers, server: TestServer, bytes_: int) -> None:
    mix = [{"get": f"/chunked?bytes={bytes_}", "label": "large"}]

    result = run(drivers, f"large{bytes_}", server, mix, process="closed", connections=3, requests=12)

    assert {"200"} == set(result.outcomes())
    assert result.outcomes()["200"] * bytes_ == result.total("bytes")
    assert 3 == result.histogram("connect_us").count


def test_a_time_out_within_a_body_that_trickles(drivers: Drivers, server: TestServer) -> None:
    mix = [{"get": "/trickle?s=0.02", "label": "it", "timeout": "300ms"}]

    result = run(drivers, "trickles", server, mix, rate="20/s", requests=4)

    assert {"timeout"} == set(result.outcomes())


def test_even_arrivals_are_evenly_sent(drivers: Drivers, server: TestServer) -> None:
    run(drivers, "even", server, [OK], rate="100/s", process="even", requests=60)

    times = [entry["time_s"] for entry in server.log("even")]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert abs(statistics.median(gaps) - 0.010) < 0.003


def test_a_locustfile_hears_of_arrivals(drivers: Drivers, server: TestServer, tmp_path: Any) -> None:
    (tmp_path / "listener.py").write_text(
        "from locust import User, constant, events, task\n"
        f"FILE = {str(tmp_path / 'heard')!r}\n"
        "@events.request.add_listener\n"
        "def heard(request_type, name, start_time, response_time, response_length, exception, **_):\n"
        "    with open(FILE, 'a') as file: print(request_type, name, start_time, response_length, exception, file=file)\n"
        "class Nobody(User):\n"
        "    wait_time = constant(60)\n"
        "    @task\n"
        "    def nothing(self): pass\n"
    )
    spec = FlowSpec.model_validate({"locustfile": {"path": "listener.py", "users": 1, "spawn": "1/s"}})
    drivers.do(drivers.driver.start_flow(FlowStart("listener", spec, server.access, 1, directory=tmp_path)))
    began_s = time.time()
    result = run(drivers, "heard", server, [OK], rate="100/s", requests=10)
    drivers.do(drivers.driver.stop_flow("listener"))

    lines = [line.split() for line in (tmp_path / "heard").read_text().splitlines()]
    mine = [line for line in lines if line[1] == "heard/ok"]
    assert len(mine) == sum(result.outcomes().values())
    assert {("GET", "100", "None")} == {(line[0], line[3], line[4]) for line in mine}
    assert all(0 <= float(line[2]) - began_s < 30 for line in mine)


def test_two_processes_share_a_flow_and_its_arrivals_are_counted_once(drivers: Drivers, server: TestServer) -> None:
    # The fleet's nodes are none of their business.
    begin(drivers, "shared", server, [OK], rate="100/s", process="even", processes=2, connections=3, nodes=("a",))
    try:
        drivers.wait_for("shared", lambda result: sum(result.outcomes().values()) >= 60)
        drivers.do(drivers.driver.set_rate(SetRate("shared", 200.0)))
        drivers.wait_for("shared", lambda result: sum(result.outcomes().values()) >= 150)
        workers = [record["workers"] for record in drivers.records if record["kind"] == "driver"][-1]
    finally:
        drivers.do(drivers.driver.stop_flow("shared"))
    result = drivers.result("shared")
    asked = [entry["connection"] for entry in server.log("shared")]
    # Two connections are one process's, the third is the other's.
    second = min(set(asked), key=lambda item: abs(2 * asked.count(item) - len(asked)))

    assert 2 == len({worker["pid"] for worker in workers})
    assert arrivals_of(result, "sent") == sum(result.outcomes().values()) == len(asked)
    # On a busy machine some wait for a connection at the end.
    assert arrivals_of(result, "due") == len(asked) + result.flows[-1]["arrivals"]["in_flight"]
    assert 3 == len(set(asked)) == result.histogram("connect_us").count
    # Each at every second point of one schedule; a busy machine may have held one of them up at the end.
    assert abs(2 * asked.count(second) - len(asked)) <= 0.1 * len(asked)
    assert 200.0 == result.flows[-2]["arrivals"]["rate_per_s"]


def test_processes_have_objects_of_their_own_which_one_of_them_removes(drivers: Drivers, server: TestServer) -> None:
    mix = [{"patch": "configmaps", "namespace": "shared"}]
    begin(drivers, "shared-own", server, mix, rate="50/s", processes=2, objects=5)
    try:
        drivers.wait_for("shared-own", lambda result: sum(result.outcomes().values()) >= 20)
    finally:
        drivers.do(drivers.driver.stop_flow("shared-own"))
    log = server.log("shared-own")
    made = [json.loads(entry["content"])["metadata"]["name"] for entry in log if entry["method"] == "POST"]

    assert {"200"} == set(drivers.result("shared-own").outcomes())
    assert [f"scaletest-shared-own-00000{number}" for number in range(5)] == sorted(made)
    assert ["DELETE"] == [entry["method"] for entry in log if entry["method"] == "DELETE"]
    assert "DELETE" == log[-1]["method"]


def test_a_process_that_cannot_begin_is_the_flows_failure(drivers: Drivers, server: TestServer) -> None:
    with pytest.raises(EnvironmentProblem, match="its secrets could not be made: 404: not found"):
        begin(drivers, "shared-refused", server, [{"put": "secrets"}], rate="50/s", processes=2)
