"""What is known of processes: the control plane's components, the load driver, the host they share.

CPU is cumulative per process; a new pid counts from 0. Mean CPU is over the wall-clock time between the samples looked at,
whether the process was alive or not: a component that was down used nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from scaletest.analysis.numbers import amount, count, optional, seconds
from scaletest.analysis.series import Span, contains

__all__ = [
    "ComponentExit",
    "ComponentLimit",
    "ComponentSeries",
    "CpuSample",
    "HostSample",
    "HostSeries",
    "ProcessSeries",
]


@dataclass(frozen=True, slots=True)
class CpuSample:
    """CPU between two samples, and memory at the second."""

    start_s: float
    end_s: float
    cpu_s: float
    rss_bytes: int

    @property
    def cores(self) -> float:
        """Mean cores used."""
        return self.cpu_s / (self.end_s - self.start_s) if self.end_s > self.start_s else 0.0


class ProcessSeries:
    """Samples of one process, or of a tree summed, under one name."""

    def __init__(self) -> None:
        self.samples: list[CpuSample] = []
        self._last: tuple[float, object, float] | None = None

    def add(self, t_s: float, pid: object, rss_bytes: int, cpu_s: float) -> None:
        """Take in a sample; ``cpu_s`` is cumulative since the start of the process."""
        if self._last is None:
            start_s, used_s = t_s, 0.0
        else:
            start_s, last_pid, last_cpu_s = self._last
            # The sum over a tree shrinks when a child ends: that is no use of CPU.
            used_s = max(0.0, cpu_s - last_cpu_s) if pid == last_pid else cpu_s
        self.samples.append(CpuSample(start_s, t_s, used_s, rss_bytes))
        self._last = (t_s, pid, cpu_s)

    def within(self, span: Span) -> list[CpuSample]:
        """Return the samples taken within a span."""
        return [sample for sample in self.samples if contains(span, sample.end_s)]

    def mean_cores(self, span: Span) -> float:
        """Return the mean of cores used over the wall-clock time sampled; NaN with fewer than two samples."""
        samples = self.within(span)
        covered_s = samples[-1].end_s - samples[0].start_s if samples else 0.0
        return sum(sample.cpu_s for sample in samples) / covered_s if covered_s > 0 else math.nan

    def most_cores(self, span: Span) -> float:
        """Return the most cores used between two samples; NaN with fewer than two samples."""
        return max((item.cores for item in self.within(span) if item.end_s > item.start_s), default=math.nan)

    def most_memory_bytes(self, span: Span) -> float:
        """Return the largest resident set sampled; NaN when there is no sample."""
        return float(max((sample.rss_bytes for sample in self.within(span)), default=math.nan))


@dataclass(frozen=True, slots=True)
class ComponentExit:
    """An exit that nobody asked for, or the end of the cluster."""

    t_s: float
    reason: str
    code: int | None
    signal: int | None
    peak_rss_bytes: int | None
    cap_bytes: int | None
    log_tail: str | None
    """The last lines of its log, where the supervisor could read them."""


@dataclass(frozen=True, slots=True)
class ComponentLimit:
    """What bounds a component, and what enforces it."""

    memory_bytes: int | None
    cpu_cores: float | None
    memory_by: str
    cpu_by: str


@dataclass(slots=True)
class ComponentSeries:
    """One component of the control plane."""

    process: ProcessSeries = field(default_factory=ProcessSeries)
    limit: ComponentLimit | None = None
    restarts_s: list[float] = field(default_factory=list)
    exits: list[ComponentExit] = field(default_factory=list)

    def oom_kills(self, span: Span) -> int:
        """Count the kills at the memory cap within a span."""
        return sum(1 for item in self.exits if item.reason == "oom" and contains(span, item.t_s))

    def back_s(self, item: ComponentExit) -> float:
        """Return when it ran again after an exit; infinite where it never did."""
        return min((t_s for t_s in self.restarts_s if t_s >= item.t_s), default=math.inf)

    def down_after_oom_s(self, span: Span) -> float:
        """Return how long of a span it was down after a kill at the memory cap: a restart waits ever longer."""
        down = ((item.t_s, self.back_s(item)) for item in self.exits if item.reason == "oom")
        return sum(max(0.0, min(until_s, span[1]) - max(since_s, span[0])) for since_s, until_s in down)

    def restarts(self, span: Span) -> int:
        """Count the restarts within a span."""
        return sum(1 for t_s in self.restarts_s if contains(span, t_s))

    def most_memory_bytes(self, span: Span) -> float:
        """Return the largest resident set, sampled or told at an exit; NaN when neither is known."""
        peaks = [float(item.peak_rss_bytes) for item in self.exits if item.peak_rss_bytes and contains(span, item.t_s)]
        sampled = self.process.most_memory_bytes(span)
        return max([*peaks, *([] if math.isnan(sampled) else [sampled])], default=math.nan)


@dataclass(frozen=True, slots=True)
class HostSample:
    """Memory of the host, its cumulative CPU times over all cores, and what its kernel counted of TCP."""

    t_s: float
    available_bytes: int
    busy_s: float
    idle_s: float
    steal_s: float
    listen_overflows: int | None
    """Connections that were not taken because the queue of their listener was full."""
    memory_pressures: int | None
    """How often memory for sockets ran short."""

    @classmethod
    def parse(cls, record: dict[str, Any]) -> HostSample:
        """Read a ``host`` record. Raises what a malformed one makes Python raise."""
        return cls(
            seconds(record["t"]),
            count(record["available_bytes"]),
            amount(record["cpu_busy_s"]),
            amount(record["cpu_idle_s"]),
            amount(record.get("cpu_steal_s") or 0.0),
            optional(count, record.get("tcp_listen_overflows")),
            optional(count, record.get("tcp_memory_pressures")),
        )


@dataclass(slots=True)
class HostSeries:
    """Samples of the host."""

    samples: list[HostSample] = field(default_factory=list)
    total_bytes: int | None = None
    cores: int | None = None

    def within(self, span: Span) -> list[HostSample]:
        """Return the samples taken within a span."""
        return [sample for sample in self.samples if contains(span, sample.t_s)]

    def least_available_bytes(self, span: Span) -> float:
        """Return the least memory that was available; NaN when there is no sample."""
        return float(min((sample.available_bytes for sample in self.within(span)), default=math.nan))

    def cpu_share(self, span: Span, part: str) -> float:
        """Return the mean share of CPU time that was ``busy``, ``idle`` or ``steal``; NaN with fewer than two samples."""
        samples = self.within(span)
        if len(samples) < 2:
            return math.nan
        first, last = samples[0], samples[-1]
        parts = {
            "busy": last.busy_s - first.busy_s,
            "idle": last.idle_s - first.idle_s,
            "steal": last.steal_s - first.steal_s,
        }
        whole_s = sum(parts.values())
        return parts[part] / whole_s if whole_s > 0 else math.nan

    def counted(self, span: Span, name: str) -> float:
        """Return by how much ``listen_overflows`` or ``memory_pressures`` grew within a span; NaN with fewer than two samples."""
        values = [value for sample in self.within(span) if (value := getattr(sample, name)) is not None]
        return float(values[-1] - values[0]) if len(values) > 1 else math.nan
