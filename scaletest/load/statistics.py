"""What a flow's requests did in the current interval, by step.

One record a second and flow goes to the journal; ``take`` returns it and starts the next interval.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scaletest.core.histogram import Histogram
from scaletest.load.outcomes import is_success

__all__ = ["ArrivalStatistics", "FlowStatistics", "StepStatistics", "step_name"]

SAMPLES_PER_OUTCOME = 3
"""Failed answers whose reason is journalled, for each step and outcome of a flow."""

MOST_STEPS = 200
"""Steps told apart in a locustfile's flow; requests of later names are counted as ``other``."""

_ALWAYS = ("latency_us", "failed_us", "connect_us")
_HISTOGRAMS = (*_ALWAYS, "service_us", "event_us", "early_us")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")


def step_name(request_name: str) -> str:
    """Turn a request's name into one that objectives can write: ``/api/v1/pods`` is ``api-v1-pods``."""
    return _NOT_IN_NAMES.sub("-", request_name).strip("-") or "root"


@dataclass(slots=True)
class StepStatistics:
    """Counts of one step in one interval. Latency runs from the start of a request to its last body byte."""

    outcomes: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    events: int = 0
    reconnects: int = 0
    latency_us: Histogram = field(default_factory=Histogram)
    failed_us: Histogram = field(default_factory=Histogram)
    connect_us: Histogram = field(default_factory=Histogram)
    service_us: Histogram = field(default_factory=Histogram)
    """Good answers of arrivals, from the send; empty for agents, whose requests start when they are sent."""
    event_us: Histogram = field(default_factory=Histogram)
    """Of a watch: from the write of an object until its event came."""
    early_us: Histogram = field(default_factory=Histogram)
    """Of watches that ended before the time they had asked for: how long they stood."""

    def record(self, outcome: str, latency_us: int | None, body_bytes: int) -> None:
        """Count one ended request; ``latency_us`` is None where there is none (a watch that broke)."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        self.bytes += body_bytes
        if latency_us is not None:
            (self.latency_us if is_success(outcome) else self.failed_us).record(latency_us)

    def is_empty(self) -> bool:
        """Whether nothing happened."""
        return not (
            self.outcomes
            or self.bytes
            or self.events
            or self.connect_us.count
            or self.reconnects
            or self.early_us.count
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StepStatistics:
        """Read what ``to_json`` gave."""
        read = cls(dict(data["outcomes"]), data["bytes"], data.get("events", 0), data.get("reconnects", 0))
        for key in _HISTOGRAMS:
            if key in data:
                setattr(read, key, Histogram.from_json(data[key]))
        return read

    def merge(self, other: StepStatistics) -> None:
        """Add what another process counted of the same step."""
        for outcome, count in other.outcomes.items():
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + count
        self.bytes += other.bytes
        self.events += other.events
        self.reconnects += other.reconnects
        for key in _HISTOGRAMS:
            histogram: Histogram = getattr(self, key)
            histogram.merge(getattr(other, key))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value; parts that hold nothing are left out, except outcomes and bytes."""
        data: dict[str, Any] = {"outcomes": self.outcomes, "bytes": self.bytes}
        data |= {key: value for key in ("events", "reconnects") if (value := getattr(self, key))}
        for key in _HISTOGRAMS:
            histogram: Histogram = getattr(self, key)
            if histogram.count or key in _ALWAYS:
                data[key] = histogram.to_json()
        return data


@dataclass(slots=True)
class ArrivalStatistics:
    """What the pacer of an arrivals flow did in one interval."""

    due: int = 0
    """Arrivals whose time came, dropped ones among them."""
    sent: int = 0
    """Arrivals that ended in this interval after they had been sent."""
    dropped: int = 0
    lag_us: Histogram = field(default_factory=Histogram)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {"due": self.due, "sent": self.sent, "dropped": self.dropped, "lag_us": self.lag_us.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ArrivalStatistics:
        """Read what ``to_json`` gave."""
        return cls(int(data["due"]), int(data["sent"]), int(data["dropped"]), Histogram.from_json(data["lag_us"]))

    def merge(self, other: ArrivalStatistics) -> None:
        """Add what another pacer did in the same interval."""
        self.due += other.due
        self.sent += other.sent
        self.dropped += other.dropped
        self.lag_us.merge(other.lag_us)


class FlowStatistics:
    """Statistics of one flow, and its small sample of failures."""

    def __init__(self) -> None:
        self._steps: dict[str, StepStatistics] = {}
        self._names: set[str] = set()
        self._samples: dict[tuple[str, str], int] = {}
        self.exceptions = 0

    def step(self, name: str) -> StepStatistics:
        """Return the statistics of a step in this interval."""
        found = self._steps.get(name)
        if found is None:
            if name not in self._names:
                if len(self._names) >= MOST_STEPS:
                    name = "other"
                self._names.add(name)
            found = self._steps.setdefault(name, StepStatistics())
        return found

    def wants_sample(self, step: str, outcome: str) -> bool:
        """Whether one more failure of this kind is to be journalled; counts it if so."""
        taken = self._samples.get((step, outcome), 0)
        if taken >= SAMPLES_PER_OUTCOME:
            return False
        self._samples[step, outcome] = taken + 1
        return True

    def take(self) -> dict[str, Any]:
        """Return this interval's steps (those where something happened) and exceptions; start the next."""
        steps = {name: step.to_json() for name, step in self._steps.items() if not step.is_empty()}
        taken = {"steps": steps, "exceptions": self.exceptions}
        self._steps = {}
        self.exceptions = 0
        return taken
