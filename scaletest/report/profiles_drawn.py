"""The section of the terminal report on where an API server's time went."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scaletest.analysis.hotspots import short_name
from scaletest.core.units import format_bytes, format_count, format_duration, format_share
from scaletest.report import drawing, glyphs
from scaletest.report.document import CaptureReport, CpuReport, Document, ProfileGroup

__all__ = ["draw_profiles"]

_TOP: Final = 10
_GROUPS: Final = 6
_FEW: Final = 5
_NUMBERS: Final = 46
"""Columns of the table beside the function's name."""
_WIDEST: Final = 90


def draw_profiles(document: Document, width: int) -> Iterator[drawing.Drawn]:
    """Draw one capture: that of the smallest load that failed, or else the latest with a CPU profile. Of the others, only problems."""
    if not document.profiles:
        return
    drawn = _chosen(document)
    yield drawing.title("Where the API server's time went", _when(drawn or document.profiles[-1], document))
    if drawn is not None and drawn.cpu is not None:
        yield from _cpu(drawn.cpu, len(drawn.servers), width)
        yield from _others(drawn)
        yield drawing.line(_files(drawn), "dim")
    for item in document.profiles:
        for problem in item.problems:
            yield drawing.line(f"{item.capture}: {problem}", "yellow")


def _chosen(document: Document) -> CaptureReport | None:
    latest_first = [item for item in reversed(document.profiles) if item.cpu is not None]
    found = document.saturation
    knee = [] if found is None else [item.step for item in found.steps if item.value == found.fails_at]
    return next((item for item in latest_first if item.step in knee), latest_first[0] if latest_first else None)


def _when(capture: CaptureReport, document: Document) -> str:
    if capture.load is not None and document.saturation is not None:
        return f"at {document.saturation.parameter} = {capture.load}"
    return f"at {capture.t_s:.1f} s"


def _cpu(cpu: CpuReport, servers: int, width: int) -> Iterator[drawing.Drawn]:
    of = f" of {servers} API servers" if servers > 1 else ""
    sampled = f"{format_duration(cpu.cpu_s)} of CPU{of} in {format_duration(cpu.duration_s)}"
    yield drawing.line(f"{sampled}: {_shares(cpu.groups)}")
    table = drawing.table("function", "flat", "", "cum", "")
    room = min(width - _NUMBERS, _WIDEST)
    for item in cpu.functions[:_TOP]:
        drawing.row(
            table, _cut(short_name(item.function), room), format_duration(item.flat), glyphs.share_text(item.flat_share),
            format_duration(item.cum), glyphs.share_text(item.cum_share),
        )  # fmt: skip
    yield table


def _shares(groups: list[ProfileGroup]) -> str:
    """Write the largest groups, and what is left as one."""
    first, left = groups[:_GROUPS], groups[_GROUPS:]
    parts = [f"{item.group} {_percent(item.share)}" for item in first]
    if left:
        parts.append(f"{len(left)} more {_percent(sum(item.share or 0.0 for item in left))}")
    return ", ".join(parts)


def _percent(share: float | None) -> str:
    return glyphs.NOTHING if share is None else f"{share:.0%}".replace("%", " %")


def _others(capture: CaptureReport) -> Iterator[drawing.Drawn]:
    heap, goroutines = capture.heap, capture.goroutines
    if heap is not None:
        top = ", ".join(
            f"{short_name(item.function)} {format_share(item.flat_share or 0.0)}" for item in heap.functions[:_FEW]
        )
        yield drawing.line(f"heap in use {format_bytes(heap.bytes)}: {top}")
    if goroutines is not None:
        top = ", ".join(
            f"{format_count(item.count)} {short_name(item.function)}"
            + ("" if item.waits_in == item.function else f" (in {short_name(item.waits_in)})")
            for item in goroutines.waiting[:_FEW]
        )
        yield drawing.line(f"{format_count(goroutines.count)} goroutines: {top}")


def _files(capture: CaptureReport) -> str:
    after = "after the load was judged, " if capture.step is not None else ""
    return f"captured {after}in {format_duration(capture.took_s)}; go tool pprof -top {capture.files[0]}"


def _cut(text: str, room: int) -> str:
    """Shorten a name that is too long in its middle: both ends tell."""
    if len(text) <= room:
        return text
    head = room // 2 - 1
    return f"{text[:head]}…{text[-(room - head - 1) :]}"
