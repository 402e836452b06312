"""Behind ``scaletest cluster``. Imported only when one of its commands runs: it pulls in the whole control plane."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from scaletest.cli._cleaning import clean_dead_clusters, tell_cleaned
from scaletest.cli._streams import answer, hand_over, say, task_progress
from scaletest.controlplane import registry
from scaletest.controlplane.binaries import locate_all, parse_binary_flags
from scaletest.controlplane.cluster import ClusterRequest, KwokControlPlane, start_cluster
from scaletest.controlplane.host import read_host
from scaletest.controlplane.identities import MASTERS
from scaletest.controlplane.limits import default_limits, floor_bytes, nodes_that_fit
from scaletest.controlplane.plan import Limits
from scaletest.controlplane.ports import PORT_ROLES, PortRole
from scaletest.controlplane.record import ClusterRecord
from scaletest.core.errors import Interrupted, ResourceShortage, UsageError
from scaletest.core.mistakes import expected
from scaletest.core.processes import ProcessId
from scaletest.core.units import format_bytes, format_count, format_duration, whole_number
from scaletest.fleet import FleetTarget, seed_fleet, wait_nodes_ready
from scaletest.profile.schema import ComponentName, ControlPlaneSpec, FleetSpec, PoolSpec

__all__ = ["UpRequest", "down", "status", "up"]

NODES_READY_TIMEOUT_S: Final = 180.0
POOL: Final = "node"
_FORMS: Final = {
    "kubernetes": ("--kubernetes", "a version such as 1.37 or 1.37.2"),
    "etcd": ("--etcd", "a version such as 3.6 or 3.6.16"),
    "heartbeatFactor": ("--heartbeat-factor", "auto or a whole number from 1 to 60"),
}
SEED: Final = 1


@dataclass(frozen=True, slots=True)
class UpRequest:
    """What ``cluster up`` was asked for, as the command line gave it."""

    name: str
    nodes: int
    pods: int | None
    pods_per_node: int | None
    kubernetes: str | None
    etcd: str | None
    heartbeat_factor: str
    ports: Sequence[str]
    binaries: Sequence[str]


def up(request: UpRequest) -> None:
    """Start a cluster and fill it; print how to reach it."""
    spec = _control_plane(request)
    fleet = _fleet(request)
    ports = _ports(request.ports)
    explicit = parse_binary_flags(request.binaries)
    limits = default_limits(read_host())
    _refuse_if_too_large(fleet, limits)
    registry.check_name(request.name)
    clean_dead_clusters()
    binaries = locate_all(spec.kubernetes, spec.etcd, explicit=explicit, progress=task_progress())
    say(f"starting Kubernetes {binaries.kubernetes} with etcd {binaries.etcd}")
    wanted = ClusterRequest(
        name=request.name,
        spec=spec,
        nodes=fleet.node_count,
        binaries=binaries,
        limits=limits,
        floor_bytes=floor_bytes(read_host()),
        # Its owner while it is made: should this process die, nothing stays behind.
        owner=ProcessId.current(),
        ports=ports,
        labels={"made-by": "cluster up"},
    )
    cluster = asyncio.run(_until_interrupted(_bring_up(wanted, fleet)))
    _print_usage(cluster)


async def _until_interrupted(work: Coroutine[Any, Any, KwokControlPlane]) -> KwokControlPlane:
    """Await ``work``; a SIGINT or SIGTERM cancels it, which takes back what it has begun. Raises Interrupted."""
    task = asyncio.create_task(work)
    for signum in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signum, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        msg = "interrupted; the cluster that was being made is gone"
        raise Interrupted(msg) from None


async def _bring_up(wanted: ClusterRequest, fleet: FleetSpec) -> KwokControlPlane:
    cluster = await start_cluster(wanted)
    try:
        say(f"ready after {format_duration(cluster.record.ready_s or 0)}; heartbeats {cluster.heartbeat}")
        if fleet.node_count:
            await _fill(cluster, fleet)
        await cluster.keep()
    except BaseException:
        await cluster.stop()
        raise
    return cluster


async def _fill(cluster: KwokControlPlane, fleet: FleetSpec) -> None:
    """Put the fleet into the cluster and wait until every node is Ready."""
    access = await cluster.access(MASTERS)
    target = FleetTarget(access, cluster.etcd_endpoint, cluster.controllers_paused)
    began_s = time.monotonic()
    state = await seed_fleet(fleet, target, rng=random.Random(SEED), on_progress=lambda _what, _done, _total: None)
    pods = format_count(state.counts["Pod"])
    say(f"{format_count(state.nodes)} nodes and {pods} pods written in {format_duration(state.seconds)}")
    await wait_nodes_ready(access, state.nodes, NODES_READY_TIMEOUT_S)
    say(f"all nodes Ready after {format_duration(time.monotonic() - began_s)}")


def _control_plane(request: UpRequest) -> ControlPlaneSpec:
    given: dict[str, Any] = {
        "kubernetes": request.kubernetes,
        "etcd": request.etcd,
        "heartbeatFactor": whole_number(request.heartbeat_factor) or request.heartbeat_factor,
    }
    try:
        return ControlPlaneSpec.model_validate({key: value for key, value in given.items() if value is not None})
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        option, form = _FORMS[key]
        msg = f"{option} {given[key]}: write {form}"
        raise UsageError(msg) from error


def _fleet(request: UpRequest) -> FleetSpec:
    """Return pools for the nodes and pods asked for: two where pods do not spread evenly."""
    if request.pods is not None and request.pods_per_node is not None:
        msg = "--pods and --pods-per-node exclude each other"
        raise UsageError(msg)
    if request.nodes == 0:
        if request.pods or request.pods_per_node:
            msg = "pods need nodes to stand on"
            raise UsageError(msg, hint="Give --nodes as well.")
        return FleetSpec()
    if request.pods is None:
        return FleetSpec(pools=[_pool(POOL, request.nodes, request.pods_per_node or 0)])
    each, more = divmod(request.pods, request.nodes)
    pools = [_pool(POOL, request.nodes - more, each), _pool(f"{POOL}-more", more, each + 1)]
    return FleetSpec(pools=[pool for pool in pools if pool.nodes])


def _pool(name: str, nodes: int, pods_per_node: int) -> PoolSpec:
    try:
        return PoolSpec.model_validate({"name": name, "nodes": nodes, "podsPerNode": pods_per_node})
    except ValidationError as error:
        msg = f"{pods_per_node} pods on a node are too many: {expected(error.errors()[0])}"
        raise UsageError(msg) from error


def _ports(flags: Sequence[str]) -> dict[PortRole, int]:
    chosen: dict[PortRole, int] = {}
    for flag in flags:
        role, _, text = flag.partition("=")
        port = whole_number(text)
        if role not in PORT_ROLES or port is None or not 0 < port < 65_536:
            msg = f"--port {flag}: not a component and a port"
            raise UsageError(msg, hint=f"For example --port kube-apiserver=26443; there are {', '.join(PORT_ROLES)}")
        chosen[role] = port
    return chosen


def _refuse_if_too_large(fleet: FleetSpec, limits: dict[ComponentName, Limits]) -> None:
    if not fleet.node_count:
        return
    fit = nodes_that_fit(limits, pods_per_node=fleet.pod_count / fleet.node_count)
    if fit < fleet.node_count:
        cap = format_bytes(limits["kube-apiserver"].memory_bytes)
        size = f"{format_count(fleet.node_count)} nodes with {format_count(fleet.pod_count)} pods"
        msg = f"too little memory for {size}: the API server gets {cap} on this host"
        raise ResourceShortage(msg, hint=f"About {format_count(fit)} nodes fit with as many pods on each.")


def _print_usage(cluster: KwokControlPlane) -> None:
    answer(f"cluster     {cluster.name} (Kubernetes {cluster.versions['kubernetes']})")
    answer(f"API server  {', '.join(cluster.servers)}")
    answer(f"etcd        {cluster.etcd_endpoint}")
    answer(f"kubeconfig  {cluster.kubeconfig}")
    answer()
    answer(f"export KUBECONFIG={cluster.kubeconfig}     # then: kubectl get nodes")
    answer(f"scaletest run smoke --cluster {cluster.name}")
    answer(f"scaletest cluster down {cluster.name}")


def status(name: str | None, *, as_json: bool) -> None:
    """Print one cluster or all of them."""
    records = registry.list_clusters() if name is None else [registry.get(name)]
    if as_json:
        hand_over(json.dumps([_described(record) for record in records], indent=2) + "\n")
        return
    if not records:
        say("no clusters; `scaletest cluster up` starts one")
    for record in records:
        kubernetes = record.versions["kubernetes"]
        answer(f"{record.name}  {registry.status_of(record)}  Kubernetes {kubernetes}  {record.servers[0]}")
        if name is not None:
            _print_details(record)


def _print_details(record: ClusterRecord) -> None:
    answer(f"  made        {record.created_at}")
    answer(f"  etcd        {record.etcd_endpoint}")
    answer(f"  kubeconfig  {KwokControlPlane(record).kubeconfig}")
    answer(f"  logs        {KwokControlPlane(record).logs_dir}")
    answer(f"  heartbeats  {record.heartbeat}")
    for component in _components(record):
        runs = f"pid {component['pid']}" if component["pid"] else "not running"
        cap = format_bytes(component["memory_bytes"])
        restarts = f", restarted {component['restarts']} times" if component["restarts"] else ""
        answer(f"  {component['name']:<24} {runs}, memory cap {cap}{restarts}")


def _described(record: ClusterRecord) -> dict[str, Any]:
    cluster = KwokControlPlane(record)
    return {
        **record.to_json(),
        "status": registry.status_of(record),
        "dir": str(record.dir),
        "kubeconfig": str(cluster.kubeconfig),
        "logs": str(cluster.logs_dir),
        "components": _components(record),
    }


def _components(record: ClusterRecord) -> list[dict[str, Any]]:
    state = KwokControlPlane(record).supervisor.state()
    if state is None:
        return []
    return [
        {
            "name": component.name,
            "pid": component.process.pid if component.process and component.process.is_alive() else None,
            "restarts": component.restarts,
            "memory_bytes": component.limits.memory_bytes,
            "cpu_cores": component.limits.cpu_cores,
            "memory_by": component.enforcement.memory_by,
            "cpu_by": component.enforcement.cpu_by,
        }
        for component in state.components.values()
    ]


def down(name: str | None, *, every: bool) -> None:
    """End one cluster or all of them."""
    if every and name is not None:
        msg = "give a name or --all, not both"
        raise UsageError(msg)
    if every:
        removed = registry.clean_dead(also_alive=True)
        tell_cleaned(removed, answer)
        if not removed:
            say("no clusters")
        return
    tell_cleaned([registry.end(name or "default")], answer)
