"""What the live view shows of flows, probes and processes: the figures of the last few seconds.

They are read from the end of a ``RunState`` backwards, so that their cost does not grow with the run, and by the definitions of
the final report: the same histograms, the same outcomes, the same lock-outs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from scaletest.analysis.components import ComponentSeries, ProcessSeries
from scaletest.analysis.flows import FlowInterval, StepTotals, is_good
from scaletest.analysis.limiting import API_SERVER
from scaletest.analysis.lockouts import Observation, latency_quantile, lockouts
from scaletest.analysis.series import EVER
from scaletest.analysis.state import NodeCount, RunState
from scaletest.core.histogram import Histogram

__all__ = [
    "OWN_PROCESSES",
    "RECENT_S",
    "ComponentNow",
    "FlowNow",
    "OwnNow",
    "ProbeNow",
    "api_server_bytes",
    "component_now",
    "flow_now",
    "last_good_s",
    "latest_interval",
    "locked_since_s",
    "own_now",
    "probe_now",
    "totals",
]

RECENT_S: Final = 5.0
"""Long enough for a rate that does not jump, short enough to see a collapse while it happens."""

OWN_PROCESSES: Final = ("driver", "cli", "supervisor")
"""Processes of scaletest among those sampled."""


@dataclass(frozen=True, slots=True)
class FlowNow:
    """A flow in the last seconds; None for what was not measured in them."""

    flow: str
    started: int
    target: int
    connected: int
    stopped: bool
    blocked: bool
    rate_per_s: float | None
    failed_share: float | None
    p50_s: float | None
    p99_s: float | None
    bytes_per_s: float | None
    failed: Mapping[str, int]
    """Failed requests by outcome, most frequent first."""
    asked_per_s: float | None = None
    """Arrivals asked for per second."""


@dataclass(frozen=True, slots=True)
class ProbeNow:
    """A probe as one identity; with several API servers by its best one."""

    probe: str
    identity: str
    last: Observation
    success_rate: float | None
    p99_s: float | None
    """Of the answers of the last seconds; infinite for no answer."""
    locked_since_s: float | None
    silent_s: float
    """Seconds since the last good answer, or since the first request when there was none."""
    nodes: NodeCount | None


@dataclass(frozen=True, slots=True)
class ComponentNow:
    """A component of the control plane."""

    component: str
    memory_bytes: int | None
    cap_bytes: int | None
    cores: float | None
    quota_cores: float | None
    quota_enforced: bool
    down: bool
    restarts: int
    oom_kills: int


@dataclass(frozen=True, slots=True)
class OwnNow:
    """What scaletest itself takes, and what the host has left."""

    processes: Mapping[str, tuple[int, float | None]]
    """Resident bytes and cores by process."""
    lag_p99_s: float | None
    available_bytes: int | None


def flow_now(state: RunState, flow: str, now_s: float) -> FlowNow:
    """Return a flow's gauges, and its requests of the last seconds."""
    series = state.flows.get(flow)
    intervals = series.intervals if series else []
    recent = list(_recent_intervals(intervals, now_s - RECENT_S))
    whole, covered_s = totals(recent), sum(item.end_s - item.start_s for item in recent)
    latest = intervals[-1] if intervals else None
    latency = whole.latency_us
    failed = {outcome: count for outcome, count in whole.outcomes.items() if count and not is_good(outcome)}
    return FlowNow(
        flow=flow,
        started=latest.started if latest else 0,
        target=latest.target if latest else 0,
        connected=latest.connected if latest else 0,
        stopped=flow in state.flow_stops_s,
        blocked=latest.blocked if latest else False,
        rate_per_s=whole.requests / covered_s if covered_s > 0 else None,
        failed_share=whole.failed / whole.requests if whole.requests else None,
        p50_s=latency.quantile(0.50) / 1e6 if latency.count else None,
        p99_s=latency.quantile(0.99) / 1e6 if latency.count else None,
        bytes_per_s=whole.bytes / covered_s if covered_s > 0 else None,
        failed=dict(sorted(failed.items(), key=lambda item: -item[1])),
        asked_per_s=latest.arrivals.rate_per_s if latest is not None and latest.arrivals is not None else None,
    )


def totals(intervals: Sequence[FlowInterval]) -> StepTotals:
    """Add up all steps of some intervals."""
    whole = StepTotals()
    for interval in intervals:
        for delta in interval.steps.values():
            whole.add(delta)
    return whole


def latest_interval(state: RunState, flow: str) -> FlowInterval | None:
    """Return the newest interval of a flow."""
    series = state.flows.get(flow)
    return series.intervals[-1] if series and series.intervals else None


def _recent_intervals(intervals: Sequence[FlowInterval], since_s: float) -> Iterator[FlowInterval]:
    for interval in reversed(intervals):
        if interval.end_s <= since_s:
            return
        yield interval


def probe_now(state: RunState, probe: str, identity: str, now_s: float) -> ProbeNow | None:
    """Return what a probe saw as an identity; None while it has seen nothing."""
    servers = _servers(state, probe, identity)
    if not servers:
        return None
    p99s_s, rates = [], []
    for observations in servers:
        recent = _recent_answers(observations, now_s - RECENT_S)
        ended = [item for item in recent if not item.unfinished]
        if ended:
            rates.append(sum(item.ok for item in ended) / len(ended))
            p99s_s.append(latency_quantile(ended, 0.99))
    since_s = last_good_s(state, probe, identity)
    if since_s is None:
        since_s = min(items[0].sent_s for items in servers)
    counts = state.node_counts.get(probe)
    return ProbeNow(
        probe=probe,
        identity=identity,
        last=max((items[-1] for items in servers), key=lambda item: item.answered_s),
        success_rate=max(rates, default=None),
        p99_s=min(p99s_s, default=None),
        locked_since_s=locked_since_s(state, probe, identity, now_s),
        silent_s=max(0.0, now_s - since_s),
        nodes=counts[-1] if counts else None,
    )


def last_good_s(state: RunState, probe: str, identity: str) -> float | None:
    """Return when the last good answer for an identity arrived, from any API server."""
    newest = [_since_last_good(items)[0] for items in _servers(state, probe, identity)]
    return max((item.answered_s for item in newest if item.ok), default=None)


def locked_since_s(state: RunState, probe: str, identity: str, now_s: float) -> float | None:
    """Return since when every API server locks an identity out; None when one does not."""
    starts_s = []
    for observations in _servers(state, probe, identity):
        spans = lockouts(_since_last_good(observations), now_s)
        if not spans or spans[-1][1] < now_s:
            return None
        starts_s.append(spans[-1][0])
    return max(starts_s, default=None)


def _servers(state: RunState, probe: str, identity: str) -> list[list[Observation]]:
    series = state.probes.get(probe, {})
    return [items for (of_identity, _), items in series.items() if of_identity == identity and items]


def _since_last_good(observations: Sequence[Observation]) -> Sequence[Observation]:
    """Return the last good answer and all that followed it; everything when there was none."""
    for index in range(len(observations) - 1, -1, -1):
        if observations[index].ok:
            return observations[index:]
    return observations


def _recent_answers(observations: Sequence[Observation], since_s: float) -> list[Observation]:
    """Return what arrived since a time; a journal has answers in the order of their arrival."""
    recent: list[Observation] = []
    for item in reversed(observations):
        if item.answered_s <= since_s:
            break
        recent.append(item)
    return recent


def component_now(state: RunState, component: str, newest_s: float, now_s: float) -> ComponentNow:
    """Return a component's use of its caps; ``newest_s`` is the time of the newest sample of all processes."""
    series = state.components[component]
    down = _down(series, newest_s)
    limit, samples = series.limit, series.process.samples
    return ComponentNow(
        component=component,
        memory_bytes=samples[-1].rss_bytes if samples and not down else None,
        cap_bytes=limit.memory_bytes if limit else None,
        cores=None if down else _recent_cores(series.process, now_s - RECENT_S),
        quota_cores=limit.cpu_cores if limit else None,
        quota_enforced=limit is not None and limit.cpu_by != "none",
        down=down,
        restarts=series.restarts(EVER),
        oom_kills=series.oom_kills(EVER),
    )


def _down(series: ComponentSeries, newest_s: float) -> bool:
    """Whether a component is missing among the processes, or has ended since they were sampled."""
    sampled_s = series.process.samples[-1].end_s if series.process.samples else -math.inf
    alive_s = max(sampled_s, series.restarts_s[-1] if series.restarts_s else -math.inf)
    ended = bool(series.exits) and series.exits[-1].t_s > alive_s
    return ended or (math.isfinite(sampled_s) and sampled_s < newest_s)


def _recent_cores(process: ProcessSeries, since_s: float) -> float | None:
    cpu_s = covered_s = 0.0
    for sample in reversed(process.samples):
        if sample.end_s <= since_s:
            break
        cpu_s += sample.cpu_s
        covered_s += sample.end_s - sample.start_s
    return cpu_s / covered_s if covered_s > 0 else None


def api_server_bytes(state: RunState, newest_s: float) -> float | None:
    """Return the memory of the largest API server that is alive."""
    alive = [
        float(series.process.samples[-1].rss_bytes)
        for name, series in state.components.items()
        if name.startswith(API_SERVER) and series.process.samples and not _down(series, newest_s)
    ]
    return max(alive, default=None)


def own_now(state: RunState, now_s: float) -> OwnNow:
    """Return what scaletest's own processes take."""
    processes = {}
    for name in ("driver", "cli"):
        series = state.components.get(name)
        if series and series.process.samples:
            cores = _recent_cores(series.process, now_s - RECENT_S)
            processes[name] = (series.process.samples[-1].rss_bytes, cores)
    lag = Histogram()
    for sample in reversed(state.generator):
        if sample.t_s <= now_s - RECENT_S:
            break
        sample.lag_us.add_to(lag)
    return OwnNow(
        processes=processes,
        lag_p99_s=lag.quantile(0.99) / 1e6 if lag.count else None,
        available_bytes=state.host.samples[-1].available_bytes if state.host.samples else None,
    )
