"""A run in equal slots of time, for sparklines and charts."""

from __future__ import annotations

import math
from typing import Final

from scaletest.analysis.series import EVER, resample
from scaletest.analysis.state import RunState
from scaletest.core.histogram import Histogram
from scaletest.report.document import Timeline

__all__ = ["SLOTS", "timeline"]

SLOTS: Final = 60
"""Slots of a run; a slot is at least a second long, as the samples are."""

_API_SERVER: Final = "kube-apiserver"


def timeline(state: RunState) -> Timeline | None:
    """Cut the measured time into slots; None when no phase lasted a second."""
    start_s, end_s = state.measured[0], state.end_s
    if not math.isfinite(start_s) or end_s - start_s < 1.0:
        return None
    slots = min(SLOTS, int(end_s - start_s))
    slot_s = (end_s - start_s) / slots
    span = (start_s, end_s)
    rates, p99s = _flows(state, start_s, slot_s, slots)
    probes = [
        (item.sent_s, item.latency_s)
        for series in state.probes.values()
        for observations in series.values()
        for item in observations
        if item.ok
    ]
    component = state.components.get(_API_SERVER)
    memory = [(item.end_s, float(item.rss_bytes)) for item in component.process.within(EVER)] if component else []
    return Timeline(
        start_s=start_s,
        slot_s=slot_s,
        requests_per_s=list(rates),
        latency_p99_s=list(p99s),
        probe_s=list(resample(probes, span, slots)),
        api_server_memory_bytes=list(resample(memory, span, slots)),
    )


def _flows(state: RunState, start_s: float, slot_s: float, slots: int) -> tuple[list[float], list[float]]:
    requests = [math.nan] * slots
    latencies = [Histogram() for _ in range(slots)]
    for series in state.flows.values():
        for interval in series.intervals:
            slot = int((interval.middle_s - start_s) / slot_s)
            if not 0 <= slot < slots:
                continue
            count = sum(sum(step.outcomes.values()) for step in interval.steps.values())
            requests[slot] = count + (0.0 if math.isnan(requests[slot]) else requests[slot])
            for step in interval.steps.values():
                if step.latency_us is not None:
                    step.latency_us.add_to(latencies[slot])
    return [count / slot_s for count in requests], [latency.quantile(0.99) / 1e6 for latency in latencies]
