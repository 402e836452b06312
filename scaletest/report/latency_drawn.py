"""The API latency section of the terminal report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from scaletest.report import drawing, glyphs
from scaletest.report.document import ApiCallReport, Document
from scaletest.report.said import latency as said

__all__ = ["draw_latency"]

WIDE: Final = 100


def draw_latency(document: Document, width: int) -> Iterator[drawing.Drawn]:
    """Draw the three latencies of each kind of call, the worst first."""
    latency = document.api_latency
    if latency is None or not latency.calls:
        return
    yield drawing.title("API latency", said.FORM)
    wide = width >= WIDE
    table = drawing.table("call", "scope", *(("calls",) if wide else ()), "SLI", *(("SLI 5m",) if wide else ()), "server", "client", "SLO", "", left=2)  # fmt: skip
    shown = said.calls_shown(latency)
    for call in latency.calls[:shown]:
        drawing.row(table, *_cells(call, wide=wide))
    yield table
    if len(latency.calls) > shown:
        yield drawing.line(f"{len(latency.calls) - shown} more kinds of call: --format json has all", "dim")
    yield drawing.line(said.COLUMNS, "dim")
    yield from map(drawing.remark, said.about_latency(latency))


def _cells(call: ApiCallReport, *, wide: bool) -> Iterator[str | Text]:
    yield f"{call.verb} {call.resource}"
    yield said.scope_text(call)
    if wide:
        yield drawing.count(call.calls)
    yield _marked(said.sli_text(call.sli_p99_s), over=call.holds is False)
    if wide:
        yield said.sli_text(call.sli_5m_p99_s)
    yield _marked(said.server_text(call.server_p99_s), over=said.is_over(call.server_p99_s, call.threshold_s))
    yield _marked(said.client_text(call.client_p99_s), over=said.is_over(call.client_p99_s, call.threshold_s))
    yield glyphs.NOTHING if call.threshold_s is None else f"{call.threshold_s:g} s"
    match call.holds:
        case None:
            yield glyphs.NOTHING
        case True:
            yield Text(glyphs.GOOD, "yellow" if call.waited else "green")
        case False:
            yield Text(glyphs.BAD, "red")


def _marked(text: str, *, over: bool) -> Text:
    return Text(text, "yellow" if over else "")
