"""Measure what an objective or a condition is about.

Every measure of ``scaletest.profile.objectives.MEASURES`` is defined here, over a span:

- ``flow``: quantiles are of good (2xx) answers; failures count in ``error_rate``. Without a step, all steps are merged.
  ``rate`` is requests per second of the time that the flow ran. ``started`` and ``connected`` are the latest values,
  ``most_started`` is the largest. Of arrivals, latency counts from when they were due, ``service_…`` from the send;
  ``start_lag_p99``, ``dropped`` and ``achieved`` are about their pacer. ``pod_…`` are about the pods of a churn; in ``pod_startup_…`` one that was late
  is infinitely long.
- ``probe``: a failed observation is infinitely long in quantiles and ``max``; ``mean`` is of good answers. ``locked_out``
  is the longest time locked out, ``recovered`` how long every answer up to the latest was good and quick. Without an identity, the worst of all identities. With several API servers, the best
  server for each identity. ``ready`` and ``not_ready`` are the latest counts.
- ``component``: ``memory`` the largest resident set (``memory_share``: of the cap), ``cpu`` mean cores, ``restarts`` and ``oom_kills`` counts.
- ``generator``: ``lag_p99`` of the driver's event loop, ``cpu`` mean cores of its process tree, ``memory`` the tree's largest
  resident set, ``unread_share`` the highest share of sockets with unread bytes that lasted 10 s.
- ``host``: ``available_memory`` the least, ``cpu_idle`` the mean share.
- ``apf``: ``rejected`` the sum, ``queued`` and ``seats`` (in use, of one server) the most, ``wait_p99`` of all servers together.
- ``sli``: quantiles of the kind of call that is worst; see ``scaletest.analysis.sli``.
- ``search``: what the saturation search found; a span makes no difference.
- ``etcd``: ``fsync_p99`` and ``commit_p99`` from its own histograms, ``db_size`` the largest.

Without a span, the measured time counts: from the first phase to the end of the last. What was never measured is NaN, and meets
no objective.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from scaletest.analysis.components import ComponentSeries
from scaletest.analysis.flows import FlowSeries, FlowTotals, StepTotals
from scaletest.analysis.lockouts import (
    Observation,
    clip,
    intersect,
    last_good_spell,
    latency_quantile,
    lockouts,
    longest_s,
    recovered_s,
    ways_in,
)
from scaletest.analysis.measured import Measured, known, never, of
from scaletest.analysis.searchlog import StepKind
from scaletest.analysis.series import EVER, Span, contains, sustained
from scaletest.analysis.server_measures import measure_apf, measure_etcd, measure_sli
from scaletest.analysis.state import RunState
from scaletest.profile.objectives import Objective, Subject

__all__ = [
    "GOOD_WITHIN_S",
    "SUSTAINED_S",
    "Measured",
    "ObjectiveResult",
    "check",
    "good_spell_of",
    "holds",
    "lockouts_of",
    "measure",
]

GOOD_WITHIN_S: Final = 1.0
"""A good answer within this time counts as recovered: the Kubernetes SLO for API calls about one object or one namespace."""

SUSTAINED_S: Final = 10.0
"""A level counts as sustained when it lasted so long: two of the 5 s periods in which /metrics are read."""

DRIVER: Final = "driver"
"""Name of the load driver's process tree among the processes sampled."""

_QUANTILES: Final = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99, "p999": 0.999, "max": 1.0}
_EVENT_QUANTILES: Final = {"event_p50": 0.50, "event_p99": 0.99, "event_max": 1.0}
_OF_STANDING: Final[Mapping[str, Callable[[StepTotals], int]]] = {
    "events": lambda step: step.events,
    "reconnects": lambda step: step.reconnects,
    "ended_early": lambda step: step.early_us.count,
}
"""Counts that are 0, and not unknown, where nothing happened: a watch may stand for hours."""
_SERVICE_QUANTILES: Final = {f"service_{name}": _QUANTILES[name] for name in ("p50", "p95", "p99")}


@dataclass(frozen=True, slots=True)
class ObjectiveResult:
    """An objective, what was measured, and whether it holds."""

    text: str
    """As the profile spells it."""
    objective: Objective | None
    """None when this version of scaletest does not understand the text."""
    measured: Measured
    holds: bool


def measure(state: RunState, subject: Subject, span: Span | None = None) -> Measured:
    """Measure a subject over a span, or over the measured time of the run."""
    return _SCOPES[subject.scope](state, subject, span)


def holds(objective: Objective, state: RunState, span: Span | None = None) -> bool:
    """Whether an objective holds over a span; what was never measured does not."""
    return objective.holds(measure(state, objective.subject, span).value)


def check(text: str, objective: Objective | None, state: RunState) -> ObjectiveResult:
    """Measure an objective over the run."""
    if objective is None:
        return ObjectiveResult(text, None, never("not understood by this version of scaletest"), holds=False)
    measured = measure(state, objective.subject)
    return ObjectiveResult(text, objective, measured, objective.holds(measured.value))


def _flow(state: RunState, subject: Subject, span: Span | None) -> Measured:
    series = state.flows.get(subject.name or "")
    if series is None:
        return never(f"flow {subject.name} did nothing in this run; {known(list(state.flows))}")
    # Flows run in phases only, and their last interval may come after the end of the last phase.
    span = span or EVER
    if subject.measure in {"started", "connected", "most_started"}:
        return _flow_gauge(series, subject, span)
    totals = series.totals(span)
    if (kind := _OF_ONE_KIND.get(subject.measure)) is not None:
        return kind(totals, subject)
    return _of_steps(totals, subject)


def _of_steps(totals: FlowTotals, subject: Subject) -> Measured:
    step = totals.step(subject.step)
    if (count := _OF_STANDING.get(subject.measure)) is not None and totals.covered_s > 0:
        return Measured(float(count(step)) if step is not None else 0.0, 1)
    if step is None:
        if subject.step and totals.steps:
            return never(f"no step {subject.step} in flow {subject.name}; {known(list(totals.steps))}")
        return never(f"flow {subject.name} did nothing in this time")
    return _step(step, totals.covered_s, subject.measure)


def _arrivals(totals: FlowTotals, subject: Subject) -> Measured:
    arrivals = totals.arrivals
    if arrivals is None:
        return never(f"flow {subject.name} has no arrivals in this time")
    match subject.measure:
        case "start_lag_p99":
            return of(arrivals.lag_us.quantile(0.99) / 1e6, arrivals.lag_us.count, "nothing arrived in this time")
        case "dropped":
            return Measured(float(arrivals.dropped), arrivals.due)
        case _:
            return of(arrivals.achieved, arrivals.due, "nothing was due in this time")


def _churn(totals: FlowTotals, subject: Subject) -> Measured:
    churn = totals.churn
    if churn is None:
        return never(f"flow {subject.name} has no churn in this time")
    match subject.measure:
        case "pods_moved":
            return of(churn.moved / totals.covered_s if totals.covered_s else math.nan, churn.moved, "no time passed")
        case "pod_scheduling_p99":
            scheduling = churn.scheduling_us
            return of(scheduling.quantile(0.99) / 1e6, scheduling.count, "no pod was scheduled in this time")
        case name:
            return of(
                churn.startup_s(0.99 if name == "pod_startup_p99" else 0.5), churn.pods, "no pod started in this time"
            )


_OF_ONE_KIND: Final[dict[str, Callable[[FlowTotals, Subject], Measured]]] = {
    **dict.fromkeys(("start_lag_p99", "dropped", "achieved"), _arrivals),
    **dict.fromkeys(("pod_startup_p50", "pod_startup_p99", "pod_scheduling_p99", "pods_moved"), _churn),
}
"""Measures that only one kind of flow has."""


def _step(step: StepTotals, covered_s: float, measure_name: str) -> Measured:
    requests, latency = step.requests, step.latency_us
    if measure_name in _QUANTILES:
        return of(latency.quantile(_QUANTILES[measure_name]) / 1e6, latency.count, "no good answer")
    if measure_name == "mean":
        return of(latency.mean / 1e6, latency.count, "no good answer")
    if measure_name in _EVENT_QUANTILES:
        event = step.event_us
        why = "no event of an object that arrivals wrote"
        return of(event.quantile(_EVENT_QUANTILES[measure_name]) / 1e6, event.count, why)
    if measure_name in _SERVICE_QUANTILES:
        service = step.service_us
        return of(
            service.quantile(_SERVICE_QUANTILES[measure_name]) / 1e6, service.count, "no good answer of an arrival"
        )
    values = {
        "requests": float(requests),
        "errors": float(step.failed),
        "error_rate": step.failed / requests if requests else math.nan,
        "rate": requests / covered_s if covered_s else math.nan,
        "bytes": float(step.bytes),
    }
    return of(values[measure_name], requests, "no request ended in this time")


def _flow_gauge(series: FlowSeries, subject: Subject, span: Span) -> Measured:
    latest = series.latest(span)
    if latest is None:
        return never(f"flow {subject.name} reported nothing in this time")
    if subject.measure == "most_started":
        return Measured(float(series.most_started(span)), 1)
    return Measured(float(latest.started if subject.measure == "started" else latest.connected), 1)


def _probe(state: RunState, subject: Subject, span: Span | None) -> Measured:
    span = span or state.measured
    name = subject.name or ""
    if name not in state.probes:
        return never(f"probe {name} observed nothing in this run; {known(list(state.probes))}")
    if subject.measure in {"ready", "not_ready"}:
        return _node_count(state, subject, span)
    identities = {identity for identity, _ in state.probes[name]}
    if subject.identity is not None:
        if subject.identity not in identities:
            return never(f"probe {name} did not ask as {subject.identity}; {known(list(identities))}")
        identities = {subject.identity}
    each = [_identity(state, name, identity, subject.measure, span) for identity in sorted(identities)]
    unmeasured = next((item for item in each if math.isnan(item.value)), None)
    return unmeasured or _worst(subject.measure, each)


def _node_count(state: RunState, subject: Subject, span: Span) -> Measured:
    counts = [item for item in state.node_counts.get(subject.name or "", ()) if contains(span, item.sent_s)]
    if not counts:
        return never(f"probe {subject.name} counted no nodes in this time")
    latest = max(counts, key=lambda item: item.sent_s)
    return Measured(float(latest.ready if subject.measure == "ready" else latest.not_ready), len(counts))


_MORE_IS_BETTER: Final = frozenset({"success_rate", "observations", "recovered"})


def _worst(measure_name: str, each: Sequence[Measured]) -> Measured:
    if measure_name in _MORE_IS_BETTER:
        return min(each, key=lambda item: item.value)
    return max(each, key=lambda item: item.value)


def _best(measure_name: str, each: Sequence[Measured]) -> Measured:
    if measure_name in _MORE_IS_BETTER:
        return max(each, key=lambda item: item.value)
    return min(each, key=lambda item: item.value)


def _identity(state: RunState, probe: str, identity: str, measure_name: str, span: Span) -> Measured:
    met = [[item for item in way if contains(span, item.sent_s)] for way in _ways_in(state, probe, identity)]
    if not any(met):
        return never(f"probe {probe} as {identity} observed nothing in this time")
    if measure_name == "locked_out":
        value = longest_s(lockouts_of(state, probe, identity, span))
        return Measured(value, max(len(items) for items in met))
    each = [_observations(items, measure_name) for items in met]
    measured = [item for item in each if not math.isnan(item.value)]
    return _best(measure_name, measured) if measured else each[0]


def _ways_in(state: RunState, probe: str, identity: str) -> list[Sequence[Observation]]:
    return ways_in({server: items for (of, server), items in state.probes.get(probe, {}).items() if of == identity})


def _observations(observations: Sequence[Observation], measure_name: str) -> Measured:
    count = len(observations)
    ended = sum(not item.unfinished for item in observations)
    if not count:
        return never("observed nothing in this time")
    good_s = [item.latency_s for item in observations if item.ok]
    match measure_name:
        case "observations":
            return Measured(float(count), count)
        case "success_rate":
            return of(len(good_s) / ended if ended else math.nan, ended, "no request ended in this time")
        case "mean":
            return of(sum(good_s) / len(good_s) if good_s else math.nan, len(good_s), "no good answer")
        case "recovered":
            return Measured(recovered_s(observations, GOOD_WITHIN_S), count)
        case quantile:
            return Measured(latency_quantile(observations, _QUANTILES[quantile]), count)


def lockouts_of(state: RunState, probe: str, identity: str, span: Span | None = None) -> list[Span]:
    """Return the spans in which every API server locked an identity out, as far as they lie within a span."""
    span = span or state.measured
    until_s = min(state.end_s, span[1])
    by_server = [lockouts(way, until_s) for way in _ways_in(state, probe, identity)]
    common = by_server[0] if by_server else []
    for spans in by_server[1:]:
        common = intersect(common, spans)
    return clip(common, span)


def good_spell_of(
    state: RunState, probe: str, identity: str, span: Span | None = None, *, answered_by_s: float = math.inf
) -> Span | None:
    """Return the last good spell of an identity at the API server where it is longest; None when it had none.

    ``recovered`` is its length. Of the requests sent within a span; with ``answered_by_s`` as it was known at that time.
    """
    span = span or state.measured
    spells = [
        last_good_spell(
            (item for item in way if contains(span, item.sent_s) and item.answered_s <= answered_by_s),
            GOOD_WITHIN_S,
        )
        for way in _ways_in(state, probe, identity)
    ]
    return max((spell for spell in spells if spell), key=lambda spell: spell[1] - spell[0], default=None)


def _component(state: RunState, subject: Subject, span: Span | None) -> Measured:
    span = span or state.measured
    component = state.components.get(subject.name or "")
    if component is None:
        return never(f"no component {subject.name} in this run; {known(list(state.components))}")
    samples = len(component.process.within(span))
    match subject.measure:
        case "memory":
            return of(component.most_memory_bytes(span), samples, f"memory of {subject.name} was not sampled")
        case "memory_share":
            cap_bytes = component.limit.memory_bytes if component.limit else None
            if not cap_bytes:
                return never(f"{subject.name} has no memory cap")
            share = component.most_memory_bytes(span) / cap_bytes
            return of(share, samples, f"memory of {subject.name} was not sampled")
        case "cpu":
            return of(component.process.mean_cores(span), samples, f"CPU of {subject.name} was sampled less than twice")
        case _:
            return _component_count(component, subject, span, samples)


def _component_count(component: ComponentSeries, subject: Subject, span: Span, samples: int) -> Measured:
    count = component.restarts(span) if subject.measure == "restarts" else component.oom_kills(span)
    if not samples and not count:
        return never(f"{subject.name} was not watched in this time")
    return Measured(float(count), max(samples, count))


def _generator(state: RunState, subject: Subject, span: Span | None) -> Measured:
    span = span or state.measured
    samples = [item for item in state.generator if contains(span, item.t_s)]
    if not samples and subject.measure not in {"cpu", "memory"}:
        return never("the load driver reported nothing in this time")
    match subject.measure:
        case "lag_p99":
            lag = state.lag_us(span)
            return of(lag.quantile(0.99) / 1e6, lag.count, "the load driver reported no event-loop lag")
        case "cpu" | "memory":
            return _component(state, Subject("component", DRIVER, None, None, subject.measure), span)
        case _:
            shares = [(item.t_s, item.unread_share) for item in samples]
            why = f"the share of unread sockets was not sampled for {SUSTAINED_S:g} s"
            return of(sustained(shares, SUSTAINED_S), len(shares), why)


def _host(state: RunState, subject: Subject, span: Span | None) -> Measured:
    span = span or state.measured
    samples = len(state.host.within(span))
    if subject.measure == "available_memory":
        return of(state.host.least_available_bytes(span), samples, "the host was not sampled in this time")
    return of(state.host.cpu_share(span, "idle"), samples, "the host's CPU was sampled less than twice")


def _search(state: RunState, subject: Subject, _span: Span | None) -> Measured:
    if state.search is None:
        return never("no search began in this run")
    found, trials = state.search.conclusion, len(state.search.trials)
    match subject.measure:
        case "capacity":
            return of(_or_nan(found.holds), trials, f"no load held: {found.reason}")
        case "fails_at":
            return of(_or_nan(found.fails), trials, f"no load failed: {found.reason}")
        case "width":
            return of(found.width, trials, f"the interval has an open end: {found.reason}")
    back = [step for step in state.search.of_kind(StepKind.BACK) if step.recovered_after_s is not None]
    return of(_or_nan(back[-1].recovered_after_s if back else None), len(back), "no recovery was seen")


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


_SCOPES: Final[dict[str, Callable[[RunState, Subject, Span | None], Measured]]] = {
    "flow": _flow,
    "probe": _probe,
    "component": _component,
    "generator": _generator,
    "host": _host,
    "apf": measure_apf,
    "sli": measure_sli,
    "etcd": measure_etcd,
    "search": _search,
}
