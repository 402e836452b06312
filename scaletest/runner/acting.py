"""Doing the actions of a profile on the engines of this machine."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from scaletest.controlplane.cluster import KwokControlPlane
from scaletest.controlplane.identities import MASTERS, USERS
from scaletest.controlplane.slowdisk import SlowDisk
from scaletest.core.access import ApiAccess, Credential
from scaletest.core.errors import ClusterError
from scaletest.core.journal import Journal
from scaletest.core.kubernetesapi import Json, KubernetesApi
from scaletest.core.units import format_duration
from scaletest.fleet.fleet import FleetState
from scaletest.load.client import LoadDriver
from scaletest.load.protocol import FlowChanged, SetRate, SetServers, SetTarget
from scaletest.observe.pprof import PROFILES, Capture
from scaletest.profile.actions import (
    Action,
    AddApiServersAction,
    CaptureProfilesAction,
    ComponentAction,
    DeleteRolloutAction,
    FlowAction,
    FlowControlAction,
    ResizeAction,
    SlowDiskAction,
)
from scaletest.profile.schema import FlowSpec, Profile
from scaletest.profile.stepping import StepChange
from scaletest.runner.attempts import EVERY_S, ActionLog, Operator, until_done
from scaletest.runner.flowcontrol import flow_control_objects, service_accounts
from scaletest.runner.rollback import create_daemon_set, roll_back

__all__ = ["Acting", "Scene"]

_POLL_S: Final = 0.1
_STOPPED_WITHIN_S: Final = 15.0
"""For agents to have stopped that were told to: the driver reports once a second."""


@dataclass(slots=True)
class Scene:
    """What actions act on; the engines of a run bring it."""

    profile: Profile
    cluster: KwokControlPlane
    fleet: FleetState
    driver: LoadDriver
    access: dict[str, ApiAccess]
    """How to reach the API servers, by identity; grows with them."""
    watch_server: Callable[[str], None]
    """Begins to probe and observe an API server that was added."""
    capture: Callable[[Capture], Awaitable[list[str]]]
    """Captures the profiles of the API servers; returns why each that is missing is."""
    targets: dict[str, int] = field(default_factory=dict)
    """Agents that each running flow aims at."""
    started: dict[str, int] = field(default_factory=dict)
    """Agents that each flow had, by its last report."""
    ended: set[str] = field(default_factory=set)
    """Nodes whose machines have ended, whether or not their objects are deleted yet."""
    captures: int = 0
    """Captures of profiles that actions began."""

    def nodes(self) -> list[str]:
        """Return the nodes whose machines are there."""
        return [name for names in self.fleet.pools.values() for name in names if name not in self.ended]

    async def node_credentials(self, flow: str, nodes: Sequence[str]) -> tuple[Credential, ...]:
        """Return the credentials of the nodes where the flow's agents are their nodes; none otherwise."""
        if self.profile.flows[flow].identity != "node":
            return ()
        return tuple(await self.cluster.node_credentials(nodes))

    async def begin_rollout(self, flow: str) -> None:
        """Create the DaemonSet that a flow belongs to, if it belongs to one. Raises ClusterError."""
        daemon_set = self.profile.flows[flow].daemon_set
        if daemon_set is not None:
            async with KubernetesApi(self.access[MASTERS], connections=1) as api:
                await create_daemon_set(api, daemon_set)


class Acting:
    """Does one kind of action after the other; a profile has checked that flows, pools and components are there."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    async def do(self, action: Action, log: ActionLog) -> str:
        """Do an action and return what was done. Raises ClusterError when it cannot be; may be cancelled."""
        for name, act in self._acts().items():
            settings = getattr(action, name)
            if settings is not None:
                return await act(settings, log)
        msg = f"{action.name} is no action of its own"
        raise ClusterError(msg)

    async def step_to(self, profile: Profile, change: StepChange, journal: Journal) -> None:
        """Go to another load of a search: pools first, with the agents that stand on them, then the flows' own numbers and rates.

        Raises ClusterError, UsageError when a pool could not be resized.
        """
        scene = self._scene
        scene.profile = profile
        for pool, nodes in (change.pools or {}).items():
            grown = nodes - len(scene.fleet.pools.get(pool, []))
            if grown > 0:
                await self._grow(ResizeAction(pool=pool, by=grown), ActionLog(journal, "grow"))
            elif grown < 0:
                await self._take_away(pool, -grown, ActionLog(journal, "shrink"))
        for flow in change.retarget:
            if flow in scene.targets:
                await self._retarget(flow, profile.flows[flow])

    async def _retarget(self, flow: str, spec: FlowSpec) -> None:
        scene = self._scene
        if spec.paced is not None and spec.paced.rate_per_s is not None:
            await scene.driver.set_rate(SetRate(flow, spec.paced.rate_per_s))
        elif spec.churn is not None:
            await scene.driver.set_rate(SetRate(flow, spec.churn.rate_per_s))
            scene.targets[flow] = spec.target(len(scene.nodes()))
            await scene.driver.set_target(SetTarget(flow, scene.targets[flow]))
        elif spec.placed is not None:
            scene.targets[flow] = spec.target(len(scene.nodes()))
            await scene.driver.set_target(SetTarget(flow, scene.targets[flow], spec.placed.rollout_per_s))

    def _acts(self) -> Mapping[str, Callable[..., Awaitable[str]]]:
        supervisor = self._scene.cluster.supervisor
        return {
            "grow": self._grow,
            "shrink": self._shrink,
            "block": self._block,
            "unblock": self._unblock,
            "kill": _on_component(supervisor.kill, "killed"),
            "freeze": _on_component(supervisor.freeze, "frozen"),
            "thaw": _on_component(supervisor.thaw, "thawed"),
            "restart": _on_component(supervisor.restart, "told to end, to be started again"),
            "apply_flow_control": self._apply_flow_control,
            "delete_rollout": self._delete_rollout,
            "add_api_servers": self._add_api_servers,
            "slow_disk": self._slow_disk,
            "capture_profiles": self._capture_profiles,
        }

    def _agents(self, flow: str) -> str:
        return f"{self._scene.started.get(flow, 0):,} agents of {flow}"

    async def _block(self, settings: FlowAction, log: ActionLog) -> str:
        ended = await self._scene.driver.block(settings.flow)
        log.count(connections_closed=ended.connections_closed, requests_cut_short=ended.requests_cut_short)
        return f"network path cut for {self._agents(settings.flow)}: {_cut(ended)}"

    async def _unblock(self, settings: FlowAction, _log: ActionLog) -> str:
        await self._scene.driver.unblock(settings.flow)
        return f"network path opened for {self._agents(settings.flow)}"

    async def _grow(self, settings: ResizeAction, log: ActionLog) -> str:
        grown = await self._scene.fleet.grow(settings.pool, settings.by, _silent)
        await self._follow_fleet(log, grown=grown)
        log.count(nodes_added=len(grown))
        return f"{len(grown):,} nodes added to {settings.pool}"

    async def _shrink(self, settings: ResizeAction, log: ActionLog) -> str:
        """End machines; their agents go with them at once, their objects as far as the API answers."""
        fleet, pool = self._scene.fleet, settings.pool
        doomed = fleet.pools.get(pool, [])[-settings.by :]
        ended = await self._follow_fleet(log, gone=doomed)
        log.count(machines_ended=len(doomed))
        left, errors, deleted = len(doomed), 0, Counter[str]()
        try:
            while True:
                began_s = log.elapsed_s
                result = await fleet.shrink(pool, left, _silent, deleted)
                left, errors = left - len(result.nodes), sum(result.errors.values())
                log.tried(
                    "delete objects", ok=result.complete, outcome=_worst(result.errors), message=result.first_error,
                    latency_s=log.elapsed_s - began_s, server=fleet.target.access.servers[0],
                )  # fmt: skip
                if not left:
                    break
                await asyncio.sleep(EVERY_S)
        except asyncio.CancelledError:
            objects = f"{deleted['Node']:,} of {len(doomed):,} nodes and {deleted['Pod']:,} pods deleted from {pool}"
            log.so_far = f"{len(doomed):,} machines ended{_stopped(ended)}; {objects}"
            raise
        finally:
            log.count(nodes_deleted=deleted["Node"], pods_deleted=deleted["Pod"], leases_deleted=deleted["Lease"])
        gone = f"their nodes and {deleted['Pod']:,} pods deleted"
        said = f"{len(doomed):,} machines of {pool} ended{_stopped(ended)}, {gone}"
        return f"{said}; {errors:,} deletions of pods or leases failed" if errors else said

    async def _take_away(self, pool: str, by: int, log: ActionLog) -> None:
        """Take nodes away as they were added: that the API server is too busy to delete them must not keep a load from being lighter."""
        fleet = self._scene.fleet
        if not fleet.is_stamped:
            await self._shrink(ResizeAction(pool=pool, by=by), log)
            return
        await self._follow_fleet(log, gone=fleet.pools.get(pool, [])[-by:])
        await fleet.erase(pool, by)

    async def _apply_flow_control(self, settings: FlowControlAction, log: ActionLog) -> str:
        accounts = service_accounts(flow.identity for flow in self._scene.profile.flows.values())
        objects = flow_control_objects(
            USERS.values(), accounts, operator_shares=settings.operator_shares, agent_shares=settings.agent_shares
        )
        operator = self._operator(settings.identity, log)
        log.count(objects_asked=len(objects), objects_accepted=0)
        for number, (path, body) in enumerate(objects, start=1):
            await until_done(partial(_apply, operator, path, body))
            log.count(objects_accepted=1)
            log.so_far = f"{number} of {len(objects)} objects accepted"
        return f"{len(objects)} objects accepted after {log.elapsed_s:.1f} s and {log.attempts} attempts"

    async def _delete_rollout(self, settings: DeleteRolloutAction, log: ActionLog) -> str:
        daemon_set = self._scene.profile.flows[settings.flow].daemon_set
        assert daemon_set is not None, "the profile's checks look at this"
        agents = _FlowAgents(self._scene, settings.flow, log)
        return await roll_back(self._operator(settings.identity, log), log, daemon_set, agents)

    async def _add_api_servers(self, settings: AddApiServersAction, log: ActionLog) -> str:
        scene, added = self._scene, []
        for _ in range(settings.count):
            server = await scene.cluster.add_api_server()
            added.append(f"{server} ready after {log.elapsed_s:.1f} s")
            log.count(servers_added=1)
            log.proof["servers"] = len(scene.cluster.servers)
            log.so_far = "; ".join(added)
            for identity, access in scene.access.items():
                scene.access[identity] = replace(access, servers=scene.cluster.servers)
            for flow in scene.targets:
                await scene.driver.set_servers(SetServers(flow, scene.cluster.servers))
            scene.watch_server(server)
        return f"{'; '.join(added)}; {len(scene.cluster.servers)} API servers in all, for new connections"

    async def _slow_disk(self, settings: SlowDiskAction, log: ActionLog) -> str:
        pid = next((item.pid for item in self._scene.cluster.components() if item.name == "etcd"), None)
        if pid is None:
            msg = "etcd does not run"
            raise ClusterError(msg)
        disk = await SlowDisk.start(pid, settings.delay_s)

        async def undo() -> str:
            held = await disk.stop()
            return "etcd's disk is as fast as before" if held else "etcd ended while its disk was slow"

        log.undo = undo
        return f"each fdatasync of etcd (pid {pid}) takes {format_duration(settings.delay_s)} longer"

    async def _capture_profiles(self, settings: CaptureProfilesAction, log: ActionLog) -> str:
        scene = self._scene
        scene.captures += 1
        due = len(PROFILES) * len(scene.access[MASTERS].servers)
        missing = await scene.capture(Capture(f"capture-{scene.captures}", settings.seconds))
        log.count(profiles_captured=due - len(missing))
        if missing:
            msg = f"{due - len(missing)} of {due} profiles captured; {'; '.join(missing)}"
            raise ClusterError(msg)
        return f"{due} profiles captured, of {settings.seconds} s of CPU"

    def _operator(self, identity: str, log: ActionLog) -> Operator:
        return Operator(lambda: self._scene.access[identity], log)

    async def _follow_fleet(
        self, log: ActionLog, *, grown: Sequence[str] = (), gone: Sequence[str] = ()
    ) -> FlowChanged:
        """Give new nodes their agents and pods, and end those of nodes that are gone; return what was ended in all flows."""
        scene = self._scene
        stopped = connections = requests = 0
        scene.ended.update(gone)
        for flow, target in list(scene.targets.items()):
            spec = scene.profile.flows[flow]
            if spec.placed is None and not spec.follows_nodes:
                continue
            if spec.follows_nodes:
                # A rollback may have stopped agents on nodes that go now: those go once.
                scene.targets[flow] = min(target + spec.target(len(grown)), spec.target(len(scene.nodes())))
            credentials = await scene.node_credentials(flow, grown)
            ended = await scene.driver.set_target(
                SetTarget(flow, scene.targets[flow], nodes=tuple(grown), node_credentials=credentials, gone=tuple(gone))
            )
            stopped += ended.agents_stopped
            connections += ended.connections_closed
            requests += ended.requests_cut_short
        if gone:
            log.count(agents_stopped=stopped, connections_closed=connections, requests_cut_short=requests)
        return FlowChanged("", stopped, connections, requests)


@dataclass(slots=True)
class _FlowAgents:
    """The agents of a flow, as a rollback sees them."""

    scene: Scene
    flow: str
    log: ActionLog

    def running(self) -> int:
        return self.scene.targets.get(self.flow, 0)

    async def keep(self, count: int) -> None:
        if count >= self.running():
            return
        self.scene.targets[self.flow] = count
        ended = await self.scene.driver.set_target(SetTarget(self.flow, count))
        self.log.count(agents_stopped=ended.agents_stopped, connections_closed=ended.connections_closed)

    async def wait_for(self, count: int) -> None:
        for _ in range(round(_STOPPED_WITHIN_S / _POLL_S)):
            if self.scene.started.get(self.flow, 0) <= count:
                return
            await asyncio.sleep(_POLL_S)
        msg = f"the load driver still has more than {count} agents of {self.flow}"
        raise ClusterError(msg)


def _on_component(do: Callable[[str], Awaitable[None]], done: str) -> Callable[..., Awaitable[str]]:
    async def act(settings: ComponentAction, _log: ActionLog) -> str:
        await do(settings.component)
        return f"{settings.component} {done}"

    return act


async def _apply(operator: Operator, path: str, body: Json) -> None:
    step = f"{body['kind']} {body['metadata']['name']}"
    await operator.attempt(step, lambda api: api.apply(path, body))


def _cut(ended: FlowChanged) -> str:
    return f"{ended.connections_closed:,} connections closed, {ended.requests_cut_short:,} requests cut short"


def _stopped(ended: FlowChanged) -> str:
    return f" with {ended.agents_stopped:,} agents ({_cut(ended)})" if ended.agents_stopped else ""


def _worst(errors: Mapping[str, int]) -> str:
    return max(errors, key=lambda outcome: errors[outcome]) if errors else "ok"


def _silent(_what: str, _done: int, _total: int) -> None:
    """Report no progress: what the API did is in the journal."""
