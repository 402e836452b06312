"""Fold the records of a journal into what is known of a run.

The runner feeds records as they are written, to evaluate conditions; the report feeds those of a finished, or killed, run.
Both get the same state from the same records, in whatever chunks they come and however the lines of different
writers interleave. A record of an unknown kind is passed over; one that lacks a field, or has a wrong one in it (a number that cannot be,
for one), is counted in ``malformed`` and changes nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from scaletest.analysis.captures import CapturedProfile
from scaletest.analysis.components import (
    ComponentExit,
    ComponentLimit,
    ComponentSeries,
    HostSample,
    HostSeries,
    ProcessSeries,
)
from scaletest.analysis.flows import FlowInterval, FlowSeries, PackedHistogram
from scaletest.analysis.latency import LatencyMetrics
from scaletest.analysis.lockouts import Observation
from scaletest.analysis.metrics import ApiServerMetrics, EtcdMetrics
from scaletest.analysis.numbers import amount, count, number, optional, seconds, whole
from scaletest.analysis.searchlog import SEARCH_KINDS, SearchLog, apply_search
from scaletest.analysis.series import EVER, Span, contains
from scaletest.core.foreignfiles import check_values
from scaletest.core.histogram import Histogram
from scaletest.core.journal import Record

__all__ = ["Event", "FlowSample", "GeneratorSample", "NodeCount", "PhaseSpan", "RunEnd", "RunState"]

NODE_PROBE_IDENTITY: Final = "system:masters"
"""Who counts Ready nodes."""

_SKIPPED: Final = "skipped"
"""Outcome of a probe's request that was due and not sent: it says something of the prober, nothing of the server."""

_SAMPLES_KEPT: Final = 5
"""Failed answers kept for each flow, step and outcome."""

_EVENT_KINDS: Final = frozenset({
    "run.start", "run.end", "phase.start", "phase.end", "flow.start", "flow.stop", "action.start", "action.end",
    "fleet.seeded", "fleet.ready", "note", "component.start", "component.exit", "component.backoff", "host.guard",
    "cluster.ready", "cluster.end", "driver.ready", "driver.end", "search.step.end",
})  # fmt: skip
"""Kinds that are told in the report as they are."""

_MALFORMED: Final = (KeyError, TypeError, ValueError, OverflowError, AttributeError)


@dataclass(slots=True)
class PhaseSpan:
    """A phase that began, and how it ended."""

    name: str
    start_s: float
    end_s: float | None = None
    reason: str | None = None

    @property
    def span(self) -> Span:
        """The span of the phase; open while it lasts."""
        return self.start_s, math.inf if self.end_s is None else self.end_s


@dataclass(frozen=True, slots=True)
class Event:
    """A record that tells something that happened once."""

    t_s: float
    kind: str
    fields: Record


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How the run ended, by its own account."""

    t_s: float
    status: str
    reason: str | None
    exit_code: int | None
    """Exit code of the error that ended the run, where there was one."""


@dataclass(frozen=True, slots=True)
class NodeCount:
    """Ready and other nodes, as a probe counted them."""

    sent_s: float
    ready: int
    not_ready: int
    total: int


@dataclass(frozen=True, slots=True)
class FlowSample:
    """A failed answer."""

    t_s: float
    flow: str
    step: str
    outcome: str
    status: int | None
    reason: str | None
    message: str | None
    node: str | None


@dataclass(frozen=True, slots=True)
class Cores:
    """CPUs by number: those of the load driver and its processes, and those of the control plane; none where all share all."""

    generator: tuple[int, ...]
    control_plane: tuple[int, ...]
    all: int
    kept: bool
    """Whether the cluster was there before the run, which does not move it."""


@dataclass(frozen=True, slots=True)
class GeneratorSample:
    """One ``driver`` record."""

    t_s: float
    interval_s: float
    lag_us: PackedHistogram
    sockets: int
    unread_share: float
    """Of the sockets that waited for bytes, those that had some; 0 where none waited."""


@dataclass(slots=True)
class RunState:
    """All that the records applied so far say."""

    records: int = 0
    last_t_s: float = 0.0
    end: RunEnd | None = None
    phases: list[PhaseSpan] = field(default_factory=list)
    flows: dict[str, FlowSeries] = field(default_factory=dict)
    flow_starts_s: dict[str, float] = field(default_factory=dict)
    flow_units: dict[str, str] = field(default_factory=dict)
    """What a flow consists of: agents, watches, connections, users."""
    flow_stops_s: dict[str, float] = field(default_factory=dict)
    flow_samples: list[FlowSample] = field(default_factory=list)
    probes: dict[str, dict[tuple[str, str], list[Observation]]] = field(default_factory=dict)
    """Observations by probe, then by (identity, server)."""
    probe_skips: Counter[str] = field(default_factory=Counter)
    """Requests of each probe that were due and not sent."""
    node_counts: dict[str, list[NodeCount]] = field(default_factory=dict)
    components: dict[str, ComponentSeries] = field(default_factory=dict)
    """Components of the control plane, and the processes of scaletest itself."""
    host: HostSeries = field(default_factory=HostSeries)
    generator: list[GeneratorSample] = field(default_factory=list)
    generator_process: ProcessSeries = field(default_factory=ProcessSeries)
    generator_workers: dict[int, ProcessSeries] = field(default_factory=dict)
    """Processes that the load driver has started to make load, by pid."""
    api_servers: ApiServerMetrics = field(default_factory=ApiServerMetrics)
    latency: LatencyMetrics = field(default_factory=LatencyMetrics)
    """Histograms of the API servers."""
    etcd: EtcdMetrics = field(default_factory=EtcdMetrics)
    cores: Cores | None = None
    """Not known of journals before 0.2."""
    search: SearchLog | None = None
    """The saturation search, where the profile has one and it began."""
    profiles: list[CapturedProfile] = field(default_factory=list)
    """Profiles of the API servers that were captured, or could not be."""
    gaps: list[tuple[float, str, str]] = field(default_factory=list)
    """Scrapes of /metrics that failed: time, target and outcome."""
    events: list[Event] = field(default_factory=list)
    malformed: Counter[str] = field(default_factory=Counter)
    """By kind."""
    first_malformed_line: int | None = None
    """Line of the journal, where records were applied with theirs."""
    lost_records: int = 0
    """Records that writers could not write, by their own account."""
    _samples_seen: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def apply(self, record: Record, line: int | None = None) -> None:
        """Take in one record, which stands in a line of the journal."""
        self.records += 1
        kind = record.get("kind")
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        try:
            t_s, lost = seconds(record["t"]), count(record.get("lost_records") or 0)
            if kind in _EVENT_KINDS:
                # Told as they are, whatever they hold.
                check_values(record)
            if handler is not None:
                handler(self, record)
        except _MALFORMED:
            self.malformed[str(kind)] += 1
            self.first_malformed_line = self.first_malformed_line or line
            return
        self.last_t_s = max(self.last_t_s, t_s)
        self.lost_records += lost
        if kind in _EVENT_KINDS:
            self.events.append(Event(t_s, str(kind), record))

    def apply_all(self, records: Iterable[Record]) -> RunState:
        """Take in many records and return the state itself."""
        for record in records:
            self.apply(record)
        return self

    @property
    def end_s(self) -> float:
        """End of the measurement: of the last phase, or the last record while one lasts."""
        ends = [phase.end_s for phase in self.phases]
        if ends and None not in ends:
            return max(end_s for end_s in ends if end_s is not None)
        return self.last_t_s

    @property
    def measured(self) -> Span:
        """From the first phase on to the end of the last: without set-up and tear-down."""
        start_s = min((phase.start_s for phase in self.phases), default=-math.inf)
        open_ended = not self.phases or any(phase.end_s is None for phase in self.phases)
        return start_s, math.inf if open_ended else self.end_s

    @property
    def generator_processes(self) -> list[tuple[str, ProcessSeries]]:
        """The processes that make the load, each of which has one core: the driver, and those that it has started."""
        workers = [(f"load process {pid}", series) for pid, series in sorted(self.generator_workers.items())]
        return [("load driver", self.generator_process), *workers]

    @property
    def current_phase(self) -> PhaseSpan | None:
        """The phase that lasts now."""
        return next((phase for phase in reversed(self.phases) if phase.end_s is None), None)

    def phase(self, name: str) -> PhaseSpan | None:
        """Return a phase that began, by name."""
        return next((phase for phase in self.phases if phase.name == name), None)

    def lag_us(self, span: Span = EVER) -> Histogram:
        """Return how late the driver's event loop ran within a span."""
        lag = Histogram()
        for sample in self.generator:
            if contains(span, sample.t_s - sample.interval_s / 2):
                sample.lag_us.add_to(lag)
        return lag


def _run_end(state: RunState, record: Record) -> None:
    state.end = RunEnd(
        seconds(record["t"]),
        str(record["status"]),
        _text(record.get("reason")),
        optional(whole, record.get("exit_code")),
    )


def _phase_start(state: RunState, record: Record) -> None:
    state.phases.append(PhaseSpan(str(record["phase"]), seconds(record["t"])))


def _phase_end(state: RunState, record: Record) -> None:
    name = str(record["phase"])
    phase = next((item for item in reversed(state.phases) if item.name == name and item.end_s is None), None)
    if phase is None:
        msg = f"phase {name} ends without having begun"
        raise ValueError(msg)
    phase.end_s, phase.reason = seconds(record["t"]), _text(record.get("reason"))


def _flow_start(state: RunState, record: Record) -> None:
    state.flow_starts_s.setdefault(str(record["flow"]), seconds(record["t"]))
    state.flow_stops_s.pop(str(record["flow"]), None)
    state.flow_units[str(record["flow"])] = str(record.get("unit") or "agents")


def _flow_stop(state: RunState, record: Record) -> None:
    state.flow_stops_s[str(record["flow"])] = seconds(record["t"])


def _flow(state: RunState, record: Record) -> None:
    name, interval = str(record["flow"]), FlowInterval.parse(record)
    state.flows.setdefault(name, FlowSeries()).add(interval)


def _flow_sample(state: RunState, record: Record) -> None:
    sample = FlowSample(
        seconds(record["t"]),
        str(record["flow"]),
        str(record["step"]),
        str(record["outcome"]),
        optional(whole, record.get("status")),
        _text(record.get("reason")),
        _text(record.get("message")),
        _text(record.get("node")),
    )
    key = sample.flow, sample.step, sample.outcome
    state._samples_seen[key] += 1  # noqa: SLF001 -- the handlers are the other half of the class
    if state._samples_seen[key] <= _SAMPLES_KEPT:  # noqa: SLF001
        state.flow_samples.append(sample)


def _probe(state: RunState, record: Record) -> None:
    if record.get("outcome") == _SKIPPED:
        state.probe_skips[str(record["probe"])] += 1
        return
    key = str(record.get("identity") or NODE_PROBE_IDENTITY), str(record.get("server") or "")
    observation = Observation(
        seconds(record["sent_t"]),
        seconds(record["latency_s"]),
        bool(record["ok"]),
        str(record.get("outcome") or ("ok" if record["ok"] else "error")),
        _text(record.get("reason")),
        number(record.get("late_s") or 0.0),
    )
    state.probes.setdefault(str(record["probe"]), {}).setdefault(key, []).append(observation)


def _probe_nodes(state: RunState, record: Record) -> None:
    counts = [record.get(key) for key in ("ready", "not_ready", "total")]
    if record["ok"]:
        ready, not_ready, total = (count(value) for value in counts if value is not None)
        counted = NodeCount(seconds(record["sent_t"]), ready, not_ready, total)
        _probe(state, record)
        state.node_counts.setdefault(str(record["probe"]), []).append(counted)
    else:
        _probe(state, record)


def _process(state: RunState, record: Record) -> None:
    t_s = seconds(record["t"])
    samples = [
        (str(name), data.get("pid"), count(data["rss_bytes"]), amount(data["cpu_s"]))
        for name, data in record["processes"].items()
    ]
    for name, pid, rss_bytes, cpu_s in samples:
        _component(state, name).process.add(t_s, pid, rss_bytes, cpu_s)


def _host(state: RunState, record: Record) -> None:
    sample, total_bytes, cores = (
        HostSample.parse(record),
        optional(count, record.get("total_bytes")),
        optional(count, record.get("cores")),
    )
    state.host.samples.append(sample)
    state.host.total_bytes = total_bytes or state.host.total_bytes
    state.host.cores = cores or state.host.cores


def _metrics_gap(state: RunState, record: Record) -> None:
    state.gaps.append((seconds(record["t"]), str(record["target"]), str(record.get("outcome") or "error")))


def _component_limit(state: RunState, record: Record) -> None:
    limit = ComponentLimit(
        optional(count, record.get("memory_bytes")),
        optional(amount, record.get("cpu_cores")),
        str(record.get("memory_by") or "none"),
        str(record.get("cpu_by") or "none"),
    )
    _component(state, str(record["component"])).limit = limit


def _component_start(state: RunState, record: Record) -> None:
    component = _component(state, str(record["component"]))
    if count(record.get("restart") or 0) > 0:
        component.restarts_s.append(seconds(record["t"]))


def _component_exit(state: RunState, record: Record) -> None:
    ended = ComponentExit(
        seconds(record["t"]),
        str(record["reason"]),
        optional(whole, record.get("code")),
        optional(whole, record.get("signal")),
        optional(count, record.get("peak_rss_bytes")),
        optional(count, record.get("cap_bytes")),
        _text(record.get("log_tail")),
    )
    _component(state, str(record["component"])).exits.append(ended)


def _search(state: RunState, record: Record) -> None:
    state.search = apply_search(state.search, record)


def _driver(state: RunState, record: Record) -> None:
    t_s, share = seconds(record["t"]), record.get("unread_share")
    sample = GeneratorSample(
        t_s,
        seconds(record["interval_s"]),
        PackedHistogram(record["lag_us"]),
        count(record.get("sockets") or 0),
        amount(share or 0.0),
    )
    rss_bytes, cpu_s = count(record["rss_bytes"]), amount(record["cpu_s"])
    workers = [
        (count(item["pid"]), count(item["rss_bytes"]), amount(item["cpu_s"])) for item in record.get("workers") or ()
    ]
    state.generator.append(sample)
    state.generator_process.add(t_s, record.get("pid"), rss_bytes, cpu_s)
    for pid, worker_rss_bytes, worker_cpu_s in workers:
        state.generator_workers.setdefault(pid, ProcessSeries()).add(t_s, pid, worker_rss_bytes, worker_cpu_s)


def _cores(state: RunState, record: Record) -> None:
    generator, control_plane = (tuple(count(cpu) for cpu in record[key]) for key in ("generator", "control_plane"))
    state.cores = Cores(generator, control_plane, count(record["all"]), bool(record["kept"]))


def _component(state: RunState, name: str) -> ComponentSeries:
    return state.components.setdefault(name, ComponentSeries())


def _text(value: object) -> str | None:
    return None if value is None else str(value)


_HANDLERS: Final[dict[str, Callable[[RunState, Record], None]]] = {
    "run.end": _run_end,
    "phase.start": _phase_start,
    "phase.end": _phase_end,
    "flow.start": _flow_start,
    "flow.stop": _flow_stop,
    "flow": _flow,
    "flow.sample": _flow_sample,
    "probe": _probe,
    "probe.nodes": _probe_nodes,
    "process": _process,
    "host": _host,
    "metrics.apiserver": lambda state, record: state.api_servers.add(record),
    "metrics.latency": lambda state, record: state.latency.add(record),
    "metrics.etcd": lambda state, record: state.etcd.add(record),
    "metrics.gap": _metrics_gap,
    "pprof": lambda state, record: state.profiles.append(CapturedProfile.parse(record)),
    "component.limit": _component_limit,
    "component.start": _component_start,
    "component.exit": _component_exit,
    "driver": _driver,
    "cores": _cores,
    **dict.fromkeys(SEARCH_KINDS, _search),
}
