"""Which metrics changed between two sets of runs, and by how much: the statistics of ``scaletest compare`` and ``scaletest gate``.

A *sample* of a metric is a run where each side has at least ``Setting.fewest_runs``; else a block of time of the steady part of any run of the side.
Ratios are compared by the means of logarithms, differences by means.

A change is called when all of this holds:

1. Student's t, with the standard error of the bootstrap (over runs; over blocks of blocks, which keep their autocorrelation), gives a p that stays under
   ``Setting.alpha`` once adjusted by Holm for all metrics of the comparison. The interval is of the same t. Percentiles of a bootstrap
   of five values are too narrow (Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69(4), 2015), and have no tail to adjust.
2. The Mann-Whitney test on the same samples agrees (``Setting.mann_whitney``): one wild run calls nothing. Nor does it hide anything: in the mean a run
   counts as no further from the median than ``Setting.fence``.
3. The change is at least the kind's ``least`` (``analysis.metrickinds``).

Blocks of a run know nothing of how runs differ among themselves, which on most machines is more than what goes on within one. So with blocks the
run-to-run spread of the metric's kind is added to the error: a single run of each shows large changes only.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final, Literal

from scaletest.analysis.metrickinds import Metric, MetricKind, Scale, kind_of
from scaletest.analysis.statistic import (
    block_length,
    bootstrap_error,
    holm,
    mann_whitney_p,
    t_quantile,
    t_two_sided_p,
)

__all__ = [
    "NO_RATIO",
    "SETTING",
    "Call",
    "Change",
    "Setting",
    "change_between",
    "compare_metrics",
    "scaler",
    "typical",
    "unscaled",
]

Call = Literal["worse", "better", "same"]


@dataclass(frozen=True, slots=True)
class Setting:
    """What decides when a change is called; frozen, and the same for every comparison."""

    alpha: float = 0.05
    """Chance that a comparison of equals calls any change, over all metrics together, were this test alone to decide."""
    mann_whitney: float = 0.10
    """Largest p of the second test. With six runs each, one wild run among the base makes it 0.065 for a change that all other runs show."""
    fewest_runs: int = 4
    """Of each side, for runs to be the samples: with three and three the rank test cannot come under 0.10."""
    fewest_blocks: int = 6
    fence: float = 3.0
    """A run further from the median of its side, in spreads (by the median distance), counts as one that is so far."""
    resamples: int = 1000
    """Of the bootstrap: its standard error is then known within 2.3 %."""
    seed: int = 1211
    interval: float = 0.95


SETTING: Final = Setting()

NO_RATIO: Final = "0 in a sample: there is no ratio"


@dataclass(frozen=True, slots=True)
class Change:
    """One metric of both sides."""

    metric: str
    kind: MetricKind
    samples: Literal["runs", "blocks"]
    base_samples: int
    new_samples: int
    base: float
    """Mean of the samples: geometric for a ratio. NaN where there is none."""
    new: float
    change: float
    """New by base less 1, or new less base."""
    low: float
    """Of the interval; NaN without one."""
    high: float
    p: float
    """Of the Mann-Whitney test; NaN where it could not be made."""
    p_change: float
    """Of the change alone."""
    p_adjusted: float
    """Of the change, adjusted for all metrics; NaN where it could not be tested."""
    why: str | None = None
    """Why it could not be tested."""
    constant: bool = False
    """All samples of both sides are the same value."""

    @property
    def worsening(self) -> float:
        """How much worse it is: less than 0 for better."""
        return self.change if self.kind.better == "lower" else -self.change

    def is_significant(self, setting: Setting) -> bool:
        """Whether both tests say that it is not chance."""
        return self.p_adjusted < setting.alpha and self.p < setting.mann_whitney

    def call(self, setting: Setting) -> Call:
        """Return what is said of it."""
        if not self.kind.is_large(self.change, self.base) or not self.is_significant(setting):
            return "same"
        return "worse" if self.worsening > 0 else "better"


def compare_metrics(
    base: Sequence[Mapping[str, Metric]], new: Sequence[Mapping[str, Metric]], setting: Setting = SETTING
) -> list[Change]:
    """Compare every metric that both sides have, in the order of the first base run; each mapping is a run."""
    names = dict.fromkeys(name for run in base for name in run)
    in_new = {name for run in new for name in run}
    changes = [
        _compare(name, kind, [run[name] for run in base if name in run], [run[name] for run in new if name in run], setting)
        for name in names
        if name in in_new and (kind := kind_of(name)) is not None
    ]  # fmt: skip
    tested = [change for change in changes if not math.isnan(change.p_change)]
    adjusted = dict(
        zip((item.metric for item in tested), holm([item.p_change for item in tested]), strict=True)
    )  # fmt: skip
    return [replace(change, p_adjusted=adjusted.get(change.metric, math.nan)) for change in changes]


@dataclass(frozen=True, slots=True)
class _Side:
    """Samples of one side, run by run, on the scale on which they are compared."""

    groups: Sequence[Sequence[float]]

    @property
    def all(self) -> list[float]:
        return [value for group in self.groups for value in group]

    @property
    def mean(self) -> float:
        return statistics.fmean(statistics.fmean(group) for group in self.groups)


def _compare(
    name: str, kind: MetricKind, base: Sequence[Metric], new: Sequence[Metric], setting: Setting
) -> Change:  # fmt: skip
    by_runs = min(len(base), len(new)) >= setting.fewest_runs
    blocks = not by_runs and all(
        any(len(run.blocks) >= setting.fewest_blocks for run in side) for side in (base, new)
    )  # fmt: skip
    raw_base, raw_new = (_groups(side, setting, blocks=blocks) for side in (base, new))
    counts = tuple(sum(len(group) for group in side) for side in (raw_base, raw_new))
    change = Change(
        metric=name,
        kind=kind,
        samples="blocks" if blocks else "runs",
        base_samples=counts[0],
        new_samples=counts[1],
        base=typical(kind, raw_base),
        new=typical(kind, raw_new),
        change=math.nan,
        low=math.nan,
        high=math.nan,
        p=math.nan,
        p_change=math.nan,
        p_adjusted=math.nan,
    )
    change = replace(change, change=change_between(kind, change.base, change.new))
    values = [value for side in (raw_base, raw_new) for group in side for value in group]
    if len(set(values)) == 1:
        change = replace(change, change=0.0, constant=True)
        if by_runs or blocks:
            return replace(change, low=0.0, high=0.0, p=1.0)
    why = None if by_runs or blocks else _too_few(base, new, setting)
    if kind.scale is Scale.RATIO and min(values) <= 0:
        why = NO_RATIO
    if why is not None:
        return replace(change, why=why)
    scaled = scaler(kind, values)
    sides = [_Side([[scaled(value) for value in group] for group in side]) for side in (raw_base, raw_new)]
    tested = _tested(change, sides[0], sides[1], Random(f"{setting.seed} {name}"), setting)
    if math.inf not in values:
        return tested
    # Neither a mean nor an interval of it means anything.
    return replace(
        tested, base=change.base, new=change.new, change=change.change, low=math.nan, high=math.nan
    )  # fmt: skip


def scaler(kind: MetricKind, values: Sequence[float]) -> Callable[[float], float]:
    """Return what puts each of some values on the scale on which they are compared: of a ratio the logarithm.

    Infinity (no answer, never) becomes longer than any of the values.
    """
    longest = max((_scaled(kind, value) for value in values if math.isfinite(value)), default=0.0)
    infinite = longest + (_NO_ANSWER_LOG if kind.scale is Scale.RATIO else max(_NEVER_S, 10 * longest))
    return lambda value: infinite if math.isinf(value) else _scaled(kind, value)


_NO_ANSWER_LOG: Final = math.log(100)
_NEVER_S: Final = 3600.0


def _groups(runs: Sequence[Metric], setting: Setting, *, blocks: bool) -> list[list[float]]:
    if not blocks:
        return [[run.value] for run in runs]
    return [list(run.blocks) for run in runs if len(run.blocks) >= setting.fewest_blocks]


def _scaled(kind: MetricKind, value: float) -> float:
    return math.log(value) if kind.scale is Scale.RATIO else value


def typical(kind: MetricKind, groups: Sequence[Sequence[float]]) -> float:
    """Return the mean of the samples, each run with the same weight; infinite when half of them are."""
    finite = [known for group in groups if (known := [value for value in group if math.isfinite(value)])]
    if 2 * sum(map(len, finite)) <= sum(map(len, groups)):
        return math.inf
    if kind.scale is Scale.DIFFERENCE:
        return _Side(finite).mean
    if min(value for group in finite for value in group) <= 0:
        return 0.0
    return math.exp(_Side([[math.log(value) for value in group] for group in finite]).mean)


def change_between(kind: MetricKind, base: float, new: float) -> float:
    """Return the change; infinite where only new has no value that is finite, negative infinity where only base has none."""
    if math.isinf(base) or math.isinf(new):
        return 0.0 if base == new else math.inf if math.isinf(new) else -math.inf
    if kind.scale is Scale.DIFFERENCE:
        return new - base
    return new / base - 1 if base > 0 else math.nan


def _too_few(base: Sequence[Metric], new: Sequence[Metric], setting: Setting) -> str:
    runs = f"too few samples: {len(base)} and {len(new)} runs, {setting.fewest_runs} each are wanted"
    blocks = [max(len(run.blocks) for run in side) for side in (base, new)]
    return runs if not any(blocks) else f"{runs}, or {setting.fewest_blocks} blocks of time and not {min(blocks)}"


def _tested(change: Change, base: _Side, new: _Side, rng: Random, setting: Setting) -> Change:
    kind = change.kind
    by_runs = change.samples == "runs"
    p = mann_whitney_p(base.all, new.all)
    if by_runs:
        base, new = _without_wild(base, new, kind, setting)
    error, df = (
        _error_of_runs(base, new, kind, rng, setting) if by_runs else _error_of_blocks(base, new, kind, rng, setting)
    )
    distance = new.mean - base.mean
    p_change = t_two_sided_p(distance / error, df)
    reach = t_quantile(1 - setting.interval, df) * error
    ends = [unscaled(kind, value) for value in (base.mean, new.mean)]
    low, high = (_as_change(kind, value) for value in (distance - reach, distance + reach))
    return replace(
        change,
        base=ends[0],
        new=ends[1],
        change=change_between(kind, *ends),
        low=low,
        high=high,
        p=p,
        p_change=p_change,
    )


_MOST_LOG: Final = 60.0
"""Of an interval's end: nothing is known beyond, and numbers stay finite."""


def _as_change(kind: MetricKind, distance: float) -> float:
    return math.expm1(min(distance, _MOST_LOG)) if kind.scale is Scale.RATIO else distance


def unscaled(kind: MetricKind, value: float) -> float:
    """Return a value from the scale on which it is compared."""
    return math.exp(value) if kind.scale is Scale.RATIO else value


def _without_wild(base: _Side, new: _Side, kind: MetricKind, setting: Setting) -> tuple[_Side, _Side]:
    """Bring runs that lie further from the median of their side than the fence back to it."""
    medians = [statistics.median(side.all) for side in (base, new)]
    off = [abs(value - middle) for side, middle in zip((base, new), medians, strict=True) for value in side.all]
    # 1.4826 times the median distance is the standard deviation of a normal spread; of few values it is too small by
    # about n / (n - 0.8) (Croux and Rousseeuw 1992).
    half = len(off) / 2
    spread = max(1.4826 * statistics.median(off) * half / (half - 0.8), kind.floor_sd)
    fence = setting.fence * spread
    fenced = [
        _Side([[min(max(value, middle - fence), middle + fence)] for value in side.all])
        for side, middle in zip((base, new), medians, strict=True)
    ]
    return fenced[0], fenced[1]


def _error_of_runs(
    base: _Side, new: _Side, kind: MetricKind, rng: Random, setting: Setting
) -> tuple[float, float]:  # fmt: skip
    """Return the standard error of the difference of two sides, and its degrees of freedom."""
    parts = []
    for side in (base, new):
        values = side.all
        error = bootstrap_error(values, 1, setting.resamples, rng)
        parts.append((max(error, kind.floor_sd / math.sqrt(len(values))) ** 2, len(values) - 1.0))
    return _combined(parts)


def _error_of_blocks(
    base: _Side, new: _Side, kind: MetricKind, rng: Random, setting: Setting
) -> tuple[float, float]:  # fmt: skip
    parts: list[tuple[float, float]] = []
    sides = (base, new)
    between, between_df = _between(sides)
    for side in sides:
        runs = len(side.groups)
        # Runs that differ by more than is assumed are believed.
        parts.append((max(kind.run_sd**2, between) / runs, between_df / 2 if between > kind.run_sd**2 else math.inf))
        for group in side.groups:
            length = block_length(group)
            error = bootstrap_error(group, length, setting.resamples, rng)
            parts.append((error**2 / runs**2, max(1.0, len(group) / length - 1)))
    return _combined(parts)


def _between(sides: Sequence[_Side]) -> tuple[float, float]:
    """Return the variance of the means of runs within their sides, and its degrees of freedom; 0 where no side has two runs."""
    squares, df = 0.0, 0
    for side in sides:
        means = [statistics.fmean(group) for group in side.groups]
        middle = statistics.fmean(means)
        squares += sum((mean - middle) ** 2 for mean in means)
        df += len(means) - 1
    return (squares / df, float(df)) if df else (0.0, math.inf)


def _combined(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Add up parts of a variance; the degrees of freedom are Welch's (1947) and Satterthwaite's (1946)."""
    variance = sum(part for part, _ in parts)
    spread = sum(part**2 / df for part, df in parts if not math.isinf(df))
    return math.sqrt(variance), variance**2 / spread if spread > 0 else math.inf
