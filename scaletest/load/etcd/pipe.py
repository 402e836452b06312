"""What the load driver and its etcd processes say to each other: one JSON object a line, each with its ``type``.

    driver → process    configure (first), begin, rate, block, unblock, stop
    process → driver    filled, failed, report, blocked, stopped

``filled`` says that the flow's keys are there; ``failed`` that it cannot begin. From ``begin`` on a ``report`` comes ten times a second, with every
request that ended since the last one. A process ends after ``stopped``, and when its standard input ends.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from scaletest.core.histogram import Histogram
from scaletest.load.shares import Share, part
from scaletest.load.statistics import ArrivalStatistics
from scaletest.profile.etcd import EtcdSpec

__all__ = ["Ended", "Failure", "Report", "WorkerConfig", "decode", "encode"]

Ended = tuple[int, int, int, int, int, int]
"""A request that ended: the indices of its step and outcome, when it was sent (µs since the process was told to begin), latency and service time
in µs (-1: none), bytes received."""


def encode(kind: str, **fields: Any) -> bytes:
    """Return a message as one line."""
    return json.dumps({"type": kind, **fields}, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """Read a message. Raises ValueError for anything else."""
    data = json.loads(line)
    if not isinstance(data, dict) or not isinstance(data.get("type"), str):
        msg = f"not a message of an etcd process: {line[:120]!r}"
        raise ValueError(msg)
    return data


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """The first message: what a process does, and which share of it (its index, of how many)."""

    flow: str
    endpoint: str
    """``http://HOST:PORT`` of etcd."""
    spec: EtcdSpec
    share: Share
    seed: int

    def part(self, whole: int) -> int:
        """Return this process' part of a number; those of all processes add up to it."""
        return part(whole, self.share)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        spec = self.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {
            "flow": self.flow, "endpoint": self.endpoint, "spec": spec, "share": list(self.share), "seed": self.seed,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> WorkerConfig:
        """Read what ``to_json`` gave."""
        index, of = data["share"]
        return cls(
            data["flow"], data["endpoint"], EtcdSpec.model_validate(data["spec"]), (index, of), int(data["seed"])
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request failed: one of the first few of its step and outcome."""

    step: str
    outcome: str
    reason: str | None
    message: str | None


@dataclass(slots=True)
class Report:
    """What a process did since its last report, and how it stands."""

    outcomes: list[str] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    arrivals: ArrivalStatistics = field(default_factory=ArrivalStatistics)
    events_us: Histogram = field(default_factory=Histogram)
    """Of the watches: from a write until its event came."""
    connect_us: list[int] = field(default_factory=list)
    behind: int = 0
    in_flight: int = 0
    waiting: int = 0
    connected: int = 0
    cpu_s: float = 0.0
    rss_bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {
            "outcomes": self.outcomes,
            "ended": self.ended,
            "failures": [[item.step, item.outcome, item.reason, item.message] for item in self.failures],
            "arrivals": self.arrivals.to_json(),
            "events_us": self.events_us.to_json(),
            "connect_us": self.connect_us,
            "behind": self.behind,
            "in_flight": self.in_flight,
            "waiting": self.waiting,
            "connected": self.connected,
            "cpu_s": self.cpu_s,
            "rss_bytes": self.rss_bytes,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Report:
        """Read what ``to_json`` gave."""
        plain = (
            "outcomes",
            "ended",
            "connect_us",
            "behind",
            "in_flight",
            "waiting",
            "connected",
            "cpu_s",
            "rss_bytes",
        )
        return cls(
            **{key: data[key] for key in plain},
            failures=[Failure(*item) for item in data["failures"]],
            arrivals=ArrivalStatistics.from_json(data["arrivals"]),
            events_us=Histogram.from_json(data["events_us"]),
        )
