"""A sentence on a run, and how much it matters."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["Level", "Remark"]

Level = Literal["plain", "hint", "good", "warning", "bad"]


class Remark(NamedTuple):
    """A sentence, and how much it matters."""

    text: str
    level: Level = "plain"
