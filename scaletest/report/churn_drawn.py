"""A churn flow, drawn for a terminal: how much was changed, and how long pods took to start."""

from __future__ import annotations

from collections.abc import Iterator

from rich.padding import Padding

from scaletest.core.units import format_duration
from scaletest.report import drawing, glyphs
from scaletest.report.document import ChurnReport, FlowReport

__all__ = ["draw_churn"]


def draw_churn(flow: FlowReport, churn: ChurnReport, identity: str) -> Iterator[Padding]:
    """Say how much was changed, and how long pods took to start."""
    moved = f"{churn.moved:,} pods created or deleted ({drawing.rate(churn.moved_per_s)}/s), up to {flow.started:,} of {flow.target:,} Ready"
    yield drawing.line(f"{flow.flow}{identity}: {moved}, {format_duration(flow.active_s)}")
    p50, most = glyphs.duration_text(churn.startup_p50_s), glyphs.duration_text(churn.startup_max_s)
    p99 = (
        "not within the time"
        if churn.late and churn.startup_p99_s is None
        else glyphs.duration_text(churn.startup_p99_s)
    )
    scheduled = glyphs.duration_text(churn.scheduling_p99_s)
    yield drawing.line(
        f"pod start-up of {churn.started:,}: {p50}, p99 {p99}, max {most}; scheduled after {scheduled} at p99", "dim"
    )
    if churn.late:
        yield drawing.line(f"{churn.late:,} pods were not Ready in time", "yellow")
    if churn.pending_at_end:
        yield drawing.line(f"{churn.pending_at_end:,} pods had not been Ready when the flow was stopped", "yellow")
