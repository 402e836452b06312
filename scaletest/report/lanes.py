"""The lanes of the page's timeline: which series stand together, under what title, and in which unit.

All lanes share one axis of time. A lane has a few lines at most, the largest: the CSV has all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from scaletest.analysis.state import RunState
from scaletest.report.series_document import Series, Unit

__all__ = ["MOST_LINES", "Bound", "Lane", "Line", "lanes"]

MOST_LINES: Final = 10
"""Lines of a lane; more cannot be told apart by colour."""


@dataclass(frozen=True, slots=True)
class Line:
    """A series under the name that it has in its lane."""

    name: str
    series: Series
    marks: bool = False
    """Drawn as marks, not as a line: what is no level, such as a failed request."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A level that a component may not pass."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Lane:
    """Lines of one unit."""

    title: str
    note: str
    unit: Unit
    log: bool
    lines: list[Line]
    left_out: int = 0
    """Lines that found no place."""
    bounds: list[Bound] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A lane before its series are known."""

    title: str
    note: str
    scope: str
    measures: tuple[str, ...]
    log: bool = False
    marks: str = ""
    """The measure that is drawn as marks."""


_PLANS: Final = (
    _Plan("Agents and connections", "started and connected", "flow", ("started", "connected", "in_flight")),
    _Plan("Requests", "answered well and failed, per second", "flow", ("good", "failed")),
    _Plan("Latency p99", "of good answers", "flow", ("p99",), log=True),
    _Plan("Data", "of answers, per second", "flow", ("bytes",)),
    _Plan("Events after writes, p99", "until a watch had them", "flow", ("event_p99",), log=True),
    _Plan("Probes", "latency of good answers; crosses: failed, after how long", "probe", ("latency", "failed_after"), log=True, marks="failed_after"),
    _Plan("Nodes", "as a probe counts them", "probe", ("ready", "not_ready")),
    _Plan("Memory", "of each process; dashed: its cap", "component", ("memory",)),
    _Plan("CPU", "cores of each process; dashed: its quota", "component", ("cpu",)),
    _Plan("Flow control: seats", "in use, by priority level", "apf", ("seats",)),
    _Plan("Flow control: queues", "queued, by priority level", "apf", ("queued",)),
    _Plan("Flow control: rejected", "between two scrapes, by priority level", "apf", ("rejected",)),
    _Plan("etcd: disk", "p99 of fsyncs and commits", "etcd", ("fsync_p99", "commit_p99"), log=True),
    _Plan("etcd: size", "of the database", "etcd", ("db_size", "db_in_use")),
    _Plan("Host: memory", "available", "host", ("available_memory",)),
    _Plan("Host: CPU", "share of all cores", "host", ("cpu_busy", "cpu_steal")),
    _Plan("Load driver: lag", "of its event loop, p99", "generator", ("lag_p99",), log=True),
)  # fmt: skip
_SAID: Final = {
    "good": "good", "failed": "failed", "failed_after": "failed", "started": "started", "connected": "connected",
    "in_flight": "in flight", "ready": "Ready", "not_ready": "not Ready", "fsync_p99": "fsync", "commit_p99": "commit",
    "db_size": "size", "db_in_use": "in use", "available_memory": "available", "cpu_busy": "busy", "cpu_steal": "stolen",
    "lag_p99": "p99",
}  # fmt: skip
_ALONE: Final = frozenset({"etcd", "host", "generator"})
"""Scopes with one subject, which need not be named in each line."""


def lanes(state: RunState, series: Iterable[Series]) -> list[Lane]:
    """Return the lanes that have something to show, from top to bottom."""
    found: list[Lane] = []
    known = list(series)
    for plan in _PLANS:
        lane = _lane(plan, [item for item in known if _belongs(item, plan)], state)
        if lane is not None:
            found.append(lane)
    return found


def _belongs(series: Series, plan: _Plan) -> bool:
    return series.subject.split(".", 1)[0] == plan.scope and series.measure in plan.measures


def _lane(plan: _Plan, series: list[Series], state: RunState) -> Lane | None:
    telling = [item for item in series if any(value > 0 for _, value in item.samples)]
    if not telling:
        return None
    largest = sorted(telling, key=lambda item: -max(value for _, value in item.samples))[:MOST_LINES]
    lines = [
        Line(_name(item, plan), item, marks=item.measure == plan.marks)
        for item in sorted(largest, key=lambda item: (item.subject, plan.measures.index(item.measure)))
    ]
    left_out, bounds = len(telling) - len(largest), list(_bounds(plan, lines, state))
    return Lane(plan.title, plan.note, lines[0].series.unit, plan.log, lines, left_out, bounds)


def _name(series: Series, plan: _Plan) -> str:
    subject = series.subject.partition(".")[2].replace("@https://", "@")
    said = _SAID.get(series.measure, "")
    if plan.scope in _ALONE:
        return said or series.measure
    return f"{subject} {said}" if len(plan.measures) > 1 and said else subject


def _bounds(plan: _Plan, lines: list[Line], state: RunState) -> Iterator[Bound]:
    """Yield the caps or quotas of the components of a lane."""
    if plan.scope != "component":
        return
    for line in lines:
        limit = state.components[line.name].limit
        value = None if limit is None else (limit.memory_bytes if plan.measures == ("memory",) else limit.cpu_cores)
        if value is not None:
            yield Bound(line.name, float(value))
