"""What the servers said of themselves on ``/metrics``: flow control, garbage collection and watch cache of the API servers, disk and size of etcd.

Counters are turned into increases between two scrapes of one server, each at the time of the second. What a server counted
before its first scrape, or lost when it was killed, is unknown and stays so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from scaletest.analysis.numbers import amount, number, seconds
from scaletest.analysis.series import Span, bucket_quantile, contains, counter_increases

__all__ = ["ApfSample", "ApiServerMetrics", "EtcdMetrics", "EtcdSample", "GoMemory", "InFlight"]

_Counter = tuple[str, str, str]
"""(``dispatched`` | ``rejected`` | ``requests`` | ``watch_cache``, level, reason, verb and code, or name)."""


@dataclass(frozen=True, slots=True)
class ApfSample:
    """One priority level at one scrape of one server."""

    t_s: float
    server: str
    seats_limit: float
    seats_in_use: float
    queued: float
    executing: float


@dataclass(frozen=True, slots=True)
class InFlight:
    """Requests that one server was doing, at most, in the second before a scrape."""

    t_s: float
    mutating: float
    read_only: float


@dataclass(frozen=True, slots=True)
class GoMemory:
    """Memory of one server that counts against its GOMEMLIMIT, where it has one."""

    t_s: float
    used_bytes: float
    limit_bytes: float


@dataclass(slots=True)
class ApiServerMetrics:
    """Scrapes of all API servers."""

    levels: dict[str, list[ApfSample]] = field(default_factory=dict)
    increases: list[tuple[float, dict[_Counter, float]]] = field(default_factory=list)
    answered: list[tuple[float, str, float]] = field(default_factory=list)
    """Requests that a server answered between two of its scrapes: time of the second, server, number."""
    in_flight: list[InFlight] = field(default_factory=list)
    go_memory: list[GoMemory] = field(default_factory=list)
    go_cpu_s: list[tuple[float, dict[str, float]]] = field(default_factory=list)
    """Increases of the CPU that Go's runtime gave out, left idle and spent on garbage collection, of one server between two scrapes."""
    scrapes: int = 0
    _counters: dict[str, dict[_Counter, float]] = field(default_factory=dict)
    _go_cpu_s: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, record: Mapping[str, Any]) -> None:
        """Take in a ``metrics.apiserver`` record. Raises what a malformed one makes Python raise, changing nothing."""
        t_s, server = seconds(record["t"]), str(record.get("server"))
        counters: dict[_Counter, float] = {
            ("requests", "", str(key)): amount(value) for key, value in (record.get("requests") or {}).items()
        }
        samples: list[tuple[str, ApfSample]] = []
        for level, data in (record.get("apf") or {}).items():
            gauges = (amount(data.get(key) or 0) for key in ("seats_limit", "seats_in_use", "queued", "executing"))
            samples.append((str(level), ApfSample(t_s, server, *gauges)))
            counters["dispatched", str(level), ""] = amount(data.get("dispatched") or 0)
            for reason, value in (data.get("rejected") or {}).items():
                counters["rejected", str(level), str(reason)] = amount(value)
        for name, value in (record.get("watch_cache") or {}).items():
            counters["watch_cache", "", str(name)] = amount(value)
        go = record.get("go") or {}
        cpu_s = {key: number(go[key]) for key in _GO_CPU if key in go}
        in_flight = (amount((record.get("inflight") or {}).get(kind) or 0) for kind in ("mutating", "read_only"))
        busy = InFlight(t_s, *in_flight)
        memory = GoMemory(t_s, _or_nan(go.get("memory_bytes")), _or_nan(go.get("memory_limit_bytes")))
        previous, previous_cpu_s = self._counters.get(server), self._go_cpu_s.get(server)
        for level, sample in samples:
            self.levels.setdefault(level, []).append(sample)
        if previous is not None:
            grown = counter_increases(previous, counters)
            self.increases.append((t_s, grown))
            self.answered.append(
                (t_s, server, sum(value for (kind, _, _), value in grown.items() if kind == "requests"))
            )
        # Apart from the others: these are estimates, and one that shrank by a little would look like a restart.
        if previous_cpu_s is not None:
            self.go_cpu_s.append((t_s, counter_increases(previous_cpu_s, cpu_s)))
        self._counters[server], self._go_cpu_s[server] = counters, cpu_s
        self.in_flight.append(busy)
        if not math.isnan(memory.used_bytes) and not math.isnan(memory.limit_bytes):
            self.go_memory.append(memory)
        self.scrapes += 1

    def level(self, name: str, span: Span) -> list[ApfSample]:
        """Return the samples of a priority level within a span."""
        return [sample for sample in self.levels.get(name, ()) if contains(span, sample.t_s)]

    def rejected(self, level: str, span: Span) -> dict[str, float]:
        """Return the requests that a level rejected within a span, by reason."""
        return self._sum("rejected", level, span)

    def dispatched(self, level: str, span: Span) -> float:
        """Return the requests that a level let through within a span."""
        return sum(self._sum("dispatched", level, span).values())

    def requests(self, span: Span) -> dict[str, float]:
        """Return the requests that the servers answered within a span, by verb and code."""
        return self._sum("requests", "", span)

    def requests_by_server(self, span: Span) -> dict[str, float]:
        """Return the requests that each server answered within a span: those that were scraped twice, in the order of their coming."""
        sums: dict[str, float] = {}
        for t_s, server, count in self.answered:
            if contains(span, t_s):
                sums[server] = sums.get(server, 0.0) + count
        return sums

    def gc_share(self, span: Span) -> float:
        """Return the share of CPU that garbage collection took within a span, of all servers together; NaN when none was collected.

        Of the CPU that Go used, without what it collected on processors that had nothing else to do: runtime/metrics says to
        leave that out, and to compare these figures with each other only.
        """
        grown = [increase for t_s, increase in self.go_cpu_s if contains(span, t_s)]
        all_s, idle_s, gc_s, spare_s = (sum(increase.get(key, 0.0) for increase in grown) for key in _GO_CPU)
        used_s = all_s - idle_s - spare_s
        return (gc_s - spare_s) / used_s if used_s > 0 else math.nan

    def watch_cache(self, span: Span) -> dict[str, float]:
        """Return what the watch caches counted within a span: ``terminated_watchers``, ``fallbacks``, ``waits``, ``wait_s``; empty without two scrapes."""
        return self._sum("watch_cache", "", span)

    def _sum(self, what: str, level: str, span: Span) -> dict[str, float]:
        sums: dict[str, float] = {}
        for t_s, increases in self.increases:
            if contains(span, t_s):
                for (kind, of_level, key), value in increases.items():
                    if kind == what and of_level == level:
                        sums[key] = sums.get(key, 0.0) + value
        return sums


_GO_CPU: Final = ("cpu_s", "idle_s", "gc_s", "gc_idle_s")


@dataclass(frozen=True, slots=True)
class EtcdSample:
    """One scrape of etcd: sizes now, increases since the scrape before."""

    t_s: float
    db_bytes: float
    db_in_use_bytes: float
    puts: float
    fsync: Mapping[float, float]
    commit: Mapping[float, float]


@dataclass(slots=True)
class EtcdMetrics:
    """Scrapes of etcd."""

    samples: list[EtcdSample] = field(default_factory=list)
    _counters: dict[tuple[str, float], float] | None = None

    def add(self, record: Mapping[str, Any]) -> None:
        """Take in a ``metrics.etcd`` record. Raises what a malformed one makes Python raise, changing nothing."""
        counters: dict[tuple[str, float], float] = {("puts", 0.0): amount(record.get("puts") or 0)}
        for name in ("fsync", "commit"):
            histogram = record.get(name) or {}
            counters[name, math.inf] = amount(histogram.get("count") or 0)
            for bound, count in histogram.get("buckets") or ():
                counters[name, amount(bound)] = amount(count)
        db_bytes, in_use_bytes = _or_nan(record.get("db_bytes")), _or_nan(record.get("db_in_use_bytes"))
        grown = counter_increases(self._counters, counters) if self._counters is not None else {}
        self.samples.append(
            EtcdSample(
                seconds(record["t"]),
                db_bytes,
                in_use_bytes,
                grown.get(("puts", 0.0), 0.0),
                {bound: count for (name, bound), count in grown.items() if name == "fsync"},
                {bound: count for (name, bound), count in grown.items() if name == "commit"},
            )
        )
        self._counters = counters

    def within(self, span: Span) -> list[EtcdSample]:
        """Return the scrapes within a span."""
        return [sample for sample in self.samples if contains(span, sample.t_s)]

    def fsync_quantile_s(self, q: float, span: Span) -> tuple[float, int]:
        """Return a quantile of the WAL's fsyncs within a span, and their number."""
        return _quantile(q, (sample.fsync for sample in self.within(span)))

    def commit_quantile_s(self, q: float, span: Span) -> tuple[float, int]:
        """Return a quantile of the backend's commits within a span, and their number."""
        return _quantile(q, (sample.commit for sample in self.within(span)))


def _quantile(q: float, parts: Iterable[Mapping[float, float]]) -> tuple[float, int]:
    counts: dict[float, float] = {}
    for part in parts:
        for bound, count in part.items():
            counts[bound] = counts.get(bound, 0.0) + count
    return bucket_quantile(q, counts), int(max(counts.values(), default=0))


def _or_nan(value: Any) -> float:
    return math.nan if value is None else number(value)
