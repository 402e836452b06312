"""A churn flow in a real driver process, against a server that does what controllers, scheduler and nodes would do."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from scaletest.core.errors import EnvironmentProblem
from scaletest.core.histogram import Histogram
from scaletest.load.protocol import FlowStart, SetRate, SetTarget
from scaletest.profile.schema import FlowSpec
from tests.load.harness import Drivers, FlowResult, TestServer


def begin(drivers: Drivers, flow: str, server: TestServer, **churn: Any) -> None:
    spec = FlowSpec.model_validate({"churn": churn})
    drivers.do(drivers.driver.start_flow(FlowStart(flow, spec, server.access, spec.target(0))))


def stop(drivers: Drivers, flow: str) -> FlowResult:
    drivers.do(drivers.driver.stop_flow(flow))
    return drivers.result(flow)


def total(result: FlowResult, key: str) -> int:
    return sum(record["churn"][key] for record in result.flows)


def startups(result: FlowResult, key: str = "startup_us") -> Histogram:
    return Histogram.merged(Histogram.from_json(record["churn"][key]) for record in result.flows)


def steps(result: FlowResult) -> dict[str, dict[str, int]]:
    names = {name for record in result.flows for name in record["steps"]}
    return {name: result.outcomes(name) for name in names}


def test_a_population_is_built_changed_and_removed_and_its_pods_are_seen_to_start(
    drivers: Drivers, server: TestServer
) -> None:
    sizes = [{"pods": 5, "share": "100%"}]
    begin(
        drivers, "churn-all", server, pods=40, rate="400/s", rollout="1000/s", sizes=sizes, jobs="25%", barePods="10%"
    )
    kinds = {f"{act}-{kind}" for kind in ("job", "pod") for act in ("create", "delete")}
    kinds |= {f"{act}-deployment" for act in ("create", "scale", "roll", "delete")}
    drivers.wait_for("churn-all", lambda result: kinds <= steps(result).keys())
    result = stop(drivers, "churn-all")

    # All went well, in the order of each group's life.
    assert {"200", "201"} == set(result.outcomes())
    assert 40 == max(record["target"] for record in result.flows)
    most = max(record["started"] for record in result.flows)
    assert 20 <= most <= 60
    assert total(result, "moved") > 80
    # Every pod that was made was seen to start.
    assert startups(result).count == startups(result, "scheduling_us").count > 40
    assert startups(result).quantile(0.5) < 1e6
    assert 0 == total(result, "late") == result.flows[-1]["churn"]["pending"]
    assert result.total("events", "watch-pods") > 3 * startups(result).count
    # Requests are those of the API, about objects that the flow has named itself, one after the other.
    log = server.log("churn-all")
    made = Counter(
        entry["path"] + "/" + json.loads(entry["content"])["metadata"]["name"]
        for entry in log
        if entry["method"] == "POST"
    )
    assert {1} == set(made.values())
    gone = [entry["target"] for entry in log if entry["method"] == "DELETE"]
    assert all(target.endswith("?propagationPolicy=Background") for target in gone[:-1])
    (namespace,) = [path for path in made if path.startswith("/api/v1/namespaces/") and path.count("/") == 4]
    assert namespace == gone[-1]


def test_the_rate_counts_pods_and_can_be_changed(drivers: Drivers, server: TestServer) -> None:
    # Only bare pods, of which each operation creates or deletes one.
    begin(drivers, "churn-rate", server, pods=10, rate="20/s", rollout="1000/s", jobs=0, barePods="100%")
    drivers.wait_for("churn-rate", lambda result: result.outcomes("delete-pod").get("200", 0) > 3)
    slow = [record["arrivals"] for record in drivers.result("churn-rate").flows]
    drivers.do(drivers.driver.set_rate(SetRate("churn-rate", 200.0)))
    drivers.wait_for("churn-rate", lambda result: result.outcomes("delete-pod").get("200", 0) > 60)
    result = stop(drivers, "churn-rate")

    assert 20.0 in {item["rate_per_s"] for item in slow}
    assert 200.0 == result.flows[-2]["arrivals"]["rate_per_s"]
    # The schedule is that of pods; each operation is about one.
    begun = sum(record["arrivals"]["due"] - record["arrivals"]["dropped"] for record in result.flows)
    ended = sum(result.outcomes().values()) - sum(result.outcomes("watch-pods").values())
    assert begun == ended + result.flows[-1]["arrivals"]["in_flight"]


def test_a_population_grows_and_shrinks(drivers: Drivers, server: TestServer) -> None:
    begin(drivers, "churn-size", server, pods=10, rate="200/s", jobs=0, barePods="100%")
    drivers.wait_for("churn-size", lambda result: any(record["started"] == 10 for record in result.flows))

    drivers.do(drivers.driver.set_target(SetTarget("churn-size", 30)))
    drivers.wait_for("churn-size", lambda result: any(record["started"] == 30 for record in result.flows))
    drivers.do(drivers.driver.set_target(SetTarget("churn-size", 5)))
    drivers.wait_for("churn-size", lambda result: result.flows[-1]["started"] <= 5)

    assert 5 == stop(drivers, "churn-size").flows[-1]["target"]


def test_pods_that_do_not_start_are_late_and_the_churn_goes_on(drivers: Drivers, server: TestServer) -> None:
    begin(drivers, "churn-late", server, pods=6, rate="100/s", jobs=0, barePods="100%", startWithin="300ms")
    drivers.wait_for("churn-late", lambda result: result.outcomes("delete-pod").get("200", 0) > 3)
    result = stop(drivers, "churn-late")

    assert 6 == total(result, "late")
    assert 0 == startups(result).count


def test_a_namespace_that_cannot_be_made_ends_the_start_with_what_the_server_said(
    drivers: Drivers, server: TestServer
) -> None:
    with pytest.raises(EnvironmentProblem, match=r"could not be made: 403: no namespaces for you") as caught:
        begin(drivers, "churn-denied", server, pods=5)
    assert "may its identity create namespaces" in (caught.value.hint or "")


def test_a_blocked_path_closes_the_watch_too_and_it_comes_back(drivers: Drivers, server: TestServer) -> None:
    begin(drivers, "churn-block", server, pods=5, rate="100/s", jobs=0, barePods="100%")
    drivers.wait_for("churn-block", lambda result: startups(result).count > 10)
    changed = drivers.do(drivers.driver.block("churn-block"))
    drivers.wait_for("churn-block", lambda result: result.outcomes().get("refused", 0) > 0)
    drivers.do(drivers.driver.unblock("churn-block"))
    drivers.wait_for("churn-block", lambda result: result.outcomes("watch-pods").get("200", 0) > 1)
    stop(drivers, "churn-block")

    assert changed.connections_closed >= 2
