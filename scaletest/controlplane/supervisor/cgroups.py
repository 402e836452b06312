"""Control groups, versions 1 and 2: one group per cluster with one child per component.

Where the cluster's group is made. The first candidate that works is taken, from the top of the hierarchy down to our own
group, leaving out every group above one that has a limit: so that a container's limits go on holding for
what is started here, and the cluster does not live in a group that goes away with a login session. Whether a candidate works is
tried out (make it, set the limits, let a throw-away process join), because permission depends on who owns
the groups in between.

In version 2 a group that has processes cannot hand controllers to its children ("no internal processes").
Where that hits our own group, its processes are moved to its child ``scaletest-others``, which changes none of their limits.

Paths are taken below ``root`` (``/`` in real life), so that tests can bring a tree of their own.
"""

from __future__ import annotations

import errno
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from scaletest.controlplane.plan import Limits

__all__ = [
    "Groups",
    "GroupsUnavailable",
    "Hierarchy",
    "find_groups",
    "group_name",
    "locate_hierarchies",
    "make_groups",
    "remove_groups",
]

Version = Literal["cgroup_v1", "cgroup_v2"]
_Limiter = Callable[[Path, Limits], None]

_CPU_PERIOD_US: Final = 100_000
_CLUSTER_SHARES_PER_CORE_V1: Final = 512
_CLUSTER_WEIGHT_V2: Final = 50
"""Half of the usual: on a host that is busy, what measures goes before what is measured. In version 1, processes next to the
group weigh 1,024 each, and the group's shares are spread over the cores on which it runs; in version 2 its neighbours
are groups, which weigh 100."""

UNLIMITED_V1_BYTES: Final = 1 << 60
"""Version 1 writes "no limit" as the largest multiple of a page below 2^63."""

_OTHERS: Final = "scaletest-others"


class GroupsUnavailable(Exception):
    """Control groups cannot be used here; the text says why."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A mounted hierarchy with a controller: its mount point and our own group in it."""

    version: Version
    mount: Path
    own: Path

    def chain(self) -> list[Path]:
        """Groups from the mount point down to our own."""
        parts = self.own.relative_to(self.mount).parts
        return [self.mount.joinpath(*parts[:depth]) for depth in range(len(parts) + 1)]


def locate_hierarchies(root: Path = Path("/")) -> dict[str, Hierarchy]:
    """Find the hierarchies of the controllers ``memory`` and ``cpu``. Those that are not mounted are left out."""
    own_v1, own_v2 = _own_groups((root / "proc/self/cgroup").read_text(encoding="utf-8"))
    found: dict[str, Hierarchy] = {}
    unified: Hierarchy | None = None
    for line in (root / "proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        mounted_root, mount_point = before.split()[3:5]
        kind, _, options = after.split()[:3]
        mount = root / _unescape(mount_point).lstrip("/")
        if kind == "cgroup2" and unified is None:
            unified = Hierarchy("cgroup_v2", mount, _own_dir(mount, mounted_root, own_v2))
        elif kind == "cgroup":
            for controller in {"memory", "cpu"} & set(options.split(",")):
                own = _own_dir(mount, mounted_root, own_v1.get(controller, "/"))
                found.setdefault(controller, Hierarchy("cgroup_v1", mount, own))
    if unified is not None:
        for controller in {"memory", "cpu"} & set(_read(unified.mount / "cgroup.controllers").split()):
            found.setdefault(controller, unified)
    return found


def _own_groups(text: str) -> tuple[dict[str, str], str]:
    version_1: dict[str, str] = {}
    version_2 = "/"
    for line in text.splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            version_2 = path
        version_1.update(dict.fromkeys(controllers.split(","), path))
    return version_1, version_2


def _own_dir(mount: Path, mounted_root: str, own: str) -> Path:
    # In a container without a cgroup namespace the mount shows a subtree, and our path counts from the host's root.
    prefix = _unescape(mounted_root).rstrip("/")
    relative = own[len(prefix) :] if own == prefix or own.startswith(prefix + "/") else "/"
    directory = mount / relative.lstrip("/")
    return directory if ".." not in directory.parts and directory.is_dir() else mount


def _unescape(path: str) -> str:
    return path.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")


@dataclass(slots=True)
class Groups:
    """The control groups of one cluster."""

    memory_by: Version
    cpu_by: Version | Literal["none"]
    memory: Path
    cpu: Path | None
    components: tuple[str, ...] = field(default=())

    def procs_files(self, component: str) -> list[Path]:
        """Files that a process writes its pid to in order to join a component's groups."""
        parents = [self.memory] if self.cpu in {None, self.memory} else [self.memory, self.cpu]
        return [parent / component / "cgroup.procs" for parent in parents if parent is not None]

    def oom_kills(self, component: str) -> int:
        """How many processes the kernel has killed in a component's group for want of memory."""
        name = "memory.oom_control" if self.memory_by == "cgroup_v1" else "memory.events"
        for line in _read(self.memory / component / name).splitlines():
            key, _, value = line.partition(" ")
            if key == "oom_kill":
                return int(value)
        return 0

    def add(self, component: str, limits: Limits) -> None:
        """Make the groups of one more component and set its limits. Raises OSError."""
        parents = [parent for parent in (self.memory, self.cpu) if parent is not None]
        for parent in dict.fromkeys(parents):
            (parent / component).mkdir(exist_ok=True)
        if self.memory_by == "cgroup_v2":
            _limit_v2(self.memory / component, limits, with_cpu=self.cpu is not None)
        else:
            _limit_memory_v1(self.memory / component, limits)
            if self.cpu is not None:
                _limit_cpu_v1(self.cpu / component, limits)
        self.components = (*self.components, component)

    def directories(self) -> list[Path]:
        """Every directory made, children before parents."""
        parents = [self.memory] if self.cpu in {None, self.memory} else [self.memory, self.cpu]
        return [
            directory
            for parent in parents
            if parent is not None
            for directory in [*(parent / component for component in self.components), parent]
        ]


def make_groups(name: str, limits: Mapping[str, Limits], *, root: Path = Path("/")) -> Groups:
    """Make the groups of a cluster and set the limits. Raises GroupsUnavailable with the reason."""
    try:
        hierarchies = locate_hierarchies(root)
    except OSError as error:
        msg = f"control groups cannot be looked up: {error}"
        raise GroupsUnavailable(msg) from error
    if "memory" not in hierarchies:
        msg = "no control group hierarchy with the memory controller is mounted"
        raise GroupsUnavailable(msg)
    memory = hierarchies["memory"]
    if memory.version == "cgroup_v2":
        return _make_v2(memory, name, limits, with_cpu=hierarchies.get("cpu") == memory)
    groups = Groups("cgroup_v1", "none", _make_v1(memory, name, limits, _limit_memory_v1), None, tuple(limits))
    cpu = hierarchies.get("cpu")
    if cpu is not None and cpu.version == "cgroup_v1":
        try:
            groups.cpu = _make_v1(cpu, name, limits, _limit_cpu_v1)
            (groups.cpu / "cpu.shares").write_text(
                str(_CLUSTER_SHARES_PER_CORE_V1 * (os.cpu_count() or 1)), encoding="ascii"
            )
            groups.cpu_by = "cgroup_v1"
        except (GroupsUnavailable, OSError):
            groups.cpu = None
    return groups


def group_name(cluster: str, supervisor_pid: int) -> str:
    """Return the name of a cluster's group; the pid keeps clusters of one name in several state directories apart."""
    return f"scaletest-{cluster}-{supervisor_pid}"


def find_groups(name: str, *, root: Path = Path("/")) -> list[Path]:
    """Search for a cluster's groups, children before parents: where their supervisor was killed while it made them."""
    try:
        mounts = {hierarchy.mount for hierarchy in locate_hierarchies(root).values()}
    except OSError:
        return []
    # What the walk has seen, and no second look: a supervisor that ends takes its groups away at the same time.
    walked = ((Path(path), children) for mount in mounts for path, children, _ in os.walk(mount))
    found = [(path, children) for path, children in walked if path.name == name]
    return [directory for path, children in found for directory in [*(path / child for child in children), path]]


def pids_in(directories: Iterable[Path]) -> set[int]:
    """Return the pids of every process in some groups; groups that are gone have none."""
    return {int(pid) for directory in directories for pid in _read(directory / "cgroup.procs").split()}


def remove_groups(directories: Iterable[Path], *, timeout_s: float = 5.0) -> list[Path]:
    """Remove groups whose processes have ended, children first; return those that are still there."""
    left = []
    deadline_s = time.monotonic() + timeout_s
    for directory in directories:
        # A group stays busy for a moment after its last process was reaped or its last child removed: on a machine with a
        # load of 20, more than a second was seen.
        while not _try_rmdir(directory):
            if time.monotonic() > deadline_s:
                left.append(directory)
                break
            time.sleep(0.02)
    return left


def _try_rmdir(directory: Path) -> bool:
    try:
        directory.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _make_v1(hierarchy: Hierarchy, name: str, limits: Mapping[str, Limits], limit: _Limiter) -> Path:
    problems: list[str] = []
    for candidate in _candidates(hierarchy):
        parent = candidate / name
        try:
            parent.mkdir(exist_ok=True)
            for component, values in limits.items():
                (parent / component).mkdir(exist_ok=True)
                limit(parent / component, values)
            _try_join(parent / next(iter(limits)))
        except OSError as error:
            problems.append(_reason(error, parent))
            remove_groups([*(parent / component for component in limits), parent], timeout_s=0.1)
        else:
            return parent
    raise GroupsUnavailable("; ".join(problems))


def _limit_memory_v1(group: Path, limits: Limits) -> None:
    (group / "memory.limit_in_bytes").write_text(str(limits.memory_bytes), encoding="ascii")
    swap = group / "memory.memsw.limit_in_bytes"
    if swap.exists():
        swap.write_text(str(limits.memory_bytes), encoding="ascii")


def _limit_cpu_v1(group: Path, limits: Limits) -> None:
    if limits.cpu_cores is not None:
        (group / "cpu.cfs_period_us").write_text(str(_CPU_PERIOD_US), encoding="ascii")
        (group / "cpu.cfs_quota_us").write_text(str(_quota_us(limits.cpu_cores)), encoding="ascii")


def _quota_us(cores: float) -> int:
    # The kernel takes no quota under 1 ms.
    return max(1_000, round(cores * _CPU_PERIOD_US))


def _make_v2(hierarchy: Hierarchy, name: str, limits: Mapping[str, Limits], *, with_cpu: bool) -> Groups:
    problems: list[str] = []
    for candidate in _candidates(hierarchy):
        parent = candidate / name
        try:
            controllers = _hand_down(candidate, own=candidate == hierarchy.own, with_cpu=with_cpu)
            parent.mkdir(exist_ok=True)
            if "cpu" in controllers:
                (parent / "cpu.weight").write_text(str(_CLUSTER_WEIGHT_V2), encoding="ascii")
            _enable(parent, controllers)
            for component, values in limits.items():
                (parent / component).mkdir(exist_ok=True)
                _limit_v2(parent / component, values, with_cpu="cpu" in controllers)
            _try_join(parent / next(iter(limits)))
        except OSError as error:
            problems.append(_reason(error, parent))
            remove_groups([*(parent / component for component in limits), parent], timeout_s=0.1)
        else:
            has_cpu = "cpu" in controllers
            return Groups(
                "cgroup_v2", "cgroup_v2" if has_cpu else "none", parent, parent if has_cpu else None, tuple(limits)
            )
    raise GroupsUnavailable("; ".join(problems))


def _limit_v2(group: Path, limits: Limits, *, with_cpu: bool) -> None:
    (group / "memory.max").write_text(str(limits.memory_bytes), encoding="ascii")
    swap = group / "memory.swap.max"
    if swap.exists():
        swap.write_text("0", encoding="ascii")
    if with_cpu and limits.cpu_cores is not None:
        (group / "cpu.max").write_text(f"{_quota_us(limits.cpu_cores)} {_CPU_PERIOD_US}", encoding="ascii")


def _hand_down(group: Path, *, own: bool, with_cpu: bool) -> list[str]:
    """Make a group hand its controllers to its children; return those that it hands down."""
    wanted = ["memory", "cpu"] if with_cpu and "cpu" in _read(group / "cgroup.controllers").split() else ["memory"]
    missing = [controller for controller in wanted if controller not in _read(group / "cgroup.subtree_control").split()]
    if missing:
        try:
            _enable(group, missing)
        except OSError as error:
            if error.errno != errno.EBUSY or not own:
                raise
            _move_processes(group, group / _OTHERS)
            _enable(group, missing)
    return wanted


def _enable(group: Path, controllers: list[str]) -> None:
    text = " ".join(f"+{controller}" for controller in controllers)
    (group / "cgroup.subtree_control").write_text(text, encoding="ascii")


def _move_processes(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for pid in _read(source / "cgroup.procs").split():
        try:
            (target / "cgroup.procs").write_text(pid, encoding="ascii")
        except ProcessLookupError:
            continue


def _candidates(hierarchy: Hierarchy) -> Iterator[Path]:
    """Groups in which the cluster's may be made, best first."""
    chain = hierarchy.chain()
    lowest_limited = max((depth for depth, group in enumerate(chain) if _is_limited(group)), default=0)
    yield from chain[lowest_limited:]


def _is_limited(group: Path) -> bool:
    limit = _read(group / "memory.limit_in_bytes").strip() or _read(group / "memory.max").strip()
    return (limit.isdigit() and int(limit) < UNLIMITED_V1_BYTES) or cpu_quota_cores(group) is not None


def cpu_quota_cores(group: Path) -> float | None:
    """Return the CPU quota of a group in cores; None when it has none."""
    quota = _read(group / "cpu.cfs_quota_us").strip()
    period = _read(group / "cpu.cfs_period_us").strip()
    if not quota:
        quota, _, period = _read(group / "cpu.max").strip().partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _try_join(group: Path) -> None:
    """Let a throw-away process join a group. Raises OSError when it may not."""
    script = f"echo $$ > {shell_quote(str(group / 'cgroup.procs'))}"
    done = subprocess.run(
        ["/bin/sh", "-c", script], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        raise PermissionError(errno.EACCES, "a process cannot join it", str(group))


def shell_quote(text: str) -> str:
    """Quote a text for /bin/sh."""
    return "'" + text.replace("'", "'\\''") + "'"


def _reason(error: OSError, group: Path) -> str:
    return f"{error.filename or group}: {error.strerror}"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
