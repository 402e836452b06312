"""Probes and observer on a real control plane: answering, frozen and killed."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from typing import Self

import pytest

from scaletest.analysis.evaluate import measure
from scaletest.analysis.series import EVER
from scaletest.analysis.state import RunState
from scaletest.controlplane.cluster import KwokControlPlane, start_cluster
from scaletest.core.access import ApiAccess
from scaletest.core.apiclient import HttpApiClient
from scaletest.core.journal import MemoryJournal, Record
from scaletest.observe import Observer, Targets
from scaletest.observe.counted import RESOURCES, counted_objects
from scaletest.probes import run_probes
from scaletest.profile.objectives import parse_objective
from scaletest.profile.schema import ObserveSpec, ProbeSpec
from tests.e2e.conftest import RequestMaker

pytestmark = pytest.mark.e2e

IDENTITIES = ["system:masters", "admin", "on-call"]
PROBES = {
    # Often: a killed API server answers again after half a second, and the refusals in between are to be seen.
    "operator": ProbeSpec.model_validate(
        {"get": "apps/v1/daemonsets", "namespace": "default", "every": "100ms", "identities": IDENTITIES}
    ),
    "nodes": ProbeSpec.model_validate({"nodeReadiness": True, "every": "1s"}),
}
OBSERVE = ObserveSpec.model_validate({"metricsEvery": "1s", "processesEvery": "500ms"})

Records = list[Record]


class Watch:
    """Probes and observer on a cluster for as long as a test wants."""

    def __init__(self, cluster: KwokControlPlane) -> None:
        self.cluster = cluster
        self.journal = MemoryJournal(clock_origin_s=time.monotonic())
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        access: dict[str, ApiAccess] = {name: await self.cluster.access(name) for name in IDENTITIES}
        targets = Targets(access["system:masters"], (self.cluster.etcd_endpoint,), self.pids)
        observer = Observer(OBSERVE, targets, self.journal, scrape_timeout_s=2.0)
        self._tasks = [
            asyncio.create_task(observer.run(self._stop)),
            asyncio.create_task(run_probes(PROBES, access.__getitem__, self.journal, self._stop)),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        await asyncio.gather(*self._tasks)

    def pids(self) -> dict[str, int | None]:
        return {component.name: component.pid for component in self.cluster.components()}

    def of(self, kind: str, *, since: int = 0) -> Records:
        return [record for record in self.journal.records[since:] if record["kind"] == kind]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(90):
            while not condition():  # noqa: ASYNC110 - a journal has no event
                await asyncio.sleep(0.1)


def test_an_api_server_tells_how_many_objects_it_has_counted(cluster: KwokControlPlane) -> None:
    async def main() -> bytes:
        access = await cluster.access("system:masters")
        client = HttpApiClient(access.servers[0], access=access)
        try:
            return (await client.get("/metrics", timeout_s=20, accept="text/plain")).body
        finally:
            await client.close()

    assert set(RESOURCES.values()) <= set(counted_objects(asyncio.run(main())))


def test_every_identity_is_answered_and_everything_is_seen(cluster: KwokControlPlane) -> None:
    async def main() -> Watch:
        async with Watch(cluster) as watch:
            await watch.until(
                lambda: all(
                    len(watch.of(kind)) >= number
                    for kind, number in {
                        "probe": 12, "probe.nodes": 2, "metrics.apiserver": 3, "metrics.etcd": 3, "process": 4, "host": 4,
                        "metrics.latency": 2,
                    }.items()
                )
            )  # fmt: skip
        return watch

    watch = asyncio.run(main())
    probes = watch.of("probe")
    assert {record["identity"] for record in probes} == set(IDENTITIES)
    assert {(record["ok"], record["status"]) for record in probes} == {(True, 200)}
    nodes = watch.of("probe.nodes")[-1]
    assert nodes["ready"] + nodes["not_ready"] == nodes["total"]

    last = watch.of("metrics.apiserver")[-1]
    assert last["server"] == cluster.servers[0]
    assert last["apf"]["global-default"]["dispatched"] > 0  # the ordinary admin's level
    assert {"exempt", "workload-low", "catch-all"} <= set(last["apf"])
    assert last["apf"]["workload-low"]["seats_limit"] > 0
    assert last["requests"]["LIST 200"] >= 12
    assert last["memory_bytes"] > 100 << 20
    etcd = watch.of("metrics.etcd")[-1]
    assert etcd["fsync"]["count"] > 0
    assert etcd["puts"] > 0
    assert etcd["db_in_use_bytes"] <= etcd["db_bytes"]

    state = RunState().apply_all(watch.journal.records)
    assert not state.malformed
    assert state.latency.families["wait"].within(EVER)["global-default"].count > 0
    for family in ("sli", "request"):
        calls = state.latency.families[family].within(EVER)
        # Three identities ask ten times a second, between two scrapes that are a second apart or more.
        assert calls["LIST daemonsets.apps namespace"].count >= 20
        assert 0 < calls["LIST daemonsets.apps namespace"].quantile_s(0.99) < 30
    said = measure(state, parse_objective("sli.read_namespace.daemonsets.apps.p99 <= 30s").subject, EVER)
    assert said.samples >= 20
    assert measure(state, parse_objective("sli.slo_violations == 0").subject, EVER).samples > 0

    processes = watch.of("process")[-1]["processes"]
    assert set(processes) == {*watch.pids(), "cli"}
    assert processes["kube-apiserver"]["rss_bytes"] == pytest.approx(last["memory_bytes"], rel=0.5)
    assert watch.of("metrics.gap") == []


def test_a_restart_shows_as_refusals_gaps_and_a_new_pid(request_named: RequestMaker) -> None:
    async def main() -> tuple[Watch, int]:
        cluster = await start_cluster(request_named("e2e-observe"))
        try:
            async with Watch(cluster) as watch:
                await watch.until(lambda: len(watch.of("probe")) >= 6 and bool(watch.of("process")))
                pid = watch.pids()["kube-apiserver"]
                assert pid is not None
                os.kill(pid, signal.SIGKILL)
                at = len(watch.journal.records)
                await watch.until(lambda: any(not record["ok"] for record in watch.of("probe", since=at)))
                failed_at = len(watch.journal.records)
                await watch.until(
                    lambda: (
                        any(record["ok"] for record in watch.of("probe", since=failed_at))
                        and bool(watch.of("metrics.apiserver", since=failed_at))
                        and bool(watch.of("process", since=failed_at))
                    )
                )
            return watch, pid
        finally:
            await cluster.stop()

    watch, pid = asyncio.run(main())
    outcomes = {record["outcome"] for record in watch.of("probe")}
    assert "ok" in outcomes
    assert outcomes & {"refused", "reset"}
    pids = [
        record["processes"]["kube-apiserver"]["pid"]
        for record in watch.of("process")
        if "kube-apiserver" in record["processes"]
    ]
    assert pids[0] == pid
    assert pids[-1] != pid


def test_a_frozen_api_server_is_timeouts_and_gaps_while_processes_are_still_seen(request_named: RequestMaker) -> None:
    async def main() -> tuple[Watch, int]:
        cluster = await start_cluster(request_named("e2e-frozen"))
        try:
            async with Watch(cluster) as watch:
                await watch.until(lambda: bool(watch.of("metrics.apiserver")))
                pid = watch.pids()["kube-apiserver"]
                assert pid is not None
                os.kill(pid, signal.SIGSTOP)
                at = len(watch.journal.records)
                try:
                    await watch.until(lambda: len(watch.of("metrics.gap", since=at)) >= 2)
                finally:
                    os.kill(pid, signal.SIGCONT)
                thawed_at = len(watch.journal.records)
                await watch.until(lambda: any(record["ok"] for record in watch.of("probe", since=thawed_at)))
            return watch, at
        finally:
            await cluster.stop()

    watch, at = asyncio.run(main())
    gaps = watch.of("metrics.gap", since=at)
    assert ("kube-apiserver", "timeout") in {(gap["target"], gap["outcome"]) for gap in gaps}
    first, second = (gap["t"] for gap in gaps[:2])
    assert [record for record in watch.of("process") if first <= record["t"] <= second]
    # Operators went on asking in their rhythm, and waited as long as the server stood still.
    waited_s = max(record["latency_s"] for record in watch.of("probe"))
    assert waited_s > 2.0
