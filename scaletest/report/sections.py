"""The sections of the terminal report; each yields what is drawn, and nothing when it has nothing to say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from rich.table import Table
from rich.text import Text

from scaletest.core.units import format_duration
from scaletest.report import drawing, glyphs
from scaletest.report.document import Document, FlowReport, PhaseReport, ProbeReport
from scaletest.report.latency_drawn import draw_latency
from scaletest.report.profiles_drawn import draw_profiles
from scaletest.report.said import run as said
from scaletest.report.said.flows import about_flow, about_steps
from scaletest.report.saturation_drawn import draw_saturation

__all__ = ["SECTIONS", "Drawn", "Section"]

Drawn = drawing.Drawn
Section = Callable[[Document, int], Iterable[Drawn]]

WIDE: Final = 100
"""From this width on tables have their second-most wanted columns too."""

STORY_LINES: Final = 60
"""A longer story loses its middle: the beginning and the end tell most."""

_STYLES: Final = {"pass": "bold green", "fail": "bold red", "invalid": "bold yellow", "incomplete": "bold yellow"}
_LEVEL_STYLES: Final = {"info": "", "good": "green", "warning": "yellow", "bad": "red"}
_MARKS: Final = {"good": glyphs.GOOD, "warning": "!", "bad": glyphs.BAD}


def _verdict(document: Document, _width: int) -> Iterator[Drawn]:
    run, verdict = document.run, document.verdict
    yield Text.assemble((verdict.outcome.upper(), _STYLES[verdict.outcome]), f"  {run.profile}", (f"  {run.id}", "dim"))
    yield from map(drawing.remark, said.about_verdict(document))
    if run.summary:
        yield drawing.line(run.summary)
    versions = [f"{name} {run.versions[name]}" for name in ("kubernetes", "etcd", "kwok") if name in run.versions]
    started = run.started_at[:19].replace("T", " ")
    facts = [*versions, f"{run.nodes:,} nodes", format_duration(run.duration_s), f"{started} UTC"]
    yield drawing.line(", ".join(facts), "dim")


def _objectives(document: Document, _width: int) -> Iterator[Drawn]:
    if not document.objectives:
        return
    yield drawing.title("Objectives")
    if said.never_began(document):
        yield drawing.line(
            f"none of {len(document.objectives)} was measured: the run ended before its first phase", "yellow"
        )
        return
    table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=False)
    for column in ("", "mark", "objective", "said", "samples"):
        table.add_column(column, overflow="fold", width=0 if column == "" else None)
    for item in document.objectives:
        mark, style = (glyphs.GOOD, "green") if item.holds else (glyphs.BAD, "red")
        value, _, why = item.said.partition(": ")
        samples = f"of {item.samples:,}" if item.samples else ""
        table.add_row("", Text(mark, style), item.objective, Text(value, style), Text(samples, "dim"))
        if why:
            table.add_row("", "", Text(why, "dim"))
    yield table


def _incident(document: Document, _width: int) -> Iterator[Drawn]:
    """Draw the one timeline of an incident; it stands in the place of the story."""
    incident = document.incident
    if incident is None:
        return
    rollout = "" if incident.rollout_s is None else f"T+ since the rollout of {incident.flow} began"
    yield drawing.title("Incident", rollout)
    yield _events(
        (line.t_s, None if incident.rollout_s is None else _since(line.since_rollout_s or 0.0), line.level, line.text)
        for line in incident.timeline
    )
    yield from map(drawing.remark, said.about_incident(incident))


def _since(seconds: float) -> str:
    return f"T{round(seconds):+d} s"


def _story(document: Document, _width: int) -> Iterator[Drawn]:
    if document.story and document.incident is None:
        yield drawing.title("Story")
        yield _events((line.t_s, None, line.level, line.text) for line in document.story)


def _events(told: Iterable[tuple[float, str | None, str, str]]) -> Table:
    """Draw events: time, T+ where there was a rollout, level and text."""
    lines = list(told)
    table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=False)
    table.add_column(width=0)
    table.add_column(justify="right", no_wrap=True, style="dim")
    timed = any(since is not None for _, since, _, _ in lines)
    if timed:
        table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    left_out = len(lines) - STORY_LINES
    for index, (t_s, since, level, text) in enumerate(lines):
        blank = ("", "", "") if timed else ("", "")
        if left_out > 0 and STORY_LINES // 2 <= index < STORY_LINES // 2 + left_out:
            if index == STORY_LINES // 2:
                table.add_row(*blank, Text(f"… {left_out:,} lines left out: --format json has all", "dim"))
            continue
        style = "bold" if text.startswith("phase ") else _LEVEL_STYLES[level]
        table.add_row("", f"{t_s:.1f} s", *((since or "",) if timed else ()), Text(text, style))
    return table


def _phases(document: Document, width: int) -> Iterator[Drawn]:
    if not document.phases:
        return
    yield drawing.title("Phases")
    columns = ["phase", "length", "requests/s", "failed", "p99", "probe p99"]
    table = drawing.table(*columns, *(("probes good",) if width >= WIDE else ()), "API server", "cores")
    for phase in document.phases:
        drawing.row(table, *_phase_cells(phase, width))
    yield table


def _phase_cells(phase: PhaseReport, width: int) -> Iterator[str]:
    yield phase.name
    yield glyphs.duration_text(phase.duration_s)
    yield drawing.rate(phase.requests_per_s)
    yield glyphs.share_text(phase.error_rate)
    yield glyphs.duration_text(phase.latency_p99_s)
    yield glyphs.answer_text(phase.probe_p99_s, phase.probe_success_rate)
    if width >= WIDE:
        yield glyphs.share_text(phase.probe_success_rate)
    yield glyphs.bytes_text(phase.api_server_memory_bytes)
    yield drawing.cores(phase.api_server_cores)


def _timeline(document: Document, width: int) -> Iterator[Drawn]:
    timeline = document.timeline
    if timeline is None:
        return
    room = min(60, width - 44)
    length_s = timeline.slot_s * len(timeline.requests_per_s)
    yield drawing.title(
        "Over time", f"{timeline.start_s:.1f} s to {timeline.start_s + length_s:.1f} s; each from 0 to its most"
    )
    rows: list[tuple[str, list[float | None], Callable[[float | None], str]]] = [
        ("requests/s", timeline.requests_per_s, drawing.rate),
        ("latency p99", timeline.latency_p99_s, glyphs.duration_text),
        ("probes, slowest", timeline.probe_s, glyphs.duration_text),
        ("API server memory", timeline.api_server_memory_bytes, glyphs.bytes_text),
    ]
    drawn = min(room, len(timeline.requests_per_s))
    for name, values, form in rows:
        known = [value for value in values if value is not None]
        if known:
            line = glyphs.sparkline(values, width=room).ljust(drawn)
            yield Text.assemble(f"  {name:<18}", (line, "cyan"), f"  {form(max(known))}")
    starts = [(phase.name, phase.start_s) for phase in document.phases]
    end_s = timeline.start_s + length_s
    ruler = glyphs.phase_ruler(starts, start_s=timeline.start_s, end_s=end_s, width=drawn)
    yield Text(f"  {'':<18}{ruler}", style="dim")


def _flows(document: Document, width: int) -> Iterator[Drawn]:
    if not document.flows:
        return
    yield drawing.title("Flows", "latencies are of good (2xx) answers")
    for flow in document.flows:
        yield from map(drawing.remark, about_flow(flow))
        yield _steps(flow, width)
        yield from map(drawing.remark, about_steps(flow))
    yield from _samples(document)


def _steps(flow: FlowReport, width: int) -> Table:
    extra = ("p95",) if width >= WIDE else ()
    table = drawing.table("step", "requests", "per s", "failed", "p50", *extra, "p99", "max", "data/s")
    for step in flow.steps:
        failed = glyphs.share_text(step.failed / step.requests if step.requests else None)
        p95 = (glyphs.duration_text(step.p95_s),) if width >= WIDE else ()
        latencies = (
            glyphs.duration_text(step.p50_s),
            *p95,
            glyphs.duration_text(step.p99_s),
            glyphs.duration_text(step.max_s),
        )
        drawing.row(
            table,
            step.step,
            drawing.count(step.requests),
            drawing.rate(step.rate_per_s),
            failed,
            *latencies,
            glyphs.bytes_text(step.bytes_per_s),
        )
    return table


def _samples(document: Document) -> Iterator[Drawn]:
    seen: set[tuple[str, str, str, str | None]] = set()
    for item in document.failures:
        key = item.flow, item.step, item.outcome, item.reason
        if key not in seen and len(seen) < 8:
            seen.add(key)
            said = ": ".join(part for part in (item.reason, item.message) if part)
            place = f"{item.flow}.{item.step} at {item.t_s:.1f} s"
            yield drawing.line(f"e.g. {place}: {item.outcome}{f', {said}' if said else ''}"[:300], "dim")


def _probes(document: Document, width: int) -> Iterator[Drawn]:
    if not document.probes:
        return
    yield drawing.title("Probes", "a failed request is infinitely long")
    wide = ("p50",) if width >= WIDE else ()
    table = drawing.table("probe", "identity", "asked", "good", *wide, "p99", "max", "locked out", left=2)
    for probe in document.probes:
        drawing.row(table, *_probe_cells(probe, width))
    yield table
    yield from map(drawing.remark, said.about_probes(document))


def _probe_cells(probe: ProbeReport, width: int) -> Iterator[str | Text]:
    yield probe.probe
    yield probe.identity
    yield drawing.count(probe.observations)
    yield glyphs.share_text(probe.success_rate)
    if width >= WIDE:
        yield glyphs.answer_text(probe.p50_s, probe.success_rate)
    yield glyphs.answer_text(probe.p99_s, probe.success_rate)
    yield glyphs.answer_text(probe.max_s, probe.success_rate)
    locked = probe.longest_lockout_s
    yield Text(format_duration(locked), "red") if locked else glyphs.NOTHING


def _components(document: Document, width: int) -> Iterator[Drawn]:
    if not document.components:
        return
    yield drawing.title("Components", "memory at its most; CPU in cores")
    cells = 20 if width >= WIDE else 6
    wide = ("most",) if width >= WIDE else ()
    table = drawing.table("component", "memory", "of cap", "", "cpu", *wide, "quota", "restarts")
    for item in document.components:
        share = (item.memory_max_bytes or 0.0) / item.memory_cap_bytes if item.memory_cap_bytes else None
        quota = glyphs.NOTHING if item.cpu_quota_cores is None else f"{item.cpu_quota_cores:.2f}"
        quota += "*" if item.cpu_quota_cores is not None and item.cpu_by == "none" else ""
        drawing.row(
            table, item.component, glyphs.bytes_text(item.memory_max_bytes), glyphs.bytes_text(item.memory_cap_bytes),
            Text(glyphs.bar(share, width=cells) if share is not None else "", "red" if (share or 0) > 0.9 else "cyan"),
            drawing.cores(item.cpu_mean_cores), *((drawing.cores(item.cpu_max_cores),) if width >= WIDE else ()), quota,
            _restarts(item.restarts, item.oom_kills),
        )  # fmt: skip
    yield table
    yield from map(drawing.remark, said.about_components(document))


def _restarts(restarts: int, oom_kills: int) -> Text:
    return Text(f"{restarts} ({oom_kills} OOM)" if oom_kills else str(restarts), "red" if restarts or oom_kills else "")


def _servers(document: Document, _width: int) -> Iterator[Drawn]:
    levels = [item for item in document.apf if item.dispatched or item.rejected or item.queued_max]
    if levels:
        yield drawing.title("API Priority and Fairness")
        table = drawing.table("level", "seats", "most used", "most queued", "let through", "rejected")
        for item in levels:
            rejected = ", ".join(f"{drawing.count(count)} {reason}" for reason, count in item.rejected.items() if count)
            seats = (
                drawing.count(item.seats_limit),
                drawing.count(item.seats_max),
                drawing.count(item.queued_max),
                drawing.count(item.dispatched),
            )
            drawing.row(table, item.level, *seats, Text(rejected or "0", "yellow" if rejected else ""))
        yield table
    yield from map(drawing.remark, said.about_api_servers(document))


def _machine(document: Document, _width: int) -> Iterator[Drawn]:
    remarks = list(said.about_machine(document))
    if remarks:
        yield drawing.title("Machine")
        yield from map(drawing.remark, remarks)


def _validity(document: Document, _width: int) -> Iterator[Drawn]:
    if not document.validity:
        return
    yield drawing.title("Validity", said.use_of_numbers(document))
    for item in document.validity:
        style = {"good": "green", "warning": "yellow", "bad": "red"}[item.grade]
        line = Text.assemble((_MARKS[item.grade], style), f" {item.check}: {item.said}")
        if item.remedy:
            line.append(f". {item.remedy}", "yellow")
        yield drawing.line(line)


def _footer(document: Document, _width: int) -> Iterator[Drawn]:
    yield Text(f"Run directory  {document.run.directory}", style="dim", overflow="fold")
    yield Text(f"See again      scaletest report {document.run.directory}", style="dim", overflow="fold")


SECTIONS: Final[tuple[Section, ...]] = (
    _verdict, _objectives, draw_saturation, draw_profiles, _incident, _story, _phases, _timeline, _flows, _probes, draw_latency, _components, _servers, _machine, _validity, _footer,
)  # fmt: skip
