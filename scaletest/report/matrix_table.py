"""The table of a matrix in the terminal: measures are rows, variants are columns.

Of searches, the ranking comes first. What they measured beside it they measured under different loads, so it follows only where all variants fit beside each other.

Variants that do not fit beside each other go into further blocks below, each with all rows. Colours and characters follow the
terminal as in the report of a run.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Final, TextIO

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from scaletest.core.consoles import ColorSystem
from scaletest.report import glyphs
from scaletest.report.matrix_document import CellReport, MatrixDocument, RowReport, VariantReport
from scaletest.report.ranking_drawn import draw_ranking
from scaletest.report.said import matrix as said
from scaletest.report.terminal import print_drawn, render_drawn

__all__ = ["print_matrix", "render_matrix"]

WIDEST_CELL: Final = 24
_MARK_WIDTH: Final = 6
_PADDING: Final = 2
_STYLES: Final = {"pass": "green", "fail": "red"}
_ELSEWHERE: Final = (
    "Side by side: --format json, or a wider terminal. All of a variant: scaletest report DIRECTORY/VARIANT."
)

Drawn = Table | Text | Padding


def render_matrix(
    document: MatrixDocument, *, width: int, unicode: bool = True, colors: ColorSystem | None = None
) -> str:
    """Draw the table as text that ends in a newline."""
    return render_drawn(lambda wide: _parts(document, wide), width=width, unicode=unicode, colors=colors)


def print_matrix(document: MatrixDocument, stream: TextIO) -> None:
    """Print the table as the stream can show it."""
    print_drawn(lambda wide: _parts(document, wide), stream)


def _parts(document: MatrixDocument, width: int) -> Iterator[list[Drawn]]:
    yield list(_head(document))
    if document.ranking is not None:
        yield list(draw_ranking(document.ranking))
    blocks = list(_blocks(document, width))
    side_by_side = document.ranking is None or len(blocks) == 1
    if side_by_side:
        for block in blocks:
            yield [_table(document, block, width)]
    notes = [*_notes(document), *(() if side_by_side else _failed(document))]
    if notes:
        yield notes
    yield [_line(said.LEGEND if side_by_side else _ELSEWHERE, "dim")]


def _head(document: MatrixDocument) -> Iterator[Drawn]:
    matrix, verdict = document.matrix, document.verdict
    yield Text.assemble(("MATRIX", "bold"), f"  {matrix.profile}", (f"  {matrix.id}", "dim"))
    yield _line(said.axes_text(matrix))
    if matrix.summary:
        yield _line(matrix.summary)
    if verdict.finished < verdict.runs:
        yield _line(f"{verdict.finished} of {verdict.runs} runs finished", "yellow")
    if matrix.repeat > 1:
        yield _line(said.REPEATS, "dim")


def _blocks(document: MatrixDocument, width: int) -> Iterator[list[int]]:
    """Yield the variants that stand beside each other, by their index."""
    room = width - _label_width(document, width) - _PADDING - _MARK_WIDTH - 1
    block: list[int] = []
    used = 0
    for index in range(len(document.variants)):
        needed = _column_width(document, index) + _PADDING
        if block and used + needed > room:
            yield block
            block, used = [], 0
        block.append(index)
        used += needed
    if block:
        yield block


def _label_width(document: MatrixDocument, width: int) -> int:
    longest = max((len(row.measure) + 1 for row in document.rows), default=0)
    keys = max((len(axis.key) for axis in document.matrix.axes), default=0)
    columns = sum(_column_width(document, index) + _PADDING for index in range(len(document.variants)))
    # Two fifths of the terminal, or all that the variants leave when they fit beside each other.
    room = width - columns - _PADDING - _MARK_WIDTH - 1
    return min(max(longest, keys), max(width * 2 // 5, room))


def _column_width(document: MatrixDocument, index: int) -> int:
    cells = [line for row in document.rows for line in _cell_lines(row, row.cells[index])]
    head = document.variants[index].values.values()
    return min(max(len(text) for text in [*cells, *head, ""]), WIDEST_CELL)


def _table(document: MatrixDocument, block: Sequence[int], width: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    table.add_column("", width=0)
    keys = "\n".join(axis.key for axis in document.matrix.axes)
    table.add_column(Text(keys, "dim"), overflow="fold", width=_label_width(document, width))
    for index in block:
        head = "\n".join(_shortened(value) for value in _head_values(document, document.variants[index]))
        table.add_column(
            Text(head, "bold"), justify="right", overflow="fold", width=_column_width(document, index)
        )  # fmt: skip
    table.add_column("", justify="right", no_wrap=True, width=_MARK_WIDTH - _PADDING + 1)
    label_width = _label_width(document, width)
    whole = [_is_whole(variant) for variant in document.variants]
    for section, rows in itertools.groupby(document.rows, key=lambda row: row.section):
        table.add_row("", Text(section, "bold"))
        for row in rows:
            cells = [_cell(row, row.cells[index], whole=whole[index]) for index in block]
            table.add_row("", _label(row.measure, label_width), *cells, Text(said.ratio_text(row), "yellow"))
    return table


def _head_values(document: MatrixDocument, variant: VariantReport) -> list[str]:
    return [variant.values[axis.key] for axis in document.matrix.axes]


def _shortened(text: str) -> str:
    return text if len(text) <= WIDEST_CELL else f"{text[: WIDEST_CELL - 1]}…"


def _is_whole(variant: VariantReport) -> bool:
    return any(run.counted and run.outcome in {"pass", "fail"} for run in variant.runs)


def _label(text: str, width: int) -> str:
    """Break a measure's name after a dot or a blank where it is too long."""
    lines = [" "]
    for part in re.findall(r"[^ .]*[ .]?", text):
        if len(lines[-1]) + len(part.rstrip()) > width and lines[-1].strip():
            lines.append("   ")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def _cell(row: RowReport, cell: CellReport, *, whole: bool) -> Text:
    first, *more = _cell_lines(row, cell)
    style = "" if whole else "dim"
    if cell.holds is not None and whole:
        style = "green" if said.holds(cell) else "red"
    elif row.section == "Run":
        style = _STYLES.get(cell.said, "")
    return Text("\n", justify="right").join([Text(first, style), *(Text(line, "dim") for line in more)])


def _cell_lines(row: RowReport, cell: CellReport) -> list[str]:
    mark = "" if cell.holds is None else f" {glyphs.GOOD if said.holds(cell) else glyphs.BAD}"
    first = f"{cell.said}{mark}"
    lines = [first]
    if cell.spread is not None:
        lines.append(cell.spread)
    partly = said.partly_text(cell)
    if partly is not None:
        lines.append(partly)
    if row.section == "Run" and len(first) > WIDEST_CELL:
        lines = first.split(", ")
    return lines


def _notes(document: MatrixDocument) -> Iterator[Drawn]:
    """Say of every run that is not whole why, and of every one whose numbers are left out that they are."""
    told = [
        (run.directory, run.reasons[0] if run.reasons else run.status, run.counted)
        for variant in document.variants
        for run in variant.runs
        if run.status in {"incomplete", "running", "unreadable"} or run.outcome == "invalid"
    ]
    waiting = [run.directory for variant in document.variants for run in variant.runs if run.status == "waiting"]
    if told or waiting:
        yield Text("Not whole", "bold")
    for directory, reason, counted in told:
        left_out = "" if counted else "; its numbers are left out"
        yield _line(f"{directory}: {reason.splitlines()[0]}{left_out}", "yellow")
    if waiting:
        yield _line(f"not run yet: {', '.join(waiting)}", "yellow")


def _failed(document: MatrixDocument) -> Iterator[Drawn]:
    """Say which objectives do not hold, where no table does."""
    told = [
        f"{run.directory}: {run.reasons[0].splitlines()[0]}"
        for variant in document.variants
        for run in variant.runs
        if run.outcome == "fail" and run.reasons
    ]
    if told:
        yield Text("Objectives that do not hold", "bold")
    for text in told:
        yield _line(text, "red")


def _line(text: str, style: str = "") -> Padding:
    line = Text(text, style=style, overflow="fold")
    return Padding(line, (0, 0, 0, 2))
