"""Search for the saturation point: which load to try next, and what the trials so far say.

Pure functions of the trials, in the order in which they were made: the runner asks for the next load, the report draws the
conclusion, and both see the same. A load is a number between ``start``, the lightest, and ``end``, the heaviest; ``end`` may be the
smaller one (a relist period loads the more the shorter it is).

*Ramp*: from the start on, each load is ``factor`` times the one before, until one fails. *Bisection*: at the geometric mean of
the widest gap between loads that were tried within the interval, until no gap is wider than the resolution. *Confirmation*: both ends
of the interval are tried once more. *Decision*: while the interval is wider than the resolution, loads within it that held as often as they failed are
tried a third time, the one in the middle first.

Real systems are noisy, so no single trial decides. Every threshold between two loads tried contradicts some trials: those that
failed below it and those that held above it. The **interval** spans all thresholds that contradict the fewest. Without noise
that is the gap between the largest load that held and the smallest that failed. A trial that contradicts its repetition
makes the interval wider, down to the next lighter load or up to the next heavier; a stray one that several others
outvote does not. Whatever single trial is wrong, an interval found this way has the true threshold in it, because its ends
stand on two trials each. (It is the maximum-likelihood threshold where every trial is wrong with the same small probability: the step
function that isotonic regression would fit to the outcomes.)

A trial whose load the generator could not make does not count. It is repeated once; then that load is *unusable*, and lighter ones are tried. When
nothing but an unusable load stands in the way of heavier ones, it is tried a last time: what kept the generator may have been somebody else's.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = [
    "Ask",
    "Conclusion",
    "Outcome",
    "Reason",
    "Space",
    "Trial",
    "Why",
    "conclude",
    "expected_trials",
    "plan_next",
]

_UNUSABLE_AFTER: Final = 2
"""Trials that did not count after which a load is given up."""

_MOST_UNUSABLE: Final = 3
"""Unusable loads after which the generator, not the system under test, is what the search measures."""

_TIDY_SHARE: Final = 0.1
"""Share of a gap by which the load tried may miss the middle so that it has fewer digits."""


class Outcome(enum.StrEnum):
    """What a trial came to."""

    HELD = "held"
    FAILED = "failed"
    NOT_COUNTED = "not counted"


class Why(enum.StrEnum):
    """Why a load is tried."""

    RAMP = "ramp"
    BISECT = "bisect"
    CONFIRM = "confirm"
    DECIDE = "decide"
    """It held as often as it failed."""
    AGAIN = "again"
    """The last trial at this load did not count."""


class Reason(enum.StrEnum):
    """Why a search ended."""

    FOUND = "found"
    """The interval is as narrow as the resolution and the noise allow, and both of its ends were tried twice."""
    NEVER_FAILED = "never failed"
    NEVER_HELD = "never held"
    GENERATOR_LIMIT = "generator limit"
    OUT_OF_TIME = "out of time"
    CUT = "cut short"
    """Interrupted, or ended by what ends any run."""


@dataclass(frozen=True, slots=True)
class Space:
    """The loads that are searched."""

    start: float
    """The lightest load; more than 0, as ``end``."""
    end: float
    """The heaviest."""
    resolution: float
    """Share by which neighbouring loads may differ when the search ends: 0.05."""
    whole: bool = True
    """Whether loads are whole numbers."""
    factor: float = 2.0
    """Growth of the load on the ramp; more than 1."""
    landing: float | None = None
    """A load that the ramp does not jump over."""

    def key(self, value: float) -> float:
        """Return a number that grows with the load and by the same amount for the same ratio."""
        return math.log(value) if self.end >= self.start else -math.log(value)

    def wider(self, lighter: float, heavier: float) -> bool:
        """Whether a gap is wider than the resolution, and has a load within it."""
        if self.key(heavier) - self.key(lighter) <= math.log1p(self.resolution) + 1e-12:
            return False
        return not self.whole or abs(heavier - lighter) > 1

    def ramp(self, value: float) -> float:
        """Return the load on the ramp after ``value``, at most the end."""
        grown = value * self.factor if self.end >= self.start else value / self.factor
        tidied = _round(grown, 6)
        if self.whole:
            tidied = float(round(grown)) if round(grown) != value else value + math.copysign(1, self.end - self.start)
        ends = (
            [self.end]
            if self.landing is None or self.key(self.landing) <= self.key(value)
            else [self.end, self.landing]
        )
        return min(tidied, *ends, key=self.key)

    def middle(self, lighter: float, heavier: float) -> float:
        """Return a load in the middle of a gap, with as few digits as its place allows."""
        low, high = sorted((lighter, heavier))
        exact = math.sqrt(low * high)
        slack = _TIDY_SHARE * math.log(high / low)
        for digits in range(1, 16):
            tidied = float(round(_round(exact, digits))) if self.whole else _round(exact, digits)
            if low < tidied < high and abs(math.log(tidied / exact)) <= slack:
                return tidied
        # Next to each other as whole numbers can be: the nearest one within.
        return min(max(float(round(exact)), low + 1), high - 1) if self.whole else exact


@dataclass(frozen=True, slots=True)
class Trial:
    """A load that was tried."""

    value: float
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Ask:
    """The load to try next."""

    value: float
    why: Why


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the trials so far say of the saturation point."""

    holds: float | None
    """The largest load that holds; None when none does."""
    fails: float | None
    """The smallest load above it that fails; None when none does."""
    reason: Reason
    holds_trials: int
    """Trials at ``holds`` that counted; two or more confirm it."""
    fails_trials: int
    contradictions: int
    """Trials that the interval, and with it the best of all thresholds, contradicts."""
    unusable: tuple[float, ...]
    """Loads that the generator could not make, the lightest first."""

    @property
    def confirmed(self) -> bool:
        """Whether both ends stand on two trials."""
        return self.holds_trials > 1 and self.fails_trials > 1

    @property
    def width(self) -> float:
        """Width of the interval as a share of its smaller end; NaN when an end is open."""
        if self.holds is None or self.fails is None:
            return math.nan
        low, high = sorted((self.holds, self.fails))
        return high / low - 1


def plan_next(space: Space, trials: Sequence[Trial]) -> Ask | Reason:
    """Return what to try next, or why the search is over."""
    return _Evidence(space, trials).next()


def conclude(space: Space, trials: Sequence[Trial], cut: Reason = Reason.CUT) -> Conclusion:
    """Return what the trials say; ``cut`` is the reason given when the search would still go on."""
    evidence = _Evidence(space, trials)
    following = evidence.next()
    holds, fails = evidence.holds, evidence.fails
    return Conclusion(
        holds=holds,
        fails=fails,
        reason=following if isinstance(following, Reason) else cut,
        holds_trials=evidence.counted(holds),
        fails_trials=evidence.counted(fails),
        contradictions=evidence.contradictions,
        unusable=tuple(evidence.unusable),
    )


def expected_trials(space: Space) -> int:
    """Return how many trials a search takes at most while no trial contradicts another and all count."""
    ramp, value = 1, space.start
    widest = 0.0
    while value != space.end:
        following = space.ramp(value)
        widest = max(widest, space.key(following) - space.key(value))
        value, ramp = following, ramp + 1
    halvings = math.ceil(math.log2(max(1.0, widest / math.log1p(space.resolution))))
    # The middle is missed by a tenth of the gap at most, which may cost one more.
    return ramp + halvings + (1 if halvings else 0) + 2


class _Evidence:
    def __init__(self, space: Space, trials: Sequence[Trial]) -> None:
        self.space = space
        self.held = Counter(trial.value for trial in trials if trial.outcome is Outcome.HELD)
        self.failed = Counter(trial.value for trial in trials if trial.outcome is Outcome.FAILED)
        self.uncounted = Counter(trial.value for trial in trials if trial.outcome is Outcome.NOT_COUNTED)
        self.values = sorted(self.held.keys() | self.failed.keys(), key=space.key)
        self.unusable = sorted(
            (value for value, count in self.uncounted.items() if count >= _UNUSABLE_AFTER and not self.counted(value)),
            key=space.key,
        )
        costs = [
            sum(self.failed[value] for value in self.values[:gap])
            + sum(self.held[value] for value in self.values[gap:])
            for gap in range(len(self.values) + 1)
        ]
        self.contradictions = min(costs)
        best = [gap for gap, cost in enumerate(costs) if cost == self.contradictions]
        self.holds = self.values[best[0] - 1] if best[0] > 0 else None
        self.fails = self.values[best[-1]] if best[-1] < len(self.values) else None

    def counted(self, value: float | None) -> int:
        return 0 if value is None else self.held[value] + self.failed[value]

    def next(self) -> Ask | Reason:
        pending = [value for value in self.uncounted if not self.counted(value) and value not in self.unusable]
        if pending:
            return Ask(pending[0], Why.AGAIN)
        if len(self.unusable) >= _MOST_UNUSABLE or self.space.start in self.unusable:
            return Reason.GENERATOR_LIMIT
        if not self.values:
            return Ask(self.space.start, Why.RAMP)
        if self.holds is None:
            return self._settle(self.space.start, Reason.NEVER_HELD)
        if self.fails is None:
            return self._heavier()
        return self._narrow(self.holds, self.fails, Reason.FOUND)

    def _settle(self, value: float, reason: Reason) -> Ask | Reason:
        """Ask for a load at an end of the space until two trials agree."""
        if max(self.held[value], self.failed[value]) < 2 and self._can_repeat(value):
            return Ask(value, Why.CONFIRM)
        return reason

    def _can_repeat(self, value: float) -> bool:
        return self.uncounted[value] < _UNUSABLE_AFTER

    def _heavier(self) -> Ask | Reason:
        top = self.values[-1]
        ceiling = next((value for value in self.unusable if self.space.key(value) > self.space.key(top)), None)
        if ceiling is not None:
            following = self._narrow(top, ceiling, Reason.GENERATOR_LIMIT)
            last_try = following is Reason.GENERATOR_LIMIT and self.uncounted[ceiling] == _UNUSABLE_AFTER
            return Ask(ceiling, Why.AGAIN) if last_try else following
        if top == self.space.end:
            return self._settle(top, Reason.NEVER_FAILED)
        return Ask(self.space.ramp(top), Why.RAMP)

    def _narrow(self, lighter: float, heavier: float, reason: Reason) -> Ask | Reason:
        within = [
            value
            for value in {*self.values, *self.unusable}
            if self.space.key(lighter) <= self.space.key(value) <= self.space.key(heavier)
        ]
        gaps = list(itertools.pairwise(sorted(within, key=self.space.key)))
        wide = [gap for gap in gaps if self.space.wider(*gap)]
        if wide:
            widest = max(wide, key=lambda gap: self.space.key(gap[1]) - self.space.key(gap[0]))
            return Ask(self.space.middle(*widest), Why.BISECT)
        for value in (lighter, heavier):
            if self.counted(value) == 1 and self._can_repeat(value):
                return Ask(value, Why.CONFIRM)
        tied = [value for value in within if self.counted(value) and self.held[value] == self.failed[value]]
        if tied and self.space.wider(lighter, heavier):
            middle = (self.space.key(lighter) + self.space.key(heavier)) / 2
            return Ask(min(tied, key=lambda value: abs(self.space.key(value) - middle)), Why.DECIDE)
        return reason


def _round(value: float, digits: int) -> float:
    """Round to a number of significant digits."""
    return float(f"{value:.{digits}g}")
