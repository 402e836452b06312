"""Shares of a flow: which part of it one of several processes makes. A share is its index, and of how many."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["WHOLE", "Share", "first", "part", "portions"]

Share = tuple[int, int]

WHOLE: Share = (0, 1)


def part(whole: int, share: Share) -> int:
    """Return a share's part of a number; those of all shares add up to it and differ by one at most."""
    index, of = share
    return whole // of + (index < whole % of)


def first(whole: int, share: Share) -> int:
    """Return where a share's part begins when those of all shares lie one behind the other."""
    index, of = share
    return index * (whole // of) + min(index, whole % of)


def portions(whole: int, weights: Sequence[int]) -> list[int]:
    """Divide a number in proportion to weights, by largest remainders, earlier ones first; equally where all weights are zero.

    k for each unit of weight give each exactly k times its weight.
    """
    total = sum(weights)
    if not total:
        return [part(whole, (index, len(weights))) for index in range(len(weights))]
    divided = [divmod(whole * weight, total) for weight in weights]
    left = whole - sum(quotient for quotient, _ in divided)
    by_remainder = sorted(range(len(weights)), key=lambda index: -divided[index][1])
    more = set(by_remainder[:left])
    return [quotient + (index in more) for index, (quotient, _) in enumerate(divided)]
