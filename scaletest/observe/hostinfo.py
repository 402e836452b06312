"""Facts about the machine and our own software, for ``run.json`` and ``scaletest doctor``.

A result can be compared with another only when one knows what both ran on. What is not known is None;
nothing here raises for a file that a container hides.
"""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Literal

__all__ = ["HostInfo", "host_info", "software_versions"]

_CONTAINER_WORDS: Final = ("docker", "kubepods", "containerd", "libpod", "lxc")
_V1_UNLIMITED_BYTES: Final = 1 << 62
"""Control groups v1 write "no limit" as the largest page-aligned number of 63 bits."""


@dataclass(frozen=True, slots=True)
class HostInfo:
    """The machine as this process sees it."""

    cores: int
    """Logical cores of the machine."""
    usable_cores: float
    """Cores that this process may use: by affinity and by the CPU quota of its control group."""
    memory_bytes: int
    """Memory of the machine."""
    memory_limit_bytes: int | None
    """Limit of this process's control group, when it is less than the machine has."""
    kernel: str
    architecture: str
    cpu_model: str | None
    cgroup: Literal["v1", "v2"] | None
    """Where the memory controller lives."""
    container: str | None
    """What says that this is a container."""
    virtual_machine: bool
    """Whether the CPU says that it runs under a hypervisor: neighbours may take its time (``steal``)."""

    def to_json(self) -> dict[str, Any]:
        """Return the ``host`` of ``run.json``."""
        return asdict(self)


def host_info(root: Path = Path("/")) -> HostInfo:
    """Read the facts; ``root`` is where ``proc`` and ``sys`` are."""
    cpuinfo = _text(root / "proc/cpuinfo")
    cores = os.cpu_count() or 1
    cgroup = _cgroup_version(_text(root / "proc/self/mountinfo"))
    memory_bytes = _memory_bytes(_text(root / "proc/meminfo"))
    group = root / "sys/fs/cgroup"
    quota_cores = _quota_cores(group, cgroup)
    limit_bytes = _limit_bytes(group, cgroup)
    usable_cores = float(len(os.sched_getaffinity(0)))
    return HostInfo(
        cores=cores,
        usable_cores=usable_cores if quota_cores is None else min(usable_cores, quota_cores),
        memory_bytes=memory_bytes,
        memory_limit_bytes=limit_bytes if limit_bytes is not None and limit_bytes < memory_bytes else None,
        kernel=_text(root / "proc/sys/kernel/osrelease").strip() or platform.release(),
        architecture=platform.machine(),
        cpu_model=_cpuinfo_value(cpuinfo, "model name"),
        cgroup=cgroup,
        container=_container_hint(root),
        virtual_machine="hypervisor" in (_cpuinfo_value(cpuinfo, "flags") or "").split(),
    )


def software_versions() -> dict[str, str | None]:
    """Return versions of Python, of ourselves and of what sends our load, without importing any of it."""
    names = ("scaletest", "locust", "gevent", "aiohttp", "aetcd")
    return {"python": platform.python_version(), **{name: _version(name) for name in names}}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _memory_bytes(meminfo: str) -> int:
    for line in meminfo.splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _cpuinfo_value(cpuinfo: str, key: str) -> str | None:
    for line in cpuinfo.splitlines():
        name, separator, value = line.partition(":")
        if separator and name.strip() == key:
            return value.strip()
    return None


def _cgroup_version(mountinfo: str) -> Literal["v1", "v2"] | None:
    """Tell where the memory controller is: a hybrid host mounts both hierarchies and keeps it in v1."""
    types: set[str] = set()
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        fields = right.split()
        if not separator or len(fields) < 3:
            continue
        if fields[0] == "cgroup" and "memory" in fields[2].split(","):
            return "v1"
        # cgroup2 on the side (systemd's `unified`) holds no controller of use.
        if fields[0] == "cgroup2" and left.split()[4] == "/sys/fs/cgroup":
            types.add("v2")
    return "v2" if types else None


def _limit_bytes(group: Path, cgroup: str | None) -> int | None:
    text = _text(group / "memory.max" if cgroup == "v2" else group / "memory/memory.limit_in_bytes").strip()
    if not text.isdigit() or int(text) >= _V1_UNLIMITED_BYTES:
        return None
    return int(text)


def _quota_cores(group: Path, cgroup: str | None) -> float | None:
    if cgroup == "v2":
        quota, _, period = _text(group / "cpu.max").strip().partition(" ")
    else:
        quota = _text(group / "cpu/cpu.cfs_quota_us").strip()
        period = _text(group / "cpu/cpu.cfs_period_us").strip()
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def _container_hint(root: Path) -> str | None:
    for marker in (".dockerenv", "run/.containerenv", "var/run/secrets/kubernetes.io"):
        if (root / marker).exists():
            return f"/{marker}"
    groups = _text(root / "proc/1/cgroup")
    return next((f"/proc/1/cgroup names {word}" for word in _CONTAINER_WORDS if word in groups), None)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
