"""What a measurement comes to: a value with what it rests on, or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Measured", "known", "never", "of"]


@dataclass(frozen=True, slots=True)
class Measured:
    """A value in base units (seconds, fraction, bytes, per second, count), and what it rests on."""

    value: float
    """NaN when never measured; infinite for a probe that got no good answer."""
    samples: int
    """Requests, observations or samples behind the value."""
    why_nan: str | None = None


def never(why: str) -> Measured:
    """Return what was never measured."""
    return Measured(math.nan, 0, why)


def of(value: float, samples: int, why_nan: str) -> Measured:
    """Return a value, or the reason why it is NaN."""
    return never(why_nan) if math.isnan(value) else Measured(float(value), samples)


def known(names: Iterable[str]) -> str:
    """Say what was measured instead."""
    listed = sorted(names)
    return f"measured were: {', '.join(listed)}" if listed else "none was measured"
