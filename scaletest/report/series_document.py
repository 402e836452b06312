"""All that a run measured over time, as series: what the CSV holds, and what the charts of the page are drawn from.

A series has the words of the objectives: its *subject* is what stands before the last dot (``flow.telemetry.list-pods``,
``probe.operator[admin]``, ``component.kube-apiserver``), its *measure* what stands after it. Times are seconds since the run began, values in
base units. Nothing is interpolated: a time in which nothing was measured has no sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from scaletest.analysis.components import HostSample
from scaletest.analysis.flows import FlowInterval, PackedHistogram, StepDelta, is_good
from scaletest.analysis.metrics import ApfSample
from scaletest.analysis.series import bucket_quantile
from scaletest.analysis.state import RunState
from scaletest.core.histogram import Histogram

__all__ = ["QUANTILES", "Sample", "Series", "Unit", "all_series", "arrivals", "flow_levels"]

Sample = tuple[float, float]
"""Time and value."""

Unit = Literal["seconds", "bytes", "cores", "share", "count", "per_second", "bytes_per_second"]

QUANTILES: Final[dict[str, float]] = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


@dataclass(frozen=True, slots=True)
class Series:
    """One measure of one subject, in order of time."""

    subject: str
    measure: str
    unit: Unit
    samples: list[Sample]


def all_series(state: RunState) -> Iterator[Series]:
    """Yield every series of a run that has a sample."""
    sources = (_flows, _probes, _nodes, _components, _api_servers, _etcd, _host, _generator)
    for source in sources:
        for series in source(state):
            known = [sample for sample in series.samples if math.isfinite(sample[1])]
            if known:
                yield Series(series.subject, series.measure, series.unit, known)


def _flows(state: RunState) -> Iterator[Series]:
    for name, series in state.flows.items():
        subject = f"flow.{name}"
        yield from flow_levels(subject, series.intervals)
        if any(item.arrivals is not None for item in series.intervals):
            yield from arrivals(subject, series.intervals)
        for step in dict.fromkeys(step for interval in series.intervals for step in interval.steps):
            did = [(item, item.steps.get(step)) for item in series.intervals]
            yield from _step(f"{subject}.{step}", did)


def flow_levels(subject: str, intervals: Iterable[FlowInterval]) -> Iterator[Series]:
    """Yield how many agents, or connections, a flow had at the end of each interval."""
    levels: dict[str, Callable[[FlowInterval], float]] = {
        "target": lambda item: item.target,
        "started": lambda item: item.started,
        "connected": lambda item: item.connected,
    }
    for measure, of in levels.items():
        yield Series(subject, measure, "count", [(item.end_s, float(of(item))) for item in intervals])


def arrivals(subject: str, intervals: Iterable[FlowInterval]) -> Iterator[Series]:
    """Yield what a pacer was asked for and did: rates over each interval, and what was in flight at its end."""
    paced = [(item, item.arrivals) for item in intervals if item.arrivals is not None]
    for measure, of in (("due", "due"), ("dropped", "dropped")):
        rates = [(item.end_s, getattr(did, of) / _length_s(item)) for item, did in paced]
        yield Series(subject, measure, "per_second", rates)
    yield Series(subject, "in_flight", "count", [(item.end_s, float(did.in_flight)) for item, did in paced])
    lags = [(item.end_s, _quantiles_s(did.lag_us)[2]) for item, did in paced]
    yield Series(subject, "start_lag_p99", "seconds", lags)


def _step(subject: str, did: list[tuple[FlowInterval, StepDelta | None]]) -> Iterator[Series]:
    good, failed, sent = [], [], []
    for item, delta in did:
        # An interval names only the steps of which something ended in it.
        outcomes = {} if delta is None else delta.outcomes
        answered = sum(count for outcome, count in outcomes.items() if is_good(outcome))
        length_s = _length_s(item)
        good.append((item.end_s, answered / length_s))
        failed.append((item.end_s, (sum(outcomes.values()) - answered) / length_s))
        sent.append((item.end_s, (0 if delta is None else delta.bytes) / length_s))
    yield Series(subject, "good", "per_second", good)
    yield Series(subject, "failed", "per_second", failed)
    yield Series(subject, "bytes", "bytes_per_second", sent)
    yield from _latencies(subject, "", [(item.end_s, delta.latency_us) for item, delta in did if delta])
    yield from _latencies(subject, "event_", [(item.end_s, delta.event_us) for item, delta in did if delta])


def _latencies(subject: str, prefix: str, parts: list[tuple[float, PackedHistogram | None]]) -> Iterator[Series]:
    found = [(t_s, _quantiles_s(packed)) for t_s, packed in parts if packed is not None and packed.counts]
    for index, name in enumerate(QUANTILES):
        yield Series(subject, f"{prefix}{name}", "seconds", [(t_s, values[index]) for t_s, values in found])


def _quantiles_s(packed: PackedHistogram) -> list[float]:
    histogram = Histogram()
    packed.add_to(histogram)
    return [value / 1e6 for value in histogram.quantiles(tuple(QUANTILES.values()))]


def _length_s(interval: FlowInterval) -> float:
    return max(interval.end_s - interval.start_s, 1e-3)


def _probes(state: RunState) -> Iterator[Series]:
    for probe, observed in state.probes.items():
        servers = {server for _, server in observed}
        for (identity, server), observations in observed.items():
            at = f"@{server}" if len(servers) > 1 else ""
            subject = f"probe.{probe}[{identity}]{at}"
            ordered = sorted(observations, key=lambda item: item.sent_s)
            good = [(item.sent_s, item.latency_s) for item in ordered if item.ok]
            failed = [(item.sent_s, item.latency_s) for item in ordered if not item.ok and not item.unfinished]
            yield Series(subject, "latency", "seconds", good)
            yield Series(subject, "failed_after", "seconds", failed)


def _nodes(state: RunState) -> Iterator[Series]:
    for probe, counts in state.node_counts.items():
        ordered = sorted(counts, key=lambda item: item.sent_s)
        yield Series(f"probe.{probe}", "ready", "count", [(item.sent_s, float(item.ready)) for item in ordered])
        yield Series(f"probe.{probe}", "not_ready", "count", [(item.sent_s, float(item.not_ready)) for item in ordered])


def _components(state: RunState) -> Iterator[Series]:
    for name, component in state.components.items():
        samples = component.process.samples
        subject = f"component.{name}"
        yield Series(subject, "memory", "bytes", [(item.end_s, float(item.rss_bytes)) for item in samples])
        used = [(item.end_s, item.cores) for item in samples if item.end_s > item.start_s]
        yield Series(subject, "cpu", "cores", used)


def _api_servers(state: RunState) -> Iterator[Series]:
    metrics = state.api_servers
    servers = {sample.server for samples in metrics.levels.values() for sample in samples}
    for level, samples in metrics.levels.items():
        for server in sorted({sample.server for sample in samples}):
            at = f"@{server}" if len(servers) > 1 else ""
            yield from _level(f"apf.{level}{at}", [sample for sample in samples if sample.server == server])
        for what in ("dispatched", "rejected"):
            grown = [
                (t_s, sum(value for (kind, of, _), value in increases.items() if (kind, of) == (what, level)))
                for t_s, increases in metrics.increases
            ]
            # Counts between two scrapes of a server: a rate of several servers that are scraped in turn would be none.
            yield Series(f"apf.{level}", what, "count", grown)
    for server in dict.fromkeys(server for _, server, _ in metrics.answered):
        answered = [(t_s, count) for t_s, of, count in metrics.answered if of == server]
        yield Series(f"apiserver@{server}", "answered", "count", answered)
    in_flight = [(item.t_s, item.mutating + item.read_only) for item in metrics.in_flight]
    yield Series("apiserver", "in_flight", "count", in_flight)


def _level(subject: str, samples: list[ApfSample]) -> Iterator[Series]:
    levels: dict[str, Callable[[ApfSample], float]] = {
        "seats": lambda item: item.seats_in_use,
        "seats_limit": lambda item: item.seats_limit,
        "queued": lambda item: item.queued,
        "executing": lambda item: item.executing,
    }
    for measure, of in levels.items():
        yield Series(subject, measure, "count", [(item.t_s, of(item)) for item in samples])


def _etcd(state: RunState) -> Iterator[Series]:
    samples = state.etcd.samples
    yield Series("etcd", "db_size", "bytes", [(item.t_s, item.db_bytes) for item in samples])
    yield Series("etcd", "db_in_use", "bytes", [(item.t_s, item.db_in_use_bytes) for item in samples])
    spans = list(pairwise(samples))
    puts = [(item.t_s, item.puts / (item.t_s - before.t_s)) for before, item in spans if item.t_s > before.t_s]
    yield Series("etcd", "puts", "per_second", puts)
    yield Series("etcd", "fsync_p99", "seconds", [(item.t_s, bucket_quantile(0.99, item.fsync)) for item in samples])
    yield Series("etcd", "commit_p99", "seconds", [(item.t_s, bucket_quantile(0.99, item.commit)) for item in samples])


def _host(state: RunState) -> Iterator[Series]:
    samples = state.host.samples
    available = [(item.t_s, float(item.available_bytes)) for item in samples]
    yield Series("host", "available_memory", "bytes", available)
    shares = [(item.t_s, _shares(before, item)) for before, item in pairwise(samples)]
    for measure in ("cpu_busy", "cpu_steal"):
        yield Series("host", measure, "share", [(t_s, parts[measure]) for t_s, parts in shares if parts])


def _shares(before: HostSample, item: HostSample) -> dict[str, float]:
    busy_s, idle_s, steal_s = (
        max(0.0, after - first)
        for after, first in (
            (item.busy_s, before.busy_s),
            (item.idle_s, before.idle_s),
            (item.steal_s, before.steal_s),
        )
    )
    whole_s = busy_s + idle_s + steal_s
    return {"cpu_busy": busy_s / whole_s, "cpu_steal": steal_s / whole_s} if whole_s > 0 else {}


def _generator(state: RunState) -> Iterator[Series]:
    samples = state.generator
    lags = [(item.t_s, _quantiles_s(item.lag_us)[2]) for item in samples if item.lag_us.counts]
    yield Series("generator", "lag_p99", "seconds", lags)
    yield Series("generator", "sockets", "count", [(item.t_s, float(item.sockets)) for item in samples])
    yield Series("generator", "unread_share", "share", [(item.t_s, item.unread_share) for item in samples])
    used = [(item.end_s, item.cores) for item in state.generator_process.samples if item.end_s > item.start_s]
    yield Series("generator", "cpu", "cores", used)
