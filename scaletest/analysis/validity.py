"""Was the load generator, or the host, the bottleneck? Then the run is invalid, not slow.

Every check has a limit with a reason, what was measured, and a remedy. A *bad* check makes the run invalid; a *warning* is
only said in the report.

The steps of a saturation search are checked one by one: a step whose load the generator could not make does not count, and the run is
invalid only when that kept the search from its end. Beyond the heaviest load that is made as it is (``search.beyond``) it does not: that more than that holds was
measured, and how much more is a bonus.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from scaletest.analysis.evaluate import SUSTAINED_S
from scaletest.analysis.flows import NO_SPACE, ArrivalTotals, FlowInterval, refused_for_space
from scaletest.analysis.losses import lost_share, remedy_of_damage, said_of_damage, why_nothing_measured
from scaletest.analysis.search import Reason
from scaletest.analysis.searchlog import SearchLog, StepKind
from scaletest.analysis.series import Span, contains, sustained
from scaletest.analysis.state import RunState
from scaletest.core.journal import WHOLE, JournalDamage
from scaletest.core.units import format_duration, format_numbers, format_share, parse_rate_per_s

__all__ = ["SKIPPED_LIMIT_SHARE", "Check", "Grade", "check_step", "check_validity"]

LAG_P99_LIMIT_S: Final = 0.100
"""A late event loop adds its lag to every latency it measures. 100 ms is a tenth of the tightest Kubernetes SLO for API calls
(1 s), so it cannot turn a pass into a fail by itself, and five times what a driver shares its two cores with a control
plane for (18.7 ms p99)."""

CPU_LIMIT_CORES: Final = 0.90
"""One Python process has one core; Locust warns of itself at the same 90 %."""

UNREAD_LIMIT_SHARE: Final = 0.05
"""A client that leaves answers unread holds the server's seats and buffers: the server then looks slower than it is."""

SILENCE_LIMIT_S: Final = 5.0
"""The driver reports every second."""

LOST_LIMIT_SHARE: Final = 0.01
"""Share of journal records lost from which totals are no longer what the profile's thresholds (1 %) can be held against."""

STEAL_LIMIT_SHARE: Final = 0.10
STEAL_WARNING_SHARE: Final = 0.02
"""CPU time that a hypervisor gave to others: latencies measure its scheduler then."""

OTHERS_WARNING_SHARE: Final = 0.20
"""Share of CPU time that processes outside the run may take before it is said. Not a reason to call a run invalid: the kernel's work
for the run counts among it, and a machine with idle cores suffers little."""

OWN_COST_CORES: Final = 0.05
"""What scraping, probes, conditions and live view together may take of a core: on the two cores of a laptop 2.5 % of what there is, which
moves no latency beyond its noise."""

SKIPPED_LIMIT_SHARE: Final = 0.05
"""Share of the probes' requests that may go unsent because the prober itself was held up."""

BEHIND_LIMIT_S: Final = 5.0
BEHIND_LIMIT_SHARE: Final = 0.10
"""Agents may start this late, in seconds and as a share of the time the rollout has taken."""

START_LAG_P99_LIMIT_S: Final = 0.010
"""Arrivals that begin later than this are no longer the process that was asked for: at the 500/s of a usual search, five gaps."""

BEGUN_LIMIT_SHARE: Final = 0.995
"""Share of the arrivals due that must have been begun: what is missing is load that was asked for and not offered."""

_SHORTEST_PHASE_S: Final = 5.0
_ASKED: Final = "asked"
_COMMAND: Final = "cli"


class Grade(enum.StrEnum):
    """What a check came to."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that can make a run's numbers worthless."""

    name: str
    grade: Grade
    said: str
    """What was measured, against its limit."""
    remedy: str | None = None


def check_validity(state: RunState, profile: Mapping[str, Any], damage: JournalDamage = WHOLE) -> list[Check]:
    """Return all checks that apply to a run; ``profile`` is that of ``run.json``, ``damage`` what of its journal could not be read."""
    searched_s = math.inf if state.search is None else state.search.start_s
    span = (state.measured[0], min(state.measured[1], searched_s))
    # Skipped requests have no time: those of a search are not told from the others.
    skips = state.probe_skips.total() if state.search is None else 0
    checks = [
        _journal(state, damage),
        *_steal(state, state.measured),
        *_others(state),
        *_own_cost(state),
        *_cores(state),
        *_probers(state, (-math.inf, searched_s), skips),
    ]
    if state.flows or state.flow_starts_s:
        checks += [*_alive(state, searched_s), *_lag(state, _spans(state, span)), *_cpu(state, span)]
        checks += [*_unread(state, span), *_rollouts(state, profile, searched_s)]
        checks += _arrivals(state, _spans(state, span), lambda flow: _has_objective(profile, f"flow.{flow}.dropped"))
        checks += _space(state, span, lambda flow: _judges_errors(profile, flow))
    if state.search is not None:
        checks.append(_search(state.search))
    return checks


def check_step(state: RunState, span: Span) -> list[Check]:
    """Return the checks of the generator and the host over a step of a search."""
    return [
        *_steal(state, span),
        *_probers(state, span),
        *_lag(state, [("the step", span)]),
        *_cpu(state, span),
        *_unread(state, span),
        # Arrivals that were dropped waited for the server: the step's objectives judge that.
        *_arrivals(state, [("the step", span)], lambda _flow: True),
        *_space(state, span, lambda _flow: False),
    ]


def _search(log: SearchLog) -> Check:
    steps = log.of_kind(StepKind.SEARCH)
    uncounted = [step for step in steps if not step.counted]
    if not uncounted:
        return Check("search", Grade.GOOD, f"all {len(steps)} steps of the search count")
    loads = ", ".join(dict.fromkeys(step.load for step in uncounted))
    said = f"{len(uncounted)} of {len(steps)} steps do not count ({log.parameter} {loads}): {uncounted[-1].reason}"
    found, landing = log.conclusion, log.space.landing
    beyond = landing is not None and found.holds is not None and log.space.key(found.holds) >= log.space.key(landing)
    if found.reason is not Reason.GENERATOR_LIMIT or beyond:
        return Check("search", Grade.WARNING, said)
    remedy = "The generator is the limit of this search: more cores for it, or a smaller control plane."
    return Check("search", Grade.BAD, said, _MORE_SPACE if NO_SPACE in uncounted[-1].reason else remedy)


def _graded(name: str, *, bad: bool, said: str, remedy: str) -> Check:
    return Check(name, Grade.BAD if bad else Grade.GOOD, said, remedy if bad else None)


def _journal(state: RunState, damage: JournalDamage) -> Check:
    nothing = why_nothing_measured(state, damage)
    if nothing is not None:
        return Check("journal", Grade.WARNING, nothing)
    share = lost_share(state, damage)
    if not share:
        return Check("journal", Grade.GOOD, f"whole: {state.records:,} records")
    grade = Grade.BAD if share > LOST_LIMIT_SHARE else Grade.WARNING
    return Check("journal", grade, said_of_damage(state, damage), remedy_of_damage(state, damage))


def _steal(state: RunState, span: Span) -> Iterator[Check]:
    share = state.host.cpu_share(span, "steal")
    if not math.isnan(share):
        grade = Grade.BAD if share > STEAL_LIMIT_SHARE else Grade.WARNING if share > STEAL_WARNING_SHARE else Grade.GOOD
        remedy = "Run on a machine that does not share its cores." if grade is not Grade.GOOD else None
        said = f"{format_share(share)} of CPU time went to other guests (limit {format_share(STEAL_LIMIT_SHARE)})"
        yield Check("host steal", grade, said, remedy)


def _others(state: RunState) -> Iterator[Check]:
    span = state.measured
    busy = state.host.cpu_share(span, "busy")
    cores = state.host.cores
    if math.isnan(busy) or not cores:
        return
    own_cores = [component.process.mean_cores(span) for component in state.components.values()]
    share = max(0.0, busy - sum(item for item in own_cores if not math.isnan(item)) / cores)
    said = f"{format_share(share)} of CPU time went to processes outside the run"
    if share <= OTHERS_WARNING_SHARE:
        yield Check("other processes", Grade.GOOD, said)
        return
    idle = format_share(state.host.cpu_share(span, "idle"))
    remedy = "Latencies may be theirs: run on a machine with nothing else to do."
    yield Check("other processes", Grade.WARNING, f"{said}, {idle} was idle", remedy)


def _cores(state: RunState) -> Iterator[Check]:
    """Say who has which cores. Sharing them makes nothing invalid: what it spoils, the other checks measure."""
    cores = state.cores
    if cores is None:
        return
    if cores.generator:
        generator, control_plane = format_numbers(cores.generator), format_numbers(cores.control_plane)
        said = f"apart: the load driver has CPU {generator}, the control plane {control_plane}"
    elif cores.kept:
        said = f"load driver and control plane share {cores.all}: the cluster was there before the run"
    else:
        said = f"load driver and control plane share {cores.all} (apart from 4 on)"
    yield Check("cores", Grade.GOOD, said)


def _own_cost(state: RunState) -> Iterator[Check]:
    command = state.components.get(_COMMAND)
    cores = command.process.mean_cores(state.measured) if command is not None else math.nan
    if not math.isnan(cores):
        limit = format_share(OWN_COST_CORES)
        said = f"the command took {format_share(cores)} of a core for scrapes, probes and view (limit {limit})"
        over = cores > OWN_COST_CORES
        remedy = "Longer periods in observe and probes: what it takes, the control plane and the load lack."
        yield Check("own cost", Grade.WARNING if over else Grade.GOOD, said, remedy if over else None)


def _probers(state: RunState, span: Span, skips: int = 0) -> Iterator[Check]:
    late_s = sorted(
        item.late_s
        for series in state.probes.values()
        for observations in series.values()
        for item in observations
        if contains(span, item.sent_s)
    )
    if not late_s:
        return
    skipped = skips / (skips + len(late_s))
    p99_s = late_s[max(1, math.ceil(0.99 * len(late_s))) - 1]
    said = f"requests sent {format_duration(p99_s)} late at p99 (limit {format_duration(LAG_P99_LIMIT_S)})"
    if skips:
        said += f", {format_share(skipped)} not sent (limit {format_share(SKIPPED_LIMIT_SHARE)})"
    bad = p99_s > LAG_P99_LIMIT_S or skipped > SKIPPED_LIMIT_SHARE
    yield _graded("probes", bad=bad, said=said, remedy="Leave scaletest itself more CPU: lower the components' quotas.")


def _alive(state: RunState, until_s: float) -> Iterator[Check]:
    ends = [event for event in state.events if event.kind == "driver.end"]
    died = next((event for event in ends if event.fields.get("reason") != _ASKED), None)
    if died is not None:
        said = f"the load driver ended at {died.t_s:.1f} s: {died.fields.get('reason')}"
        yield Check("driver", Grade.BAD, said, "Something else ended it: run again.")
        return
    silence_s, at_s = _longest_silence(state, until_s)
    said = f"longest silence {format_duration(silence_s)} (limit {format_duration(SILENCE_LIMIT_S)})"
    bad = silence_s > SILENCE_LIMIT_S
    said = f"the load driver said nothing for {format_duration(silence_s)} from {at_s:.1f} s on" if bad else said
    remedy = "It died or was starved of CPU: fewer agents, or more cores."
    yield _graded("driver", bad=bad, said=said, remedy=remedy)


def _longest_silence(state: RunState, until_s: float) -> tuple[float, float]:
    """Return the longest time without a ``driver`` record while a flow ran, up to a time, and when it began."""
    start_s = min([*state.flow_starts_s.values(), *(flow.intervals[0].start_s for flow in state.flows.values())])
    running = state.flow_starts_s.keys() - state.flow_stops_s.keys()
    stop_s = state.end_s if running or not state.flow_stops_s else max(state.flow_stops_s.values())
    stop_s = min(stop_s, until_s)
    times = sorted(item.t_s for item in state.generator if start_s < item.t_s < stop_s)
    edges = [start_s, *times, max(stop_s, start_s)]
    return max((later - earlier, earlier) for earlier, later in itertools.pairwise(edges))


def _spans(state: RunState, span: Span) -> Iterator[tuple[str, Span]]:
    # What comes before a search may be a second long: too little for a p99.
    if state.search is None or span[1] - span[0] >= _SHORTEST_PHASE_S:
        yield "the run", span
    for phase in state.phases:
        end_s = state.end_s if phase.end_s is None else phase.end_s
        if end_s <= span[1] and end_s - phase.start_s >= _SHORTEST_PHASE_S:
            yield f"phase {phase.name}", phase.span


def _lag(state: RunState, spans: Iterable[tuple[str, Span]]) -> Iterator[Check]:
    # A stall of a few seconds hides in a long run: each phase is looked at by itself.
    lags = [(state.lag_us(span).quantile(0.99) / 1e6, where) for where, span in spans]
    lags = [item for item in lags if not math.isnan(item[0])]
    if lags:
        worst_s, where = max(lags, key=lambda item: item[0])
        said = f"event-loop lag p99 {format_duration(worst_s)} in {where} (limit {format_duration(LAG_P99_LIMIT_S)})"
        remedy = "Fewer agents, a slower rollout, or more cores for the load driver."
        yield _graded("event-loop lag", bad=worst_s > LAG_P99_LIMIT_S, said=said, remedy=remedy)


def _cpu(state: RunState, span: Span) -> Iterator[Check]:
    levels = []
    for name, series in state.generator_processes:
        samples = [(item.end_s, item.cores) for item in series.within(span) if item.end_s > item.start_s]
        levels.append((sustained(samples, SUSTAINED_S), name))
    level, name = max((item for item in levels if not math.isnan(item[0])), default=(math.nan, ""))
    if not math.isnan(level):
        of = "" if name == levels[0][1] else f" of {name}"
        said = f"{level:.2f} cores{of} for {SUSTAINED_S:g} s (limit {CPU_LIMIT_CORES:.2f} of one)"
        remedy = "Fewer agents, longer periods, smaller answers, or (etcd) more processes: one process has one core."
        yield _graded("driver CPU", bad=level >= CPU_LIMIT_CORES, said=said, remedy=remedy)


def _unread(state: RunState, span: Span) -> Iterator[Check]:
    shares = [(item.t_s, item.unread_share) for item in state.generator if contains(span, item.t_s)]
    level = sustained(shares, SUSTAINED_S)
    if not math.isnan(level):
        limit = format_share(UNREAD_LIMIT_SHARE)
        said = f"{format_share(level)} of sockets unread for {SUSTAINED_S:g} s (limit {limit})"
        remedy = "The clients read too slowly and slow the server down: fewer agents, or more cores."
        yield _graded("unread answers", bad=level > UNREAD_LIMIT_SHARE, said=said, remedy=remedy)


def _rollouts(state: RunState, profile: Mapping[str, Any], until_s: float) -> Iterator[Check]:
    for name, series in sorted(state.flows.items()):
        rate_per_s = _rollout_per_s(profile, name)
        start_s = state.flow_starts_s.get(name)
        if rate_per_s is None or start_s is None:
            continue
        unit = state.flow_units.get(name, "agents")
        behind_s, at = _furthest_behind(
            [item for item in series.intervals if item.end_s <= until_s], start_s, rate_per_s
        )
        if at is None:
            yield Check(f"rollout of {name}", Grade.GOOD, f"{rate_per_s:g} {unit}/s, as asked")
            continue
        said = f"{at.started:,} of {at.target:,} {unit} at {at.end_s:.1f} s, {format_duration(behind_s)} late"
        remedy = f"The driver cannot start {rate_per_s:g} {unit}/s: ask for a slower rollout."
        yield _graded(f"rollout of {name}", bad=True, said=said, remedy=remedy)


def _furthest_behind(
    intervals: list[FlowInterval], start_s: float, rate_per_s: float
) -> tuple[float, FlowInterval | None]:
    """Return how late agents started at worst, and where that was beyond the limits.

    The next agent is due as long after the start as the agents before it take at the asked rate. A change of the target
    starts the count anew.
    """
    worst_s, worst = 0.0, None
    since_s, before, target = start_s, 0, None
    last_started = 0
    for item in intervals:
        if target is not None and item.target != target:
            since_s, before = item.start_s, last_started
        target, last_started = item.target, item.started
        elapsed_s = item.end_s - since_s
        behind_s = elapsed_s - (item.started - before) / rate_per_s
        late = item.started < item.target and not item.blocked
        if late and behind_s > max(BEHIND_LIMIT_S, BEHIND_LIMIT_SHARE * elapsed_s, worst_s):
            worst_s, worst = behind_s, item
    return worst_s, worst


def _arrivals(
    state: RunState, spans: Iterable[tuple[str, Span]], drops_are_judged: Callable[[str], bool]
) -> Iterator[Check]:
    spans = list(spans)
    for name, series in sorted(state.flows.items()):
        if not any(item.arrivals is not None and item.arrivals.rate_per_s is not None for item in series.intervals):
            continue
        totals = [(where, item) for where, span in spans if (item := series.totals(span).arrivals) is not None]
        judged = [item for item in totals if item[1].due + item[1].behind]
        if judged:
            yield _start_lag(name, judged)
            yield _begun(name, judged, drops_are_judged=drops_are_judged(name))


def _start_lag(name: str, spans: list[tuple[str, ArrivalTotals]]) -> Check:
    lags = [(totals.lag_us.quantile(0.99) / 1e6, where) for where, totals in spans if totals.lag_us.count]
    worst_s, where = max(lags, default=(math.inf, "the run"), key=lambda item: item[0])
    limit = format_duration(START_LAG_P99_LIMIT_S)
    said = f"arrivals begun {format_duration(worst_s)} late at p99 in {where} (limit {limit})"
    remedy = "A lower rate, or more cores for the load driver: it could not keep to the schedule."
    return _graded(f"start lag of {name}", bad=worst_s > START_LAG_P99_LIMIT_S, said=said, remedy=remedy)


def _begun(name: str, spans: list[tuple[str, ArrivalTotals]], *, drops_are_judged: bool) -> Check:
    where, worst = min(spans, key=lambda item: item[1].achieved)
    due = worst.due + worst.behind
    said = (
        f"{format_share(worst.achieved)} of {due:,} arrivals begun in {where} (limit {format_share(BEGUN_LIMIT_SHARE)})"
    )
    short = worst.achieved < BEGUN_LIMIT_SHARE
    if not worst.dropped:
        remedy = "A lower rate, or more cores for the load driver."
        return _graded(f"arrivals of {name}", bad=short, said=said, remedy=remedy)
    said += f", {worst.dropped:,} dropped with {worst.most_in_flight:,} in flight"
    if short and drops_are_judged:
        return Check(f"arrivals of {name}", Grade.WARNING, f"{said}: an objective of the profile judges that")
    remedy = (
        f"A higher maxInFlight or a lower rate; or write what may be dropped as an objective (flow.{name}.dropped)."
    )
    return _graded(f"arrivals of {name}", bad=short, said=said, remedy=remedy)


def _space(state: RunState, span: Span, errors_are_judged: Callable[[str], bool]) -> Iterator[Check]:
    """Say where etcd's quota was used up: what its flow measured after that is how fast etcd refuses."""
    for name, series in sorted(state.flows.items()):
        refused = refused_for_space(series, span)
        if not refused:
            continue
        first = next(
            item for item in series.intervals if any(NO_SPACE in step.outcomes for step in item.steps.values())
        )
        asked = sum(step.requests for step in series.totals(span).steps.values())
        said = (
            f"etcd's quota is used up ({NO_SPACE}): from {first.start_s:.0f} s on it refused writes, {refused:,} of {asked:,} "
            f"requests of {name}; no rate or latency of {name} from then on is etcd's"
        )
        if errors_are_judged(name):
            yield Check("etcd space", Grade.WARNING, f"{said}. An objective of the profile judges its errors")
        else:
            yield Check("etcd space", Grade.BAD, said, _MORE_SPACE)


_MORE_SPACE: Final = "A larger quota (etcd's quota-backend-bytes), fewer or smaller writes, or compaction more often (kube-apiserver's etcd-compaction-interval)."


def _judges_errors(profile: Mapping[str, Any], flow: str) -> bool:
    return any(
        text.startswith(f"flow.{flow}.") and (".error_rate" in text or ".errors" in text)
        for text in _objective_texts(profile)
    )


def _has_objective(profile: Mapping[str, Any], subject: str) -> bool:
    return any(text.startswith(subject) for text in _objective_texts(profile))


def _objective_texts(profile: Mapping[str, Any]) -> list[str]:
    texts = [item.get("check") if isinstance(item, Mapping) else item for item in profile.get("objectives") or ()]
    return [text.replace(" ", "") for text in texts if isinstance(text, str)]


def _rollout_per_s(profile: Mapping[str, Any], flow: str) -> float | None:
    try:
        spec = profile["flows"][flow]
        rollout = (spec.get("agents") or spec["watchers"])["rollout"]
        rate_per_s = parse_rate_per_s(rollout) if isinstance(rollout, str) else float(rollout)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return rate_per_s if rate_per_s > 0 else None
