"""The ``etcd`` flow in a real driver, its processes, and gRPC's own server as etcd."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from scaletest.core.access import ApiAccess, Credential
from scaletest.core.errors import EnvironmentProblem
from scaletest.load.client import LocustDriver
from scaletest.load.protocol import FlowStart, SetRate
from scaletest.profile.schema import FlowSpec
from tests.load.harness import Drivers, FlowResult

SERVER = Path(__file__).with_name("etcdserver.py")
NOBODY = ApiAccess((), Path("/nonexistent"), Credential("admin"))
PUT = {"op": "put"}


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.stdin.close()
        process.wait(10)


def start_of(flow: str, endpoint: str, *operations: dict[str, Any], **etcd: Any) -> FlowStart:
    rate = {} if "process" in etcd else {"rate": "200/s"}
    spec = FlowSpec.model_validate({"etcd": rate | {"keys": 20} | etcd | {"operations": list(operations) or [PUT]}})
    return FlowStart(flow, spec, NOBODY, spec.target(0), etcd_endpoint=endpoint)


def arrivals_of(result: FlowResult, key: str) -> int:
    return sum(record["arrivals"][key] for record in result.flows)


def test_every_arrival_of_two_processes_is_sent_and_counted_once(drivers: Drivers, endpoint: str) -> None:
    mix: list[dict[str, Any]] = [PUT, {"op": "range"}, {"op": "txn", "keys": 3}, {"op": "delete"}, {"op": "lease"}]
    titles = ("put", "range", "txn", "delete", "lease", "revoke")
    start = start_of("mixed-etcd", endpoint, *mix, processes=2, watches=4, rate="500/s", process="even")

    drivers.do(drivers.driver.start_flow(start))
    drivers.wait_for("mixed-etcd", lambda result: all(sum(result.outcomes(title).values()) > 3 for title in titles))
    drivers.wait_for("mixed-etcd", lambda result: result.total("events", "watch") > 3)
    workers = {worker.pid: worker for worker in psutil.Process(drivers.driver.process_id.pid).children()}
    drivers.do(drivers.driver.stop_flow("mixed-etcd"))

    result = drivers.result("mixed-etcd")
    due = arrivals_of(result, "due")
    assert {"OK": due} == {"OK": sum(result.outcomes(title).get("OK", 0) for title in titles)}
    assert {"OK"} == set(result.outcomes())
    assert {"OK": 4} == result.outcomes("watch")
    assert due == arrivals_of(result, "sent") == result.histogram("service_us").count
    assert 500.0 == result.flows[0]["arrivals"]["rate_per_s"]
    assert (2, 2) == (result.flows[0]["target"], max(record["connected"] for record in result.flows))
    assert 0 <= result.histogram("event_us").quantile(0.5) < 1e6
    assert 2 == result.histogram("connect_us").count
    # The driver is the module's: other flows have had workers before.
    used_s = {item["pid"]: item["cpu_s"] for record in drivers.records for item in record.get("workers", ())}
    assert workers.keys() <= used_s.keys()
    assert max(used_s[pid] for pid in workers) > 0
    assert not any(worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE for worker in workers.values())


def test_in_a_closed_loop_each_client_asks_again(drivers: Drivers, endpoint: str) -> None:
    drivers.do(drivers.driver.start_flow(start_of("closed-etcd", endpoint, process="closed", clients=5)))
    drivers.wait_for("closed-etcd", lambda result: sum(result.outcomes().values()) > 200)
    with pytest.raises(EnvironmentProblem, match="closed loop has no rate"):
        drivers.do(drivers.driver.set_rate(SetRate("closed-etcd", 5.0)))
    drivers.do(drivers.driver.stop_flow("closed-etcd"))

    result = drivers.result("closed-etcd")
    assert {record["arrivals"]["rate_per_s"] for record in result.flows} == {None}
    assert 5 == max(record["arrivals"]["in_flight"] for record in result.flows)
    assert arrivals_of(result, "due") == result.outcomes()["OK"]


def test_the_rate_can_change_while_the_flow_runs(drivers: Drivers, endpoint: str) -> None:
    drivers.do(drivers.driver.start_flow(start_of("changed-etcd", endpoint, rate="1/s")))
    drivers.do(drivers.driver.set_rate(SetRate("changed-etcd", 400.0)))
    drivers.wait_for("changed-etcd", lambda result: sum(result.outcomes().values()) > 40)
    drivers.do(drivers.driver.stop_flow("changed-etcd"))

    assert 400.0 == drivers.result("changed-etcd").flows[-1]["arrivals"]["rate_per_s"]


def test_an_etcd_without_space_is_called_that(drivers: Drivers, endpoint: str) -> None:
    with pytest.raises(EnvironmentProblem, match=r"does not take its keys: its quota is used up \(NOSPACE\)"):
        drivers.do(drivers.driver.start_flow(start_of("full-etcd", endpoint)))

    drivers.do(drivers.driver.start_flow(start_of("nospace-etcd", endpoint)))
    drivers.wait_for("nospace-etcd", lambda result: result.outcomes().get("NOSPACE", 0) > 10)
    drivers.do(drivers.driver.stop_flow("nospace-etcd"))

    result = drivers.result("nospace-etcd")
    assert {"NOSPACE"} == set(result.outcomes())
    assert 0 == result.histogram("latency_us").count < result.histogram("failed_us").count
    assert {"etcdserver: mvcc: database space exceeded"} == {item["message"] for item in result.samples}
    assert 1 <= len(result.samples) <= 3


def test_no_answer_in_time_is_a_timeout_and_beyond_max_in_flight_arrivals_are_dropped(
    drivers: Drivers, endpoint: str
) -> None:
    drivers.do(drivers.driver.start_flow(start_of("silent-etcd", endpoint, timeout="300ms", maxInFlight=10)))
    result = drivers.wait_for("silent-etcd", lambda result: result.outcomes().get("timeout", 0) >= 10)
    drivers.do(drivers.driver.stop_flow("silent-etcd"))

    assert {"timeout"} == set(result.outcomes())
    assert arrivals_of(result, "dropped") > 0
    assert 0.3e6 <= (result.histogram("failed_us").minimum or 0) < 2e6


def test_a_blocked_flow_is_refused_and_connects_again_afterwards(drivers: Drivers, endpoint: str) -> None:
    drivers.do(drivers.driver.start_flow(start_of("blocked-etcd", endpoint, processes=2)))
    drivers.wait_for("blocked-etcd", lambda result: result.outcomes().get("OK", 0) > 5)
    closed = drivers.do(drivers.driver.block("blocked-etcd"))
    drivers.wait_for("blocked-etcd", lambda result: result.outcomes().get("refused", 0) > 5)
    before = drivers.result("blocked-etcd")
    drivers.do(drivers.driver.unblock("blocked-etcd"))
    good = before.outcomes()["OK"]
    drivers.wait_for("blocked-etcd", lambda result: result.outcomes()["OK"] > good + 20)
    drivers.do(drivers.driver.stop_flow("blocked-etcd"))

    assert 2 == closed.connections_closed
    assert 2 == before.flows[-1]["blocked"]
    assert {"OK", "refused"} <= set(before.outcomes()) <= {"OK", "refused", "reset"}


def test_nobody_at_the_endpoint_is_an_error_at_once(drivers: Drivers) -> None:
    with pytest.raises(EnvironmentProblem, match="does not take its keys"):
        drivers.do(drivers.driver.start_flow(start_of("nobody-etcd", "http://127.0.0.1:1")))


def test_a_killed_process_ends_the_driver_and_a_killed_driver_its_processes(endpoint: str, tmp_path: Path) -> None:
    async def lost(victim: str) -> tuple[str, list[psutil.Process]]:
        driver = await LocustDriver.spawn(tmp_path / "journal", time.monotonic(), lambda _record: None)
        await driver.start_flow(start_of("lost-etcd", endpoint, processes=2))
        workers = psutil.Process(driver.process_id.pid).children()
        os.kill(workers[0].pid if victim == "worker" else driver.process_id.pid, signal.SIGKILL)
        end = await asyncio.wait_for(driver.exited, 20)
        await driver.stop()
        return str(end), workers

    said, workers = asyncio.run(lost("worker"))
    assert "an etcd process of flow lost-etcd ended by signal SIGKILL" in said
    assert ([], workers) == (psutil.wait_procs(workers, timeout=10)[1], workers)

    _, workers = asyncio.run(lost("driver"))
    assert 2 == len(workers)
    assert [] == psutil.wait_procs(workers, timeout=10)[1]
