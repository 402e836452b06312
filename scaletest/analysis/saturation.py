"""What a search found, put together: the curve, what gave out, what lies past it, and what the laws would have said.

Everything is measured over the *steady part* of each step. Latency and goodput are those of the flows that make the load, and where watches
stand those of the events that came to them; operator access is
that of all probes that ask for something, each identity at its best API server, and of these the worst. Steps at the same load are shown
one by one on the curve and never averaged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from scaletest.analysis.evaluate import measure
from scaletest.analysis.fits import AgentsLaw, UslFit, agents_law, fit_usl
from scaletest.analysis.flows import StepTotals
from scaletest.analysis.limiting import API_SERVER, Finding, findings, limiting
from scaletest.analysis.pastknee import Goodput, PastKnee, Return, Stage, classify
from scaletest.analysis.search import Conclusion, Outcome
from scaletest.analysis.searchlog import SearchLog, SearchStep, StepKind
from scaletest.analysis.series import Span
from scaletest.analysis.state import RunState
from scaletest.core.histogram import Histogram
from scaletest.core.units import parse_duration_s
from scaletest.profile.objectives import Subject

__all__ = ["Attribution", "Point", "Saturation", "analyse"]

_GROWS_SHARE: Final = 0.10
"""Answers that differ in size by more between two loads are compared by bytes."""

_SAME_CAUSE_FACTOR: Final = 1.5
"""What gives out at loads up to so many times the smallest that fails is taken for its cause too. At the knee queues grow in bursts between which there is
room: 360 agents failed with a host that was 7.9 % idle on average, 400 with one that was 1.9 %."""

_NEVER: Final = math.nan


@dataclass(frozen=True, slots=True)
class Point:
    """One step, measured over its steady part; NaN for what was not."""

    step: SearchStep
    answers_per_s: float
    """Requests of the load answered with 2xx."""
    bytes_per_s: float
    answer_bytes: float
    """Mean size of an answer."""
    events_per_s: float
    """Events that came to the watches of ``watchers`` flows."""
    p50_s: float
    p99_s: float
    error_rate: float
    operator_p99_s: float
    operator_success: float
    memory_bytes: float
    """The most that one API server held."""
    cpu_cores: float
    """Mean of all API servers together."""
    kills: tuple[str, ...]
    """Components that were killed at their cap or restarted."""

    def goodput_per_s(self, goodput: Goodput) -> float:
        """Return the goodput in what it is counted in."""
        match goodput:
            case Goodput.BYTES:
                return self.bytes_per_s
            case Goodput.EVENTS:
                return self.events_per_s
            case Goodput.ANSWERS:
                return self.answers_per_s


@dataclass(frozen=True, slots=True)
class Attribution:
    """What gave out, by the rules of ``limiting`` over the steady part of a step that failed."""

    value: float
    """The load of the step: the smallest that failed, or a heavier one where that had no resource at its limit yet."""
    limit: Finding | None
    """The resource at its limit; None when no rule applies."""
    evidence: tuple[Finding, ...]
    """Every rule with its figures, also those that clear a resource."""


@dataclass(frozen=True, slots=True)
class Saturation:
    """A search and its meaning."""

    log: SearchLog
    found: Conclusion
    points: tuple[Point, ...]
    """In the order of the steps."""
    goodput: Goodput
    attribution: Attribution | None
    past: PastKnee | None
    back: Return | None
    law: AgentsLaw | None
    law_capacity_from: float | None
    """The load at which the capacity in the law was measured."""
    usl: UslFit | None


def analyse(state: RunState, profile: Mapping[str, Any]) -> Saturation | None:
    """Analyse the search of a run, finished or not; None when it had none. ``profile`` is that of ``run.json``."""
    log = state.search
    if log is None:
        return None
    points = tuple(_point(state, log, step) for step in log.steps if step.end_s is not None)
    found = log.conclusion
    goodput = _goodput(points)
    back = _return(log)
    law, capacity_from = (None, None) if found.fails is None else _law(state, log, points, profile)
    return Saturation(
        log=log,
        found=found,
        points=points,
        goodput=goodput,
        attribution=_attribution(state, log, found, profile),
        past=_past(state, points, found, goodput, back),
        back=back,
        law=law,
        law_capacity_from=capacity_from,
        usl=_usl(log, points, goodput),
    )


def _usl(log: SearchLog, points: Sequence[Point], goodput: Goodput) -> UslFit | None:
    """Fit throughput over the number of clients; where the load is a rate, or answers grow with it, that law says nothing.

    Derived loads are made by no such number of clients.
    """
    if log.unit or not log.space.whole or goodput is not Goodput.ANSWERS:
        return None
    made = [p for p in points if p.step.counted and _is_load(log, p) and not log.is_derived(p.step.value)]
    return fit_usl([(point.step.value, point.answers_per_s) for point in made])


def _point(state: RunState, log: SearchLog, step: SearchStep) -> Point:
    span = step.steady or (step.start_s, step.end_s or step.start_s)
    load, seconds = _together(state, log.flows, span)
    watches, watched_s = _together(state, [name for name, unit in state.flow_units.items() if unit == "watches"], span)
    latency_us = watches.event_us if watched_s else load.latency_us
    operator_success, operator_p99_s = _operators(state, span)
    whole = (step.start_s, step.end_s or math.inf)
    servers = {name: item for name, item in state.components.items() if name.startswith(API_SERVER)}
    memory = [item.most_memory_bytes(span) for item in servers.values()]
    cores = [item.process.mean_cores(span) for item in servers.values()]
    return Point(
        step=step,
        answers_per_s=load.good / seconds if seconds else _NEVER,
        bytes_per_s=load.bytes / seconds if seconds else _NEVER,
        answer_bytes=load.bytes / load.good if load.good else _NEVER,
        events_per_s=watches.events / watched_s if watched_s else _NEVER,
        p50_s=_quantile_s(latency_us, 0.5),
        p99_s=_quantile_s(latency_us, 0.99),
        error_rate=load.failed / load.requests if load.requests else _NEVER,
        operator_p99_s=operator_p99_s,
        operator_success=operator_success,
        memory_bytes=max((value for value in memory if not math.isnan(value)), default=_NEVER),
        cpu_cores=sum(value for value in cores if not math.isnan(value)) if cores else _NEVER,
        kills=tuple(
            name for name, item in sorted(state.components.items()) if item.oom_kills(whole) or item.restarts(whole)
        ),
    )


def _together(state: RunState, flows: Sequence[str], span: Span) -> tuple[StepTotals, float]:
    """Return the totals of some flows over a span, and the time that they cover."""
    found = [state.flows[name].totals(span) for name in flows if name in state.flows]
    steps = [step for totals in found if (step := totals.step(None)) is not None]
    return StepTotals.merged(steps), max((totals.covered_s for totals in found), default=0.0)


def _quantile_s(histogram: Histogram, q: float) -> float:
    return histogram.quantile(q) / 1e6


def _operators(state: RunState, span: Span) -> tuple[float, float]:
    """Return the worst success rate and the worst p99 of all probes that ask for something."""
    names = [name for name in state.probes if name not in state.node_counts]
    success = [measure(state, Subject("probe", name, None, None, "success_rate"), span).value for name in names]
    p99_s = [measure(state, Subject("probe", name, None, None, "p99"), span).value for name in names]
    known = [value for value in success if not math.isnan(value)]
    late = [value for value in p99_s if not math.isnan(value)]
    return min(known, default=_NEVER), max(late, default=_NEVER)


def _is_load(log: SearchLog, point: Point) -> bool:
    """Whether a point lies on the curve of throughput over load: more load, and not the same load made otherwise."""
    return log.space.end > log.space.start and point.step.kind is not StepKind.BACK


def _goodput(points: Sequence[Point]) -> Goodput:
    if any(point.events_per_s > 0 for point in points):
        return Goodput.EVENTS
    sizes = [point.answer_bytes for point in points if point.step.counted and point.answer_bytes > 0]
    grows = bool(sizes) and max(sizes) > (1 + _GROWS_SHARE) * min(sizes)
    return Goodput.BYTES if grows else Goodput.ANSWERS


def _return(log: SearchLog) -> Return | None:
    ended = log.of_kind(StepKind.BACK)
    if not ended or ended[-1].waited_s is None:
        return None
    step = ended[-1]
    return Return(step.value, step.recovered_after_s, step.waited_s or 0.0, taken_back=step.taken_back)


def _attribution(state: RunState, log: SearchLog, found: Conclusion, profile: Mapping[str, Any]) -> Attribution | None:
    """Look at the smallest load that fails, then at heavier ones until a resource is at its limit; where none fails, nothing gave out."""
    failed = [step for step in log.at(found.fails) if step.steady is not None]
    if not failed:
        return None
    at_knee = _attribution_at(state, failed[-1], profile)
    others = (_attribution_at(state, step, profile) for step in _heavier(log, failed[-1].value))
    return next((item for item in chain([at_knee], others) if item.limit is not None), at_knee)


def _attribution_at(state: RunState, step: SearchStep, profile: Mapping[str, Any]) -> Attribution:
    assert step.steady is not None
    evidence = tuple(findings(state, step.steady, profile))
    return Attribution(step.value, limiting(evidence), evidence)


def _heavier(log: SearchLog, fails: float) -> list[SearchStep]:
    """Return the steps of somewhat heavier loads that failed, the lightest first."""
    key = log.space.key
    near = [
        step
        for step in log.steps
        if step.kind is not StepKind.BACK and step.outcome is Outcome.FAILED and step.steady is not None
        and 0 < key(step.value) - key(fails) <= math.log(_SAME_CAUSE_FACTOR)
    ]  # fmt: skip
    return sorted(near, key=lambda step: key(step.value))


def _past(
    state: RunState, points: Sequence[Point], found: Conclusion, goodput: Goodput, back: Return | None
) -> PastKnee | None:
    knee = next(
        (
            point
            for point in reversed(points)
            if point.step.kind is StepKind.SEARCH and point.step.counted and point.step.value == found.holds
        ),
        None,
    )
    past = [point for point in points if point.step.kind is StepKind.PAST]
    if knee is None or not past:
        return None
    cap_bytes = _memory_cap(state)
    return classify(
        _stage(knee, goodput, cap_bytes), [_stage(point, goodput, cap_bytes) for point in past], back, goodput
    )


def _stage(point: Point, goodput: Goodput, cap_bytes: float) -> Stage:
    return Stage(
        factor=point.step.factor or 1.0,
        value=point.step.value,
        counted=point.step.counted,
        goodput_per_s=point.goodput_per_s(goodput),
        memory_bytes=point.memory_bytes,
        memory_cap_bytes=cap_bytes,
        operator_success=point.operator_success,
        operator_p99_s=point.operator_p99_s,
        kills=point.kills,
    )


def _memory_cap(state: RunState) -> float:
    caps = [
        float(item.limit.memory_bytes)
        for name, item in state.components.items()
        if name.startswith(API_SERVER) and item.limit is not None and item.limit.memory_bytes
    ]
    return min(caps, default=_NEVER)


def _law(
    state: RunState, log: SearchLog, points: Sequence[Point], profile: Mapping[str, Any]
) -> tuple[AgentsLaw | None, float | None]:
    """Return the agents law, with the largest throughput of any counted step as capacity, and the load where that was.

    Where no load failed, nothing was saturated and that throughput is no capacity: the caller does not ask.

    Only where the load is a number of agents that list: one flow of them, and the parameter their number or that of their nodes.
    """
    period_s = _list_period_s(log, profile)
    known = [point for point in points if point.step.counted and point.bytes_per_s > 0 and _is_load(log, point)]
    if period_s is None or not known:
        return None, None
    fastest = max(known, key=lambda point: point.bytes_per_s)
    servers = max(1, sum(name.startswith(API_SERVER) for name in state.components))
    # How an answer grows is read off the loads that held: past the knee only the quick ones come through.
    # A derived load has the answers of the load that makes it.
    held = [point for point in known if point.step.outcome is not None and point.error_rate < _GROWS_SHARE] or known
    landing = log.space.landing
    sizes = [
        (point.step.value if landing is None else min(point.step.value, landing), point.answer_bytes) for point in held
    ]
    capacity = fastest.bytes_per_s / servers
    return agents_law(sizes, servers=servers, capacity_bytes_per_s=capacity, period_s=period_s), fastest.step.value


def _list_period_s(log: SearchLog, profile: Mapping[str, Any]) -> float | None:
    if len(log.flows) != 1 or log.unit or not log.space.whole:
        return None
    try:
        flow = profile["flows"][log.flows[0]]
        if flow.get("agents") is None:
            return None
        # Of a list in pages an answer is a page.
        lists = [
            step
            for step in flow["steps"]
            if (step.get("list") or step.get("watchList")) and step.get("every") and not step.get("limit")
        ]
        return parse_duration_s(lists[0]["every"]) if len(lists) == 1 and len(flow["steps"]) == 1 else None
    except (KeyError, TypeError, ValueError):
        return None
