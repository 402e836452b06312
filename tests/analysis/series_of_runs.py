"""Simulated series of one metric, a value for each run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random


def noisy(rng: Random, levels: Sequence[float], spread: float, *, wild: float = 0.0) -> list[float]:
    """A value for each level: ``spread`` of the logarithm, and with the chance ``wild`` 10 to 65 % more."""
    return [
        level * math.exp(rng.gauss(0, spread) + (rng.uniform(0.1, 0.5) if rng.random() < wild else 0.0))
        for level in levels
    ]
