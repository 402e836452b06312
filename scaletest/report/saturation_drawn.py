"""The section of the terminal report on a saturation search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from scaletest.report import drawing, glyphs
from scaletest.report.document import Document, SaturationReport
from scaletest.report.said import saturation as said

__all__ = ["PAST_STYLES", "draw_saturation"]

_WIDE: Final = 100
_BAR: Final = 12
_MARKS: Final = {"held": (glyphs.GOOD, "green"), "failed": (glyphs.BAD, "red"), "not counted": ("?", "yellow")}
PAST_STYLES: Final = {"graceful": "green", "degraded": "yellow", "collapsed": "red", "metastable": "bold red"}


def draw_saturation(document: Document, width: int) -> Iterator[drawing.Drawn]:
    """Draw what a search found: the answer first, then what gave out, the curve, what lies past it, the laws."""
    found = document.saturation
    if found is None:
        return
    yield drawing.title("Saturation", f"of {found.parameter}, while {' and '.join(found.holds)}")
    yield drawing.line(found.said, "bold" if found.reason == "found" else "yellow")
    if found.limit_said is not None:
        yield drawing.line(found.limit_said)
    yield from _curve(found, width)
    if found.past is not None:
        past = Text.assemble("Past it: ", (found.past, PAST_STYLES[found.past]), f". {said.past_text(found)}")
        yield drawing.line(past)
    if found.back_said is not None:
        yield drawing.line(found.back_said, "" if found.recovered_after_s is not None else "red")
    for law in found.laws:
        yield drawing.line(said.law_text(found, law))


def _curve(found: SaturationReport, width: int) -> Iterator[drawing.Drawn]:
    """Draw every step, the lightest load first: goodput as a bar, and what was measured beside it."""
    if not found.steps:
        return
    wide = width >= _WIDE
    more = ["p50", "failed", "cores", "step"] if wide else []
    counted = "events" if found.goodput == "events" else "goodput"
    table = drawing.table(found.parameter, "", counted, "", "p99", "operator p99", "memory", *more, left=2)
    steps = said.lightest_first(found)
    top = max(said.goodput(found, item) for item in steps)
    for item in steps:
        mark, style = _MARKS[item.outcome]
        share = said.goodput(found, item) / top if top > 0 else 0.0
        cells: list[str | Text] = [
            said.load_text(item), Text(mark, style), said.goodput_text(found, item), glyphs.bar(share, width=_BAR),
            glyphs.duration_text(item.latency_p99_s), glyphs.answer_text(item.operator_p99_s, item.operator_success_rate),
            glyphs.bytes_text(item.api_server_memory_bytes),
        ]  # fmt: skip
        if wide:
            cells += [
                glyphs.duration_text(item.latency_p50_s), glyphs.share_text(item.error_rate),
                drawing.cores(item.api_server_cpu_cores), item.why if item.kind == "search" else item.kind,
            ]  # fmt: skip
        drawing.row(table, *cells)
    yield table
    yield from map(drawing.remark, said.about_uncounted(found))
