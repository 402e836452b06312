"""What this machine lacks for a profile, and the command that mends it: the checks of ``scaletest doctor``.

Looking (``look``) is apart from judging (``judge``, pure), so that every judgement can be tested without such a
machine. A check that fails is one that would end a run with exit code 3; a warning is something that a
run copes with, at a price that it names.
"""

from __future__ import annotations

import enum
import os
import platform
import resource
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scaletest.controlplane import ports, registry
from scaletest.controlplane.binaries import Plan, plan_all
from scaletest.controlplane.host import Host, MemoryGauge, read_host
from scaletest.controlplane.limits import default_limits, nodes_that_fit
from scaletest.controlplane.plan import Limits
from scaletest.controlplane.supervisor import cgroups
from scaletest.core.errors import ResourceShortage
from scaletest.core.paths import cache_dir, state_dir
from scaletest.core.units import format_bytes, format_count
from scaletest.load.capacity import check_all_descriptors
from scaletest.profile.schema import ControlPlaneSpec, Profile
from scaletest.runner.plan import make_plan, refuse_if_too_large

__all__ = ["Check", "Disk", "Level", "Machine", "judge", "look", "preflight"]

_GIB: Final = 1 << 30
_BUILD_BYTES: Final = 4 * _GIB
"""Free space for a build of all three Kubernetes programs with empty Go caches."""
_DOWNLOAD_BYTES: Final = _GIB
"""Eight programs of 30 to 110 MB, and the compressed file of the one being fetched."""
_STATE_BYTES: Final = 2 * _GIB
"""etcd's default quota: the most that one cluster's data can grow to."""
_GOOD_CORES: Final = 4.0
"""With two, a control plane under load and the load driver take each other's time."""
_PODS_PER_NODE: Final = 3.0
"""For the answer to "how many nodes fit" when no profile says."""


class Level(enum.StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what was found, and the command that mends it when there is one."""

    name: str
    level: Level
    detail: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Disk:
    """Where a directory lies or would be made: what is free there, and whether we may write."""

    path: Path
    free_bytes: int
    writable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What was seen of the machine."""

    python: tuple[int, int, int]
    system: str
    architecture: str
    host: Host
    available_bytes: int
    cache: Disk
    state: Disk
    hard_files: int | None
    """Hard limit of open files; None when there is none."""
    free_ports: int
    no_groups: str | None
    """Why control groups cannot be used; None when they can."""
    clusters: Mapping[str, registry.ClusterStatus]


def preflight(profile: Profile | None, explicit: Mapping[str, Path]) -> list[Check]:
    """Look at this machine and judge it for a profile (None: for the default control plane).

    ``explicit`` holds binaries by component, as the user gives them. Takes seconds when a binary is missing,
    for sources on the network are asked whether they have it. Raises UsageError for an unknown version or component.
    """
    spec = profile.control_plane if profile is not None else ControlPlaneSpec()
    return judge(profile, look(), plan_all(spec.kubernetes, spec.etcd, explicit=explicit))


def look() -> Machine:
    """Look at this machine. Makes a control group and removes it, to see whether that works."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return Machine(
        python=(sys.version_info.major, sys.version_info.minor, sys.version_info.micro),
        system=platform.system(),
        architecture=platform.machine(),
        host=read_host(),
        available_bytes=MemoryGauge().available_bytes(),
        cache=_disk(cache_dir()),
        state=_disk(state_dir()),
        hard_files=None if hard == resource.RLIM_INFINITY else hard,
        free_ports=_free_ports(),
        no_groups=_why_no_groups(),
        clusters={record.name: registry.status_of(record) for record in registry.list_clusters()},
    )


def judge(profile: Profile | None, machine: Machine, binaries: Sequence[Plan]) -> list[Check]:
    """Return all checks, in the order in which a run would meet them."""
    return [
        _platform(machine),
        *_binaries(profile, binaries),
        _disk_of_cache(machine, binaries),
        _disk_of_state(machine),
        _memory(profile, machine),
        _cores(profile, machine),
        _descriptors(profile, machine),
        _ports(machine),
        _groups(profile, machine),
        _clusters(machine),
    ]


def _platform(machine: Machine) -> Check:
    python = ".".join(str(part) for part in machine.python)
    detail = f"Python {python} on {machine.system} {machine.architecture}"
    if machine.system != "Linux":
        return Check("platform", Level.FAIL, f"{detail}: control planes run on Linux only", "use a Linux machine or VM")
    if machine.python < (3, 11, 0):
        return Check(
            "platform", Level.FAIL, f"{detail}: 3.11 or later is needed", "python3.11 -m pip install scaletest"
        )
    return Check("platform", Level.OK, detail)


def _binaries(profile: Profile | None, plans: Sequence[Plan]) -> Iterator[Check]:
    spec = profile.control_plane if profile is not None else ControlPlaneSpec()
    versions = ", ".join(f"{plan.component} {plan.version}" for plan in plans if plan.ready)
    if versions:
        yield Check("binaries", Level.OK, versions)
    fetch = f"scaletest binaries fetch --kubernetes {spec.kubernetes} --etcd {spec.etcd}"
    missing: dict[str, list[Plan]] = {}
    for plan in plans:
        if not plan.ready:
            missing.setdefault(plan.how, []).append(plan)
    for how, together in missing.items():
        names = ", ".join(plan.component for plan in together)
        if together[0].source is None:
            remedy = " ".join([fetch, *(f"--binary {plan.component}=PATH" for plan in together)])
            yield Check("binaries", Level.FAIL, f"{names}: {how}", remedy)
        else:
            yield Check("binaries", Level.WARN, f"{names}: {how} by the first run", fetch)


def _disk_of_cache(machine: Machine, plans: Sequence[Plan]) -> Check:
    sources = {plan.source for plan in plans if not plan.ready}
    needed = _BUILD_BYTES if "build" in sources else _DOWNLOAD_BYTES if "download" in sources else 0
    return _space("cache space", machine.cache, needed, "for binaries", "SCALETEST_CACHE_DIR")


def _disk_of_state(machine: Machine) -> Check:
    return _space("state space", machine.state, _STATE_BYTES, "for a cluster's data", "SCALETEST_STATE_DIR")


def _space(name: str, disk: Disk, needed_bytes: int, purpose: str, variable: str) -> Check:
    elsewhere = f"export {variable}=DIRECTORY"
    if not disk.writable:
        return Check(name, Level.FAIL, f"{disk.path} cannot be written to", elsewhere)
    detail = f"{format_bytes(disk.free_bytes)} free in {disk.path}"
    if disk.free_bytes < needed_bytes:
        level = Level.WARN if disk.free_bytes >= needed_bytes // 2 else Level.FAIL
        return Check(name, level, f"{detail}; {purpose} {format_bytes(needed_bytes)} may be needed", elsewhere)
    return Check(name, Level.OK, detail)


def _memory(profile: Profile | None, machine: Machine) -> Check:
    have = f"{format_bytes(machine.available_bytes)} of {format_bytes(machine.host.memory_bytes)} available"
    try:
        if profile is None:
            fit = nodes_that_fit(default_limits(machine.host), pods_per_node=_PODS_PER_NODE)
            return Check("memory", Level.OK, f"{have}: about {format_count(fit)} nodes with 3 pods each fit")
        plan = make_plan(profile, machine.host)
        refuse_if_too_large(plan, machine.available_bytes)
    except ResourceShortage as shortage:
        return Check("memory", Level.FAIL, shortage.message, shortage.hint)
    detail = f"{have}; {format_count(plan.most_nodes)} nodes need about {format_bytes(plan.all_needed_bytes)}"
    return Check("memory", Level.OK, f"{detail}, about {format_count(plan.fitting_nodes)} would fit")


def _cores(profile: Profile | None, machine: Machine) -> Check:
    cores = machine.host.cores
    detail = f"{cores:g} usable"
    if profile is not None:
        try:
            heartbeat = make_plan(profile, machine.host).heartbeat
        except ResourceShortage:
            pass  # the memory check says it
        else:
            detail += f"; heartbeats take about {heartbeat.cost_cores:.2g} of them (factor {heartbeat.factor})"
    if cores < _GOOD_CORES:
        text = f"{detail}; control plane and load driver will take each other's time: reports say how much"
        return Check("cores", Level.WARN, text, "use a machine with 4 cores or more for figures to compare")
    return Check("cores", Level.OK, detail)


def _descriptors(profile: Profile | None, machine: Machine) -> Check:
    limit = "unlimited" if machine.hard_files is None else format_count(machine.hard_files)
    if profile is None or machine.hard_files is None:
        return Check("open files", Level.OK, f"hard limit {limit}")
    try:
        nodes = make_plan(profile, machine.host).most_nodes
    except ResourceShortage:
        nodes = profile.fleet.node_count
    try:
        wanted = check_all_descriptors(profile.flows.values(), nodes, hard_limit=machine.hard_files)
    except ResourceShortage as shortage:
        return Check("open files", Level.FAIL, shortage.message, shortage.hint)
    return Check("open files", Level.OK, f"hard limit {limit}; the flows hold up to {format_count(wanted)} connections")


def _ports(machine: Machine) -> Check:
    needed = len(ports.PORT_ROLES)
    if machine.free_ports < needed:
        detail = f"{machine.free_ports} of the {needed} that a cluster needs are free on {ports.LOOPBACK}"
        return Check("ports", Level.FAIL, detail, "scaletest cluster down --all")
    return Check("ports", Level.OK, f"{needed} free on {ports.LOOPBACK} below the ephemeral range")


def _groups(profile: Profile | None, machine: Machine) -> Check:
    limit_by = profile.control_plane.limit_by if profile is not None else "auto"
    if machine.no_groups is None:
        return Check("control groups", Level.OK, "memory caps are enforced by the kernel")
    if limit_by == "cgroup":
        detail = f"the profile asks for limitBy: cgroup, and {machine.no_groups}"
        return Check("control groups", Level.FAIL, detail, "--set controlPlane.limitBy=watchdog")
    detail = f"a watchdog enforces memory caps instead, and CPU quotas are not enforced: {machine.no_groups}"
    return Check("control groups", Level.WARN, detail, "systemd-run --user --scope -p Delegate=yes scaletest ...")


def _clusters(machine: Machine) -> Check:
    dead = sorted(name for name, status in machine.clusters.items() if status == "dead")
    if dead:
        return Check("leftovers", Level.WARN, f"clusters without a supervisor: {', '.join(dead)}", "scaletest clean")
    alive = sorted(machine.clusters)
    if alive:
        detail = f"none; clusters that take memory and cores: {', '.join(alive)}"
        return Check("leftovers", Level.OK, detail)
    return Check("leftovers", Level.OK, "none")


def _disk(directory: Path) -> Disk:
    existing = directory
    while not existing.exists():
        existing = existing.parent
    writable = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    return Disk(directory, shutil.disk_usage(existing).free, writable)


def _free_ports() -> int:
    """Count free ports, up to as many as a cluster needs."""
    taken = {port for record in registry.list_clusters() for port in record.ports.values()}
    free = 0
    for port in ports.port_range(ports.ephemeral_first()):
        if port not in taken and ports.is_free(port):
            free += 1
            if free == len(ports.PORT_ROLES):
                break
    return free


def _why_no_groups() -> str | None:
    try:
        groups = cgroups.make_groups(f"scaletest-doctor-{os.getpid()}", {"probe": Limits(memory_bytes=64 << 20)})
    except cgroups.GroupsUnavailable as why:
        return str(why)
    cgroups.remove_groups(groups.directories())
    return None
