"""Where the level of a series of runs shifted, and whether that is more than chance: the rule of ``scaletest history``.

The values of a metric, in time order, are put on the scale on which they are compared (of a ratio the logarithm). Then:

1. *Noise*: 1.4826 times the median distance of neighbours, by √2: what a level shift does to one of many distances leaves the median alone. At
   least the kind's ``floor_sd``.
2. *Wild runs* are brought back to ``Setting.fence`` times the noise around the median of the seven runs around them (Hampel's identifier; a running median keeps
   steps).
3. *Candidates*: the segments that make the sum of squared distances from their means, and a penalty of ``2 σ² ln n`` for each shift, the least. That is Schwarz'
   criterion for normal values: a shift adds two parameters, its place and a mean (Yao, "Estimating the number of change-points via Schwarz' criterion", Statistics & Probability Letters
   6(3), 1988; Killick, Fearnhead and Eckley, JASA 107(500), 2012). A segment has ``Setting.fewest_runs`` runs at least.
4. *Test*: a candidate stays when Student's t of the two segments beside it, with their common spread, has a p under ``Setting.alpha`` once it is multiplied by
   the number of places where it could have been found and of the series that are looked at (Bonferroni; Hawkins, "Testing a sequence of observations for a shift in location", JASA
   72(357), 1977), when Mann-Whitney agrees, and when the change is the kind's ``least`` or more. The weakest that does not is dropped, its two
   segments become one, and the others are tested anew. Permutations would do in place of t, but cannot come under 1/1000 in reasonable time, and give another answer with another
   seed (Fleming and others, "Hunter: Using Change Point Detection to Hunt for Performance Regressions", ICPE 2023, left them for t).

The test takes runs as independent: a machine that is slow for a week is a shift like any other.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from scaletest.analysis.changes import (
    NO_RATIO,
    SETTING,
    Setting,
    change_between,
    scaler,
    typical,
    unscaled,
)
from scaletest.analysis.metrickinds import MetricKind, Scale
from scaletest.analysis.statistic import mann_whitney_p, t_two_sided_p

__all__ = ["Segmenter", "Shift", "find_shifts", "why_untold"]

Segmenter = Callable[[Sequence[float], float, int], Sequence[int]]
"""(values, penalty, shortest segment) -> where segments but the first begin, ascending: the least sum of squares and penalties."""

_AROUND: Final = 3
"""Runs on either side of one whose median it is held against: as long as the shortest segment has one more, a step stays."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A change of the level of a series."""

    at: int
    """Index of the first value of the new level."""
    before: float
    """Level of the segment before it, in the metric's unit: geometric mean of ratios, mean of differences."""
    after: float
    change: float
    """After by before less 1, or after less before."""
    p: float
    """Of the Mann-Whitney test."""
    p_adjusted: float
    """Of the t test, multiplied by places and series; 1 at most."""

    def call(self, kind: MetricKind) -> Literal["worse", "better"]:
        """Return whether it is one for the worse or for the better."""
        return "worse" if (self.change > 0) == (kind.better == "lower") else "better"


def why_untold(kind: MetricKind, values: Sequence[float], setting: Setting = SETTING) -> str | None:
    """Return why no shift can be told in a series; None when it can."""
    wanted = 2 * setting.fewest_runs
    if len(values) < wanted:
        return f"too few runs: {len(values)}, {wanted} are wanted"
    if kind.scale is Scale.RATIO and min(values) <= 0:
        return NO_RATIO
    return None


def find_shifts(
    kind: MetricKind, values: Sequence[float], segment: Segmenter, *, series: int = 1, setting: Setting = SETTING
) -> list[Shift]:
    """Return the shifts in a series of values of one metric in time order, for which ``why_untold`` has no reason.

    ``series`` is the number of series that are looked at together: false alarms stay under ``Setting.alpha`` over all of them.
    """
    scaled = list(map(scaler(kind, values), values))
    noise = _noise(scaled, kind)
    points = _Series(kind, values, scaled, _without_wild(scaled, setting.fence * noise))
    chances = series * (len(values) - 2 * setting.fewest_runs + 1)
    found = list(segment(points.tame, 2 * noise**2 * math.log(len(values)), setting.fewest_runs))
    while found:
        ends = [0, *found, len(values)]
        shifts = [points.shift(*place, chances) for place in zip(ends, found, ends[2:], strict=False)]
        doubtful = [shift for shift in shifts if not _holds(shift, kind, setting)]
        if not doubtful:
            return shifts
        found.remove(max(doubtful, key=lambda shift: shift.p_adjusted).at)
    return []


def _noise(scaled: Sequence[float], kind: MetricKind) -> float:
    distances = [abs(after - before) for before, after in itertools.pairwise(scaled)]
    return max(1.4826 * statistics.median(distances) / math.sqrt(2), kind.floor_sd)


def _without_wild(scaled: Sequence[float], fence: float) -> list[float]:
    tame = []
    for index, value in enumerate(scaled):
        middle = statistics.median(scaled[max(0, index - _AROUND) : index + _AROUND + 1])
        tame.append(min(max(value, middle - fence), middle + fence))
    return tame


@dataclass(frozen=True, slots=True)
class _Series:
    """The values of a metric: in its unit, on the scale on which they are compared, and there without wild runs."""

    kind: MetricKind
    values: Sequence[float]
    scaled: Sequence[float]
    tame: Sequence[float]

    def shift(self, start: int, at: int, end: int, chances: int) -> Shift:
        """Test the segment from ``start`` to ``at`` against that from there to ``end``."""
        sides = (self.tame[start:at], self.tame[at:end])
        means = [statistics.fmean(side) for side in sides]
        if all(map(math.isfinite, self.values[start:end])):
            levels = [unscaled(self.kind, mean) for mean in means]
        else:  # A mean of what stands for infinity means nothing.
            levels = [typical(self.kind, [self.values[first:last]]) for first, last in ((start, at), (at, end))]
        return Shift(
            at=at,
            before=levels[0],
            after=levels[1],
            change=change_between(self.kind, *levels),
            p=mann_whitney_p(self.scaled[start:at], self.scaled[at:end]),
            p_adjusted=min(1.0, chances * _t_test_p(sides, means, self.kind)),
        )


def _t_test_p(sides: Sequence[Sequence[float]], means: Sequence[float], kind: MetricKind) -> float:
    """Return the p of Student's t with the common spread of both sides: a short segment then need not prove its own."""
    df = sum(map(len, sides)) - 2
    squares = sum((value - mean) ** 2 for side, mean in zip(sides, means, strict=True) for value in side)
    spread = max(math.sqrt(squares / df), kind.floor_sd)
    return t_two_sided_p((means[1] - means[0]) / (spread * math.sqrt(sum(1 / len(side) for side in sides))), df)


def _holds(shift: Shift, kind: MetricKind, setting: Setting) -> bool:
    return (
        kind.is_large(shift.change, shift.before)
        and shift.p_adjusted < setting.alpha
        and shift.p < setting.mann_whitney
    )
