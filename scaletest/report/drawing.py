"""What all sections of a terminal report are drawn with: titles, tables, indented lines, and cells for what was not measured."""

from __future__ import annotations

from typing import Final

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from scaletest.core.units import format_count
from scaletest.report import glyphs
from scaletest.report.said.remark import Level, Remark

__all__ = ["Drawn", "cores", "count", "line", "rate", "remark", "row", "table", "title"]

Drawn = Table | Text | Padding

_STYLES: Final[dict[Level, str]] = {"plain": "", "hint": "dim", "good": "green", "warning": "yellow", "bad": "red"}


def title(text: str, note: str = "") -> Text:
    """Make the title of a section."""
    return Text.assemble((text, "bold"), (f"  {note}" if note else "", "dim"))


def table(*columns: str, left: int = 1) -> Table:
    """Make a table whose first ``left`` columns are text and the others numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    table.add_column("", width=0)
    for index, name in enumerate(columns):
        if index < left:
            table.add_column(name, overflow="fold")
        else:
            table.add_column(name, justify="right", no_wrap=True)
    return table


def row(table: Table, *cells: str | Text) -> None:
    """Add a row to a table."""
    table.add_row("", *cells)


def line(text: str | Text, style: str = "") -> Padding:
    """Make an indented line that folds."""
    line = Text(text, style=style) if isinstance(text, str) else text
    line.overflow = "fold"
    return Padding(line, (0, 0, 0, 2))


def remark(said: Remark) -> Padding:
    """Make an indented line of a sentence."""
    return line(said.text, _STYLES[said.level])


def count(value: float | None) -> str:
    """Write a count; a dash when there is none."""
    return glyphs.NOTHING if value is None else format_count(round(value))


def rate(value: float | None) -> str:
    """Write a rate; a dash when there is none."""
    return glyphs.NOTHING if value is None else format_count(value)


def cores(value: float | None) -> str:
    """Write cores; a dash when there are none."""
    return glyphs.NOTHING if value is None else f"{value:.2f}"
