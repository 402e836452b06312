"""What the charts of the page are drawn from: one JSON value, with numbers of four digits.

``null`` breaks a line. A line that has no value in every slot names those that it has in ``i``; between two of them it is drawn through.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

from scaletest.analysis.fits import UslFit
from scaletest.analysis.series import Span
from scaletest.analysis.state import RunState
from scaletest.report.document import Document, LawReport, SaturationReport
from scaletest.report.downsampling import Envelope, Grid, envelope, grid_of
from scaletest.report.heatmap import ROWS_PER_DECADE, Heatmap, heatmaps
from scaletest.report.lanes import Lane, Line, lanes
from scaletest.report.page.spans import rows_of
from scaletest.report.said.saturation import goodput
from scaletest.report.series_document import QUANTILES, all_series

__all__ = ["chart_data", "shown_span"]

_MOST_HEATMAPS: Final = 12
"""Steps of flows that have a heat map; the busiest."""

_MOST_EVENTS: Final = 200
"""Marks on the axis of time; the table beside the chart has every event."""

_CURVE_POINTS: Final = 80

_DONE: Final = frozenset({"rollout", "rollback", "lever"})
_MARKED: Final = _DONE | {"killed", "lease_lost", "ended", "rollback_done", "recovered"}
"""Milestones that a line is drawn for; what lasts has bars of its own."""

Json = dict[str, Any]


def shown_span(state: RunState) -> Span:
    """Return the time that is drawn: what was measured, or, without a phase, all there is."""
    start_s = state.measured[0]
    if not math.isfinite(start_s):
        return 0.0, max(state.last_t_s, 1.0)
    return start_s, max(state.end_s, start_s + 1.0)


def chart_data(state: RunState, document: Document) -> Json:
    """Return the value of the page's data block."""
    span = shown_span(state)
    grid = grid_of(*span)
    incident = document.incident
    return {
        "range": [number(value) for value in span],
        "rollout": number(incident.rollout_s) if incident is not None else None,
        "phases": [
            [phase.name, number(phase.start_s), number(span[1] if phase.end_s is None else phase.end_s)]
            for phase in document.phases
        ],
        "rows": [
            {"name": row.name, "parts": [[number(p.start_s), number(p.end_s), p.level, p.text] for p in row.stretches]}
            for row in rows_of(state, document, span)
        ],
        "events": list(_events(document, span))[:_MOST_EVENTS],
        "grid": [number(grid.start_s), grid.slot_s, grid.slots],
        "lanes": [_lane(lane, grid) for lane in lanes(state, all_series(state))],
        "quantiles": list(QUANTILES),
        "rowsPerDecade": ROWS_PER_DECADE,
        "heatmaps": [_heatmap(item) for item in heatmaps(state, span)[:_MOST_HEATMAPS]],
        "saturation": _saturation(document.saturation) if document.saturation is not None else None,
    }


def number(value: float | None) -> float | int | None:
    """Round to four digits, and to milliseconds what is larger; whole numbers lose their point."""
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.4g}") if abs(value) < 10 or abs(value) >= 1e6 else round(value, 3)
    return int(rounded) if rounded.is_integer() else rounded


def _events(document: Document, span: Span) -> Iterator[list[Any]]:
    """Yield the moments that a line is drawn through all lanes for: what went wrong, what was done, and recovery."""
    if document.incident is not None:
        for line in document.incident.timeline:
            if line.milestone in _MARKED and span[0] <= line.t_s <= span[1]:
                level = "lever" if line.milestone in _DONE else line.level
                yield [number(line.t_s), level, line.text]
        return
    for told in document.story:
        if told.level == "bad" and span[0] <= told.t_s <= span[1]:
            yield [number(told.t_s), told.level, told.text]


def _lane(lane: Lane, grid: Grid) -> Json:
    return {
        "title": lane.title,
        "note": lane.note,
        "unit": lane.unit,
        "log": lane.log,
        "more": lane.left_out,
        "lines": list(_lines(lane, grid)),
        "bounds": [[bound.name, bound.value] for bound in lane.bounds],
    }


def _lines(lane: Lane, grid: Grid) -> Iterator[Json]:
    """Yield the lines of a lane; marks have the colour of the line of the same subject."""
    colors: dict[str, int] = {}
    used = 0
    for line in lane.lines:
        drawn = _line(line, grid)
        if drawn is None:
            continue
        shared = colors.get(line.series.subject) if line.marks else None
        drawn["c"] = used if shared is None else shared
        used += shared is None
        colors.setdefault(line.series.subject, drawn["c"])
        yield drawn


def _line(line: Line, grid: Grid) -> Json | None:
    found = envelope(line.series.samples, grid)
    if not any(value is not None for value in found.high):
        return None
    drawn: Json = {"name": line.name, "v": _numbers(found.high)}
    if line.marks:
        drawn["marks"] = True
        drawn["i"], drawn["v"] = _without_gaps(found)
    elif found.slots != list(range(grid.slots)):
        drawn["i"] = found.slots
    if not line.marks and any(low != high for low, high in zip(found.low, found.high, strict=True)):
        drawn["l"] = _numbers(found.low)
    return drawn


def _without_gaps(found: Envelope) -> tuple[list[int], list[float | int | None]]:
    kept = [(slot, number(value)) for slot, value in zip(found.slots, found.high, strict=True) if value is not None]
    return [slot for slot, _ in kept], [value for _, value in kept]


def _numbers(values: Iterable[float | None]) -> list[float | int | None]:
    return [number(value) for value in values]


def _heatmap(item: Heatmap) -> Json:
    return {
        "name": f"{item.flow}.{item.step}",
        "count": item.count,
        "grid": [number(item.grid.start_s), item.grid.slot_s, item.grid.slots],
        "columns": [[col.slot, col.first_row, col.counts, _numbers(col.quantiles_s)] for col in item.columns],
        "spectrum": [[share, number(seconds)] for share, seconds in item.spectrum],
    }


def _saturation(found: SaturationReport) -> Json:
    points = [
        {
            "x": step.value,
            "y": number(goodput(found, step)),
            "p99": number(step.latency_p99_s),
            "operator": number(step.operator_p99_s),
            "memory": number(step.api_server_memory_bytes),
            "outcome": step.outcome,
            "kind": step.kind,
            "load": step.load,
        }
        for step in sorted(found.steps, key=lambda item: (item.value, item.step))
    ]
    return {
        "parameter": found.parameter,
        "unit": found.unit.strip(),
        "title": "Events" if found.goodput == "events" else "Goodput",
        "y": "bytes_per_second" if found.goodput == "bytes" else "per_second",
        "capacity": number(found.capacity),
        "failsAt": number(found.fails_at),
        "points": points,
        "fits": [fit for law in found.laws for fit in _fit(law, found)],
    }


def _fit(law: LawReport, found: SaturationReport) -> Iterator[Json]:
    loads = [step.value for step in found.steps]
    predicted = number(law.predicted)
    if not loads:
        return
    top = max(1.1 * max(loads), 2.0)
    at = [1 + (top - 1) * index / _CURVE_POINTS for index in range(_CURVE_POINTS + 1)]
    if law.law == "usl":
        usl = UslFit(law.inputs["lambda"], law.inputs["sigma"], law.inputs["kappa"], ())
        points = [[number(load), number(usl.throughput(load))] for load in at]
        yield {"name": "Universal Scalability Law", "at": predicted, "points": points}
    else:
        # The law is of bytes: against answers it has a limit, and no curve.
        points = [[number(load), number(_delivered(law, load))] for load in at] if found.goodput == "bytes" else []
        yield {"name": "agents law", "at": predicted, "points": points}


def _delivered(law: LawReport, load: float) -> float:
    """What so many agents ask for, as far as the servers can deliver it: min(N (B₀ + bN) / T, m C)."""
    given = law.inputs
    asked = load * (given["fixed_bytes"] + given["bytes_per_agent"] * load) / given["T_s"]
    return min(asked, given["m"] * given["C_bytes_per_s"])
