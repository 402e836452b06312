"""A saturation search on running engines: it sets one load after the other, and journals what each came to.

Which load comes next is for ``analysis.search`` to say, from the trials that are in the journal. Here a load is set, left to settle and
judged:

- **Set.** To a heavier load after one that held, flows are retargeted as they run. In all other cases (and where the fleet has to grow past the
  knee, which an overloaded API server would not let it) they are stopped, and started again once the control plane is *calm*: every probe that asks for something had a good answer within 1 s for 3 s, and on to
  ``search.recoverWithin`` at most. So what one load leaves behind is not measured in the next.
- **Settle.** A step is over when it was steady (``analysis.steady``) for ``step.atLeast``, or when it gets worse while something does not hold,
  or after ``step.atMost``.
- **Judge.** Over the steady part: did the generator make the load, do all of ``search.holds`` hold, did every probe get an answer? A load
  under which latency goes on growing to the end does not hold, whatever its values are by then.
- **Capture.** Of the first load that fails, and of the one that is confirmed to, profiles of the API servers: after it was judged, while it runs.

After the search come the multiples of what held, each heavier than the one before, and then the way back: from the heaviest load at once to a part of the one that held, which is watched until everything holds again, or the time for that is over.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from scaletest.analysis.evaluate import ObjectiveResult, good_spell_of, measure
from scaletest.analysis.flows import FlowInterval, PackedHistogram, is_good
from scaletest.analysis.search import Ask, Outcome, Reason, Trial, Why, conclude, plan_next
from scaletest.analysis.searchlog import StepKind
from scaletest.analysis.series import Span, contains
from scaletest.analysis.state import RunState
from scaletest.analysis.steady import Direction, Series, Settling, settle
from scaletest.analysis.validity import SKIPPED_LIMIT_SHARE, Grade, check_step
from scaletest.analysis.verdict import format_measured
from scaletest.core.errors import ProfileError, ResourceShortage, ScaletestError
from scaletest.core.journal import JournalFile
from scaletest.core.units import format_count, format_duration
from scaletest.load.capacity import check_all_descriptors
from scaletest.observe.pprof import Capture
from scaletest.profile.loading import LoadedProfile
from scaletest.profile.objectives import parse_objective
from scaletest.profile.schema import FlowSpec, Profile
from scaletest.profile.stepping import StepChange, load_flows, step_change
from scaletest.runner.searchplan import SearchPlan, cpu_profile_s

__all__ = ["Loads", "Pace", "Searcher"]

SLOWEST_OPENING_PER_S: Final = 100.0
"""Watches without a rate open at 540 a second on two cores (``benchmarks/watches.py``), and slower where the API server is near its limit."""


CHURN_STANDS_SHARE: Final = 0.8
"""Share of its pods from which on the population of a churn counts as standing: one that is scaled evenly from half to one and a half of its size is above
that but for bad luck with a few large Deployments."""


class Loads(Protocol):
    """What a search does with a run."""

    async def start_flow(self, flow: str) -> None:
        """Start a flow, as the profile of the latest load says."""

    async def stop_flow(self, flow: str) -> None:
        """Stop a flow, and wait until it has stopped."""

    async def step_to(self, profile: Profile, change: StepChange) -> None:
        """Resize pools and retarget running flows. Flows started from now on are as this profile says."""

    async def capture(self, capture: Capture) -> list[str]:
        """Capture the profiles of the API servers; returns why each that is missing is."""

    def state(self) -> RunState:
        """Return what the journal says up to now."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a search looks, in seconds; tests look more often."""

    look_s: float = 0.5
    calm_s: float = 3.0
    grace_s: float = 2.0
    """How long after a step answers are waited for: what a probe has not got by then, it has not got."""
    recovery_window_s: float = 5.0
    """On the way back: how long everything has to hold."""
    start_slack_s: float = 15.0
    """How much longer than its rollout rate says a flow may take to start."""


@dataclass(frozen=True, slots=True)
class _Judgement:
    outcome: Outcome
    reason: str
    holds: list[dict[str, Any]]
    health: list[str]


class Searcher:
    """One search; the phases before it are over and their flows run."""

    def __init__(
        self, loaded: LoadedProfile, plan: SearchPlan, loads: Loads, journal: JournalFile, pace: Pace | None = None
    ) -> None:
        self._loaded = loaded
        self._plan = plan
        self._spec = plan.spec
        self._loads = loads
        self._journal = journal
        self._pace = pace or Pace()
        self._space = plan.space
        self._most_nodes = plan.most_nodes
        self._flows = load_flows(loaded.profile, self._profile_at(self._space.end))
        self._current = loaded.profile
        self._current_value = self._space.start
        self._loaded_well = True
        """Whether the load that runs now has held, so that a heavier one can follow without a pause."""
        self._number = 0
        self._captured: set[float] = set()
        """Loads of which profiles were captured."""

    async def run(self) -> None:
        """Search; then go past what was found, and back."""
        self._journal.append(
            "search.start",
            parameter=self._spec.parameter, unit=self._plan.load.unit, start=self._space.start, end=self._space.end,
            resolution=self._space.resolution, whole=self._space.whole, factor=self._space.factor,
            holds=list(self._spec.holds), flows=self._flows, back=self._spec.back, made_end=self._plan.made_end,
            beyond=self._spec.beyond.parameter if self._spec.beyond is not None else None,
        )  # fmt: skip
        trials, reason = await self._search()
        self._journal.append("search.end", reason=reason.value)
        found = conclude(self._space, trials, reason)
        if found.holds is not None and found.fails is not None:
            await self._go_past(found.holds)

    async def _search(self) -> tuple[list[Trial], Reason]:
        deadline_s = time.monotonic() + self._spec.at_most_s
        trials: list[Trial] = []
        while isinstance(ask := plan_next(self._space, trials), Ask):
            if time.monotonic() + self._spec.step.at_least_s > deadline_s:
                return trials, Reason.OUT_OF_TIME
            outcome = await self._step(StepKind.SEARCH, ask.value, ask.why.value)
            trials.append(Trial(ask.value, outcome))
            if outcome is Outcome.FAILED:
                await self._capture(ask)
        return trials, ask

    async def _capture(self, ask: Ask) -> None:
        """Capture profiles of a load that failed and still runs: of the first, and of the one that is confirmed to fail.

        It has been judged, so that what this costs is in no measurement; the next load begins on a calm control plane.
        """
        if not self._captured or (ask.why is Why.CONFIRM and ask.value not in self._captured):
            self._captured.add(ask.value)
            name = f"step-{self._number}"
            await self._loads.capture(Capture(name, cpu_profile_s(self._spec), self._number))

    async def _go_past(self, value: float) -> None:
        self._loaded_well = False
        for factor in self._spec.past:
            multiple = self._multiple(value, factor)
            why_not = self._why_not(multiple)
            if why_not:
                self._note(f"{factor:g} times the load is not tried: {why_not}")
                break
            await self._step(StepKind.PAST, multiple, f"{factor:g} times the load that held", factor=factor)
            self._loaded_well = True
        await self._go_back(self._multiple(value, self._spec.back))

    def _why_not(self, value: float) -> str | None:
        """Say why a load cannot be made, in this profile or on this machine; None when it can."""
        try:
            return self._no_room(self._profile_at(value))
        except ProfileError as error:
            return error.problems[0].what

    def _no_room(self, profile: Profile) -> str | None:
        """Say why this machine has no room for a load; None when it has."""
        nodes = profile.fleet.node_count
        if self._most_nodes is not None and nodes > self._most_nodes:
            return f"of {format_count(nodes)} nodes {format_count(self._most_nodes)} fit in memory"
        try:
            check_all_descriptors(profile.flows.values(), nodes)
        except ResourceShortage as shortage:
            return shortage.message
        return None

    def _multiple(self, value: float, factor: float) -> float:
        heavier = value * factor if self._space.end >= self._space.start else value / factor
        return max(1.0, float(round(heavier))) if self._space.whole else heavier

    def _profile_at(self, value: float) -> Profile:
        return self._loaded.at(self._plan.values(value))

    # One step.

    async def _step(self, kind: StepKind, value: float, why: str, factor: float | None = None) -> Outcome:
        profile = self._profile_at(value)
        number = self._begin(kind, value, why, factor, profile)
        no_room = self._no_room(profile)
        if no_room is not None:
            return self._uncounted(number, value, no_room)
        await self._set(kind, value, profile)
        missing = await self._wait_until_started()
        loaded_s = self._now_s()
        at_most_s = self._spec.step.at_least_s if kind is StepKind.PAST else self._spec.step.at_most_s
        settling = await self._settle(profile, loaded_s, at_most_s)
        await asyncio.sleep(self._pace.grace_s)
        judged = self._judge(profile, settling, missing)
        self._loaded_well = judged.outcome is Outcome.HELD
        self._journal.append(
            "search.step.end",
            step=number, load=self._plan.said(value), outcome=judged.outcome.value, reason=judged.reason, holds=judged.holds, health=judged.health,
            steady=[round(edge_s, 3) for edge_s in settling.span], dropped_s=round(settling.dropped_s, 3),
            settled=settling.settled, trends={name: trend.value for name, trend in settling.trends.items()},
        )  # fmt: skip
        return judged.outcome

    def _uncounted(self, number: int, value: float, why: str) -> Outcome:
        """End a step whose load was never there."""
        self._journal.append(
            "search.step.end",
            step=number, load=self._plan.said(value), outcome=Outcome.NOT_COUNTED.value, reason=why, holds=[], health=[why], steady=None,
        )  # fmt: skip
        return Outcome.NOT_COUNTED

    def _begin(self, kind: StepKind, value: float, why: str, factor: float | None, profile: Profile) -> int:
        self._number += 1
        self._journal.append(
            "search.step.start",
            step=self._number, stage=kind.value, value=value, load=self._plan.said(value), factor=factor, why=why,
            nodes=profile.fleet.node_count,
        )  # fmt: skip
        return self._number

    async def _set(self, kind: StepKind, value: float, profile: Profile) -> None:
        change = step_change(self._current, profile)
        lighter = self._space.key(value) < self._space.key(self._current_value)
        fresh = lighter or not self._loaded_well or (kind is StepKind.PAST and bool(change.pools))
        stopped = self._flows if fresh else [name for name in self._flows if name in change.restart]
        for flow in stopped:
            await self._loads.stop_flow(flow)
        if fresh and self._number > 1:
            await self._calm_down()
        await self._loads.step_to(profile, change)
        for flow in stopped:
            await self._loads.start_flow(flow)
        self._current, self._current_value = profile, value

    async def _calm_down(self) -> None:
        """Wait until operators are served as if nothing were there; say so when that does not come."""
        began_s = self._now_s()
        while (waited_s := self._now_s() - began_s) < self._spec.recover_within_s:
            if self._is_calm((began_s, math.inf)):
                return
            await asyncio.sleep(self._pace.look_s)
        self._note(
            f"the control plane has not calmed down {format_duration(waited_s)} after the load was taken away",
            "warning",
        )

    def _is_calm(self, span: Span) -> bool:
        state, probes = self._loads.state(), self._operator_probes()
        if not probes:
            return self._now_s() - span[0] >= self._pace.calm_s
        spells = [
            good_spell_of(state, name, identity, span)
            for name in probes
            for identity in self._loaded.profile.probes[name].identities
        ]
        return all(spell is not None and spell[1] - spell[0] >= self._pace.calm_s for spell in spells)

    def _operator_probes(self) -> list[str]:
        return [name for name, probe in self._loaded.profile.probes.items() if probe.get is not None]

    async def _wait_until_started(self) -> list[str]:
        """Wait until every agent of the load has started; return what is missing after the time that this should take."""
        began_s = self._now_s()
        while True:
            missing, due_s = self._missing(began_s)
            if not missing or self._now_s() - began_s > due_s:
                return missing
            await asyncio.sleep(self._pace.look_s)

    def _missing(self, since_s: float) -> tuple[list[str], float]:
        missing, due_s = [], 0.0
        for name in self._flows:
            spec = self._current.flows[name]
            if spec.placed is None and spec.churn is None:
                continue
            target = spec.target(self._current.fleet.node_count)
            series = self._loads.state().flows.get(name)
            latest = series.latest((since_s, math.inf)) if series is not None else None
            started = latest.started if latest is not None and latest.target == target else 0
            # Of a churn some are always between two lives, or scaled down.
            if started < (target if spec.churn is None else CHURN_STANDS_SHARE * target):
                missing.append(f"{format_count(started)} of {format_count(target)} {spec.unit} of {name} started")
                due_s = max(due_s, 1.5 * target / _rollout_per_s(spec) + self._pace.start_slack_s)
        return missing, due_s

    async def _settle(self, profile: Profile, loaded_s: float, at_most_s: float) -> Settling:
        at_least_s = self._spec.step.at_least_s
        while True:
            now_s = self._now_s()
            elapsed_s = now_s - loaded_s
            if elapsed_s >= at_least_s:
                settling = settle(self._series(), (loaded_s, now_s))
                long_enough = now_s - settling.span[0] >= at_least_s
                hopeless = bool(settling.worsening) and not self._all_hold(profile, settling.span)
                if (settling.settled and long_enough) or hopeless or elapsed_s >= at_most_s:
                    return settling
            await asyncio.sleep(self._pace.look_s)

    def _series(self) -> dict[str, Series]:
        """Return latency and throughput of the load's flows and of events, by interval; where there is no flow, latency of the probes."""
        state, found = self._loads.state(), {}
        watching = [name for name, flow in self._current.flows.items() if flow.watchers is not None]
        for name in dict.fromkeys([*self._flows, *watching]):
            intervals = state.flows[name].intervals if name in state.flows else []
            if name in watching:
                # A watch that stands has no answers: what comes are events, and those that are not timed have no latency.
                found[f"events of {name}"] = Series(_means(intervals, "event_us"), Direction.UP)
                continue
            answers = []
            for item in intervals:
                good = sum(
                    n for step in item.steps.values() for outcome, n in step.outcomes.items() if is_good(outcome)
                )
                seconds = item.end_s - item.start_s
                answers.append((item.middle_s, good / seconds if seconds > 0 else math.nan))
            found[f"latency of {name}"] = Series(_means(intervals, "latency_us"), Direction.UP)
            found[f"answers of {name}"] = Series(answers, Direction.DOWN)
        if not found:
            for name in self._operator_probes():
                for (identity, _), seen in state.probes.get(name, {}).items():
                    samples = [(item.sent_s, item.latency_s) for item in seen]
                    found[f"latency of {name} as {identity}"] = Series(samples, Direction.UP)
        return found

    # Judging.

    def _judge(self, profile: Profile, settling: Settling, missing: Sequence[str]) -> _Judgement:
        state, span = self._loads.state(), settling.span
        holds = self._holds(profile, span)
        health = [
            *missing,
            *(f"{item.name}: {item.said}" for item in check_step(state, span) if item.grade is Grade.BAD),
        ]
        if health:
            return _Judgement(Outcome.NOT_COUNTED, health[0], holds, health)
        failed = [f"{item['check']}: {item['said']}" for item in holds if not item["holds"]]
        failed += self._unanswered(span)
        if not failed and settling.worsening:
            failed.append(f"{settling.worsening[0]} goes on getting worse")
        if failed:
            return _Judgement(Outcome.FAILED, failed[0], holds, [])
        return _Judgement(Outcome.HELD, "", holds, [])

    def _holds(self, profile: Profile, span: Span) -> list[dict[str, Any]]:
        assert profile.search is not None
        found = []
        for text in profile.search.holds:
            objective = parse_objective(text)
            measured = measure(self._loads.state(), objective.subject, span)
            result = ObjectiveResult(text, objective, measured, objective.holds(measured.value))
            found.append({"check": text, "holds": result.holds, "said": format_measured(result)})
        return found

    def _all_hold(self, profile: Profile, span: Span) -> bool:
        return all(item["holds"] for item in self._holds(profile, span))

    def _unanswered(self, span: Span) -> list[str]:
        """Tell of probes whose requests of a span have no answer yet: they have no latency that could be judged."""
        state, found = self._loads.state(), []
        for name in self._operator_probes():
            probe = self._loaded.profile.probes[name]
            due = math.floor((span[1] - span[0]) / probe.every_s)
            for identity in probe.identities:
                answered = [
                    sum(contains(span, item.sent_s) for item in seen)
                    for (of, _), seen in state.probes.get(name, {}).items()
                    if of == identity
                ]
                left = due - max(answered, default=0)
                # One may be due at the very edge, and a few were not sent because the prober was held up.
                if left > max(1.0, SKIPPED_LIMIT_SHARE * due):
                    found.append(f"{left} of {due} requests of probe {name} as {identity} have no answer yet")
        return found

    # The way back.

    async def _go_back(self, value: float) -> None:
        try:
            profile = self._profile_at(value)
        except ProfileError as error:
            self._note(f"the load does not go back to {self._plan.said(value)}: {error.problems[0].what}", "warning")
            return
        number = self._begin(StepKind.BACK, value, "the load goes back", self._spec.back, profile)
        taken_back = await self._take_back(profile)
        back_s = self._now_s()
        if taken_back:
            recovered_s, window = await self._recovered(profile, back_s)
        else:
            recovered_s, window = None, (back_s - self._pace.recovery_window_s, back_s)
        outcome = Outcome.FAILED if recovered_s is None else Outcome.HELD
        reason = (
            ""
            if recovered_s is not None
            else "does not hold again"
            if taken_back
            else "the load could not be taken back"
        )
        self._journal.append(
            "search.step.end",
            step=number, load=self._plan.said(value), outcome=outcome.value, reason=reason,
            holds=self._holds(profile, window), health=[], steady=[round(edge_s, 3) for edge_s in window],
            taken_back=taken_back, recovered_after_s=recovered_s, waited_s=round(self._now_s() - back_s, 3),
        )  # fmt: skip

    async def _take_back(self, profile: Profile) -> bool:
        """Make the load that of ``profile``, all of it; say why where that does not come."""
        change = step_change(self._current, profile)
        if change.restart:
            names = ", ".join(change.restart)
            self._note(
                f"on the way back {names} cannot change as it runs and starts anew: for a moment its load is gone"
            )
        try:
            # Not to be cut short: a flow that was asked to stop has to be waited for.
            for flow in change.restart:
                await self._loads.stop_flow(flow)
            async with asyncio.timeout(self._spec.recover_within_s):
                await self._loads.step_to(profile, change)
            for flow in change.restart:
                await self._loads.start_flow(flow)
        except (TimeoutError, ScaletestError) as error:
            why = error.message if isinstance(error, ScaletestError) else "the API server did not let it"
            self._note(f"not all of the load could be taken back: {why}", "warning")
            return False
        self._current = profile
        missing = await self._wait_until_started()
        if missing:
            self._note(f"not all of the load could be taken back: {missing[0]}", "warning")
        return not missing

    async def _recovered(self, profile: Profile, back_s: float) -> tuple[float | None, Span]:
        """Return how long after ``back_s`` a time began in which everything held, and that time; None and the last when none did."""
        window_s = self._pace.recovery_window_s
        while (now_s := self._now_s()) - back_s < self._spec.recover_within_s + window_s:
            # Answers that are under way are waited for: the window ends before now.
            span = (now_s - self._pace.grace_s - window_s, now_s - self._pace.grace_s)
            if span[0] >= back_s and self._all_hold(profile, span) and not self._unanswered(span):
                return round(span[0] - back_s, 3), span
            await asyncio.sleep(self._pace.look_s)
        return None, (now_s - window_s, now_s)

    def _note(self, text: str, level: str = "info") -> None:
        self._journal.append("note", level=level, text=text)

    def _now_s(self) -> float:
        return time.monotonic() - self._journal.clock_origin_s


def _means(intervals: Sequence[FlowInterval], key: str) -> list[tuple[float, float]]:
    """Return the mean of a histogram of all steps by interval, in seconds; NaN where nothing was measured."""
    means = []
    for item in intervals:
        histograms: list[PackedHistogram] = [
            found for step in item.steps.values() if (found := getattr(step, key)) is not None
        ]
        count = sum(sum(histogram.counts) for histogram in histograms)
        mean_us = sum(histogram.total for histogram in histograms) / count if count else math.nan
        means.append((item.middle_s, mean_us / 1e6))
    return means


def _rollout_per_s(spec: FlowSpec) -> float:
    """Return how fast a flow's clients or pods are started, or how fast they will be at least."""
    if spec.churn is not None:
        return spec.churn.rollout_per_s or spec.churn.rate_per_s
    return (spec.placed.rollout_per_s if spec.placed is not None else None) or SLOWEST_OPENING_PER_S
