"""Numbers in the records of a journal, read strictly.

A journal that was damaged, or written by something else, may have anything where a number is wanted. What reads it raises TypeError or
ValueError for what cannot be, so that the record is malformed, and no figure of a report is made of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from scaletest.core.foreignfiles import LARGEST

__all__ = ["LONGEST_S", "amount", "count", "number", "optional", "seconds", "whole"]

LONGEST_S: Final = 1e7
"""115 days: no run lasts so long."""

_Read = TypeVar("_Read")


def number(value: Any) -> float:
    """Return a number of any sign. Raises TypeError or ValueError for what is none, is not finite, or has more than 64 bits."""
    # Not isinstance: True is an int.
    if type(value) is not float and type(value) is not int:
        msg = "no number"
        raise TypeError(msg)
    if not -LARGEST <= value <= LARGEST:
        msg = "not finite, or too large"
        raise ValueError(msg)
    return float(value)


def amount(value: Any) -> float:
    """Return a number from 0 on. Raises TypeError or ValueError."""
    read = number(value)
    if read < 0:
        msg = "negative"
        raise ValueError(msg)
    return read


def seconds(value: Any) -> float:
    """Return a time within a run, from 0 to ``LONGEST_S``. Raises TypeError or ValueError."""
    read = amount(value)
    if read > LONGEST_S:
        msg = "longer than any run"
        raise ValueError(msg)
    return read


def whole(value: Any) -> int:
    """Return a whole number of any sign. Raises TypeError or ValueError."""
    if type(value) is float and not value.is_integer():
        msg = "no whole number"
        raise ValueError(msg)
    number(value)
    return int(value)


def count(value: Any) -> int:
    """Return a whole number from 0 on. Raises TypeError or ValueError."""
    read = whole(value)
    if read < 0:
        msg = "negative"
        raise ValueError(msg)
    return read


def optional(read: Callable[[Any], _Read], value: Any) -> _Read | None:
    """Read a value that may be missing."""
    return None if value is None else read(value)
