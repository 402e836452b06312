"""What the host has: memory in all and available now, and cores; a container's own limits count.

Paths are taken below ``root`` (``/`` in real life), so that tests can bring a tree of their own.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from scaletest.controlplane.supervisor import cgroups

__all__ = ["Host", "MemoryGauge", "read_host"]


@dataclass(frozen=True, slots=True)
class Host:
    """Memory and cores that this process and what it starts can use."""

    memory_bytes: int
    cores: float


class MemoryGauge:
    """Reads how much memory can still be taken before somebody is killed: cheap enough for four times a second."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._meminfo = root / "proc/meminfo"
        try:
            self._groups = cgroups.locate_hierarchies(root).get("memory")
        except OSError:
            self._groups = None

    def total_bytes(self) -> int:
        """Return the memory of the host, or the smallest limit of our own groups."""
        limits = [limit for limit, _ in self._limits()]
        return min([self._field("MemTotal"), *limits])

    def available_bytes(self) -> int:
        """Return MemAvailable, or what our own groups leave, whichever is less."""
        rooms = [limit - used for limit, used in self._limits()]
        return max(0, min([self._field("MemAvailable"), *rooms]))

    def _field(self, name: str) -> int:
        for line in self._meminfo.read_text(encoding="ascii").splitlines():
            key, _, value = line.partition(":")
            if key == name:
                return int(value.split()[0]) * 1024
        msg = f"{self._meminfo} has no {name}"
        raise OSError(msg)

    def _limits(self) -> list[tuple[int, int]]:
        """Limit and unreclaimable use of each group above us that has a limit."""
        if self._groups is None:
            return []
        names = (
            ("memory.max", "memory.current", "inactive_file")
            if self._groups.version == "cgroup_v2"
            else ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        )
        found = []
        for group in self._groups.chain():
            limit = _number(group / names[0])
            if limit is not None and limit < cgroups.UNLIMITED_V1_BYTES:
                found.append((limit, (_number(group / names[1]) or 0) - _stat(group, names[2])))
        return found


def read_host(root: Path = Path("/")) -> Host:
    """Read what the host has."""
    return Host(MemoryGauge(root).total_bytes(), _cores(root))


def _cores(root: Path) -> float:
    allowed = float(len(os.sched_getaffinity(0)))
    try:
        group = cgroups.locate_hierarchies(root).get("cpu")
    except OSError:
        return allowed
    quotas = [quota for path in group.chain() if (quota := cgroups.cpu_quota_cores(path)) is not None] if group else []
    return min([allowed, *quotas])


def _number(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _stat(group: Path, key: str) -> int:
    try:
        lines = (group / "memory.stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.split()[0] == key), 0)
