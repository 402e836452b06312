"""What the table of a matrix says of one run: a list of measures in the order of the table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from scaletest.analysis.components import ComponentSeries
from scaletest.analysis.evaluate import lockouts_of, measure
from scaletest.analysis.incident import analyse
from scaletest.analysis.limiting import API_SERVER
from scaletest.analysis.lockouts import longest_s
from scaletest.analysis.saturation import Saturation
from scaletest.analysis.state import RunState
from scaletest.analysis.verdict import Verdict
from scaletest.core.histogram import Histogram
from scaletest.profile.objectives import Dimension, Subject
from scaletest.report.matrix_document import Unit
from scaletest.report.rundir import LoadedRun

__all__ = ["Key", "Measure", "measures_of"]

_UNITS: Final[dict[Dimension, Unit]] = {
    Dimension.DURATION: "seconds",
    Dimension.SHARE: "share",
    Dimension.BYTES: "bytes",
    Dimension.RATE: "per_second",
    Dimension.COUNT: "count",
}
_OWN: Final = ("supervisor", "driver", "cli")

Key = tuple[str, str]
"""Section and measure: what makes a row."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One number, or a word, of one run."""

    section: str
    name: str
    unit: Unit
    value: float | str
    holds: bool | None = None
    """For an objective."""
    label: str | None = None
    """What the row is called where all variants agree on it; else ``name``."""
    infinite: str = "no answer"
    """What stands for infinity."""
    zero: str | None = None
    """What stands for 0."""
    only_if_any: bool = False
    """No row is made of it when it is 0 in all runs."""

    @property
    def key(self) -> Key:
        """The row that it belongs to."""
        return self.section, self.name


def measures_of(run: LoadedRun, found: Saturation | None) -> list[Measure]:
    """Return the measures of a run, and what its search found, in the order of the table."""
    state = run.state
    return [
        *_run(run), *_objectives(run.verdict), *_saturation(found), *_incident(run), *_actions(state), *_flows(state), *_probes(state), *_system(state),
    ]  # fmt: skip


def _run(run: LoadedRun) -> Iterator[Measure]:
    yield Measure("Run", "verdict", "text", run.verdict.outcome.value)
    kubernetes = run.info.versions.get("kubernetes")
    if kubernetes is not None:
        yield Measure("Run", "Kubernetes", "text", str(kubernetes))
    yield Measure("Run", "duration", "seconds", run.state.last_t_s)


def _objectives(verdict: Verdict) -> Iterator[Measure]:
    seen: dict[str, int] = {}
    for result in verdict.objectives:
        if result.objective is None:
            yield Measure("Objectives", result.text, "text", "not understood", result.holds)
            continue
        # A threshold may be a parameter: {nodes}. The row is about the subject, not about its text.
        name = f"{result.objective.subject} {result.objective.op}"
        seen[name] = seen.get(name, 0) + 1
        name = f"{name} …" if seen[name] == 1 else f"{name} … ({seen[name]})"
        unit = _UNITS[result.objective.subject.dimension]
        yield Measure("Objectives", name, unit, result.measured.value, result.holds, label=result.text)


def _saturation(found: Saturation | None) -> Iterator[Measure]:
    """Yield what a search found, what gave out, and what lies past it."""
    if found is None:
        return
    name = found.log.parameter
    yield Measure("Saturation", f"{name} that holds", "count", _or_nan(found.found.holds))
    yield Measure("Saturation", f"{name} that fails", "count", _or_nan(found.found.fails))
    yield Measure("Saturation", "search ended", "text", found.found.reason.value)
    if found.law is not None:
        yield Measure("Saturation", "agents law (estimate)", "count", found.law.limit)
    if found.attribution is not None:
        limit = found.attribution.limit
        yield Measure("Saturation", "gave out", "text", "none at its limit" if limit is None else limit.resource.value)
    if found.past is not None:
        yield Measure("Saturation", "past it", "text", found.past.behaviour.value)
    if found.back is not None:
        after_s = found.back.recovered_after_s if found.back.taken_back else math.nan
        yield Measure("Saturation", "recovery", "seconds", math.inf if after_s is None else after_s, infinite="never")


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _incident(run: LoadedRun) -> Iterator[Measure]:
    """Yield when the first SLO was broken, and how long after a lever all was well, to the end."""
    incident = analyse(run.state, run.info.profile)
    measured = any(item.measured for item in incident.slos)
    if measured and incident.rollout_s is not None:
        broken_s = incident.first_breach_s
        after_s = math.inf if broken_s is None else broken_s - incident.rollout_s
        yield Measure("Incident", "SLO breach after rollout", "seconds", after_s, infinite="never")
    for lever in incident.levers:
        name, start_s = lever.phase.name, lever.phase.start_s
        if lever.recovered is not None:
            yield _since("to recovered", name, start_s, incident.identities_good_from_s)
        if measured:
            yield _since("to SLO", name, start_s, incident.slos_hold_from_s)


def _since(what: str, phase: str, start_s: float, at_s: float | None) -> Measure:
    value = math.inf if at_s is None else max(0.0, at_s - start_s)
    return Measure("Incident", f"{phase} {what}", "seconds", value, infinite="never", zero="already")


def _actions(state: RunState) -> Iterator[Measure]:
    """Yield how long each action took, and whether it did what it was to do."""
    phase = "set-up"
    seen: dict[Key, int] = {}
    for event in state.events:
        if event.kind == "phase.start":
            phase = str(event.fields.get("phase"))
        name = str(event.fields.get("action"))
        # A lever is told around the actions that it stands for: those are what acts.
        if event.kind != "action.end" or name == "lever":
            continue
        key = (f"Actions in {phase}", name)
        seen[key] = seen.get(key, 0) + 1
        took_s = event.fields.get("duration_s")
        value = float(took_s) if isinstance(took_s, int | float) else math.nan
        label = name if seen[key] == 1 else f"{name} ({seen[key]})"
        yield Measure(key[0], label, "seconds", value, holds=bool(event.fields.get("ok")))


def _flows(state: RunState) -> Iterator[Measure]:
    for name, series in state.flows.items():
        section = f"Flow {name}"
        yield Measure(section, "agents started", "count", max(item.started for item in series.intervals))
        yield Measure(section, "agents wanted", "count", max(item.target for item in series.intervals))
        totals = series.totals()
        whole = totals.step(None)
        if whole is None:
            continue
        yield Measure(
            section,
            "requests",
            "per_second",
            whole.requests / totals.covered_s if totals.covered_s > 0 else math.nan,
        )
        yield Measure(section, "good answers", "share", whole.good / whole.requests if whole.requests else math.nan)
        yield Measure(section, "p50", "seconds", _quantile_s(whole.latency_us, 0.50))
        yield Measure(section, "p99", "seconds", _quantile_s(whole.latency_us, 0.99))


def _quantile_s(latency_us: Histogram, q: float) -> float:
    return latency_us.quantile(q) / 1e6 if latency_us.count else math.nan


def _probes(state: RunState) -> Iterator[Measure]:
    for probe, series in state.probes.items():
        for identity in dict.fromkeys(identity for identity, _ in series):
            yield from _probe(state, probe, identity)
    for probe, counts in state.node_counts.items():
        yield Measure(f"Probe {probe}", "most nodes NotReady", "count", max(item.not_ready for item in counts))


def _probe(state: RunState, probe: str, identity: str) -> Iterator[Measure]:
    section = f"Probe {probe}, {identity}"

    def value(name: str) -> float:
        return measure(state, Subject("probe", probe, None, identity, name)).value

    spans = lockouts_of(state, probe, identity)
    yield Measure(section, "good answers", "share", value("success_rate"))
    yield Measure(section, "p50", "seconds", value("p50"))
    yield Measure(section, "p99", "seconds", value("p99"))
    yield Measure(section, "longest lock-out", "seconds", longest_s(spans))
    for phase in state.phases:
        name = f"{phase.name} to good answer"
        span = next((item for item in spans if item[0] <= phase.start_s < item[1]), None)
        waited_s = 0.0 if span is None else math.inf if span[1] >= state.end_s else span[1] - phase.start_s
        # Levers act when their phase begins: this is how long an operator waited for one to help.
        yield Measure(
            section, name, "seconds", waited_s, infinite="never", zero="not locked out", only_if_any=True
        )  # fmt: skip


def _system(state: RunState) -> Iterator[Measure]:
    servers = {name: item for name, item in state.components.items() if name.startswith(API_SERVER)}
    others = {name: item for name, item in state.components.items() if name not in {*servers, *_OWN}}
    yield from _component_rows(state, servers)
    span = state.measured
    yield Measure("Other components", "OOM kills", "count", sum(item.oom_kills(span) for item in others.values()))
    yield Measure("Other components", "restarts", "count", sum(item.restarts(span) for item in others.values()))
    yield Measure("Host", "least available memory", "bytes", state.host.least_available_bytes(span))
    yield Measure("Host", "idle CPU", "share", state.host.cpu_share(span, "idle"))
    if state.generator:
        yield Measure("Load generator", "event-loop lag p99", "seconds", state.lag_us(span).quantile(0.99) / 1e6)
        cores = measure(state, Subject("generator", None, None, None, "cpu")).value
        yield Measure("Load generator", "CPU", "cores", cores)


def _component_rows(state: RunState, servers: dict[str, ComponentSeries]) -> Iterator[Measure]:
    if not servers:
        return
    span = state.measured
    most = [value for item in servers.values() if not math.isnan(value := item.most_memory_bytes(span))]
    yield Measure("API server", "memory, most", "bytes", max(most, default=math.nan))
    caps = [float(item.limit.memory_bytes or math.nan) for item in servers.values() if item.limit]
    yield Measure("API server", "memory cap", "bytes", max(caps, default=math.nan))
    cores = [value for item in servers.values() if not math.isnan(value := item.process.mean_cores(span))]
    yield Measure("API server", "CPU, mean", "cores", sum(cores) if cores else math.nan)
    yield Measure("API server", "OOM kills", "count", sum(item.oom_kills(span) for item in servers.values()))
    yield Measure("API server", "restarts", "count", sum(item.restarts(span) for item in servers.values()))
