"""The section of the terminal report on a saturation search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from scaletest.core.units import format_bytes, format_count, format_share
from scaletest.report import drawing, glyphs
from scaletest.report.document import Document, LawReport, SaturationReport, SearchStepReport

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
        yield drawing.line(Text.assemble("Past it: ", (found.past, PAST_STYLES[found.past]), f". {_sentences(found)}"))
    if found.back_said is not None:
        yield drawing.line(found.back_said, "" if found.recovered_after_s is not None else "red")
    for law in found.laws:
        yield drawing.line(_law(found, law))


def _sentences(found: SaturationReport) -> str:
    """Say the first thing that the rule saw, and how many more there were: the curve has them all."""
    first, *others = found.past_reasons
    more = f" ({len(others)} more such)" if others and found.past in {"degraded", "collapsed"} else ""
    return f"{first[0].upper()}{first[1:]}{more}."


def _curve(found: SaturationReport, width: int) -> Iterator[drawing.Drawn]:
    """Draw every step, the lightest load first: goodput as a bar, and what was measured beside it."""
    if not found.steps:
        return
    wide = width >= _WIDE
    more = ["p50", "failed", "cores", "step"] if wide else []
    counted = "events" if found.goodput == "events" else "goodput"
    table = drawing.table(found.parameter, "", counted, "", "p99", "operator p99", "memory", *more, left=2)
    lightest_first = sorted(found.steps, key=lambda item: (item.value, item.step))
    if (
        len(lightest_first) > 1
        and found.capacity is not None
        and found.fails_at is not None
        and found.fails_at < found.capacity
    ):
        lightest_first.reverse()
    top = max((_goodput(found, item) for item in lightest_first), default=0.0)
    for item in lightest_first:
        mark, style = _MARKS[item.outcome]
        good = _goodput(found, item)
        said = f"{format_bytes(good) if found.goodput == 'bytes' else format_count(good)}/s"
        operator = (
            "no answer"
            if item.operator_p99_s is None and item.operator_success_rate is not None
            else glyphs.duration_text(item.operator_p99_s)
        )
        factor = f" ({item.factor:g} ×)" if item.factor is not None else ""
        load = f"{item.load}{' derived' if item.derived else ''}{factor}"
        cells: list[str | Text] = [
            load, Text(mark, style), said, glyphs.bar(good / top if top > 0 else 0.0, width=_BAR),
            glyphs.duration_text(item.latency_p99_s), operator, glyphs.bytes_text(item.api_server_memory_bytes),
        ]  # fmt: skip
        if wide:
            cells += [
                glyphs.duration_text(item.latency_p50_s), glyphs.share_text(item.error_rate),
                drawing.cores(item.api_server_cpu_cores), item.why if item.kind == "search" else item.kind,
            ]  # fmt: skip
        drawing.row(table, *cells)
    yield table
    for item in found.steps:
        if item.kind == "search" and item.outcome == "not counted":
            yield drawing.line(f"{item.load} did not count: {item.reason}", "yellow")


def _goodput(found: SaturationReport, item: SearchStepReport) -> float:
    return {"bytes": item.bytes_per_s, "events": item.events_per_s, "answers": item.answers_per_s}[found.goodput] or 0.0


def _law(found: SaturationReport, law: LawReport) -> str:
    name = "Agents law" if law.law == "agents" else "Universal Scalability Law"
    predicted = "no limit" if law.predicted is None else f"{format_count(round(law.predicted))}{found.unit}"
    beside = ""
    if law.predicted and law.measured is not None:
        beside = f"; measured {format_count(law.measured)}{found.unit}, {law.measured / law.predicted:.2f} × that"
    residual = "" if law.worst_residual is None else f"; largest residual {_share(law.worst_residual)}"
    return f"{name} (an estimate), {law.formula}: {predicted}{beside}. {law.said}{residual}."


def _share(value: float) -> str:
    return "under 0.1 %" if value < 0.001 else format_share(value)
