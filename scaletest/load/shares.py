"""Shares of a flow: which part of it one of several processes makes. A share is its index, and of how many."""

from __future__ import annotations

__all__ = ["WHOLE", "Share", "first", "part"]

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
