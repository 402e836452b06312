"""Does the cost of a LIST follow the published law? Answers per second over the size of the answer.

kubernetes/kubernetes#132233 has a table of LISTs at saturation, 100 KB to 100 MB each: throughput stays between 190 and 360 MB/s (23 to 55 MB/s for each core of the
API server) whatever the size, so that answers per second fall as 1/size. The hardware is not told, so the shape can be checked and the constant cannot: the
slope of log(answers per second) over log(size) is -1, and bytes per second and core are about the same for all sizes.

Below some 100 KB the cost of a request as such weighs more than its bytes, and the slope is flatter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from scaletest.analysis.fits import least_squares

__all__ = ["PUBLISHED", "SLOPE", "SLOPE_TOLERANCE", "Calibration", "ListCost", "calibrate"]

SLOPE: Final = -1.0
SLOPE_TOLERANCE: Final = 0.2
"""The published rows from 100 KB to 10 MB have -0.90; cores and noise of a small machine take as much again."""


@dataclass(frozen=True, slots=True)
class ListCost:
    """LISTs of one size at saturation; ``cores`` are those that the API server used."""

    answer_bytes: float
    answers_per_s: float
    cores: float

    @property
    def bytes_per_s(self) -> float:
        """Throughput."""
        return self.answer_bytes * self.answers_per_s

    @property
    def bytes_per_core_s(self) -> float:
        """Throughput of a core; NaN where none was used."""
        return self.bytes_per_s / self.cores if self.cores > 0 else math.nan


PUBLISHED: Final = (
    ListCost(100e3, 1902, 8.43),
    ListCost(1e6, 237, 9.27),
    ListCost(10e6, 30, 8.51),
)
"""kubernetes/kubernetes#132233, first table: 100, 1,000 and 10,000 objects of 1 KB."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a row of sizes came to."""

    costs: tuple[ListCost, ...]
    """By size."""
    slope: float
    """Of log(answers per second) over log(size)."""
    bytes_per_core_s: float
    """Median of all sizes."""
    spread: float
    """Largest over smallest of them."""

    @property
    def holds(self) -> bool:
        """Whether answers per second fall as 1/size."""
        return abs(self.slope - SLOPE) <= SLOPE_TOLERANCE


def calibrate(costs: Sequence[ListCost]) -> Calibration:
    """Fit the law to LISTs of different sizes. Raises ValueError for fewer than three sizes, or sizes that were not answered."""
    ordered = tuple(sorted(costs, key=lambda cost: cost.answer_bytes))
    if len({cost.answer_bytes for cost in ordered}) < 3:
        msg = f"a slope needs three sizes or more, and there are {len(ordered)}"
        raise ValueError(msg)
    unanswered = [cost for cost in ordered if not (cost.answer_bytes > 0 and cost.answers_per_s > 0 and cost.cores > 0)]
    if unanswered:
        msg = f"{len(unanswered)} of {len(ordered)} sizes have no answers or no CPU time"
        raise ValueError(msg)
    sizes = [math.log(cost.answer_bytes) for cost in ordered]
    fitted = least_squares([[1.0] * len(ordered), sizes], [math.log(cost.answers_per_s) for cost in ordered])
    assert fitted is not None, "three different sizes have one line of best fit"
    throughputs = [cost.bytes_per_core_s for cost in ordered]
    return Calibration(ordered, fitted[1], median(throughputs), max(throughputs) / min(throughputs))
