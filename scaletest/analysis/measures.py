"""The metrics of one run that are compared with those of others.

A metric is what an objective of its name measures (``analysis.evaluate``), with two exceptions that are told here. What goes on while load
is there (latencies, rates, memory, CPU, etcd's times) is taken over the *steady part* of the run: the longest time within one phase in which no
flow changed (agents, rate, blocked or not) and no action began or ended. Where there is none of 5 s, and for what happens once (kills, lock-outs,
rejections, recovery), it is the measured time of the run.

- ``flow.….answer_bytes``: mean size of a good answer. ``bytes`` alone would grow with the length of the run.
- ``incident.PHASE.recovery``: from the begin of a phase that pulls a lever until every operator was well for good;
  ``slo_recovery`` until every SLO held for good; both infinite when that did not come, and ``recovered`` is then 0.

A quantile counts only with one request or more above it: a p99 needs a hundred. Runs with a saturation search have its metrics only: what else they measure
depends on the loads that the search happened to try.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from scaletest.analysis.evaluate import Measured, measure
from scaletest.analysis.flows import FlowSeries
from scaletest.analysis.incident import analyse
from scaletest.analysis.metrickinds import ANY, Metric
from scaletest.analysis.series import Span
from scaletest.analysis.state import PhaseSpan, RunState
from scaletest.core.rundir import RunInfo
from scaletest.profile.levers import component_names
from scaletest.profile.objectives import Subject
from scaletest.profile.schema import Profile

__all__ = ["MOST_BLOCKS", "RunMeasures", "Steady", "measure_run", "possible_metrics", "steady_part"]

SHORTEST_S: Final = 5.0
"""A steady part shorter than this is none."""

SETTLE_S: Final = 1.0
"""Left out after a change: flows and processes report once a second."""

BLOCK_S: Final = 2.0
"""Shortest block of time: two samples of a process."""

MOST_BLOCKS: Final = 20
"""More would make saved baselines large and tell little: neighbours are alike."""

OWN: Final = frozenset({"supervisor", "driver", "cli"})
"""Processes of scaletest itself: they are checked, not compared."""

_QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "event_p50": 0.5, "event_p99": 0.99, "service_p99": 0.99}
_FLOW: Final = ("p50", "p90", "p99", "service_p99", "event_p50", "event_p99", "rate", "error_rate", "answer_bytes")
_STEP: Final = ("p50", "p99", "error_rate", "answer_bytes")
_PROBE: Final = ("p50", "p90", "p99", "success_rate")
_COMPONENT: Final = ("memory", "cpu")
_KILLS: Final = ("restarts", "oom_kills")
_ETCD: Final = ("fsync_p99", "commit_p99", "db_size")
_SEARCH: Final = ("capacity", "recovery")


@dataclass(frozen=True, slots=True)
class Steady:
    """The steady part of a run."""

    phase: str
    span: Span


@dataclass(frozen=True, slots=True)
class RunMeasures:
    """What a comparison knows of a run: it comes from a run directory, or from a saved baseline."""

    id: str
    directory: str | None
    started_at: str
    outcome: str
    """pass, fail, invalid or incomplete."""
    reason: str | None
    """The deciding reason where it is invalid or incomplete."""
    profile: Mapping[str, Any]
    host: Mapping[str, Any]
    versions: Mapping[str, str]
    limits: Mapping[str, Any]
    steady_phase: str | None
    """Phase of the steady part; None where metrics are over the whole measured time."""
    metrics: Mapping[str, Metric]

    @property
    def valid(self) -> bool:
        """Whether its numbers mean something; an objective that failed makes no number wrong."""
        return self.outcome in {"pass", "fail"}


_Source = Callable[[Span | None], Measured]


@dataclass(frozen=True, slots=True)
class _Wanted:
    name: str
    source: _Source
    steady: bool


def measure_run(
    info: RunInfo, state: RunState, *, outcome: str, reason: str | None, directory: str | None
) -> RunMeasures:
    """Measure everything that can be compared."""
    steady = None if state.search is not None else steady_part(state)
    wanted = list(_search(state) if state.search is not None else _wanted(state))
    metrics = _measured(wanted, steady)
    if state.search is None:
        metrics.update(_incident(state, info.profile))
    return RunMeasures(
        id=info.id,
        directory=directory,
        started_at=info.started_at,
        outcome=outcome,
        reason=reason,
        profile=info.profile,
        host=info.host,
        versions=info.versions,
        limits=info.limits,
        steady_phase=steady.phase if steady else None,
        metrics=metrics,
    )


def possible_metrics(profile: Profile) -> list[str]:
    """Return the names of what runs of a profile may have, before there is one: with ``*`` for what only a run will tell."""
    if profile.search is not None:
        return [f"search.{name}" for name in _SEARCH]
    names = [f"etcd.{name}" for name in _ETCD] + [f"apf.{ANY}.rejected"]
    for flow in profile.flows:
        names += [f"flow.{flow}.{name}" for name in _FLOW] + [f"flow.{flow}.{ANY}.{name}" for name in _STEP]
    for probe in profile.probes:
        names += [f"probe.{probe}[{ANY}].{name}" for name in (*_PROBE, "locked_out")]
    for component in component_names(profile):
        names += [f"component.{component}.{name}" for name in (*_COMPONENT, *_KILLS)]
    for phase in profile.phases:
        names += [f"incident.{phase.name}.{name}" for name in ("recovery", "recovered", "slo_recovery")]
    return names


def steady_part(state: RunState) -> Steady | None:
    """Return the longest steady time within a phase, at least 5 s long; None when there is none."""
    best: Steady | None = None
    changes = sorted(_changes(state))
    for phase in state.phases:
        for start_s, end_s in _quiet(phase, changes):
            longer = best is None or end_s - start_s > best.span[1] - best.span[0]
            if end_s - start_s >= SHORTEST_S and longer and _loaded(state, (start_s, end_s)):
                best = Steady(phase.name, (start_s, end_s))
    return best


def _quiet(phase: PhaseSpan, changes: list[float]) -> Iterator[Span]:
    if phase.end_s is None:
        return
    within = [t_s for t_s in changes if phase.start_s <= t_s < phase.end_s]
    for start_s, end_s in zip([phase.start_s, *within], [*within, phase.end_s], strict=True):
        yield start_s + SETTLE_S, end_s


def _changes(state: RunState) -> Iterator[float]:
    for series in state.flows.values():
        yield from _flow_changes(series)
    yield from state.flow_starts_s.values()
    yield from state.flow_stops_s.values()
    yield from (event.t_s for event in state.events if event.kind in {"action.start", "action.end"})


def _flow_changes(series: FlowSeries) -> Iterator[float]:
    last: object = None
    for interval in series.intervals:
        rate = interval.arrivals.rate_per_s if interval.arrivals else None
        # Connections of arrivals come and go with the load; agents are the load.
        agents = None if interval.arrivals else interval.started
        shape = (interval.target, agents, interval.blocked, rate)
        if shape != last:
            yield interval.end_s
        last = shape


def _loaded(state: RunState, span: Span) -> bool:
    return any((latest := series.latest(span)) is not None and latest.started for series in state.flows.values())


def _wanted(state: RunState) -> Iterator[_Wanted]:
    for flow, series in state.flows.items():
        steps = list(dict.fromkeys(name for interval in series.intervals for name in interval.steps))
        yield from (_flow(state, flow, None, name) for name in _FLOW)
        if len(steps) > 1:
            yield from (_flow(state, flow, step, name) for step in steps for name in _STEP)
    for probe, series_ in state.probes.items():
        for identity in dict.fromkeys(identity for identity, _ in series_):
            yield from (_plain(state, Subject("probe", probe, None, identity, name)) for name in _PROBE)
            yield _plain(state, Subject("probe", probe, None, identity, "locked_out"), steady=False)
    for component in sorted(set(state.components) - OWN):
        yield from (_plain(state, Subject("component", component, None, None, name)) for name in _COMPONENT)
        for name in _KILLS:
            yield _plain(state, Subject("component", component, None, None, name), steady=False)
    for level in sorted(state.api_servers.levels):
        yield _plain(state, Subject("apf", level, None, None, "rejected"), steady=False)
    yield from (_plain(state, Subject("etcd", None, None, None, name)) for name in _ETCD)


def _plain(state: RunState, subject: Subject, *, steady: bool = True) -> _Wanted:
    return _Wanted(str(subject), lambda span: measure(state, subject, span), steady)


def _flow(state: RunState, flow: str, step: str | None, name: str) -> _Wanted:
    if name != "answer_bytes":
        return _plain(state, Subject("flow", flow, step, None, name))
    path = f"flow.{flow}.{step}" if step else f"flow.{flow}"

    def answer_bytes(span: Span | None) -> Measured:
        totals = state.flows[flow].totals(span or state.measured).step(step)
        if totals is None or not totals.good:
            return Measured(math.nan, 0)
        return Measured(totals.bytes / totals.good, totals.good)

    return _Wanted(f"{path}.{name}", answer_bytes, steady=True)


def _search(state: RunState) -> Iterator[_Wanted]:
    for name in _SEARCH:
        yield _plain(state, Subject("search", None, None, None, name), steady=False)


def _measured(wanted: list[_Wanted], steady: Steady | None) -> dict[str, Metric]:
    """Measure span by span: totals of a flow are kept for few spans."""
    whole = {item.name: _value(item, steady.span if steady and item.steady else None) for item in wanted}
    known = {name: value for name, value in whole.items() if not math.isnan(value)}
    blocks: dict[str, list[float]] = {name: [] for name in known}
    for span in _blocks(steady.span) if steady else ():
        for item in wanted:
            if item.steady and item.name in known:
                value = _value(item, span)
                if not math.isnan(value):
                    blocks[item.name].append(value)
    return {name: metric_of(value, blocks[name]) for name, value in known.items()}


def metric_of(value: float, blocks: Iterable[float] = ()) -> Metric:
    """Return a metric with as many digits as a saved baseline has, so that equal numbers stay equal."""
    return Metric(_rounded(value), tuple(_rounded(item) for item in blocks))


def _rounded(value: float) -> float:
    return value if math.isinf(value) else float(f"{value:.6g}")


def _value(item: _Wanted, span: Span | None) -> float:
    measured = item.source(span)
    quantile = _QUANTILES.get(item.name.rsplit(".", 1)[-1])
    if quantile is not None and measured.samples * (1 - quantile) < 1 - 1e-9:
        return math.nan
    return measured.value


def _blocks(span: Span) -> list[Span]:
    count = min(MOST_BLOCKS, int((span[1] - span[0]) / BLOCK_S))
    width_s = (span[1] - span[0]) / max(count, 1)
    return [(span[0] + index * width_s, span[0] + (index + 1) * width_s) for index in range(count)]


def _incident(state: RunState, profile: Mapping[str, Any]) -> Iterator[tuple[str, Metric]]:
    incident = analyse(state, profile)
    measured = any(item.measured for item in incident.slos)
    for lever in incident.levers:
        prefix, start_s = f"incident.{lever.phase.name}", lever.phase.start_s
        if lever.recovered is not None:
            at_s = incident.identities_good_from_s
            yield f"{prefix}.recovery", metric_of(_since(at_s, start_s))
            yield f"{prefix}.recovered", Metric(float(at_s is not None))
        if measured:
            yield f"{prefix}.slo_recovery", metric_of(_since(incident.slos_hold_from_s, start_s))


def _since(at_s: float | None, start_s: float) -> float:
    return math.inf if at_s is None else max(0.0, at_s - start_s)
