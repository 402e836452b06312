"""What is said of a flow above and below the table of its steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scaletest.analysis.flows import is_good
from scaletest.core.units import format_duration
from scaletest.report import drawing, glyphs
from scaletest.report.document import ArrivalsReport, ChurnReport, FlowReport, StepReport
from scaletest.report.said.remark import Remark

__all__ = ["about_flow", "about_steps"]

KEEPS_CLOSING: Final = 2.0
"""Times that each watch on average ended early, from which on the server is said to keep closing them."""


def about_flow(flow: FlowReport) -> Iterator[Remark]:
    """Say what a flow did as a whole: what was asked for and what was offered, and its connections."""
    if flow.churn is not None:
        yield from _churn(flow, flow.churn)
    elif flow.arrivals is not None:
        yield from _arrivals(flow, flow.arrivals)
    else:
        connected = "open" if flow.unit == "watches" else "connected"
        agents = f"{flow.started:,} of {flow.target:,} {flow.unit} started, {flow.connected:,} {connected}"
        yield Remark(f"{_name(flow)}: {agents}, {format_duration(flow.active_s)}")
    if flow.connections:
        what = "TCP and TLS" if flow.identity else "TCP and HTTP/2"
        took = glyphs.duration_text(flow.connect_p99_s)
        yield Remark(f"{flow.connections:,} connections made, p99 {took} ({what})", "hint")
    if flow.exceptions:
        yield Remark(f"{flow.exceptions:,} exceptions in the locustfile", "warning")


def about_steps(flow: FlowReport) -> Iterator[Remark]:
    """Say what of each step has no place in its row."""
    for step in flow.steps:
        yield from _step(flow, step)


def _name(flow: FlowReport) -> str:
    return f"{flow.flow} as {flow.identity}" if flow.identity else flow.flow


def _step(flow: FlowReport, step: StepReport) -> Iterator[Remark]:
    if step.event_p99_s is not None:
        p50, p99 = glyphs.duration_text(step.event_p50_s), glyphs.duration_text(step.event_p99_s)
        longest = glyphs.duration_text(step.event_max_s)
        yield Remark(f"{step.step}: {step.events:,} events, {p50} after the write, p99 {p99}, max {longest}", "hint")
    if step.reconnects:
        yield Remark(f"{step.step}: {step.reconnects:,} reconnects", "hint")
    if step.ended_early:
        yield Remark(_ended_early(flow, step), "warning")
    if step.failed:
        yield Remark(_failed(step), "warning")


def _failed(step: StepReport) -> str:
    by_outcome = ", ".join(
        f"{drawing.count(count)} {outcome}" for outcome, count in step.outcomes.items() if not is_good(outcome)
    )
    return f"{step.step} failed: {by_outcome}; after {glyphs.duration_text(step.failed_p50_s)} (median)"


def _ended_early(flow: FlowReport, step: StepReport) -> str:
    """Say how often watches ended before their time; that the server keeps closing them, where it was each of them twice or more."""
    after = f"half of them within {glyphs.duration_text(step.ended_early_p50_s)}"
    times = step.ended_early / max(1, flow.started)
    if times >= KEEPS_CLOSING:
        return f"{step.step}: the server keeps closing watches: {step.ended_early:,} ended before their time, {times:.1f} for each, {after}"
    return f"{step.step}: {step.ended_early:,} watches ended before their time, {after}"


def _arrivals(flow: FlowReport, arrivals: ArrivalsReport) -> Iterator[Remark]:
    """Say what was asked for and what was offered, and what the step table's latencies count from."""
    length = f"{flow.connected:,} connections, {format_duration(flow.active_s)}"
    if arrivals.closed:
        yield Remark(f"{_name(flow)}: a closed loop on {length}")
    else:
        begun = arrivals.due - arrivals.dropped
        share = glyphs.share_text(arrivals.achieved)
        yield Remark(f"{_name(flow)}: {begun:,} of {arrivals.due:,} arrivals begun ({share}) on {length}")
        lag = glyphs.duration_text(arrivals.start_lag_p99_s)
        yield Remark(f"begun {lag} late at p99; latency counts from when they were due", "hint")
    if arrivals.dropped:
        yield Remark(f"{arrivals.dropped:,} dropped: {arrivals.most_in_flight:,} were in flight", "warning")
    if arrivals.in_flight_at_end:
        yield Remark(f"{arrivals.in_flight_at_end:,} had not ended when the flow was stopped", "warning")
    for step in flow.steps:
        if step.service_p99_s is not None and not arrivals.closed:
            p50, p99 = glyphs.duration_text(step.service_p50_s), glyphs.duration_text(step.service_p99_s)
            yield Remark(f"{step.step}: {p50} from the send, p99 {p99}", "hint")


def _churn(flow: FlowReport, churn: ChurnReport) -> Iterator[Remark]:
    """Say how much was changed, and how long pods took to start."""
    moved = f"{churn.moved:,} pods created or deleted ({drawing.rate(churn.moved_per_s)}/s), up to {flow.started:,} of {flow.target:,} Ready"
    yield Remark(f"{_name(flow)}: {moved}, {format_duration(flow.active_s)}")
    p50, most = glyphs.duration_text(churn.startup_p50_s), glyphs.duration_text(churn.startup_max_s)
    p99 = (
        "not within the time"
        if churn.late and churn.startup_p99_s is None
        else glyphs.duration_text(churn.startup_p99_s)
    )
    scheduled = glyphs.duration_text(churn.scheduling_p99_s)
    yield Remark(
        f"pod start-up of {churn.started:,}: {p50}, p99 {p99}, max {most}; scheduled after {scheduled} at p99", "hint"
    )
    if churn.late:
        yield Remark(f"{churn.late:,} pods were not Ready in time", "warning")
    if churn.pending_at_end:
        yield Remark(f"{churn.pending_at_end:,} pods had not been Ready when the flow was stopped", "warning")
