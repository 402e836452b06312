"""Which of a locustfile's User classes the next user is of."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["next_class"]


def next_class(counts: Mapping[str, int], weights: Mapping[str, float], fixed: Mapping[str, int]) -> str:
    """Return the class of the next user: fixed counts first, then the one furthest behind its weight."""
    for name, wanted in fixed.items():
        if counts[name] < wanted:
            return name
    weighted = {name: weight for name, weight in weights.items() if not fixed.get(name) and weight > 0}
    if not weighted:
        return next(iter(weights))
    return min(weighted, key=lambda name: (counts[name] + 1) / weighted[name])
