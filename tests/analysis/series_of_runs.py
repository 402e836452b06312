"""Simulated series of one metric, a value for each run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random


def noisy(
    rng: Random, levels: Sequence[float], spread: float, *, wild: float = 0.0, rho: float = 0.0
) -> list[float]:  # fmt: skip
    """A value for each level: ``spread`` of the logarithm, correlated by ``rho`` with the run before; with the chance ``wild`` 10 to 65 % more."""
    values, state = [], rng.gauss(0, 1)
    for level in levels:
        state = rho * state + math.sqrt(1 - rho * rho) * rng.gauss(0, 1)
        off = rng.uniform(0.1, 0.5) if rng.random() < wild else 0.0
        values.append(level * math.exp(spread * state + off))
    return values
