"""Small mathematics over samples in time: spans, counters that restart, bucket quantiles, sustained levels.

A *span* is half-open, ``[start_s, end_s)``, in seconds since the run began: neighbouring phases share no sample.
A *counter* only grows, and begins again at 0 when its process restarts, as Prometheus counters do.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

__all__ = [
    "EVER",
    "Span",
    "bucket_quantile",
    "contains",
    "counter_increases",
    "interpolated_quantile",
    "quantile_over_time",
    "resample",
    "sustained",
]

Span = tuple[float, float]
EVER: Final[Span] = (-math.inf, math.inf)

_Key = TypeVar("_Key", bound=Hashable)


def contains(span: Span, t_s: float) -> bool:
    """Whether a time lies in a span."""
    return span[0] <= t_s < span[1]


def counter_increases(
    previous: Mapping[_Key, float], current: Mapping[_Key, float], *, restarted: bool = False
) -> dict[_Key, float]:
    """Return by how much each counter of one process grew between two looks at it.

    If one counter shrank or vanished the process has restarted, and then every counter counts from 0,
    also those that look grown.
    """
    if restarted or any(current.get(key, 0) < value for key, value in previous.items()):
        return dict(current)
    return {key: value - previous.get(key, 0) for key, value in current.items()}


def bucket_quantile(q: float, counts: Mapping[float, float]) -> float:
    """Return a quantile of a Prometheus histogram: ``counts`` are cumulative by upper bound; see ``interpolated_quantile``."""
    bounds = sorted(counts)
    return interpolated_quantile(q, bounds, [counts[bound] for bound in bounds])


def interpolated_quantile(q: float, bounds: Sequence[float], cumulative: Sequence[float]) -> float:
    """Return a quantile of a Prometheus histogram: rising upper bounds, and the counts up to each.

    Linear within a bucket, as PromQL's ``histogram_quantile``; the highest finite bound when the quantile lies above
    it; NaN when there is no observation.
    """
    total = cumulative[-1] if cumulative else 0
    if total <= 0:
        return math.nan
    rank = q * total
    low_bound, low_count = 0.0, 0.0
    for bound, count in zip(bounds, cumulative, strict=True):
        if count >= rank:
            if math.isinf(bound):
                return low_bound
            inside = count - low_count
            return bound if inside <= 0 else low_bound + (bound - low_bound) * (rank - low_count) / inside
        low_bound, low_count = bound, count
    return low_bound


def quantile_over_time(q: float, values: Iterable[float]) -> float:
    """Return a quantile of samples as PromQL's ``quantile_over_time``: linear between neighbours; NaN of nothing."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    rank = q * (len(ordered) - 1)
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (rank - low)


def sustained(samples: Sequence[tuple[float, float]], for_s: float) -> float:
    """Return the highest level that held for at least ``for_s`` without a break; NaN when nothing lasted so long.

    ``samples`` are (time, value) in order of time, each standing for the time since the sample before it. A spike shorter
    than ``for_s`` does not count: it is the maximum over all windows of the window's minimum.
    """
    best = math.nan
    window: deque[int] = deque()  # indices of rising values: the first is the window's minimum
    first = 1
    for last in range(1, len(samples)):
        while window and samples[window[-1]][1] >= samples[last][1]:
            window.pop()
        window.append(last)
        # The shortest window that ends here and still covers for_s; it begins at the time of the sample before `first`.
        while first < last and samples[last][0] - samples[first][0] >= for_s:
            first += 1
        while window[0] < first:
            window.popleft()
        if samples[last][0] - samples[first - 1][0] >= for_s:
            level = samples[window[0]][1]
            best = level if math.isnan(best) else max(best, level)
    return best


def resample(samples: Iterable[tuple[float, float]], span: Span, slots: int) -> list[float]:
    """Return the maximum of each of ``slots`` equal parts of a finite span; NaN where there is no sample."""
    width_s = (span[1] - span[0]) / slots
    values = [math.nan] * slots
    for t_s, value in samples:
        if width_s > 0 and contains(span, t_s):
            slot = min(slots - 1, int((t_s - span[0]) / width_s))
            values[slot] = value if math.isnan(values[slot]) else max(values[slot], value)
    return values
