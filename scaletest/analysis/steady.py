"""Steady state within a step: how much of its beginning is warm-up, and whether it ever settles.

*Warm-up* is dropped by MSER, the marginal standard error rule (K. P. White Jr., "An effective truncation heuristic for bias
reduction in simulation output", Simulation 69(6), 1997), on means of batches as in MSER-5 (White, Cobb and Spratt, "A comparison of
five steady-state truncation heuristics for simulation", Winter Simulation Conference 2000): of all beginnings that could be dropped,
the one after which the mean of the rest has the smallest standard error. At most half of a series is dropped, as there. Batches
have five samples, or fewer where a series would have less than ten batches.

*Settled* is a series without a trend in what is kept: the Mann-Kendall test (Mann 1945, Kendall 1975) on the batch means sees none,
or the trend (Sen's slope, 1968, times the length) is less than a fifth of the median. A queue that grows for as long as a step lasts
is the usual reason for one.
"""

from __future__ import annotations

import enum
import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from scaletest.analysis.series import Span

__all__ = ["Direction", "Series", "Settling", "Trend", "settle", "trend", "warm_up"]

_BATCH: Final = 5
_FEWEST_BATCHES: Final = 10
_FEWEST_SAMPLES: Final = 10
"""Less is too little to tell a warm-up from noise."""

_TREND_Z: Final = 2.0
"""Normal score of Kendall's S from which a trend counts: one in forty series without a trend has it by chance, and then the next rule
asks for its size."""

_TREND_SHARE: Final = 0.20
"""Change over what is kept, as a share of the median, from which a trend matters."""


class Direction(enum.StrEnum):
    """Which way a series gets worse."""

    UP = "up"
    """Latency."""
    DOWN = "down"
    """Throughput."""


class Trend(enum.StrEnum):
    """What a series does after the warm-up."""

    NONE = "none"
    WORSE = "worse"
    BETTER = "better"


@dataclass(frozen=True, slots=True)
class Series:
    """Samples (time in seconds, value) in order of time, about evenly spaced; NaN where there was nothing to measure."""

    samples: Sequence[tuple[float, float]]
    worse: Direction


@dataclass(frozen=True, slots=True)
class Settling:
    """What is kept of a step."""

    span: Span
    """The steady part."""
    dropped_s: float
    trends: Mapping[str, Trend]
    """Series that go on changing, by name; empty when settled."""
    enough: bool
    """Whether there were samples enough to tell."""

    @property
    def settled(self) -> bool:
        """Whether a steady state was seen."""
        return self.enough and not self.trends

    @property
    def worsening(self) -> list[str]:
        """Names of the series that went on getting worse."""
        return [name for name, found in self.trends.items() if found is Trend.WORSE]


def settle(series: Mapping[str, Series], span: Span) -> Settling:
    """Find the steady part of a finite span: after the longest warm-up of all series, which are then looked at for a trend."""
    known = {
        name: [(t_s, value) for t_s, value in item.samples if span[0] <= t_s < span[1] and not math.isnan(value)]
        for name, item in series.items()
    }
    known = {name: samples for name, samples in known.items() if len(samples) >= _FEWEST_SAMPLES}
    if not known:
        return Settling(span, 0.0, {}, enough=False)
    starts_s = [span[0]]
    for samples in known.values():
        dropped = warm_up([value for _, value in samples])
        if dropped:
            starts_s.append((samples[dropped - 1][0] + samples[dropped][0]) / 2)
    start_s = max(starts_s)
    trends = {
        name: found
        for name, samples in known.items()
        if (found := trend([value for t_s, value in samples if t_s >= start_s], series[name].worse)) is not Trend.NONE
    }
    return Settling((start_s, span[1]), start_s - span[0], trends, enough=True)


def warm_up(values: Sequence[float]) -> int:
    """Return how many samples of the beginning are warm-up: whole batches, at most half of all."""
    size = _batch_size(len(values))
    means = _batch_means(values, size)
    if len(means) < 2:
        return 0
    best, best_error = 0, math.inf
    rounding = (1e-9 * max(abs(mean) for mean in means)) ** 2
    for dropped in range(len(means) // 2 + 1):
        rest = means[dropped:]
        # The squared standard error of the mean of the rest; a longer warm-up has to be better by more than rounding.
        error = statistics.pvariance(rest) / len(rest) + rounding
        if error < best_error * (1 - 1e-9):
            best, best_error = dropped, error
    return best * size + len(values) % size if best else 0


def trend(values: Sequence[float], worse: Direction) -> Trend:
    """Return the trend of a series; none where it is too short to tell."""
    means = _batch_means(values, _batch_size(len(values)))
    count = len(means)
    if count < 4:
        return Trend.NONE
    pairs = list(itertools.combinations(range(count), 2))
    score = sum((means[later] > means[earlier]) - (means[later] < means[earlier]) for earlier, later in pairs)
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    if abs(score) - 1 < _TREND_Z * deviation:
        return Trend.NONE
    slope = statistics.median((means[later] - means[earlier]) / (later - earlier) for earlier, later in pairs)
    if abs(slope) * (count - 1) < _TREND_SHARE * abs(statistics.median(means)):
        return Trend.NONE
    return Trend.WORSE if (slope > 0) == (worse is Direction.UP) else Trend.BETTER


def _batch_size(count: int) -> int:
    return max(1, min(_BATCH, count // _FEWEST_BATCHES))


def _batch_means(values: Sequence[float], size: int) -> list[float]:
    """Return the means of whole batches; what is left over at the beginning goes into the first."""
    over = len(values) % size
    edges = [0, *range(over + size, len(values) + 1, size)]
    return [statistics.fmean(values[start:end]) for start, end in itertools.pairwise(edges)]
