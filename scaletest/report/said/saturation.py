"""What is said of a search for the saturation point: loads, goodput, what lies past it, laws."""

from __future__ import annotations

from collections.abc import Iterator

from scaletest.core.units import format_bytes, format_count, format_share
from scaletest.report.document import LawReport, SaturationReport, SearchStepReport
from scaletest.report.said.remark import Remark

__all__ = ["about_uncounted", "goodput", "goodput_text", "law_text", "lightest_first", "load_text", "past_text"]


def lightest_first(found: SaturationReport) -> list[SearchStepReport]:
    """Return all steps, the lightest load first: that of the largest value, where a smaller one is the heavier load."""
    steps = sorted(found.steps, key=lambda item: (item.value, item.step))
    if len(steps) > 1 and found.capacity is not None and found.fails_at is not None and found.fails_at < found.capacity:
        steps.reverse()
    return steps


def load_text(step: SearchStepReport) -> str:
    """Write a load, and what it is a multiple of."""
    factor = f" ({step.factor:g} ×)" if step.factor is not None else ""
    return f"{step.load}{' derived' if step.derived else ''}{factor}"


def goodput(found: SaturationReport, step: SearchStepReport) -> float:
    """Return what came through each second: bytes, events or answers, as the search counts."""
    return {"bytes": step.bytes_per_s, "events": step.events_per_s, "answers": step.answers_per_s}[found.goodput] or 0.0


def goodput_text(found: SaturationReport, step: SearchStepReport) -> str:
    """Write what came through each second."""
    good = goodput(found, step)
    return f"{format_bytes(good) if found.goodput == 'bytes' else format_count(good)}/s"


def past_text(found: SaturationReport) -> str:
    """Say the first thing that the rule saw past the saturation point, and how many more there were: the curve has them all."""
    first, *others = found.past_reasons
    more = f" ({len(others)} more such)" if others and found.past in {"degraded", "collapsed"} else ""
    return f"{first[0].upper()}{first[1:]}{more}."


def about_uncounted(found: SaturationReport) -> Iterator[Remark]:
    """Say of each load that did not count why."""
    for item in found.steps:
        if item.kind == "search" and item.outcome == "not counted":
            yield Remark(f"{item.load} did not count: {item.reason}", "warning")


def law_text(found: SaturationReport, law: LawReport) -> str:
    """Say what a law foresees, and how that is beside what was measured."""
    name = "Agents law" if law.law == "agents" else "Universal Scalability Law"
    predicted = "no limit" if law.predicted is None else f"{format_count(round(law.predicted))}{found.unit}"
    beside = ""
    if law.predicted and law.measured is not None:
        beside = f"; measured {format_count(law.measured)}{found.unit}, {law.measured / law.predicted:.2f} × that"
    residual = "" if law.worst_residual is None else f"; largest residual {_share(law.worst_residual)}"
    return f"{name} (an estimate), {law.formula}: {predicted}{beside}. {law.said}{residual}."


def _share(value: float) -> str:
    return "under 0.1 %" if value < 0.001 else format_share(value)
