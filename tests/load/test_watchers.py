"""Standing watches against a TLS server in another process."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from scaletest.load.protocol import FlowChanged, SetTarget
from tests.load.harness import Drivers, FlowResult, TestServer

QUICK = {"first": "50ms", "most": "100ms", "jitter": 0}
STANDING: list[dict[str, Any]] = [{"watch": "/watch-gone?node={node}", "label": "w"}]


def watchers(count: int, **options: Any) -> dict[str, Any]:
    return {"agents": None, "watchers": {"count": count}, "onError": QUICK} | options


def gauges(result: FlowResult) -> tuple[int, int, int]:
    return tuple(result.flows[-1][key] for key in ("target", "started", "connected")) if result.flows else (0, 0, 0)


def run(
    drivers: Drivers, flow: str, server: TestServer, steps: list[dict[str, Any]], until: Any, **more: Any
) -> FlowResult:
    count = more.pop("count", 1)
    options = watchers(count)
    return drivers.run(flow, server, steps, until=until, agents=count, options=options, **more)


def test_each_watch_has_a_connection_of_its_own_and_stands(drivers: Drivers, server: TestServer) -> None:
    # More than are opened at one time.
    result = run(
        drivers, "standing", server, STANDING, count=100, nodes=("a", "b"), until=lambda r: gauges(r) == (100, 100, 100)
    )

    log = server.log("standing")
    assert 100 == len(log) == len({entry["connection"] for entry in log})
    assert [50, 50] == [sum(entry["query"]["node"] == node for entry in log) for node in ("a", "b")]
    assert {"200": 100} == result.outcomes()
    assert (100, 0) == (result.total("events"), result.total("reconnects"))
    assert 100 == result.histogram("connect_us").count == result.histogram("latency_us").count


def test_watches_at_a_rate_are_evenly_spaced(drivers: Drivers, server: TestServer) -> None:
    began_s = time.monotonic()
    options = watchers(10, watchers={"count": 10, "rollout": "50/s"})
    drivers.run(
        "watch-paced", server, STANDING, agents=10, options=options, until=lambda r: gauges(r) == (10, 10, 10),
    )  # fmt: skip

    assert time.monotonic() - began_s > 9 / 50
    assert 10 == len(server.log("watch-paced"))


def test_watchers_take_the_steps_in_turn(drivers: Drivers, server: TestServer) -> None:
    steps = [{"watch": "/watch-gone?step=one", "label": "one"}, {"watch": "/watch-gone?step=two", "label": "two"}]
    result = run(drivers, "turns", server, steps, count=6, until=lambda r: gauges(r) == (6, 6, 6))

    assert ({"200": 3}, {"200": 3}) == (result.outcomes("one"), result.outcomes("two"))


def test_a_watch_that_its_server_ends_goes_on_from_its_last_version_and_is_counted_as_a_reconnect(
    drivers: Drivers, server: TestServer
) -> None:
    # It ends after 0.3 s, each time after three events, the last of them a bookmark of version 45.
    result = run(
        drivers, "resumed", server, [{"watch": "/watch", "label": "w"}], until=lambda r: r.total("reconnects") >= 2
    )

    versions = [entry["query"]["resourceVersion"] for entry in server.log("resumed")]
    assert ["0", "45", "45"] == versions[:3]
    assert result.outcomes()["200"] == 1 + result.total("reconnects")
    early = result.histogram("early_us")
    assert early.count >= 2
    assert 0.2e6 < early.quantile(0.5) < 5e6


def test_a_watch_that_lasts_as_long_as_it_asked_is_not_ended_early(drivers: Drivers, server: TestServer) -> None:
    result = run(
        drivers,
        "lasted",
        server,
        [{"watch": "/watch", "label": "w", "lasts": "1s"}],
        until=lambda r: r.total("reconnects") >= 1,
    )

    asked = [int(entry["query"]["timeoutSeconds"]) for entry in server.log("lasted")]
    assert {1} == set(asked)
    assert 0 == result.histogram("early_us").count


def test_a_watch_of_a_version_that_is_gone_starts_afresh_and_is_counted_as_a_reconnect(
    drivers: Drivers, server: TestServer
) -> None:
    steps = [{"watch": "/watch-gone", "label": "w", "consistency": "quorum"}]
    result = run(drivers, "afresh", server, steps, until=lambda r: r.total("reconnects") >= 1)

    assert [None, "0"] == [entry["query"].get("resourceVersion") for entry in server.log("afresh")]
    assert {"200": 2, "410": 1} == result.outcomes()
    assert 1 == result.histogram("early_us").count


def test_a_watch_that_is_refused_backs_off_and_is_no_reconnect(drivers: Drivers, server: TestServer) -> None:
    result = run(
        drivers,
        "watch-refused",
        server,
        [{"watch": "/status/403", "label": "w"}],
        until=lambda r: r.outcomes().get("403", 0) >= 3,
    )

    assert {"403"} == set(result.outcomes())
    assert 0 == result.total("reconnects")
    assert 0 == max(record["connected"] for record in result.flows)
    assert "Forbidden" == result.samples[0]["reason"]


def test_watches_follow_the_target_and_the_nodes_and_the_newest_go_first(drivers: Drivers, server: TestServer) -> None:
    drivers.start("followed", server, STANDING, agents=3, options=watchers(3), nodes=("n0", "n1", "n2"))
    drivers.wait_for("followed", lambda r: gauges(r) == (3, 3, 3))
    drivers.do(drivers.driver.set_target(SetTarget("followed", 5, nodes=("n3", "n4"))))
    drivers.wait_for("followed", lambda r: gauges(r) == (5, 5, 5))
    gone = drivers.do(drivers.driver.set_target(SetTarget("followed", 4, gone=("n1",))))
    drivers.wait_for("followed", lambda r: gauges(r) == (4, 4, 4))
    lowered = drivers.do(drivers.driver.set_target(SetTarget("followed", 2)))
    drivers.wait_for("followed", lambda r: gauges(r) == (2, 2, 2))
    drivers.do(drivers.driver.stop_flow("followed"))

    assert FlowChanged("followed", 1, 1, 1) == gone
    assert FlowChanged("followed", 2, 2, 2) == lowered
    assert ["n0", "n1", "n2", "n3", "n4"] == sorted(entry["query"]["node"] for entry in server.log("followed"))
    assert {"200": 5} == drivers.result("followed").outcomes()


def test_watches_whose_path_is_blocked_break_and_stand_again_when_it_is_open(
    drivers: Drivers, server: TestServer
) -> None:
    drivers.start("parted", server, STANDING, agents=4, options=watchers(4))
    drivers.wait_for("parted", lambda r: gauges(r) == (4, 4, 4))
    blocked = drivers.do(drivers.driver.block("parted"))
    drivers.wait_for("parted", lambda r: gauges(r) == (4, 4, 0) and r.outcomes().get("refused", 0) >= 4)
    drivers.do(drivers.driver.unblock("parted"))
    drivers.wait_for("parted", lambda r: gauges(r) == (4, 4, 4))
    drivers.do(drivers.driver.stop_flow("parted"))

    result = drivers.result("parted")
    assert FlowChanged("parted", 0, 4, 4) == blocked
    assert 4 == result.total("reconnects")
    assert 4 == result.outcomes()["reset"]
    assert 0 == result.histogram("early_us").count


def test_two_processes_share_the_watches_and_the_nodes(drivers: Drivers, server: TestServer) -> None:
    options = watchers(8, watchers={"count": 8, "processes": 2})
    drivers.start("shared-watches", server, STANDING, agents=8, nodes=("a", "b", "c"), options=options)
    try:
        drivers.wait_for("shared-watches", lambda r: gauges(r) == (8, 8, 8))
        grown = drivers.do(drivers.driver.set_target(SetTarget("shared-watches", 9, nodes=("d", "e"), gone=("a",))))
        drivers.wait_for("shared-watches", lambda r: gauges(r) == (9, 9, 9))
        time.sleep(0.2)
        workers = next(record["workers"] for record in reversed(drivers.records) if record["kind"] == "driver")
        blocked = drivers.do(drivers.driver.block("shared-watches"))
    finally:
        drivers.do(drivers.driver.stop_flow("shared-watches"))
    result = drivers.result("shared-watches")
    by_node = Counter(entry["query"]["node"] for entry in server.log("shared-watches"))

    assert 2 == len({worker["pid"] for worker in workers})
    # First a and c were one process's, and b the other's; without a, the one got d and the other e.
    assert {"a", "b", "c", "d", "e"} == set(by_node)
    assert FlowChanged("shared-watches", by_node["a"], by_node["a"], by_node["a"]) == grown
    assert FlowChanged("shared-watches", 0, 9, 9) == blocked
    assert sum(by_node.values()) == result.outcomes()["200"] == result.histogram("connect_us").count
    assert result.total("events") >= result.outcomes()["200"]
