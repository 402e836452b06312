"""A history in the terminal: the shifts by the run that they begin with, then every metric as a sparkline."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final, TextIO

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from scaletest.core.consoles import ColorSystem
from scaletest.report import drawing, glyphs
from scaletest.report.drawing import Drawn
from scaletest.report.history_document import HistoryDocument, MetricHistoryReport, ProfileHistory
from scaletest.report.said.history import (
    changed_about_then,
    doubts,
    rule,
    says_nothing,
    shifts_by_run,
    shortened,
    since,
    span,
    untold,
    verdict,
)
from scaletest.report.terminal import print_drawn, render_drawn

__all__ = ["print_history", "render_history"]

_STYLES: Final = {"worse": "red", "better": "green"}
_MARKS: Final = {"worse": glyphs.BAD, "better": glyphs.GOOD}
_WIDE: Final = 100
_MOST_TOLD: Final = 5


def render_history(
    document: HistoryDocument, *, width: int, unicode: bool = True, colors: ColorSystem | None = None
) -> str:
    """Draw a history as text that ends in a newline."""
    return render_drawn(lambda wide: _parts(document, wide), width=width, unicode=unicode, colors=colors)


def print_history(document: HistoryDocument, stream: TextIO) -> None:
    """Print a history as the stream can show it."""
    print_drawn(lambda wide: _parts(document, wide), stream)


def _parts(document: HistoryDocument, width: int) -> Iterator[list[Drawn]]:
    for history in document.profiles:
        yield list(_head(history))
        for part in _shifts(history):
            yield list(part)
        if history.metrics:
            yield [_table(history, width)]
            yield list(_tail(document, history))
    if document.passed_over:
        yield [drawing.line(f"passed over: {item.run}: {item.why}", "yellow") for item in document.passed_over]


def _head(history: ProfileHistory) -> Iterator[Drawn]:
    yield Text.assemble(("HISTORY", "bold"), f"  {history.profile}", (f"  {span(history)}", "dim"))
    told = list(doubts(history))
    for doubt in told[:_MOST_TOLD]:
        yield drawing.line(doubt, "yellow")
    if len(told) > _MOST_TOLD:
        yield drawing.line(f"and {len(told) - _MOST_TOLD} more", "yellow")


def _shifts(history: ProfileHistory) -> Iterator[list[Drawn]]:
    for first, group in shifts_by_run(history):
        part: list[Drawn] = [drawing.title(f"Since {since(first.started_at)}", first.run_id)]
        part += [drawing.line(said) for said in changed_about_then(shift for _, shift in group)] or [
            drawing.line("nothing that is recorded beside the numbers changed about then", "dim")
        ]
        table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=False)
        for column in ("", "metric", "before", "", "after", "change"):
            table.add_column(
                column, justify="right" if column == "change" else "left", overflow="fold", no_wrap=column != "metric"
            )
        for metric, shift in group:
            table.add_row(
                Text(_MARKS[shift.call], _STYLES[shift.call]),
                Text(metric.metric),
                Text(shift.before_said),
                Text("to", "dim"),
                Text(shift.after_said),
                Text(shift.change_said, _STYLES[shift.call]),
            )
        yield [*part, Padding(table, (0, 0, 0, 2))]


def _table(history: ProfileHistory, width: int) -> Table:
    table = drawing.table("", "over time", "first", "last", "")
    table.columns[2].justify = "left"
    shown = [metric for metric in history.metrics if not says_nothing(metric)]
    for section, metrics in itertools.groupby(shown, key=lambda metric: metric.section):
        drawing.row(table, Text(section, "bold"))
        for metric in metrics:
            drawing.row(table, *_row(metric, 40 if width >= _WIDE else 20))
    return table


def _row(metric: MetricHistoryReport, width: int) -> list[Text]:
    if metric.why is not None:
        told = Text("?", "dim")
    else:
        told = Text(", ").join(Text(shift.call, _STYLES[shift.call]) for shift in metric.shifts) or Text("~", "dim")
    return [
        Text(f"  {metric.label}"),
        Text(glyphs.sparkline(metric.values, width=width)),
        Text(metric.first_said),
        Text(metric.last_said),
        told,
    ]


def _tail(document: HistoryDocument, history: ProfileHistory) -> Iterator[Drawn]:
    yield drawing.line(verdict(history))
    for why, names in untold(history).items():
        yield drawing.line(f"? {why}: {shortened(names)}", "yellow")
    yield drawing.line(rule(document), "dim")
