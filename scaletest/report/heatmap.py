"""Latencies over time as a heat map, with their percentiles, from the histograms of each interval.

Rows are equal steps on a logarithmic axis, columns equal slots of time. Histograms of a column are merged before a percentile
is taken: the mean of percentiles would be none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from scaletest.analysis.flows import FlowSeries, PackedHistogram
from scaletest.analysis.series import Span, contains
from scaletest.analysis.state import RunState
from scaletest.core.histogram import Histogram, bucket_bounds
from scaletest.report.downsampling import Grid, grid_of
from scaletest.report.series_document import QUANTILES

__all__ = ["COLUMNS", "ROWS_PER_DECADE", "SPECTRUM", "Column", "Heatmap", "heatmaps"]

COLUMNS: Final = 240
"""Columns of a heat map: 2.5 s each in a ten-minute run, and wide enough on a phone to be seen."""

ROWS_PER_DECADE: Final = 12
"""Each row is 21 % higher than the one below it."""

SPECTRUM: Final = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999, 1.0)
"""Shares at which the distribution over the whole run is given; finer towards the end, where it matters."""


@dataclass(frozen=True, slots=True)
class Column:
    """One slot of time that has an answer."""

    slot: int
    first_row: int
    counts: list[int]
    """Answers in each row from ``first_row`` on."""
    quantiles_s: list[float]
    """As ``QUANTILES`` names them."""


@dataclass(frozen=True, slots=True)
class Heatmap:
    """Good answers of one step of a flow."""

    flow: str
    step: str
    grid: Grid
    count: int
    columns: list[Column] = field(repr=False)
    spectrum: list[tuple[float, float]]
    """(share, seconds) over the whole time; shares that so few answers cannot tell apart are left out."""


def heatmaps(state: RunState, span: Span, *, columns: int = COLUMNS) -> list[Heatmap]:
    """Return a heat map for each step of each flow that has a good answer within a finite span, the busiest first."""
    grid = grid_of(*span, slots=columns)
    found = [item for name, series in state.flows.items() for item in _of_flow(name, series, grid, span)]
    return sorted(found, key=lambda item: -item.count)


def _of_flow(name: str, series: FlowSeries, grid: Grid, span: Span) -> Iterator[Heatmap]:
    by_step: dict[str, dict[int, Histogram]] = {}
    for interval in series.intervals:
        # An interval may begin before the grid, or end after it: its middle decides, as for phases.
        slot = grid.slot_of(interval.middle_s) if contains(span, interval.middle_s) else None
        if slot is None:
            continue
        for step, delta in interval.steps.items():
            if delta.latency_us is not None and delta.latency_us.counts:
                _add(by_step.setdefault(step, {}), slot, delta.latency_us)
    for step, slots in by_step.items():
        whole = Histogram.merged(slots.values())
        columns = [_column(slot, slots[slot]) for slot in sorted(slots)]
        yield Heatmap(name, step, grid, whole.count, columns, _spectrum(whole))


def _add(slots: dict[int, Histogram], slot: int, packed: PackedHistogram) -> None:
    packed.add_to(slots.setdefault(slot, Histogram()))


def _column(slot: int, histogram: Histogram) -> Column:
    rows: dict[int, int] = {}
    for index, count in histogram.buckets.items():
        row = _row_of(index)
        rows[row] = rows.get(row, 0) + count
    first, last = min(rows), max(rows)
    counts = [rows.get(row, 0) for row in range(first, last + 1)]
    return Column(slot, first, counts, _seconds(histogram.quantiles(tuple(QUANTILES.values()))))


@lru_cache(maxsize=1 << 16)
def _row_of(bucket: int) -> int:
    """Return the row of a bucket: row 0 begins at 1 µs, below which nothing is told apart."""
    low, high = bucket_bounds(bucket)
    return max(0, math.floor(math.log10(max(1.0, (low + high) / 2)) * ROWS_PER_DECADE))


def _spectrum(whole: Histogram) -> list[tuple[float, float]]:
    # The highest share below 1 that still leaves an answer above it.
    shares = [share for share in SPECTRUM if share == 1.0 or (1.0 - share) * whole.count >= 1.0]
    return list(zip(shares, _seconds(whole.quantiles(shares)), strict=True))


def _seconds(values_us: Iterable[float]) -> list[float]:
    return [value / 1e6 for value in values_us]
