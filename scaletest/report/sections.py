"""The sections of the terminal report; each yields what is drawn, and nothing when it has nothing to say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from rich.table import Table
from rich.text import Text

from scaletest.analysis.flows import is_good
from scaletest.core.units import format_duration
from scaletest.report import drawing, glyphs
from scaletest.report.churn_drawn import draw_churn
from scaletest.report.document import ArrivalsReport, Document, FlowReport, PhaseReport, ProbeReport, StepReport
from scaletest.report.latency_drawn import draw_latency
from scaletest.report.profiles_drawn import draw_profiles
from scaletest.report.saturation_drawn import draw_saturation
from scaletest.report.story import first_line

__all__ = ["SECTIONS", "Drawn", "Section"]

Drawn = drawing.Drawn
Section = Callable[[Document, int], Iterable[Drawn]]

WIDE: Final = 100
"""From this width on tables have their second-most wanted columns too."""

STORY_LINES: Final = 60
"""A longer story loses its middle: the beginning and the end tell most."""

KEEPS_CLOSING: Final = 2.0
"""Times that each watch on average ended early, from which on the server is said to keep closing them."""

_STYLES: Final = {"pass": "bold green", "fail": "bold red", "invalid": "bold yellow", "incomplete": "bold yellow"}
_LEVEL_STYLES: Final = {"info": "", "good": "green", "warning": "yellow", "bad": "red"}
_MARKS: Final = {"good": glyphs.GOOD, "warning": "!", "bad": glyphs.BAD}


def _verdict(document: Document, _width: int) -> Iterator[Drawn]:
    run, verdict = document.run, document.verdict
    yield Text.assemble((verdict.outcome.upper(), _STYLES[verdict.outcome]), f"  {run.profile}", (f"  {run.id}", "dim"))
    unmeasured = {f"{item.objective}: {item.said}" for item in document.objectives} if _never_began(document) else ()
    for reason in verdict.reasons:
        if reason not in unmeasured:
            yield drawing.line(first_line(reason), "yellow")
    if document.journal.growing:
        yield drawing.line("the journal is being written to: the run may still be going on", "yellow")
    if document.journal.newer_lines:
        yield drawing.line(
            f"{document.journal.newer_lines} lines of a newer version of scaletest passed over", "yellow"
        )
    if run.summary:
        yield drawing.line(run.summary)
    versions = [f"{name} {run.versions[name]}" for name in ("kubernetes", "etcd", "kwok") if name in run.versions]
    started = run.started_at[:19].replace("T", " ")
    facts = [*versions, f"{run.nodes:,} nodes", format_duration(run.duration_s), f"{started} UTC"]
    yield drawing.line(", ".join(facts), "dim")


def _never_began(document: Document) -> bool:
    """Whether there is nothing that an objective could be about: one line says it of all."""
    return not document.phases and not any(item.samples for item in document.objectives)


def _objectives(document: Document, _width: int) -> Iterator[Drawn]:
    if not document.objectives:
        return
    yield drawing.title("Objectives")
    if _never_began(document):
        yield drawing.line(
            f"none of {len(document.objectives)} was measured: the run ended before its first phase", "yellow"
        )
        return
    table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=False)
    for column in ("", "mark", "objective", "said", "samples"):
        table.add_column(column, overflow="fold", width=0 if column == "" else None)
    for item in document.objectives:
        mark, style = (glyphs.GOOD, "green") if item.holds else (glyphs.BAD, "red")
        said, _, why = item.said.partition(": ")
        samples = f"of {item.samples:,}" if item.samples else ""
        table.add_row("", Text(mark, style), item.objective, Text(said, style), Text(samples, "dim"))
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
    if incident.recovered is False:
        broken = [item.name for item in incident.slos if item.measured and item.holds_from_s is None]
        what = f"SLO {', '.join(broken)} does not hold" if broken else "operators are not answered within 1 s"
        yield drawing.line(f"not recovered at the end: {what}", "red")
    for lever in incident.levers:
        if lever.said:
            yield drawing.line(lever.said, "yellow")


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
        identity = f" as {flow.identity}" if flow.identity else ""
        if flow.churn is not None:
            yield from draw_churn(flow, flow.churn, identity)
        elif flow.arrivals is not None:
            yield from _arrivals(flow, flow.arrivals, identity)
        else:
            connected = "open" if flow.unit == "watches" else "connected"
            agents = f"{flow.started:,} of {flow.target:,} {flow.unit} started, {flow.connected:,} {connected}"
            yield drawing.line(f"{flow.flow}{identity}: {agents}, {format_duration(flow.active_s)}")
        if flow.connections:
            what = "TCP and TLS" if identity else "TCP and HTTP/2"
            took = glyphs.duration_text(flow.connect_p99_s)
            yield drawing.line(f"{flow.connections:,} connections made, p99 {took} ({what})", "dim")
        if flow.exceptions:
            yield drawing.line(f"{flow.exceptions:,} exceptions in the locustfile", "yellow")
        yield _steps(flow, width)
        for step in flow.steps:
            yield from _beside(flow, step)
    yield from _samples(document)


def _beside(flow: FlowReport, step: StepReport) -> Iterator[Drawn]:
    """Say what of a step has no place in its row."""
    if step.event_p99_s is not None:
        p50, p99 = glyphs.duration_text(step.event_p50_s), glyphs.duration_text(step.event_p99_s)
        longest = glyphs.duration_text(step.event_max_s)
        yield drawing.line(
            f"{step.step}: {step.events:,} events, {p50} after the write, p99 {p99}, max {longest}", "dim"
        )
    if step.reconnects:
        yield drawing.line(f"{step.step}: {step.reconnects:,} reconnects", "dim")
    if step.ended_early:
        yield drawing.line(_ended_early(flow, step), "yellow")
    if step.failed:
        yield drawing.line(_failed(step), "yellow")


def _arrivals(flow: FlowReport, arrivals: ArrivalsReport, identity: str) -> Iterator[Drawn]:
    """Say what was asked for and what was offered, and what the step table's latencies count from."""
    length = f"{flow.connected:,} connections, {format_duration(flow.active_s)}"
    if arrivals.closed:
        yield drawing.line(f"{flow.flow}{identity}: a closed loop on {length}")
    else:
        begun = arrivals.due - arrivals.dropped
        share = glyphs.share_text(arrivals.achieved)
        yield drawing.line(f"{flow.flow}{identity}: {begun:,} of {arrivals.due:,} arrivals begun ({share}) on {length}")
        lag = glyphs.duration_text(arrivals.start_lag_p99_s)
        yield drawing.line(f"begun {lag} late at p99; latency counts from when they were due", "dim")
    if arrivals.dropped:
        yield drawing.line(f"{arrivals.dropped:,} dropped: {arrivals.most_in_flight:,} were in flight", "yellow")
    if arrivals.in_flight_at_end:
        yield drawing.line(f"{arrivals.in_flight_at_end:,} had not ended when the flow was stopped", "yellow")
    for step in flow.steps:
        if step.service_p99_s is not None and not arrivals.closed:
            p50, p99 = glyphs.duration_text(step.service_p50_s), glyphs.duration_text(step.service_p99_s)
            yield drawing.line(f"{step.step}: {p50} from the send, p99 {p99}", "dim")


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
    for probe in document.probes:
        failed = {outcome: count for outcome, count in probe.outcomes.items() if outcome not in {"ok", "unfinished"}}
        if failed:
            by_outcome = ", ".join(f"{drawing.count(count)} {outcome}" for outcome, count in failed.items())
            yield drawing.line(f"{probe.probe} as {probe.identity} failed: {by_outcome}", "yellow")
        if len(probe.servers) > 1:
            each = ", ".join(
                f"{item.server} {glyphs.share_text(item.success_rate)} good, p99 {glyphs.answer_text(item.p99_s, item.success_rate)}"
                for item in probe.servers
            )
            yield drawing.line(f"{probe.probe} as {probe.identity}, each server: {each}", "dim")
    for nodes in document.nodes:
        counts = f"{nodes.ready:,} of {nodes.total:,} nodes Ready at the end"
        worst = f", {nodes.most_not_ready:,} not Ready at worst" if nodes.most_not_ready else ""
        yield drawing.line(f"{nodes.probe}: {counts}{worst}", "yellow" if nodes.not_ready else "")


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
    yield from _enforcement(document)


def _restarts(restarts: int, oom_kills: int) -> Text:
    return Text(f"{restarts} ({oom_kills} OOM)" if oom_kills else str(restarts), "red" if restarts or oom_kills else "")


def _enforcement(document: Document) -> Iterator[Drawn]:
    capped = sorted({item.memory_by for item in document.components if item.memory_cap_bytes and item.memory_by})
    if capped:
        yield drawing.line(f"memory caps are enforced by {', '.join(capped).replace('_', ' ')}", "dim")
    if any(item.cpu_quota_cores is not None and item.cpu_by == "none" for item in document.components):
        yield drawing.line("* quota not enforced: this host has no CPU control group for us (GOMAXPROCS is set)", "dim")


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
    if document.api_requests:
        top = sorted(document.api_requests.items(), key=lambda item: -item[1])[:6]
        answered = ", ".join(f"{drawing.count(count)} {key}" for key, count in top if count)
        if answered:
            yield drawing.line(f"API servers answered: {answered}")
    if len(document.api_requests_by_server) > 1:
        each = ", ".join(
            f"{server} {drawing.count(count)}" for server, count in document.api_requests_by_server.items()
        )
        yield drawing.line(f"each API server answered: {each}")
    if document.metrics_gaps:
        gaps = ", ".join(_gaps(target, outcomes) for target, outcomes in document.metrics_gaps.items())
        yield drawing.line(f"scrapes failed: {gaps}", "yellow")


def _gaps(target: str, outcomes: dict[str, int]) -> str:
    most_first = sorted(outcomes.items(), key=lambda item: -item[1])
    by_outcome = ", ".join(f"{count:,} {outcome.replace('_', ' ')}" for outcome, count in most_first)
    return f"{target} {sum(outcomes.values()):,} ({by_outcome})"


def _machine(document: Document, _width: int) -> Iterator[Drawn]:
    etcd, host, generator = document.etcd, document.host, document.generator
    if not (etcd or generator or document.run.facts or host.available_min_bytes is not None):
        return
    yield drawing.title("Machine")
    if etcd is not None:
        disk = (
            f"fsync p99 {glyphs.duration_text(etcd.fsync_p99_s)}, commit p99 {glyphs.duration_text(etcd.commit_p99_s)}"
        )
        yield drawing.line(
            f"etcd: {disk}, database {glyphs.bytes_text(etcd.db_max_bytes)}, {drawing.count(etcd.puts)} puts"
        )
    if host.available_min_bytes is not None:
        memory = f"{glyphs.bytes_text(host.available_min_bytes)} of {glyphs.bytes_text(host.memory_bytes)} available at least"
        cpu = f"{glyphs.share_text(host.cpu_idle_share)} of {host.cores or '?'} cores idle"
        yield drawing.line(f"host: {memory}, {cpu}")
    if generator is not None:
        lag = f"lag p50 {glyphs.duration_text(generator.lag_p50_s)}, p99 {glyphs.duration_text(generator.lag_p99_s)}"
        cpu = f"{drawing.cores(generator.cpu_mean_cores)} cores, {drawing.cores(generator.cpu_max_cores)} at most"
        memory = f"{glyphs.bytes_text(generator.memory_max_bytes)}, {generator.sockets_max:,} sockets"
        yield drawing.line(f"load driver: {lag}; {cpu}; {memory}")
    for title, fact in document.run.facts.items():
        yield drawing.line(f"{title}: {fact}")


def _validity(document: Document, _width: int) -> Iterator[Drawn]:
    if not document.validity:
        return
    bad = sum(item.grade == "bad" for item in document.validity)
    if bad:
        said = "invalid: the numbers above are not to be used"
    elif not document.phases:
        said = "nothing was measured: there is nothing to judge"
    else:
        said = "the numbers can be used"
    yield drawing.title("Validity", said)
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
