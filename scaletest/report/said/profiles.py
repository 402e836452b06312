"""What is said of profiles of the API servers: which capture stands first, when it was, where time and memory went."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scaletest.analysis.hotspots import short_name
from scaletest.core.units import format_bytes, format_count, format_duration, format_share
from scaletest.report import glyphs
from scaletest.report.document import CaptureReport, CpuReport, Document, ProfileGroup
from scaletest.report.said.remark import Remark

__all__ = ["about_capture", "about_problems", "at_the_knee", "cpu_text", "when_text"]

_GROUPS: Final = 6
_FEW: Final = 5


def at_the_knee(document: Document) -> CaptureReport | None:
    """Return the capture of the smallest load that failed, or else the latest with a CPU profile."""
    latest_first = [item for item in reversed(document.profiles) if item.cpu is not None]
    found = document.saturation
    knee = [] if found is None else [item.step for item in found.steps if item.value == found.fails_at]
    return next((item for item in latest_first if item.step in knee), latest_first[0] if latest_first else None)


def when_text(capture: CaptureReport, document: Document) -> str:
    """Say at which load of a search, or else when, a capture was."""
    if capture.load is not None and document.saturation is not None:
        return f"at {document.saturation.parameter} = {capture.load}"
    return f"at {capture.t_s:.1f} s"


def cpu_text(cpu: CpuReport, servers: int) -> str:
    """Say how much was sampled, and the shares of the largest groups of packages."""
    of = f" of {servers} API servers" if servers > 1 else ""
    sampled = f"{format_duration(cpu.cpu_s)} of CPU{of} in {format_duration(cpu.duration_s)}"
    return f"{sampled}: {_shares(cpu.groups)}"


def _shares(groups: list[ProfileGroup]) -> str:
    """Write the largest groups, and what is left as one."""
    first, left = groups[:_GROUPS], groups[_GROUPS:]
    parts = [f"{item.group} {_percent(item.share)}" for item in first]
    if left:
        parts.append(f"{len(left)} more {_percent(sum(item.share or 0.0 for item in left))}")
    return ", ".join(parts)


def _percent(share: float | None) -> str:
    return glyphs.NOTHING if share is None else f"{share:.0%}".replace("%", " %")


def about_capture(capture: CaptureReport) -> Iterator[Remark]:
    """Say what else was captured with a CPU profile, and how to look into it."""
    heap, goroutines = capture.heap, capture.goroutines
    if heap is not None:
        top = ", ".join(
            f"{short_name(item.function)} {format_share(item.flat_share or 0.0)}" for item in heap.functions[:_FEW]
        )
        yield Remark(f"heap in use {format_bytes(heap.bytes)}: {top}")
    if goroutines is not None:
        top = ", ".join(
            f"{format_count(item.count)} {short_name(item.function)}"
            + ("" if item.waits_in == item.function else f" (in {short_name(item.waits_in)})")
            for item in goroutines.waiting[:_FEW]
        )
        yield Remark(f"{format_count(goroutines.count)} goroutines: {top}")
    after = "after the load was judged, " if capture.step is not None else ""
    took = f"captured {after}in {format_duration(capture.took_s)}"
    yield Remark(f"{took}; go tool pprof -top {capture.files[0]}" if capture.files else took, "hint")


def about_problems(document: Document) -> Iterator[Remark]:
    """Say of every capture what could not be captured or read."""
    for item in document.profiles:
        for problem in item.problems:
            yield Remark(f"{item.capture}: {problem}", "warning")
