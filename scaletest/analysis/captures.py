"""Profiles that were captured of the API servers: the ``pprof`` records of a journal, and what the files say together.

A *capture* is one look at all servers: at the load of a search that failed, or by an action. Profiles of several servers are added up: what is
asked is where the time of the API server went, and they all run the same program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from scaletest.analysis.hotspots import Goroutines, goroutines, groups
from scaletest.analysis.numbers import count, optional, seconds
from scaletest.analysis.pprof import Function, Profile, functions

__all__ = ["Capture", "CapturedProfile", "Hotspots", "Waiting", "captures", "hotspots", "waiting"]

SAMPLE_TYPES: Final = {"cpu": "cpu", "heap": "inuse_space", "goroutine": "goroutine"}
"""What is read of each profile: nanoseconds of CPU, bytes in use, goroutines."""


@dataclass(frozen=True, slots=True)
class CapturedProfile:
    """One profile of one server, or why it is not there."""

    t_s: float
    capture: str
    profile: str
    """``cpu``, ``heap`` or ``goroutine``."""
    server: str
    path: str | None
    """Within the run directory; None when it was not captured."""
    outcome: str
    reason: str | None
    latency_s: float
    """From the request to its last byte: of a CPU profile, its length and more."""
    step: int | None
    """Step of a search."""

    @classmethod
    def parse(cls, record: Mapping[str, Any]) -> CapturedProfile:
        """Read a ``pprof`` record. Raises what a malformed one makes Python raise."""
        profile, step, path, reason = (
            str(record["profile"]),
            record.get("step"),
            record.get("path"),
            record.get("reason"),
        )
        if profile not in SAMPLE_TYPES:
            msg = f"no profile that is captured: {profile}"
            raise ValueError(msg)
        return cls(
            t_s=seconds(record["t"]),
            capture=str(record["capture"]),
            profile=profile,
            server=str(record["server"]),
            path=None if path is None else str(path),
            outcome=str(record["outcome"]),
            reason=None if reason is None else str(reason),
            latency_s=seconds(record.get("latency_s") or 0.0),
            step=optional(count, step),
        )  # fmt: skip


@dataclass(slots=True)
class Capture:
    """One look at all servers."""

    name: str
    step: int | None
    profiles: list[CapturedProfile] = field(default_factory=list)

    @property
    def t_s(self) -> float:
        """When the first of its profiles was there."""
        return min(item.t_s for item in self.profiles)

    @property
    def took_s(self) -> float:
        """How long it took: servers are asked at the same time, each for one profile after the other."""
        each: dict[str, float] = {}
        for item in self.profiles:
            each[item.server] = each.get(item.server, 0.0) + item.latency_s
        return max(each.values(), default=0.0)


def captures(profiles: Iterable[CapturedProfile]) -> list[Capture]:
    """Return the captures, in order of time."""
    found: dict[str, Capture] = {}
    for item in profiles:
        found.setdefault(item.capture, Capture(item.capture, item.step)).profiles.append(item)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Hotspots:
    """CPU time or heap, of all servers together."""

    total: int
    """Nanoseconds of CPU, or bytes."""
    duration_s: float
    """Of the longest profile; 0 for a heap."""
    groups: Mapping[str, int]
    """By ``hotspots.GROUPS``, the largest first."""
    functions: tuple[Function, ...]
    """The largest flat first."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Goroutines of all servers together."""

    total: int
    groups: tuple[Goroutines, ...]
    """The most first."""


def hotspots(profiles: Iterable[Profile], profile: str) -> Hotspots:
    """Add up profiles of CPU (``cpu``) or of the heap (``heap``). Raises ValueError for profiles of another kind."""
    known = list(profiles)
    samples = [sample for item in known for sample in item.samples(SAMPLE_TYPES[profile])]
    return Hotspots(
        total=sum(value for _, value in samples),
        duration_s=max((item.duration_s for item in known), default=0.0),
        groups=groups(samples),
        functions=tuple(functions(samples)),
    )


def waiting(profiles: Iterable[Profile]) -> Waiting:
    """Add up profiles of goroutines. Raises ValueError for profiles of another kind."""
    samples = [sample for item in profiles for sample in item.samples(SAMPLE_TYPES["goroutine"])]
    return Waiting(sum(count for _, count in samples), tuple(goroutines(samples)))
