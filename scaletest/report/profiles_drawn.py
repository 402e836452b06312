"""The section of the terminal report on where an API server's time went."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scaletest.analysis.hotspots import short_name
from scaletest.core.units import format_duration
from scaletest.report import drawing, glyphs
from scaletest.report.document import CpuReport, Document
from scaletest.report.said import profiles as said

__all__ = ["draw_profiles"]

_TOP: Final = 10
_NUMBERS: Final = 46
"""Columns of the table beside the function's name."""
_WIDEST: Final = 90


def draw_profiles(document: Document, width: int) -> Iterator[drawing.Drawn]:
    """Draw one capture: that of the smallest load that failed, or else the latest with a CPU profile. Of the others, only problems."""
    if not document.profiles:
        return
    drawn = said.at_the_knee(document)
    yield drawing.title("Where the API server's time went", said.when_text(drawn or document.profiles[-1], document))
    if drawn is not None and drawn.cpu is not None:
        yield drawing.line(said.cpu_text(drawn.cpu, len(drawn.servers)))
        yield _functions(drawn.cpu, width)
        yield from map(drawing.remark, said.about_capture(drawn))
    yield from map(drawing.remark, said.about_problems(document))


def _functions(cpu: CpuReport, width: int) -> drawing.Drawn:
    table = drawing.table("function", "flat", "", "cum", "")
    room = min(width - _NUMBERS, _WIDEST)
    for item in cpu.functions[:_TOP]:
        drawing.row(
            table, _cut(short_name(item.function), room), format_duration(item.flat), glyphs.share_text(item.flat_share),
            format_duration(item.cum), glyphs.share_text(item.cum_share),
        )  # fmt: skip
    return table


def _cut(text: str, room: int) -> str:
    """Shorten a name that is too long in its middle: both ends tell."""
    if len(text) <= room:
        return text
    head = room // 2 - 1
    return f"{text[:head]}…{text[-(room - head - 1) :]}"
