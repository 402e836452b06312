"""Values of several runs of a variant, and whether variants differ. No statistics: medians, ranges and ratios."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["LEAST_RATIO", "Summary", "differ", "ratio_of", "summarize"]

LEAST_RATIO: Final = 1.1
"""Two runs of the same profile on an idle machine are seldom nearer to each other than 10 %."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The values of the runs of one variant; with one run all three are the same."""

    median: float
    low: float
    high: float
    runs: int


def summarize(values: Iterable[float]) -> Summary | None:
    """Return median and range of what was measured, NaN left out; None when nothing was."""
    known = sorted(value for value in values if not math.isnan(value))
    if not known:
        return None
    below, above = known[(len(known) - 1) // 2], known[len(known) // 2]
    # Infinity less infinity is no number; the mean of a finite and an infinite value is infinite.
    median = below if below == above else below + (above - below) / 2
    return Summary(median, known[0], known[-1], len(known))


def ratio_of(summaries: Sequence[Summary]) -> float | None:
    """Return the largest median by the smallest; None when that is no number: one is 0 or infinite."""
    medians = [item.median for item in summaries]
    low, high = min(medians, default=0.0), max(medians, default=0.0)
    return high / low if low > 0 and math.isfinite(high) else None


def differ(summaries: Sequence[Summary]) -> bool:
    """Whether variants differ by more than their repeats do, and by a tenth at least.

    Where all ranges have a value in common, the variants may well be the same. With single runs the ranges are points.
    """
    if len(summaries) < 2 or max(item.low for item in summaries) <= min(item.high for item in summaries):
        return False
    ratio = ratio_of(summaries)
    if ratio is None:
        return len({item.median for item in summaries}) > 1
    return ratio >= LEAST_RATIO
