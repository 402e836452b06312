"""The report as Markdown: for a pull request, and for the summary of a GitHub step.

The verdict, its reasons and the objectives stand open; all else is folded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from scaletest.core.units import format_bytes, format_duration
from scaletest.report import drawing, glyphs
from scaletest.report.comparison_document import ComparisonDocument
from scaletest.report.document import Document, FlowReport, ProbeReport, SaturationReport
from scaletest.report.markdown_comparison import comparison_parts
from scaletest.report.markdown_text import code, cut, folded, table, text

__all__ = ["COMMENT_LIMIT", "MARKS", "render_markdown"]

COMMENT_LIMIT: Final = 65_536
"""Longest comment that GitHub takes, in characters; a step summary may be longer (1 MiB), which nobody would read."""

MARKS: Final = {"pass": "✅", "fail": "❌", "invalid": "⚠️", "incomplete": "⚠️"}
_LEVELS: Final = {"info": "", "good": "🟢", "warning": "🟡", "bad": "🔴"}
_GRADES: Final = {"good": "✅", "warning": "⚠️", "bad": "❌"}
_MOST_LINES: Final = 100
"""Lines of a story; of a longer one the middle is left out."""


def render_markdown(
    documents: Sequence[Document], comparison: ComparisonDocument | None = None, *, limit: int = COMMENT_LIMIT
) -> str:
    """Write runs, and a comparison where there is one, in at most ``limit`` bytes."""
    heads = [list(_head(document)) for document in documents]
    compared = [list(part) for part in comparison_parts(comparison)] if comparison is not None else []
    # What decides comes first, of all runs: it is the last thing to be cut.
    rest = [part for document in documents for part in _details(document)]
    return cut([*heads, *compared, *rest], limit)


def _head(document: Document) -> Iterator[str]:
    run, verdict = document.run, document.verdict
    yield f"### {MARKS[verdict.outcome]} {text(run.profile)}: {verdict.outcome}"
    yield ""
    versions = [f"{name} {run.versions[name]}" for name in ("kubernetes", "etcd") if name in run.versions]
    facts = [*versions, f"{run.nodes:,} nodes", format_duration(run.duration_s), f"run {run.id}"]
    yield text(", ".join(facts))
    told = {f"{item.objective}: {item.said}" for item in document.objectives}
    reasons = [reason for reason in verdict.reasons if reason not in told]
    if reasons:
        yield ""
        yield from (f"- {text(reason)}" for reason in reasons)
    if document.objectives:
        yield ""
        rows = [
            (
                MARKS["pass"] if item.holds else MARKS["fail"],
                code(item.objective),
                text(item.said),
                f"{item.samples:,}" if item.samples else "",
            )
            for item in document.objectives
        ]
        yield from table(("", "objective", "measured", "samples"), rows, left=2)
    if document.saturation is not None:
        yield ""
        yield from _saturation(document.saturation)


def _saturation(found: SaturationReport) -> Iterator[str]:
    yield f"**Saturation** of {code(found.parameter)}: {text(found.said)}"
    if found.limit_said is not None:
        yield ""
        yield text(found.limit_said)


def _details(document: Document) -> Iterator[list[str]]:
    makers = (_incident, _story, _phases, _steps, _flows, _probes, _components, _validity)
    for title, lines in (maker(document) for maker in makers):
        made = list(lines)
        if made:
            yield folded(title, made)


def _incident(document: Document) -> tuple[str, Iterable[str]]:
    incident = document.incident
    if incident is None:
        return "Incident", ()
    rows = [
        (f"{line.t_s:.1f} s", _since(line.since_rollout_s), f"{_LEVELS[line.level]} {text(line.text)}".strip())
        for line in incident.timeline
    ]
    more = [f"- {text(lever.said)}" for lever in incident.levers if lever.said]
    return "Incident", [
        *table(("time", "since rollout", "what"), _shortened(rows), left=3),
        *(["", *more] if more else []),
    ]


def _since(seconds: float | None) -> str:
    return "" if seconds is None else f"T{round(seconds):+d} s"


def _story(document: Document) -> tuple[str, Iterable[str]]:
    if document.incident is not None:
        return "Story", ()
    rows = [(f"{line.t_s:.1f} s", f"{_LEVELS[line.level]} {text(line.text)}".strip()) for line in document.story]
    return "Story", table(("time", "what"), _shortened(rows), left=2) if rows else ()


def _shortened(rows: Sequence[tuple[str, ...]]) -> Sequence[tuple[str, ...]]:
    left_out = len(rows) - _MOST_LINES
    if left_out <= 0:
        return rows
    half = _MOST_LINES // 2
    blank = ("…", *[""] * (len(rows[0]) - 2), f"{left_out:,} lines left out")
    return [*rows[:half], blank, *rows[-half:]]


def _phases(document: Document) -> tuple[str, Iterable[str]]:
    rows = [
        (
            text(phase.name),
            glyphs.duration_text(phase.duration_s),
            drawing.rate(phase.requests_per_s),
            glyphs.share_text(phase.error_rate),
            glyphs.duration_text(phase.latency_p99_s),
            glyphs.answer_text(phase.probe_p99_s, phase.probe_success_rate),
            glyphs.bytes_text(phase.api_server_memory_bytes),
            drawing.cores(phase.api_server_cores),
        )
        for phase in document.phases
    ]
    head = ("phase", "length", "requests/s", "failed", "p99", "probe p99", "API server", "cores")
    return "Phases", table(head, rows) if rows else ()


def _steps(document: Document) -> tuple[str, Iterable[str]]:
    found = document.saturation
    if found is None or not found.steps:
        return "Search", ()
    rows = [
        (
            text(f"{step.load}{' (derived)' if step.derived else ''}"),
            step.outcome,
            f"{format_bytes(step.bytes_per_s or 0)}/s"
            if found.goodput == "bytes"
            else f"{drawing.rate(step.answers_per_s)}/s",
            glyphs.duration_text(step.latency_p99_s),
            glyphs.answer_text(step.operator_p99_s, step.operator_success_rate),
            glyphs.bytes_text(step.api_server_memory_bytes),
        )
        for step in sorted(found.steps, key=lambda item: (item.value, item.step))
    ]
    return "Search", table((text(found.parameter), "", "goodput", "p99", "operator p99", "memory"), rows, left=2)


def _flows(document: Document) -> tuple[str, Iterable[str]]:
    rows = [row for flow in document.flows for row in _flow(flow)]
    head = ("flow", "step", "requests", "per s", "failed", "p50", "p99", "max", "data/s")
    return "Flows", table(head, rows, left=2) if rows else ()


def _flow(flow: FlowReport) -> Iterator[tuple[str, ...]]:
    for step in flow.steps:
        yield (
            text(flow.flow),
            text(step.step),
            f"{step.requests:,}",
            drawing.rate(step.rate_per_s),
            glyphs.share_text(step.failed / step.requests if step.requests else None),
            glyphs.duration_text(step.p50_s),
            glyphs.duration_text(step.p99_s),
            glyphs.duration_text(step.max_s),
            glyphs.bytes_text(step.bytes_per_s),
        )


def _probes(document: Document) -> tuple[str, Iterable[str]]:
    head = ("probe", "identity", "asked", "good", "p99", "max", "locked out")
    return "Probes", table(head, [_probe(probe) for probe in document.probes], left=2) if document.probes else ()


def _probe(probe: ProbeReport) -> tuple[str, ...]:
    return (
        text(probe.probe),
        text(probe.identity),
        f"{probe.observations:,}",
        glyphs.share_text(probe.success_rate),
        glyphs.answer_text(probe.p99_s, probe.success_rate),
        glyphs.answer_text(probe.max_s, probe.success_rate),
        format_duration(probe.longest_lockout_s) if probe.longest_lockout_s else glyphs.NOTHING,
    )


def _components(document: Document) -> tuple[str, Iterable[str]]:
    rows = [
        (
            text(item.component),
            glyphs.bytes_text(item.memory_max_bytes),
            glyphs.bytes_text(item.memory_cap_bytes),
            drawing.cores(item.cpu_mean_cores),
            drawing.cores(item.cpu_quota_cores),
            f"{item.restarts} ({item.oom_kills} OOM)" if item.oom_kills else f"{item.restarts}",
        )
        for item in document.components
    ]
    head = ("component", "memory", "of cap", "CPU", "quota", "restarts")
    return "Components", table(head, rows) if rows else ()


def _validity(document: Document) -> tuple[str, Iterable[str]]:
    checks = [
        f"- {_GRADES[item.grade]} {text(item.check)}: {text(item.said)}{f'. {text(item.remedy)}' if item.remedy else ''}"
        for item in document.validity
    ]
    return "Validity", checks
