"""Bring series to the width of a screen without losing a spike: the least and the most of each slot of time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from scaletest.report.series_document import Sample

__all__ = ["SLOTS", "Envelope", "Grid", "envelope", "grid_of"]

SLOTS: Final = 600
"""Slots of a chart: a ten-minute run keeps every second, and no screen shows many more points."""

_LEAST_SLOT_S: Final = 1.0
"""Most samples are taken once a second."""

_GAP: Final = 2.5
"""A silence of more than so many usual distances between samples is a gap: the line is broken there."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Equal slots of time."""

    start_s: float
    slot_s: float
    slots: int

    @property
    def end_s(self) -> float:
        """End of the last slot."""
        return self.start_s + self.slot_s * self.slots

    def slot_of(self, t_s: float) -> int | None:
        """Return the slot that a time lies in; None outside. The end belongs to the last slot."""
        slot = math.floor((t_s - self.start_s) / self.slot_s)
        if slot == self.slots and t_s <= self.end_s:
            return slot - 1
        return slot if 0 <= slot < self.slots else None


@dataclass(frozen=True, slots=True)
class Envelope:
    """A series on a grid: for some rising slots the least and the most, or None where the line is broken."""

    slots: list[int]
    low: list[float | None]
    high: list[float | None]


def grid_of(start_s: float, end_s: float, *, slots: int = SLOTS, least_slot_s: float = _LEAST_SLOT_S) -> Grid:
    """Return at most ``slots`` equal slots of at least ``least_slot_s`` that cover a span."""
    length_s = max(end_s - start_s, least_slot_s)
    count = max(1, min(slots, math.ceil(length_s / least_slot_s)))
    return Grid(start_s, length_s / count, count)


def envelope(samples: Sequence[Sample], grid: Grid) -> Envelope:
    """Put samples in order of time on a grid; what lies outside it is left out."""
    inside = [(slot, t_s, value) for t_s, value in samples if (slot := grid.slot_of(t_s)) is not None]
    distances_s = [after[1] - before[1] for before, after in pairwise(inside)]
    usual_s = max(median(distances_s), grid.slot_s) if distances_s else grid.slot_s
    found = Envelope([], [], [])
    last_s = math.inf
    for slot, t_s, value in inside:
        if t_s - last_s > _GAP * usual_s and slot > found.slots[-1] + 1:
            _append(found, found.slots[-1] + 1, None)
        last_s = t_s
        if found.slots and found.slots[-1] == slot and (low := found.low[-1]) is not None:
            high = found.high[-1]
            found.low[-1], found.high[-1] = min(low, value), value if high is None else max(high, value)
        else:
            _append(found, slot, value)
    return found


def _append(found: Envelope, slot: int, value: float | None) -> None:
    found.slots.append(slot)
    found.low.append(value)
    found.high.append(value)
