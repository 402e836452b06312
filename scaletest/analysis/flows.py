"""What the load driver saw of a flow: intervals of about a second, and their totals over any span.

An interval belongs to a span when its middle does, so each is counted in exactly one phase. Totals of a
span are kept and only fed with the intervals that came since they were last asked for: a condition that is
evaluated every second of a long phase stays cheap.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final

from scaletest.analysis.numbers import amount, count, optional, seconds
from scaletest.analysis.series import EVER, Span, contains
from scaletest.core.foreignfiles import LARGEST
from scaletest.core.histogram import Histogram, bucket_of

__all__ = [
    "ArrivalTotals",
    "ArrivalsDelta",
    "ChurnDelta",
    "ChurnTotals",
    "FlowInterval",
    "FlowSeries",
    "FlowTotals",
    "PackedHistogram",
    "StepTotals",
    "is_good",
    "refused_for_space",
]

NO_SPACE: Final = "NOSPACE"
"""Outcome of a write that etcd refused because its quota is used up."""

_KEPT_SPANS: Final = 32
"""Spans whose totals are kept: the run, its phases, and a few more."""

_HISTOGRAMS: Final = ("latency_us", "failed_us", "connect_us", "service_us", "event_us", "early_us")
"""Histograms of a step, as ``flow`` records call them, in the order of ``StepDelta``."""


_LAST_BUCKET: Final = bucket_of(LARGEST)


def is_good(outcome: str) -> bool:
    """Whether an outcome is a 2xx answer, or gRPC's OK."""
    return (len(outcome) == 3 and outcome[0] == "2") or outcome == "OK"


class PackedHistogram:
    """A histogram's buckets in two arrays: 8 bytes a bucket instead of about 100 in a dict."""

    __slots__ = ("counts", "indices", "maximum", "minimum", "total")

    def __init__(self, data: Mapping[str, Any]) -> None:
        """Read what ``Histogram.to_json`` wrote. Raises KeyError, TypeError, ValueError or OverflowError."""
        self.indices = array("I", accumulate(data["d"]))
        self.counts = array("I", data["c"])
        if len(self.indices) != len(self.counts):
            msg = "not a histogram: 'd' and 'c' must be lists of one length"
            raise ValueError(msg)
        if self.indices and max(self.indices) > _LAST_BUCKET:
            msg = "not a histogram: a value of more than 64 bits"
            raise ValueError(msg)
        self.total = count(data["sum"])
        self.minimum = optional(count, data["min"])
        self.maximum = optional(count, data["max"])
        if (self.minimum is None or self.maximum is None) == bool(self.indices):
            msg = "not a histogram: it has a minimum and a maximum exactly if it has values"
            raise ValueError(msg)

    def add_to(self, histogram: Histogram) -> None:
        """Add the counts to a histogram."""
        buckets = histogram.buckets
        for index, more in zip(self.indices, self.counts, strict=True):
            buckets[index] = buckets.get(index, 0) + more
        histogram.count += sum(self.counts)
        histogram.total += self.total
        if self.minimum is not None and (histogram.minimum is None or self.minimum < histogram.minimum):
            histogram.minimum = self.minimum
        if self.maximum is not None and (histogram.maximum is None or self.maximum > histogram.maximum):
            histogram.maximum = self.maximum


@dataclass(frozen=True, slots=True)
class StepDelta:
    """One step in one interval."""

    outcomes: Mapping[str, int]
    bytes: int
    events: int
    reconnects: int
    latency_us: PackedHistogram | None
    failed_us: PackedHistogram | None
    connect_us: PackedHistogram | None
    service_us: PackedHistogram | None
    event_us: PackedHistogram | None
    early_us: PackedHistogram | None

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> StepDelta:
        """Read a step of a ``flow`` record. Raises what a malformed one makes Python raise."""
        histograms = (data.get(key) for key in _HISTOGRAMS)
        return cls(
            {str(outcome): count(ended) for outcome, ended in data["outcomes"].items()},
            count(data.get("bytes") or 0),
            count(data.get("events") or 0),
            count(data.get("reconnects") or 0),
            *(PackedHistogram(histogram) if histogram is not None else None for histogram in histograms),
        )


@dataclass(frozen=True, slots=True)
class ArrivalsDelta:
    """What the pacer of an arrivals flow did in one interval."""

    rate_per_s: float | None
    """Arrivals asked for per second, at the end of the interval; None in a closed loop."""
    due: int
    sent: int
    dropped: int
    behind: int
    """Arrivals that were due at the end of the interval and not begun."""
    in_flight: int
    waiting: int
    """Arrivals in flight, at the end of the interval, that waited for a free connection."""
    lag_us: PackedHistogram

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> ArrivalsDelta:
        """Read the ``arrivals`` of a ``flow`` record. Raises what a malformed one makes Python raise."""
        return cls(
            optional(amount, data.get("rate_per_s")),
            count(data["due"]),
            count(data["sent"]),
            count(data["dropped"]),
            count(data["behind"]),
            count(data["in_flight"]),
            count(data["waiting"]),
            PackedHistogram(data["lag_us"]),
        )


@dataclass(frozen=True, slots=True)
class ChurnDelta:
    """What a churn flow's watch saw of its pods in one interval."""

    moved: int
    """Pods that operations which were answered well create or delete."""
    pods: int
    ready: int
    pending: int
    """Pods that there were at the end of the interval, those that were Ready and those that had not been yet."""
    late: int
    """Pods that were not Ready in time."""
    startup_us: PackedHistogram
    scheduling_us: PackedHistogram

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> ChurnDelta:
        """Read the ``churn`` of a ``flow`` record. Raises what a malformed one makes Python raise."""
        return cls(
            count(data["moved"]),
            count(data["pods"]),
            count(data["ready"]),
            count(data["pending"]),
            count(data["late"]),
            PackedHistogram(data["startup_us"]),
            PackedHistogram(data["scheduling_us"]),
        )


@dataclass(frozen=True, slots=True)
class FlowInterval:
    """One ``flow`` record: gauges of agents at its end, and what each step did in it."""

    start_s: float
    end_s: float
    target: int
    started: int
    connected: int
    blocked: bool
    exceptions: int
    """Exceptions of a locustfile that were no failed request."""
    steps: Mapping[str, StepDelta]
    arrivals: ArrivalsDelta | None = None
    """Of a flow of arrivals or churn."""
    churn: ChurnDelta | None = None

    @property
    def middle_s(self) -> float:
        """The time that decides which span the interval belongs to."""
        return (self.start_s + self.end_s) / 2

    @classmethod
    def parse(cls, record: Mapping[str, Any]) -> FlowInterval:
        """Read a ``flow`` record. Raises what a malformed one makes Python raise."""
        end_s, interval_s = seconds(record["t"]), seconds(record["interval_s"])
        arrivals, churn = record.get("arrivals"), record.get("churn")
        return cls(
            end_s - interval_s,
            end_s,
            count(record.get("target") or 0),
            count(record.get("started") or 0),
            count(record.get("connected") or 0),
            bool(record.get("blocked")),
            count(record.get("exceptions") or 0),
            {str(step): StepDelta.parse(delta) for step, delta in record["steps"].items()},
            ArrivalsDelta.parse(arrivals) if arrivals is not None else None,
            ChurnDelta.parse(churn) if churn is not None else None,
        )


@dataclass(slots=True)
class StepTotals:
    """One step over a span."""

    outcomes: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    events: int = 0
    reconnects: int = 0
    """Watches opened again, and kept connections that the server had closed and that were replaced."""
    latency_us: Histogram = field(default_factory=Histogram)
    """Good answers, from the start of the request to the last byte of the body."""
    failed_us: Histogram = field(default_factory=Histogram)
    """All others."""
    connect_us: Histogram = field(default_factory=Histogram)
    """Connections made for the step: TCP and TLS."""
    service_us: Histogram = field(default_factory=Histogram)
    """Good answers of arrivals, from the send; empty for agents."""
    event_us: Histogram = field(default_factory=Histogram)
    """Of watches: from the write of an object until its event came."""
    early_us: Histogram = field(default_factory=Histogram)
    """Of watches that ended before the time they had asked for: how long they stood."""

    @property
    def requests(self) -> int:
        """Requests that ended, in whatever way."""
        return sum(self.outcomes.values())

    @property
    def good(self) -> int:
        """Requests answered with 2xx."""
        return sum(count for outcome, count in self.outcomes.items() if is_good(outcome))

    @property
    def failed(self) -> int:
        """Requests that ended in any other way."""
        return self.requests - self.good

    def add(self, delta: StepDelta) -> None:
        """Add one interval."""
        for outcome, more in delta.outcomes.items():
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + more
        self.bytes += delta.bytes
        self.events += delta.events
        self.reconnects += delta.reconnects
        for key in _HISTOGRAMS:
            histogram: PackedHistogram | None = getattr(delta, key)
            if histogram is not None:
                histogram.add_to(getattr(self, key))

    @classmethod
    def merged(cls, parts: list[StepTotals]) -> StepTotals:
        """Add up several steps."""
        if len(parts) == 1:
            return parts[0]
        whole = cls()
        for part in parts:
            for outcome, more in part.outcomes.items():
                whole.outcomes[outcome] = whole.outcomes.get(outcome, 0) + more
            whole.bytes += part.bytes
            whole.events += part.events
            whole.reconnects += part.reconnects
            for key in _HISTOGRAMS:
                getattr(whole, key).merge(getattr(part, key))
        return whole


@dataclass(slots=True)
class ArrivalTotals:
    """What the pacer of an arrivals flow did over a span."""

    due: int = 0
    sent: int = 0
    dropped: int = 0
    behind: int = 0
    """Arrivals that were due at the end of the span and not begun."""
    most_in_flight: int = 0
    lag_us: Histogram = field(default_factory=Histogram)

    @property
    def achieved(self) -> float:
        """Share of the arrivals due that were begun, as far as they were not dropped; NaN where none was due."""
        due = self.due + self.behind
        return (self.due - self.dropped) / due if due else math.nan

    def add(self, delta: ArrivalsDelta) -> None:
        """Add the next interval."""
        self.due += delta.due
        self.sent += delta.sent
        self.dropped += delta.dropped
        self.behind = delta.behind
        self.most_in_flight = max(self.most_in_flight, delta.in_flight)
        delta.lag_us.add_to(self.lag_us)


@dataclass(slots=True)
class ChurnTotals:
    """What a churn flow's watch saw of its pods over a span."""

    moved: int = 0
    late: int = 0
    most_pending: int = 0
    startup_us: Histogram = field(default_factory=Histogram)
    scheduling_us: Histogram = field(default_factory=Histogram)

    @property
    def pods(self) -> int:
        """Pods that were Ready in time, or were not."""
        return self.startup_us.count + self.late

    def startup_s(self, q: float) -> float:
        """Return a quantile of start-up; a pod that was late is infinitely long. NaN where none started."""
        if not self.pods:
            return math.nan
        if math.ceil(q * self.pods) > self.startup_us.count:
            return math.inf
        return self.startup_us.quantile(min(1.0, q * self.pods / self.startup_us.count)) / 1e6

    def add(self, delta: ChurnDelta) -> None:
        """Add the next interval."""
        self.moved += delta.moved
        self.late += delta.late
        self.most_pending = max(self.most_pending, delta.pending)
        delta.startup_us.add_to(self.startup_us)
        delta.scheduling_us.add_to(self.scheduling_us)


@dataclass(slots=True)
class FlowTotals:
    """All steps of a flow over a span."""

    covered_s: float = 0.0
    """Time that the intervals cover: rates are per second of it."""
    steps: dict[str, StepTotals] = field(default_factory=dict)
    arrivals: ArrivalTotals | None = None
    """Of a flow of arrivals or churn."""
    churn: ChurnTotals | None = None
    taken: int = 0
    """Intervals looked at so far."""

    def step(self, name: str | None) -> StepTotals | None:
        """Return one step, or all merged for None; None when there is none."""
        if name is not None:
            return self.steps.get(name)
        return StepTotals.merged(list(self.steps.values())) if self.steps else None


class FlowSeries:
    """The intervals of one flow."""

    def __init__(self) -> None:
        self.intervals: list[FlowInterval] = []
        self._totals: dict[Span, FlowTotals] = {}

    def add(self, interval: FlowInterval) -> None:
        """Take in one interval."""
        self.intervals.append(interval)

    def totals(self, span: Span = EVER) -> FlowTotals:
        """Return the totals over a span; do not change them."""
        totals = self._totals.get(span)
        if totals is None:
            if len(self._totals) >= _KEPT_SPANS:
                self._totals.pop(next(iter(self._totals)))
            totals = self._totals[span] = FlowTotals()
        for interval in self.intervals[totals.taken :]:
            if contains(span, interval.middle_s):
                totals.covered_s += interval.end_s - interval.start_s
                for step, delta in interval.steps.items():
                    totals.steps.setdefault(step, StepTotals()).add(delta)
                if interval.arrivals is not None:
                    totals.arrivals = totals.arrivals or ArrivalTotals()
                    totals.arrivals.add(interval.arrivals)
                if interval.churn is not None:
                    totals.churn = totals.churn or ChurnTotals()
                    totals.churn.add(interval.churn)
        totals.taken = len(self.intervals)
        return totals

    def most_started(self, span: Span = EVER) -> int:
        """Return the largest number of agents of a span; 0 where it has no interval."""
        return max((item.started for item in self.intervals if contains(span, item.middle_s)), default=0)

    def latest(self, span: Span = EVER) -> FlowInterval | None:
        """Return the last interval of a span."""
        return next((item for item in reversed(self.intervals) if contains(span, item.middle_s)), None)


def refused_for_space(series: FlowSeries, span: Span = EVER) -> int:
    """Return the requests of a flow that etcd refused because its quota is used up."""
    return sum(step.outcomes.get(NO_SPACE, 0) for step in series.totals(span).steps.values())
