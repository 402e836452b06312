"""The engines of a run on this machine: kwokctl's control plane, the stamped fleet, the Locust driver."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Final

from scaletest.controlplane import registry
from scaletest.controlplane.binaries import Binaries
from scaletest.controlplane.cluster import (
    API_SERVER,
    ClusterRequest,
    KwokControlPlane,
    connect_cluster,
    copy_logs,
    start_cluster,
)
from scaletest.controlplane.host import read_host
from scaletest.controlplane.identities import MASTERS
from scaletest.controlplane.limits import default_limits, floor_bytes
from scaletest.controlplane.plan import JournalTarget
from scaletest.core.access import ApiAccess
from scaletest.core.errors import ClusterError, ScaletestError, UsageError
from scaletest.core.journal import JournalFile, Record
from scaletest.core.processes import ProcessId
from scaletest.core.rundir import LOGS_DIR
from scaletest.fleet.adopting import adopt_fleet
from scaletest.fleet.fleet import FleetState, FleetTarget, seed_fleet
from scaletest.fleet.ready import wait_nodes_ready
from scaletest.load.client import LocustDriver
from scaletest.load.protocol import FlowStart
from scaletest.observe.counted import wait_counted, worth_counting
from scaletest.observe.hostinfo import software_versions
from scaletest.observe.observer import Observer, Targets
from scaletest.observe.pprof import Capture, capture_profiles
from scaletest.probes.run import run_probes
from scaletest.profile.actions import Action
from scaletest.profile.levers import most_api_servers
from scaletest.profile.loading import LoadedProfile
from scaletest.profile.schema import Profile
from scaletest.profile.stepping import StepChange
from scaletest.runner.acting import Acting, Scene
from scaletest.runner.attempts import ActionLog
from scaletest.runner.cores import CorePlan, plan_cores, processes_of
from scaletest.runner.engines import Lost
from scaletest.runner.priority import (
    Niceness,
    claim_for_session_of,
    claim_niceness,
    give_back_niceness,
    niceness_of,
    priority_text,
)

__all__ = ["LocalEngines", "LocalOptions"]

NODES_READY_TIMEOUT_S: Final = 180.0
COUNTED_TIMEOUT_S: Final = 90.0
"""Four times the longest that an API server takes to count its objects again."""
_STOP_OBSERVING_S: Final = 8.0
_WATCH_EVERY_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """Which control plane a run uses, and whether it stays."""

    run_dir: Path
    binaries: Binaries | None
    """None on a cluster that runs already."""
    cluster: str | None
    keep: bool
    seed: int = 1

    @property
    def own_cluster_name(self) -> str:
        """Name of the cluster that is made for the run: that of its directory, and a mark of the whole path.

        Variants of two matrices have directories of one name: ``nodes=50`` in each.
        """
        path = self.run_dir.absolute()
        mark = hashlib.blake2s(os.fsencode(path), digest_size=3).hexdigest()
        return registry.safe_name(path.name, ending=f"-{mark}")


class LocalEngines:
    """Brings everything up in order, and down again as far as it got."""

    def __init__(self, loaded: LoadedProfile, options: LocalOptions) -> None:
        self._loaded = loaded
        self._profile = loaded.profile
        self._options = options
        self._rng = Random(options.seed)
        self._cluster: KwokControlPlane | None = None
        self._fleet: FleetState | None = None
        self._driver: LocustDriver | None = None
        self._access: dict[str, ApiAccess] = {}
        self._scene: Scene | None = None
        self._journal: JournalFile | None = None
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._facts: dict[str, Any] = {}
        self._niceness: Niceness | None = None
        self._cores = CorePlan()

    async def start(self, journal: JournalFile, lost: Lost) -> None:
        """Bring up the control plane, fill it, start driver, probes and observers."""
        self._journal = journal
        cluster = await self._control_plane(journal)
        self._cluster = cluster
        self._watch(lost, self._watch_cluster(cluster, lost))
        for identity in sorted(self._identities()):
            self._access[identity] = await cluster.access(identity)
        self._fleet = await self._fill(cluster, journal)
        await self._wait_counted(self._fleet, journal)

        def warn(text: str) -> None:
            journal.append("note", level="warning", text=text)

        started: dict[str, int] = {}

        def note_started(record: Record) -> None:
            # All else in the driver's records is read back from the journal, like everybody's.
            if record["kind"] == "flow":
                started[record["flow"]] = record["started"]

        # The control plane runs already, so that it does not inherit what the driver does.
        self._niceness = claim_niceness()
        driver = await LocustDriver.spawn(journal.path.absolute(), journal.clock_origin_s, note_started, on_error=warn)
        self._driver = driver
        claim_for_session_of(driver.process_id.pid)
        self._pin(driver, journal)
        self._watch(lost, self._watch_driver(driver, lost))
        masters = self._access[MASTERS]
        observer = Observer(self._profile.observe, Targets(masters, (cluster.etcd_endpoint,), self._pids), journal)
        self._watch(lost, observer.run(self._stop))
        self._watch(lost, run_probes(self._profile.probes, self._access.__getitem__, journal, self._stop))

        def watch_server(server: str) -> None:
            def access(identity: str) -> ApiAccess:
                return replace(self._access[identity], servers=(server,))

            self._watch(lost, observer.run_server(server, self._stop))
            self._watch(lost, run_probes(self._profile.probes, access, journal, self._stop))

        self._facts["Priority"] = self._priority(driver, cluster)
        self._scene = Scene(
            self._profile, cluster, self._fleet, driver, self._access, watch_server, self.capture, started=started
        )

    def facts(self) -> dict[str, Any]:
        """Return versions, limits and what a reader has to know of the control plane."""
        cluster = self._cluster
        if cluster is None:
            return {}
        origin = self._options.binaries.origin if self._options.binaries else {}
        software = {name: version for name, version in software_versions().items() if version}
        return {
            "versions": {**cluster.versions, **software},
            "limits": {name: limits.to_json() for name, limits in cluster.limits.items()},
            "facts": {
                "Heartbeats": str(cluster.heartbeat),
                **self._facts,
                "Cluster": f"kept cluster {cluster.name}" if self._options.cluster else "made for this run",
                **{f"Binaries {', '.join(names)}": text for text, names in _by_origin(origin)},
            },
        }

    async def start_flow(self, flow: str) -> int:
        """Start a flow for the fleet as it is now."""
        scene, spec = self._ready(), self._profile.flows[flow]
        nodes = scene.nodes()
        target = spec.target(len(nodes))
        await scene.begin_rollout(flow)
        await scene.driver.start_flow(
            FlowStart(
                flow=flow,
                spec=spec,
                access=self._access[MASTERS if spec.identity == "node" else spec.identity],
                target=target,
                nodes=tuple(nodes),
                node_credentials=await scene.node_credentials(flow, nodes),
                seed=self._rng.getrandbits(32),
                directory=self._loaded.directory,
                etcd_endpoint=scene.cluster.etcd_endpoint,
            )
        )
        scene.targets[flow] = target
        return target

    async def stop_flow(self, flow: str) -> None:
        """Stop a flow and wait until its last agent has stopped."""
        scene = self._ready()
        scene.targets.pop(flow, None)
        await scene.driver.stop_flow(flow)

    async def act(self, action: Action, log: ActionLog) -> str:
        """Do an action; see ``acting``."""
        if self._scene is None:
            msg = "the control plane is not there yet"
            raise ClusterError(msg)
        return await Acting(self._scene).do(action, log)

    async def step_to(self, profile: Profile, change: StepChange) -> None:
        """Go to another load of a search; see ``acting``."""
        scene, self._profile = self._ready(), profile
        assert self._journal is not None
        await Acting(scene).step_to(profile, change, self._journal)

    async def capture(self, capture: Capture) -> list[str]:
        """Capture the profiles of all API servers that are there now."""
        scene = self._ready()
        assert self._journal is not None
        return await capture_profiles(capture, scene.access[MASTERS], self._options.run_dir, self._journal)

    async def stop(self) -> None:
        """End driver, probes, observers and the control plane, as far as they are there."""
        if self._driver is not None:
            await self._driver.stop()
        if self._niceness is not None:
            give_back_niceness(self._niceness)
        self._stop.set()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_STOP_OBSERVING_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._cluster is not None:
            await self._leave_cluster(self._cluster)

    async def _leave_cluster(self, cluster: KwokControlPlane) -> None:
        logs = self._options.run_dir / LOGS_DIR
        if self._options.cluster is None and not self._options.keep:
            await cluster.stop(logs_to=logs)
            return
        with contextlib.suppress(ClusterError):
            await cluster.detach()
            if self._options.keep:
                await cluster.keep()
        await asyncio.to_thread(copy_logs, cluster, logs)

    async def _control_plane(self, journal: JournalFile) -> KwokControlPlane:
        if self._options.cluster is not None:
            cluster = await connect_cluster(self._options.cluster)
            await cluster.attach(journal.path.absolute(), journal.clock_origin_s)
            return cluster
        assert self._options.binaries is not None
        spec = self._profile.control_plane
        host = read_host()
        self._cores = plan_cores(os.sched_getaffinity(0), host.cores, processes_of(self._profile))
        if self._cores.control_plane:
            host = replace(host, cores=min(host.cores, float(len(self._cores.control_plane))))
        return await start_cluster(
            ClusterRequest(
                name=self._options.own_cluster_name,
                spec=spec,
                nodes=self._most_nodes(),
                binaries=self._options.binaries,
                limits=default_limits(host, api_servers=most_api_servers(self._profile), overrides=spec.limits),
                floor_bytes=floor_bytes(host),
                owner=ProcessId.current(),
                journal=JournalTarget(journal.path.absolute(), journal.clock_origin_s),
                cpus=self._cores.control_plane,
            )
        )

    async def _fill(self, cluster: KwokControlPlane, journal: JournalFile) -> FleetState:
        spec = self._profile.fleet
        target = FleetTarget(self._access[MASTERS], cluster.etcd_endpoint, cluster.controllers_paused)
        standing = await adopt_fleet(spec, target, rng=self._rng) if self._options.cluster else None
        if standing is not None and standing.nodes:
            if standing.nodes != spec.node_count:
                msg = f"cluster {cluster.name} holds {standing.nodes} nodes, and the profile asks for {spec.node_count}"
                hint = f"Give the run that size (smoke: --set nodes={standing.nodes}), or bring up a cluster of the profile's."
                raise UsageError(msg, hint=hint)
            self._refuse_other_pools(cluster.name, standing)
            text = f"cluster {cluster.name} holds its {standing.nodes} nodes already: the run uses them as they are"
            journal.append("note", level="info", text=text)
            pods = standing.counts["Pod"]
            if pods != spec.pod_count:
                text = f"cluster {cluster.name} holds {pods:,} pods, and the profile asks for {spec.pod_count:,}: what reads them is answered otherwise"
                journal.append("note", level="warning", text=text)
            return standing
        fleet = await seed_fleet(spec, target, rng=self._rng, on_progress=_silent)
        for text in fleet.notes:
            journal.append("note", level="warning", text=text)
        journal.append(
            "fleet.seeded",
            via=spec.via, nodes=fleet.nodes, pods=fleet.counts["Pod"], objects=dict(fleet.counts),
            seconds=round(fleet.seconds, 3),
        )  # fmt: skip
        waited_s = await wait_nodes_ready(self._access[MASTERS], fleet.nodes, NODES_READY_TIMEOUT_S)
        journal.append("fleet.ready", nodes=fleet.nodes, seconds=round(fleet.seconds + waited_s, 3))
        return fleet

    def _refuse_other_pools(self, cluster: str, standing: FleetState) -> None:
        """Raise UsageError when the run would change the size of a pool that does not stand there as the profile has it."""
        pools = {pool.name: pool.nodes for pool in self._profile.fleet.pools}
        actions = [action.grow or action.shrink for phase in self._profile.phases for action in phase.do]
        changed = pools if self._profile.search is not None else {action.pool for action in actions if action}
        for name in changed:
            there = len(standing.pools.get(name, []))
            if there != pools.get(name, 0):
                held = ", ".join(f"{pool} ({len(nodes)} nodes)" for pool, nodes in standing.pools.items())
                msg = f"cluster {cluster} holds {held}, and the run changes pool {name}, of which it needs {pools.get(name, 0)} nodes"
                raise UsageError(msg, hint="Bring up a cluster of the profile's fleet, or run without --cluster.")

    async def _wait_counted(self, fleet: FleetState, journal: JournalFile) -> None:
        expected = worth_counting(fleet.counts)
        if not expected:
            return
        text = (
            "waiting until the API server has counted its objects: "
            "until then API Priority and Fairness takes each LIST for one seat"
        )
        journal.append("note", level="info", text=text)
        waited_s = await wait_counted(self._access[MASTERS], expected, COUNTED_TIMEOUT_S)
        if waited_s is None:
            text = f"the API server has not counted its objects within {COUNTED_TIMEOUT_S:g} s: a LIST may take fewer seats than it should"
            journal.append("note", level="warning", text=text)
        else:
            journal.append("fleet.counted", seconds=round(waited_s, 3))

    def _identities(self) -> set[str]:
        flows = {flow.identity for flow in self._profile.flows.values()} - {"node"}
        probes = {identity for probe in self._profile.probes.values() for identity in probe.identities}
        actions = [action for phase in self._profile.phases for action in phase.do]
        through_api = [action.delete_rollout or action.apply_flow_control for action in actions]
        operators = {settings.identity for settings in through_api if settings is not None}
        return flows | probes | operators | {MASTERS}

    def _most_nodes(self) -> int:
        growth = sum(action.grow.by for phase in self._profile.phases for action in phase.do if action.grow)
        return self._profile.fleet.node_count + growth

    def _pin(self, driver: LocustDriver, journal: JournalFile) -> None:
        """Give the driver, and the processes that it starts from now on, cores that the control plane does not have."""
        pinned = self._cores.generator
        if pinned:
            # Each thread has its own; those of libraries are there already.
            for thread in Path(f"/proc/{driver.process_id.pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), pinned)
        journal.append(
            "cores",
            generator=list(pinned),
            control_plane=list(self._cores.control_plane),
            all=len(os.sched_getaffinity(0)),
            kept=self._options.cluster is not None,
        )

    def _priority(self, driver: LocustDriver, cluster: KwokControlPlane) -> str:
        state = cluster.supervisor.state()
        servers = [item for item in state.components.values() if item.name.startswith(API_SERVER)] if state else []
        return priority_text(
            driver=niceness_of([driver.process_id.pid]),
            probes=niceness_of([os.getpid()]),
            control_plane=niceness_of(item.process.pid for item in servers if item.process is not None),
            cpu_by=servers[0].enforcement.cpu_by if servers else "none",
        )

    def _ready(self) -> Scene:
        if self._scene is None:
            msg = "the engines have not started"
            raise ScaletestError(msg)
        return self._scene

    def _pids(self) -> dict[str, int | None]:
        cluster = self._cluster
        if cluster is None:
            return {}
        state = cluster.supervisor.state()
        supervisor = state.supervisor.pid if state is not None else None
        driver = self._driver.process_id.pid if self._driver is not None else None
        return {
            **{component.name: component.pid for component in cluster.components()},
            "supervisor": supervisor,
            "driver": driver,
        }

    def _watch(self, lost: Lost, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the phases; should it fail, the run ends with what it said."""

        async def watched() -> None:
            try:
                await work
            except Exception as error:  # noqa: BLE001 - whatever it is, the run must end in order
                lost("error", f"{type(error).__name__}: {error}")

        self._tasks.append(asyncio.create_task(watched()))

    async def _watch_cluster(self, cluster: KwokControlPlane, lost: Lost) -> None:
        while not self._stop.is_set():
            state = cluster.supervisor.state()
            if state is None or not state.supervisor.is_alive():
                reason = state.reason if state is not None else None
                status = "host_guard" if reason == "host_guard" else "cluster_lost"
                lost(status, _WHY_LOST.get(reason or "", "its supervisor was killed"))
                return
            await asyncio.sleep(_WATCH_EVERY_S)

    async def _watch_driver(self, driver: LocustDriver, lost: Lost) -> None:
        end = await asyncio.shield(driver.exited)
        if not end.expected:
            lost("driver_lost", str(end))


_WHY_LOST: Final = {
    "host_guard": "the host ran short of memory",
    "asked": "it was taken down from outside",
    "owner_gone": "its owner went away",
    "signal": "its supervisor was told to end by a signal",
}


def _by_origin(origin: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    grouped: dict[str, list[str]] = {}
    for component, text in origin.items():
        grouped.setdefault(text, []).append(component)
    return list(grouped.items())


def _silent(_what: str, _done: int, _total: int) -> None:
    """Report no progress: seeding takes seconds."""
