"""Small statistics in plain Python: rank test, Student's t, Holm, bootstrap of a mean.

Samples are few (runs) to a few dozen (blocks of time): for these, numpy and scipy are not worth what they bring along.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from random import Random
from typing import Final

__all__ = ["block_length", "bootstrap_error", "holm", "mann_whitney_p", "t_quantile", "t_two_sided_p"]

_NORMAL_DF: Final = 1e5
"""From here on t is normal: the difference is under a hundred-thousandth."""

_EXACT_SAMPLES: Final = 24
"""Up to so many samples together the rank test is exact; 24 take half a millisecond."""


def mann_whitney_p(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the two-sided p of the Mann-Whitney test (Mann and Whitney 1947); 1 when either has no sample.

    Ties get the mean of their ranks. Exact for few samples, also with ties: the distribution of the rank sum over all ways to
    choose ``left`` from all samples; else the normal approximation with its corrections for ties and continuity.
    """
    if not left or not right:
        return 1.0
    ranks, ties = _doubled_ranks([*left, *right])
    count, total = len(left), len(ranks)
    rank_sum = sum(ranks[:count])
    mean = count * (total + 1)  # of the doubled sum
    distance = abs(rank_sum - mean)
    if total <= _EXACT_SAMPLES:
        ways = _ways(ranks, count)
        extreme = sum(number for value, number in ways.items() if abs(value - mean) >= distance)
        return extreme / math.comb(total, count)
    variance = count * (total - count) / 12 * (total + 1 - sum(t**3 - t for t in ties) / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    z = max(0.0, distance / 2 - 0.5) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


def _doubled_ranks(values: Sequence[float]) -> tuple[list[int], list[int]]:
    """Return twice the rank of each value, which is whole also for ties, and how many values share each rank."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks, ties, first = [0] * len(values), [], 0
    for _, group in itertools.groupby(order, key=values.__getitem__):
        members = list(group)
        for index in members:
            ranks[index] = 2 * first + len(members) + 1
        ties.append(len(members))
        first += len(members)
    return ranks, ties


def _ways(ranks: Sequence[int], count: int) -> dict[int, int]:
    """Return in how many ways ``count`` of the ranks add up to each sum."""
    ways: list[dict[int, int]] = [{} for _ in range(count + 1)]
    ways[0][0] = 1
    for position, rank in enumerate(ranks):
        for chosen in range(min(count, position + 1), 0, -1):
            target = ways[chosen]
            for value, number in ways[chosen - 1].items():
                target[value + rank] = target.get(value + rank, 0) + number
    return ways[count]


def t_two_sided_p(t: float, df: float) -> float:
    """Return the chance that Student's t is further from 0 than ``t``; ``df`` may be broken or infinite."""
    if math.isnan(t) or df <= 0:
        return 1.0
    if math.isinf(t):
        return 0.0
    if df > _NORMAL_DF:
        return math.erfc(abs(t) / math.sqrt(2))
    return _incomplete_beta(df / 2, 0.5, df / (df + t * t))


def t_quantile(p: float, df: float) -> float:
    """Return the t that is exceeded, on both sides together, with chance ``p`` (0 < p < 1)."""
    low, high = 0.0, math.inf
    # From the normal quantile, with the first term of the Cornish-Fisher expansion, by Newton's steps within a bracket.
    z = statistics.NormalDist().inv_cdf(1 - p / 2)
    t = z + (z**3 + z) / (4 * df)
    for _ in range(100):
        excess = t_two_sided_p(t, df) - p
        low, high = (t, high) if excess > 0 else (low, t)
        stepped = t + excess / (2 * _t_density(t, df))
        if not low < stepped < high:
            stepped = 2 * t if math.isinf(high) else (low + high) / 2
        if abs(stepped - t) <= 1e-9 * t:
            return stepped
        t = stepped
    return t


def _t_density(t: float, df: float) -> float:
    if df > _NORMAL_DF:
        return math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    log = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - (df + 1) / 2 * math.log1p(t * t / df)
    return math.exp(log) / math.sqrt(df * math.pi)


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularized incomplete beta function I_x(a, b), by its continued fraction (Abramowitz and Stegun 26.5.8)."""
    if x <= 0 or x >= 1:
        return min(1.0, max(0.0, x))
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )  # fmt: skip
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    fraction = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / (1 + term * d or tiny), 1 + term / c or tiny
            fraction *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return front * fraction / a


def holm(ps: Sequence[float]) -> list[float]:
    """Return p values adjusted for being tested together (Holm 1979): comparing each with α keeps all false alarms together under α."""
    order = sorted(range(len(ps)), key=ps.__getitem__)
    adjusted, worst = [0.0] * len(ps), 0.0
    for position, index in enumerate(order):
        worst = max(worst, min(1.0, (len(ps) - position) * ps[index]))
        adjusted[index] = worst
    return adjusted


def block_length(values: Sequence[float]) -> int:
    """Return the length of the blocks in which a series is resampled, so that they keep its autocorrelation.

    At least the cube root of the number of samples, the order that is best for a mean (Künsch 1989; Hall, Horowitz and Jing 1995); longer where the series
    stays on one side of its mean for long: twice the integrated autocorrelation time, cut at the first lag that is not
    positive. At most a third of the series.
    """
    count = len(values)
    mean = statistics.fmean(values) if values else 0.0
    off = [value - mean for value in values]
    variance = sum(value * value for value in off)
    time = 0.5
    if variance > 0:
        for lag in range(1, count // 2):
            correlation = sum(a * b for a, b in zip(off, off[lag:], strict=False)) / variance
            if correlation <= 0:
                break
            time += correlation
    return max(1, min(count // 3, max(math.ceil(math.cbrt(count)), math.ceil(2 * time))))


def bootstrap_error(values: Sequence[float], length: int, resamples: int, rng: Random) -> float:
    """Return the standard error of the mean of a series: the spread of the means of resampled series.

    Series are made of blocks of ``length``, drawn from a circle (Politis and Romano 1992); length 1 is the ordinary bootstrap. A resample
    varies too little, by the factor (n − 1)/n for n blocks: that is put right. 0 for fewer than two values.
    """
    count = len(values)
    if count < 2:
        return 0.0
    blocks = max(2.0, count / length)
    circle = [*values, *values[: length - 1]]
    sums = [sum(circle[start : start + length]) for start in range(count)] if length > 1 else list(values)
    drawn = max(1, round(blocks)) if length > 1 else count
    means = [sum(rng.choices(sums, k=drawn)) / (drawn * length) for _ in range(resamples)]
    scale = drawn * length / count  # A resampled series may be a little longer or shorter than the series.
    return statistics.pstdev(means) * math.sqrt(blocks / (blocks - 1) * scale)
