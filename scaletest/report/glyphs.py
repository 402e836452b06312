"""Characters of the terminal report: marks, sparklines and bars, and what stands for them in plain ASCII.

Everything is drawn in Unicode; for a terminal that cannot show it the finished text is translated character by
character, so that columns stay where they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from scaletest.core import units

__all__ = [
    "BAD",
    "GOOD",
    "NOTHING",
    "UNEQUAL",
    "answer_text",
    "bar",
    "bytes_text",
    "duration_text",
    "phase_ruler",
    "share_text",
    "sparkline",
    "to_ascii",
]

GOOD: Final = "✓"
BAD: Final = "✗"
NOTHING: Final = "–"
UNEQUAL: Final = "≠"

_LEVELS: Final = "▁▂▃▄▅▆▇█"
_ASCII: Final = str.maketrans({
    GOOD: "+", BAD: "x", NOTHING: "-", "—": "-", "…": "~", "µ": "u", "×": "x", "·": "*", "─": "-", "│": "|", "░": ".", "█": "#",
    "▁": "_", "▂": ".", "▃": ":", "▄": "-", "▅": "=", "▆": "+", "▇": "*", "≤": "<", "≥": ">", UNEQUAL: "*",
    "−": "-", "→": ">", "≈": "~", "±": "~", "²": "2", "λ": "L", "σ": "s", "κ": "k",
})  # fmt: skip


def to_ascii(text: str) -> str:
    """Replace every character that ASCII lacks by one that it has."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def sparkline(values: Sequence[float | None], *, width: int) -> str:
    """Draw values from 0 to their maximum in ``width`` characters at most; a blank where there is no value.

    Several values that share a character show the largest: a spike is never averaged away.
    """
    cells = _squeeze(values, width)
    top = max((value for value in cells if value is not None), default=0.0)
    return "".join(" " if value is None else _level(value, top) for value in cells)


def _squeeze(values: Sequence[float | None], width: int) -> list[float | None]:
    count = min(width, len(values))
    cells: list[float | None] = []
    for index in range(count):
        part = values[index * len(values) // count : (index + 1) * len(values) // count]
        known = [value for value in part if value is not None]
        cells.append(max(known) if known else None)
    return cells


def _level(value: float, top: float) -> str:
    if top <= 0:
        return _LEVELS[0]
    return _LEVELS[min(len(_LEVELS) - 1, math.floor(value / top * len(_LEVELS)))]


def phase_ruler(phases: Sequence[tuple[str, float]], *, start_s: float, end_s: float, width: int) -> str:
    """Write the names of phases under a sparkline, each at its start: ``│baseline │rollout``.

    ``phases`` are (name, start time). A name is cut where the next phase begins.
    """
    cells = [" "] * width
    offsets = [
        min(width - 1, max(0, int((at_s - start_s) / (end_s - start_s) * width))) if end_s > start_s else 0
        for _, at_s in phases
    ]
    for index, (name, _) in enumerate(phases):
        room = (offsets[index + 1] if index + 1 < len(offsets) else width) - offsets[index]
        text = f"│{name}"[: max(room, 1)]
        cells[offsets[index] : offsets[index] + len(text)] = text
    return "".join(cells[:width]).rstrip()


def bar(share: float, *, width: int) -> str:
    """Draw a share of 0 to 1 as a bar."""
    full = round(min(1.0, max(0.0, share)) * width)
    return "█" * full + "░" * (width - full)


def duration_text(value: float | None) -> str:
    """Format seconds; a dash when there is none."""
    return NOTHING if value is None else units.format_duration(value)


def share_text(value: float | None) -> str:
    """Format a fraction; a dash when there is none."""
    return NOTHING if value is None else units.format_share(value)


def answer_text(seconds: float | None, success_rate: float | None) -> str:
    """Format a probe's latency: what is null although something was asked got no answer."""
    return "no answer" if seconds is None and success_rate is not None else duration_text(seconds)


def bytes_text(value: float | None) -> str:
    """Format a size; a dash when there is none."""
    return NOTHING if value is None else units.format_bytes(value)
