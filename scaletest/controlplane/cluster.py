"""Control planes that scaletest brings itself: start one, connect to one, end it.

    registry ─▶ certificates, kwokctl's configuration, plan ─▶ supervisor ─▶ kwokctl ─▶ components
                                                                   │
    ready: every pid alive, every health check ok, every listening socket on loopback, identities honoured

The supervisor owns the components from then on; this module only asks it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime as dt
import os
import shutil
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from scaletest.controlplane import kwokctl, pki, registry
from scaletest.controlplane import ports as portlib
from scaletest.controlplane.binaries import Binaries
from scaletest.controlplane.cleaning import clean_dead_cluster
from scaletest.controlplane.control import SupervisorClient, spawn_supervisor
from scaletest.controlplane.heartbeat import Heartbeat, heartbeat_for
from scaletest.controlplane.host import read_host
from scaletest.controlplane.identities import ADMIN_SUBJECT, MASTERS, Identities, write_controllers
from scaletest.controlplane.interface import ComponentInfo
from scaletest.controlplane.kubeconfig import kubeconfig_text
from scaletest.controlplane.logs import quote_log
from scaletest.controlplane.plan import ClusterPlan, JournalTarget, Limits, launcher_log_path, supervisor_log_path
from scaletest.controlplane.ports import PortRole
from scaletest.controlplane.record import ClusterRecord
from scaletest.controlplane.state import ClusterState, EndReason
from scaletest.core.access import ApiAccess, Credential
from scaletest.core.errors import ClusterError
from scaletest.core.kubernetesapi import ApiError, KubernetesApi, load_client
from scaletest.core.processes import ProcessId
from scaletest.profile.schema import ComponentName, ControlPlaneSpec

__all__ = ["ClusterRequest", "KwokControlPlane", "connect_cluster", "start_cluster"]

HEALTH_TIMEOUT_S: Final = 120.0
"""From open ports to all health checks ok. Measured: 2–4 s on 2 idle cores, 60 s with eighteen others waiting for them."""

API_SERVER: Final = "kube-apiserver"

_ADVERTISED_NETWORK: Final = "192.0.2"
"""Addresses for documentation (RFC 5737), of which each further API server advertises one. With equal addresses each would remove the
other's entry from the ``kubernetes`` Service. Nothing connects to them: the ports differ, and that Service has one port."""

LEADERS: Final = ("kube-controller-manager", "kube-scheduler")
PAUSED: Final = (*LEADERS, "kwok-controller")
PAUSE_S: Final = 5.0
RENEWAL_S: Final = 0.7
"""A leader renews every 2 s, at once when that time has passed; silent for 10 s (its renew deadline), it exits."""
PAUSES_AT_MOST: Final = 10

_HEALTH_PATHS: Final[dict[PortRole, str]] = {
    "kube-apiserver": "/readyz",
    "kube-controller-manager": "/healthz",
    "kube-scheduler": "/healthz",
    "kwok-controller": "/healthz",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRequest:
    """What cluster is wanted."""

    name: str
    spec: ControlPlaneSpec
    nodes: int
    """Most nodes that the fleet will have: decides the heartbeat factor when that is ``auto``."""
    binaries: Binaries
    limits: Mapping[ComponentName, Limits]
    """Of every component (``limits.default_limits``)."""
    floor_bytes: int
    """Available memory of the host below which the supervisor ends the cluster."""
    owner: ProcessId | None
    """The cluster ends with this process; None: it stays until it is taken down."""
    journal: JournalTarget | None = None
    """A run that is attached from the first moment."""
    ports: Mapping[PortRole, int] = field(default_factory=dict)
    """Ports to use; those not named are chosen."""
    labels: Mapping[str, str] = field(default_factory=dict)
    cpus: tuple[int, ...] = ()
    """CPUs that it runs on; none: all."""


class KwokControlPlane:
    """A control plane on this machine, made by kwokctl and looked after by its supervisor."""

    def __init__(self, record: ClusterRecord) -> None:
        self.record = record
        self.layout = kwokctl.KwokLayout(record.dir, record.name)
        self.supervisor = SupervisorClient(record.dir)
        self._journal: Path | None = None

    @property
    def identities(self) -> Identities:
        """Who a client can be, with all API servers that there are now."""
        return Identities(self.dir / "credentials", self.layout.pki_dir, self.servers)

    @property
    def name(self) -> str:
        """Name of the cluster."""
        return self.record.name

    @property
    def dir(self) -> Path:
        """Directory of the cluster, 0700."""
        return self.record.dir

    @property
    def servers(self) -> tuple[str, ...]:
        """URLs of all API servers."""
        return self.record.servers

    @property
    def etcd_endpoint(self) -> str:
        """URL of etcd, for clients and for its metrics."""
        return self.record.etcd_endpoint

    @property
    def versions(self) -> dict[str, str]:
        """Full versions: ``kubernetes``, ``etcd``, ``kwok``."""
        return self.record.versions

    @property
    def heartbeat(self) -> Heartbeat:
        """The heartbeat of the fake nodes."""
        return self.record.heartbeat

    @property
    def limits(self) -> dict[str, Limits]:
        """Limits by component."""
        return {name: Limits.from_json(values) for name, values in self.record.limits.items()}

    @property
    def logs_dir(self) -> Path:
        """One log per component, ``NAME.log``."""
        return self.layout.logs_dir

    @property
    def kubeconfig(self) -> Path:
        """For the user's kubectl."""
        return self.dir / "kubeconfig"

    def components(self) -> list[ComponentInfo]:
        """Return the components as the supervisor last recorded them. Raises ClusterError when it has not yet."""
        state = _state(self.supervisor)
        return [
            ComponentInfo(
                name=component.name,
                pid=component.process.pid if component.process else None,
                metrics_url=f"{self._base_url(component.name)}/metrics",
                restarts=component.restarts,
            )
            for component in state.components.values()
        ]

    async def access(self, identity: str) -> ApiAccess:
        """Return how to reach the API servers as an identity. Raises ValueError, ClusterError."""
        return self.identities.access_as(await self.identities.credential(identity))

    async def node_credentials(self, names: Sequence[str]) -> list[Credential]:
        """Return a credential for each of the named nodes; 1.1 ms of CPU for each that is new."""
        return await asyncio.to_thread(self.identities.node_credentials, names)

    async def attach(self, journal: Path, clock_origin_s: float) -> None:
        """Have what happens to the components written into a run's journal, given by its absolute path."""
        await self.supervisor.attach(journal, clock_origin_s)
        self._journal = journal

    async def detach(self) -> None:
        """Stop that."""
        if self._journal is not None:
            await self.supervisor.detach(self._journal)
            self._journal = None

    async def keep(self) -> None:
        """Let the cluster outlive its owner."""
        await self.supervisor.set_owner(None)

    @contextlib.asynccontextmanager
    async def controllers_paused(self) -> AsyncIterator[None]:
        """Freeze controller-manager, scheduler and KWOK, but for the moments in which leaders renew their leases."""

        async def let_renew() -> None:
            for _ in range(PAUSES_AT_MOST):
                await asyncio.sleep(PAUSE_S)
                await self._thaw(LEADERS)
                await asyncio.sleep(RENEWAL_S)
                await self._freeze(LEADERS)
            await self._thaw(PAUSED)

        await self._freeze(PAUSED)
        renewing = asyncio.create_task(let_renew())
        try:
            yield
        finally:
            renewing.cancel()
            with contextlib.suppress(asyncio.CancelledError, ClusterError):
                await renewing
            await self._thaw(PAUSED)

    async def _freeze(self, components: Sequence[str]) -> None:
        for component in components:
            await self.supervisor.freeze(component)

    async def _thaw(self, components: Sequence[str]) -> None:
        for component in components:
            # One that has ended meanwhile is started again by the supervisor, and not frozen.
            with contextlib.suppress(ClusterError):
                await self.supervisor.thaw(component)

    async def stop(self, *, reason: EndReason = "asked", logs_to: Path | None = None) -> None:
        """End the control plane and remove everything of it; ``logs_to`` gets the components' logs.

        A cluster that ended by itself (host guard, owner gone) is removed all the same.
        """
        try:
            if self.supervisor.state() is not None:
                await self.supervisor.end(reason)
            # A supervisor that was killed has left something behind, unless its guardian was quicker.
            await asyncio.to_thread(clean_dead_cluster, self.dir)
        finally:
            if logs_to is not None:
                await asyncio.to_thread(copy_logs, self, logs_to)
        await asyncio.to_thread(registry.remove, self.name)

    def _base_url(self, component: str) -> str:
        added = self.record.added_servers
        port = added[component] if component in added else self.record.ports[cast("PortRole", component)]
        scheme = "http" if component in {"etcd", "kwok-controller"} else "https"
        return f"{scheme}://{portlib.LOOPBACK}:{port}"

    async def add_api_server(self) -> str:
        """Start one more API server on the same etcd, with the limits of the first; return its URL once it is ready.

        Raises ClusterError, ResourceShortage.
        """
        number = len(self.servers) + 1
        name = f"{API_SERVER}-{number}"
        self.record = await asyncio.to_thread(registry.add_server, self.record, name)
        port = self.record.added_servers[name]
        flags = {"secure-port": str(port), "advertise-address": f"{_ADVERTISED_NETWORK}.{number}"}
        await self.supervisor.add_replica(name, of=API_SERVER, port=port, flags=flags)
        await self._wait_component_healthy(name, "/readyz", HEALTH_TIMEOUT_S)
        pid = next(component.pid for component in self.components() if component.name == name)
        # Not all of them are looked at: when a server is added in an overload, others may well be down.
        await asyncio.to_thread(self._refuse_exposed, {pid or 0: name})
        return self.servers[-1]

    async def wait_healthy(self, timeout_s: float) -> None:
        """Wait until every component says that it is healthy. Raises ClusterError with the log of one that does not."""
        checks = [self._wait_component_healthy(role, path, timeout_s) for role, path in _HEALTH_PATHS.items()]
        await asyncio.gather(*checks)

    async def _wait_component_healthy(self, component: str, path: str, timeout_s: float) -> None:
        deadline_s = time.monotonic() + timeout_s
        access = self.identities.access_as(self.identities.masters)
        async with KubernetesApi(access, server=self._base_url(component), timeout_s=10.0) as api:
            while True:
                try:
                    answer = await api.request("GET", path)
                    if answer.status == 200:
                        return
                    why = f"{answer.status} {answer.message[:300]}"
                except ApiError as error:
                    why = error.message
                _refuse_if_ended(_state(self.supervisor))
                if time.monotonic() > deadline_s:
                    msg = f"{component} is not healthy after {timeout_s:g} s: {why}"
                    log = quote_log(self.logs_dir / f"{component}.log")
                    raise ClusterError(f"{msg}\n{log}".rstrip(), hint=f"Its logs lie in {self.logs_dir}.")
                await asyncio.sleep(0.03)

    def check_processes(self) -> None:
        """Raise ClusterError unless every component runs and listens on loopback alone."""
        state = _state(self.supervisor)
        pids: dict[int, str] = {}
        for component in state.components.values():
            if component.process is None or not component.process.is_alive():
                log = quote_log(self.logs_dir / f"{component.name}.log")
                msg = f"{component.name} of cluster {self.name} does not run\n{log}"
                raise ClusterError(msg.rstrip(), hint=f"Its logs lie in {self.logs_dir}.")
            pids[component.process.pid] = component.name
        self._refuse_exposed(pids)

    def _refuse_exposed(self, pids: Mapping[int, str]) -> None:
        exposed = [found for found in portlib.listeners_of(pids) if not found.address.startswith("127.")]
        if exposed:
            sockets = ", ".join(f"{pids[found.pid or 0]} on {found.address}:{found.port}" for found in exposed)
            msg = f"cluster {self.name} listens off loopback: {sockets}"
            raise ClusterError(msg, hint="Remove the flag that does this from controlPlane.args of the profile.")


def copy_logs(cluster: KwokControlPlane, target: Path) -> None:
    """Copy the logs of the components and of the supervisor; those that are missing are left out.

    Raises OSError with the place that could not be written.
    """
    target.mkdir(parents=True, exist_ok=True)
    for log in [*cluster.logs_dir.glob("*.log"), launcher_log_path(cluster.dir), supervisor_log_path(cluster.dir)]:
        if log.is_file():
            try:
                shutil.copyfile(log, target / log.name)
            except OSError as error:
                # Python names the file that was read.
                raise OSError(error.errno, error.strerror, str(target / log.name)) from error


async def start_cluster(request: ClusterRequest) -> KwokControlPlane:
    """Start a control plane and return it ready. Clean dead clusters first (``registry.clean_dead``).

    Raises:
        UsageError: a cluster of this name lives.
        ResourceShortage: a port that was asked for is taken.
        ClusterError: it did not start; its logs are kept until the next cluster starts.
    """
    began_s = time.monotonic()
    heartbeat = heartbeat_for(nodes=request.nodes, cores=read_host().cores, factor=request.spec.heartbeat_factor)
    record = await asyncio.to_thread(_reserve, request, heartbeat)
    cluster = KwokControlPlane(record)
    try:
        plan = await asyncio.to_thread(_prepare, cluster, request)
        loading = asyncio.create_task(asyncio.to_thread(load_client))
        await asyncio.to_thread(spawn_supervisor, cluster.dir, plan)
        await cluster.supervisor.wait_ready(plan.launch.timeout_s)
        await loading
        await cluster.wait_healthy(HEALTH_TIMEOUT_S)
        admin = await cluster.access("admin")
        await asyncio.to_thread(cluster.check_processes)
        for _ in range(1, request.spec.api_servers):
            await cluster.add_api_server()
        text = kubeconfig_text(cluster.name, [admin, await cluster.access(MASTERS)])
        pki.write_private(cluster.kubeconfig, text)
        if request.owner is None:
            await cluster.supervisor.set_owner(None)
        cluster.record = dataclasses.replace(cluster.record, ready_s=round(time.monotonic() - began_s, 3))
        registry.save(cluster.record)
    except BaseException as error:
        with contextlib.suppress(ClusterError):
            await _abandon(cluster, keep_logs=isinstance(error, ClusterError))
        raise
    return cluster


async def connect_cluster(name: str) -> KwokControlPlane:
    """Return a cluster that runs already. Raises UsageError when there is none, ClusterError when it is not ready."""
    record = registry.get(name)
    status = registry.status_of(record)
    if status != "ready":
        msg = f"cluster {name} is {status}"
        hint = f"Wait for it: scaletest cluster status {name}" if status == "starting" else "Run: scaletest clean"
        raise ClusterError(msg, hint=hint)
    cluster = KwokControlPlane(record)
    await cluster.supervisor.status()
    return cluster


def _reserve(request: ClusterRequest, heartbeat: Heartbeat) -> ClusterRecord:
    versions = request.binaries
    return registry.create(
        request.name,
        wanted_ports=request.ports,
        created_at=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        versions={"kubernetes": versions.kubernetes, "etcd": versions.etcd, "kwok": versions.kwok},
        heartbeat=heartbeat,
        limits={name: limits.to_json() for name, limits in request.limits.items()},
        labels=request.labels,
    )


def _prepare(cluster: KwokControlPlane, request: ClusterRequest) -> ClusterPlan:
    """Write certificates and configuration, and return the supervisor's plan."""
    layout = cluster.layout
    settings = kwokctl.KwokSettings(
        layout=layout,
        kubernetes=request.binaries.kubernetes,
        binaries=request.binaries.paths,
        ports=cluster.record.ports,
        heartbeat=cluster.heartbeat,
        args=request.spec.args,
        env=request.spec.env,
    )
    authority = pki.create_authority(layout.pki_dir, cluster=cluster.name, admin=ADMIN_SUBJECT)
    write_controllers(authority, layout.pki_dir, cluster.servers[0])
    kwokctl.write_config(kwokctl.base_documents(), settings)
    secrets = [layout.etcd_dir, layout.pki_dir, cluster.identities.home, cluster.kubeconfig]
    return ClusterPlan(
        name=cluster.name,
        components=kwokctl.component_plans(settings, request.limits),
        launch=kwokctl.launch_plan(settings, search_path=os.environ.get("PATH", os.defpath)),
        floor_bytes=request.floor_bytes,
        # Until it is ready a cluster belongs to whoever starts it, so that nothing is left if that process dies.
        owner=request.owner or ProcessId.current(),
        limit_by=request.spec.limit_by,
        journal=request.journal,
        remove_paths=tuple(str(path) for path in secrets),
        cpus=request.cpus,
    )


async def _abandon(cluster: KwokControlPlane, *, keep_logs: bool) -> None:
    """End what a failed start has begun; the first error is the one that is told."""
    if cluster.supervisor.state() is not None and keep_logs:
        await cluster.supervisor.end("start_failed")
        registry.save(dataclasses.replace(cluster.record, given_up=True))
    else:
        await cluster.stop(reason="start_failed")


def _state(supervisor: SupervisorClient) -> ClusterState:
    state = supervisor.state()
    if state is None:
        msg = f"cluster {supervisor.cluster_dir.name} has no supervisor"
        raise ClusterError(msg, hint="Run: scaletest clean")
    return state


def _refuse_if_ended(state: ClusterState) -> None:
    if state.status in {"ending", "ended"}:
        msg = f"cluster {state.name} ended while it started: {state.error or state.reason}"
        raise ClusterError(msg)
