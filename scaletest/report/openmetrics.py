"""Figures as OpenMetrics text: for a push gateway, or for the textfile collector of a node exporter.

Gauges alone, without time stamps: that is text which both OpenMetrics parsers and those of the older Prometheus format take, and
a textfile collector refuses time stamps. Units are base units, in the names.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from scaletest.report.document import Document
from scaletest.report.run_names import run_names

__all__ = ["render_openmetrics"]

_OUTCOMES: Final = ("pass", "fail", "invalid", "incomplete")

_HELP: Final[dict[str, str]] = {
    "scaletest_run_info": "What was run; always 1.",
    "scaletest_run_verdict": "1 for the verdict of the run, 0 for all others.",
    "scaletest_run_exit_code": "Exit code of the run by its verdict.",
    "scaletest_run_start_time_seconds": "When the run began, as Unix time.",
    "scaletest_run_duration_seconds": "From the start of set-up to the last record.",
    "scaletest_objective_holds": "1 when the objective holds.",
    "scaletest_objective_value": "What was measured, in base units.",
    "scaletest_flow_requests": "Requests of a step over the run, by outcome.",
    "scaletest_flow_requests_per_second": "Requests of a step per second that its flow ran.",
    "scaletest_flow_latency_seconds": "Latency of good answers.",
    "scaletest_flow_bytes": "Bytes of answers.",
    "scaletest_probe_latency_seconds": "Latency of a probe; a failed request is infinitely long.",
    "scaletest_probe_success_ratio": "Share of good answers.",
    "scaletest_probe_locked_out_seconds": "Longest time without a good answer.",
    "scaletest_component_memory_bytes": "Largest resident set.",
    "scaletest_component_cpu_cores": "Cores used, mean.",
    "scaletest_component_oom_kills": "Kills at the memory cap.",
    "scaletest_component_restarts": "Restarts.",
    "scaletest_apf_rejected": "Requests that a priority level rejected.",
    "scaletest_saturation_capacity": "The largest load that holds, or was tried.",
}
"""Every metric, in the order of the text."""

_UNITS: Final = ("seconds", "bytes", "cores")

Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]


def render_openmetrics(documents: Sequence[Document]) -> str:
    """Write the metrics of runs; each sample is told apart by profile, and of several runs by run too."""
    samples: dict[str, list[tuple[Labels, float]]] = {name: [] for name in _HELP}
    for document, run in zip(documents, run_names(documents), strict=True):
        labels = {"profile": document.run.profile, **({"run": run} if len(documents) > 1 else {})}
        for name, more, value in _samples(document):
            samples[name].append(({**labels, **more}, value))
    lines: list[str] = []
    for name, taken in samples.items():
        if taken:
            lines += [f"# HELP {name} {_HELP[name]}", f"# TYPE {name} gauge"]
            unit = name.rpartition("_")[2]
            lines += [f"# UNIT {name} {unit}"] if unit in _UNITS else []
            lines += [f"{name}{_labels(labels)} {_number(value)}" for labels, value in taken]
    return "\n".join([*lines, "# EOF", ""])


def _samples(document: Document) -> Iterator[Sample]:
    yield from _run(document)
    yield from _objectives(document)
    yield from _flows(document)
    yield from _probes(document)
    yield from _components(document)
    for level in document.apf:
        for reason, count in level.rejected.items():
            yield "scaletest_apf_rejected", {"level": level.level, "reason": reason}, count
    found = document.saturation
    if found is not None and found.capacity is not None:
        yield "scaletest_saturation_capacity", {"parameter": found.parameter, "reason": found.reason}, found.capacity


def _run(document: Document) -> Iterator[Sample]:
    run, verdict = document.run, document.verdict
    # Not `run`, which stands on every sample where there are several.
    yield "scaletest_run_info", {"id": run.id, **run.versions}, 1.0
    for outcome in _OUTCOMES:
        yield "scaletest_run_verdict", {"verdict": outcome}, float(outcome == verdict.outcome)
    yield "scaletest_run_exit_code", {}, float(verdict.exit_code)
    with contextlib.suppress(ValueError):
        yield "scaletest_run_start_time_seconds", {}, datetime.fromisoformat(run.started_at).timestamp()
    yield "scaletest_run_duration_seconds", {}, run.duration_s


def _objectives(document: Document) -> Iterator[Sample]:
    # A profile may ask for the same twice; two samples of one name and labels would be an error.
    for item in {item.objective: item for item in document.objectives}.values():
        yield "scaletest_objective_holds", {"objective": item.objective}, float(item.holds)
        if item.value is not None:
            yield "scaletest_objective_value", {"objective": item.objective}, item.value


def _flows(document: Document) -> Iterator[Sample]:
    for flow in document.flows:
        for step in flow.steps:
            labels = {"flow": flow.flow, "step": step.step}
            for outcome, count in step.outcomes.items():
                yield "scaletest_flow_requests", {**labels, "outcome": outcome}, float(count)
            yield from _known("scaletest_flow_requests_per_second", labels, step.rate_per_s)
            yield from _known("scaletest_flow_bytes", labels, step.bytes)
            for quantile, value in (("0.5", step.p50_s), ("0.95", step.p95_s), ("0.99", step.p99_s), ("1", step.max_s)):
                yield from _known("scaletest_flow_latency_seconds", {**labels, "quantile": quantile}, value)


def _probes(document: Document) -> Iterator[Sample]:
    for probe in document.probes:
        labels = {"probe": probe.probe, "identity": probe.identity}
        asked = probe.success_rate is not None
        for quantile, value in (("0.5", probe.p50_s), ("0.99", probe.p99_s), ("1", probe.max_s)):
            seconds = math.inf if value is None and asked else value
            yield from _known("scaletest_probe_latency_seconds", {**labels, "quantile": quantile}, seconds)
        yield from _known("scaletest_probe_success_ratio", labels, probe.success_rate)
        yield "scaletest_probe_locked_out_seconds", labels, probe.longest_lockout_s


def _components(document: Document) -> Iterator[Sample]:
    for item in document.components:
        labels = {"component": item.component}
        yield from _known("scaletest_component_memory_bytes", labels, item.memory_max_bytes)
        yield from _known("scaletest_component_cpu_cores", labels, item.cpu_mean_cores)
        yield "scaletest_component_oom_kills", labels, float(item.oom_kills)
        yield "scaletest_component_restarts", labels, float(item.restarts)


def _known(name: str, labels: Labels, value: float | None) -> Iterator[Sample]:
    if value is not None:
        yield name, labels, float(value)


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{_name(name)}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _name(text: str) -> str:
    name = "".join(letter if letter.isascii() and (letter.isalnum() or letter == "_") else "_" for letter in text)
    return f"_{name}" if not name or name[0].isdigit() else name


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else repr(value)
