"""The live view as lines of text: a picture of a ``LiveState`` at a moment, for a terminal of any size.

Each line has a *rank*: where there are not enough rows the lines of the highest rank are left out first, so that phase, flows,
probes and the API server are seen on any terminal. From ``TWO_COLUMNS`` columns on, sparklines and events stand beside the tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from rich.text import Text

from scaletest.analysis.limiting import API_SERVER
from scaletest.analysis.searchlog import SearchLog
from scaletest.core.units import format_bytes, format_count, format_duration
from scaletest.profile.schema import Phase
from scaletest.report import glyphs
from scaletest.report.document import StoryLine
from scaletest.report.live_figures import (
    OWN_PROCESSES,
    RECENT_S,
    ComponentNow,
    FlowNow,
    ProbeNow,
    component_now,
    flow_now,
    own_now,
    probe_now,
)
from scaletest.report.live_state import LiveState

__all__ = ["TWO_COLUMNS", "draw"]

TWO_COLUMNS: Final = 120
"""Tables take 80 columns; sparklines and events need 40 to say something."""

TABLES: Final = 80

EVENTS_FIRST: Final = 3
"""Events that are as important as the tables; older ones only where there is room."""

EVENTS_SHOWN: Final = 6
"""Events below the tables; beside them as many as there are rows."""

_ALWAYS, _WANTED, _SECOND, _OWN, _OLDER, _BLANK = range(6)

_LEVEL_STYLES: Final = {"info": "", "good": "green", "warning": "yellow", "bad": "bold red"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line, and how soon it is left out."""

    rank: int
    text: Text


def draw(live: LiveState, now_s: float, *, width: int, height: int) -> list[Text]:
    """Draw the view at a moment of the run in ``height`` lines at most, none wider than ``width``."""
    head = _head(live, now_s, width)
    tables = [*_flows(live, now_s), *_probes(live, now_s), *_components(live, now_s)]
    if width >= TWO_COLUMNS:
        body = _beside(tables, live, width=width, height=height - len(head))
        lines = [line.text for line in head] + body
    else:
        events = _events(live, EVENTS_SHOWN)
        lines = _fit([*head, *tables, *_trail(live, width), *events], height)
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines[:height]


def _beside(tables: Sequence[Line], live: LiveState, *, width: int, height: int) -> list[Text]:
    left = _fit(tables, height)
    room = width - TABLES - 2
    trail = _fit(_trail(live, room), max(0, height - EVENTS_FIRST))
    right = [*trail, *_fit(_events(live, max(0, height - len(trail) - 2)), height - len(trail))]
    lines = []
    for table, other in zip_longest(left, right):
        line = table or Text()
        line.truncate(TABLES, overflow="ellipsis", pad=True)
        lines.append(Text.assemble(line, "  ", other or ""))
    return lines


def _fit(drawn: Iterable[Line], height: int) -> list[Text]:
    """Keep the lines of the lowest ranks, in their order."""
    lines = list(drawn)
    wanted = sorted(range(len(lines)), key=lambda index: lines[index].rank)[: max(0, height)]
    return [lines[index].text for index in sorted(wanted)]


def _head(live: LiveState, now_s: float, width: int) -> list[Line]:
    profile = live.profile
    nodes = sum(pool.nodes for pool in profile.fleet.pools)
    title = Text.assemble(
        (profile.name, "bold"), (f"  Kubernetes {profile.control_plane.kubernetes}, {nodes:,} nodes", "dim")
    )
    clock = _clock(now_s)
    title.truncate(max(0, width - len(clock) - 1), overflow="ellipsis", pad=True)
    return [Line(_ALWAYS, Text.assemble(title, " ", (clock, "bold"))), Line(_ALWAYS, _phase(live, now_s))]


def _phase(live: LiveState, now_s: float) -> Text:
    if live.run.end is not None:
        return Text(f"run {live.run.end.status.replace('_', ' ')}", "bold")
    current = live.run.current_phase
    if current is None:
        return Text("ending" if live.run.phases else "setting up", "bold")
    names = [phase.name for phase in live.profile.phases]
    place = f"{names.index(current.name) + 1} of {len(names)}, " if current.name in names else ""
    text = Text.assemble("phase ", place, (current.name, "bold"))
    spec = next((phase for phase in live.profile.phases if phase.name == current.name), None)
    elapsed_s = max(0.0, now_s - current.start_s)
    if spec is None:
        step = _search_step(live.run.search, now_s) if live.run.search is not None else ""
        return text.append(f"  {_clock(elapsed_s)}").append(step)
    return text.append_text(_length(spec, elapsed_s))


def _search_step(log: SearchLog, now_s: float) -> str:
    """Say which load is tried, and what the search has found so far."""
    if not log.steps:
        return ""
    step, found = log.steps[-1], log.conclusion
    ends = [("holds", found.holds), ("fails", found.fails)]
    known = ", ".join(f"{value:,.10g}{log.unit} {what}" for what, value in ends if value is not None)
    for_s = _clock(max(0.0, now_s - step.start_s))
    so_far = f"; {known}" if known else ""
    return f", step {step.number} for {for_s}: {log.parameter} = {step.load} ({step.why}){so_far}"


def _length(spec: Phase, elapsed_s: float) -> Text:
    share = elapsed_s / spec.longest_s if spec.longest_s > 0 else 1.0
    most = "at most " if spec.until is not None else ""
    return Text.assemble(
        "  ", (glyphs.bar(share, width=8), "cyan"), f"  {_clock(elapsed_s)} of {most}{_clock(spec.longest_s)}",
        (f", until {spec.until}" if spec.until is not None else "", "dim"),
    )  # fmt: skip


def _section(title: str, columns: str) -> Iterator[Line]:
    yield Line(_BLANK, Text())
    yield Line(_WANTED, Text.assemble((title, "bold"), (columns[len(title) :], "dim")))


def _flows(live: LiveState, now_s: float) -> Iterator[Line]:
    begun = [name for name in live.profile.flows if name in live.run.flow_starts_s]
    if not begun:
        return
    yield from _section(
        "Flows", f"{'':16}{'agents':>13}{'open':>8}{'per s':>8}{'failed':>8}{'p50':>9}{'p99':>9}{'data/s':>9}"
    )
    for name in begun:
        flow = flow_now(live.run, name, now_s)
        yield Line(_WANTED, _flow(flow))
        if flow.failed and not flow.stopped:
            counts = ", ".join(f"{count:,} {outcome}" for outcome, count in flow.failed.items())
            yield Line(_SECOND, Text(f"    failed in the last {RECENT_S:g} s: {counts}", "yellow"))


def _flow(flow: FlowNow) -> Text:
    name = f"  {_cut(flow.flow, 14)}"
    if flow.stopped:
        return Text(f"{name}{'stopped':>13}", "dim")
    agents = f"{flow.started:,}/{flow.target:,}" if flow.target else "starting"
    if flow.asked_per_s is not None:
        agents = f"{_count(flow.asked_per_s)}/s"
    failed = Text(f"{glyphs.share_text(flow.failed_share):>8}", "red" if (flow.failed_share or 0) >= 0.01 else "")
    connected = Text(" BLOCKED", "bold yellow") if flow.blocked else Text(f"{flow.connected:>8,}")
    return Text.assemble(
        f"{name}{agents:>13}", connected, f"{_count(flow.rate_per_s):>8}", failed,
        f"{glyphs.duration_text(flow.p50_s):>9}{glyphs.duration_text(flow.p99_s):>9}{glyphs.bytes_text(flow.bytes_per_s):>9}",
    )  # fmt: skip


def _probes(live: LiveState, now_s: float) -> Iterator[Line]:
    seen = [
        probe_now(live.run, probe, identity, now_s)
        for probe, series in live.run.probes.items()
        for identity in dict.fromkeys(identity for identity, _ in series)
    ]
    if not seen:
        return
    yield from _section("Probes", f"{'':31}{'last':>10}{'good':>8}{'p99':>11}")
    for probe in seen:
        if probe is not None:
            yield Line(_WANTED, _probe(probe, now_s, _every_s(live, probe.probe)))


def _every_s(live: LiveState, probe: str) -> float:
    spec = live.profile.probes.get(probe)
    return spec.every_s if spec else 1.0


def _probe(probe: ProbeNow, now_s: float, every_s: float) -> Text:
    last = format_duration(probe.last.latency_s) if probe.last.ok else probe.last.outcome.replace("_", " ")
    p99 = "no answer" if probe.p99_s == math.inf else glyphs.duration_text(probe.p99_s)
    return Text.assemble(
        f"  {_cut(probe.probe, 11)} {_cut(probe.identity, 17)}",
        (f"{_end(last, 10)}", "" if probe.last.ok else "red"),
        (f"{glyphs.share_text(probe.success_rate):>8}", "red" if (probe.success_rate or 1.0) < 1.0 or probe.success_rate == 0 else ""),
        f"{p99:>11}  ",
        _access(probe, now_s, every_s),
    )  # fmt: skip


def _access(probe: ProbeNow, now_s: float, every_s: float) -> Text:
    """Say whether an operator gets in: a lock-out is proven by a failure, silence is shown before that."""
    if probe.locked_since_s is not None:
        return Text(f"LOCKED OUT {_clock(now_s - probe.locked_since_s)}", "bold red")
    if probe.silent_s > 2 * every_s + 1.0:
        return Text(f"silent {_clock(probe.silent_s)}", "yellow")
    if probe.nodes is not None:
        style = "yellow" if probe.nodes.not_ready else ""
        return Text(f"{probe.nodes.ready:,}/{probe.nodes.total:,} Ready", style)
    return Text(glyphs.GOOD, "green")


def _components(live: LiveState, now_s: float) -> Iterator[Line]:
    names = sorted(name for name in live.run.components if name not in OWN_PROCESSES)
    if names:
        yield from _section("Components", f"{'':25}{'memory of its cap':>27}{'cpu of its quota':>19}{'restarts':>9}")
    for name in names:
        rank = _WANTED if name.startswith((API_SERVER, "etcd")) else _SECOND
        yield Line(rank, _component(component_now(live.run, name, live.newest_sample_s, now_s)))
    yield from _own(live, now_s)


def _component(item: ComponentNow) -> Text:
    share = (item.memory_bytes or 0) / item.cap_bytes if item.cap_bytes else None
    memory = f"{'down' if item.down else glyphs.bytes_text(item.memory_bytes)}{f'/{format_bytes(item.cap_bytes)}' if item.cap_bytes else ''}"
    busy = (item.cores or 0.0) / item.quota_cores if item.quota_cores else None
    quota = f"/{item.quota_cores:.2f}{'' if item.quota_enforced else '*'}" if item.quota_cores else ""
    cpu = f"{glyphs.NOTHING if item.cores is None else f'{item.cores:.2f}'}{quota}"
    restarts = f"{item.restarts} ({item.oom_kills} OOM)" if item.oom_kills else str(item.restarts)
    return Text.assemble(
        f"  {_cut(item.component, 23)} ",
        (f"{_bar(share, 8)} ", "red" if (share or 0) > 0.9 else "cyan"),
        (f"{memory:<17}", "bold red" if item.down else ""),
        (f" {_bar(busy, 6)} ", "red" if (busy or 0) > 0.95 else "cyan"),
        f"{cpu:<10}",
        (f"{restarts:>9}", "red" if item.restarts or item.oom_kills else ""),
    )  # fmt: skip


def _bar(share: float | None, width: int) -> str:
    return " " * width if share is None else glyphs.bar(share, width=width)


def _own(live: LiveState, now_s: float) -> Iterator[Line]:
    own = own_now(live.run, now_s)
    parts = [
        f"{name} {format_bytes(rss)}{'' if cores is None else f' {cores:.2f} cores'}"
        for name, (rss, cores) in own.processes.items()
    ]
    if own.lag_p99_s is not None:
        parts.insert(1, f"lag {format_duration(own.lag_p99_s)}")
    if own.available_bytes is not None:
        parts.append(f"{format_bytes(own.available_bytes)} free")
    if parts:
        yield Line(_OWN, Text(f"  {', '.join(parts)}", "dim"))


def _trail(live: LiveState, width: int) -> Iterator[Line]:
    trail = live.trail
    rows = [
        ("requests/s", trail.requests_per_s, _count),
        ("latency p99", trail.latency_p99_s, glyphs.duration_text),
        ("API server memory", trail.api_server_memory_bytes, glyphs.bytes_text),
    ]
    known = [(name, values, form) for name, values, form in rows if any(value is not None for value in values)]
    if not known:
        return
    yield Line(_BLANK, Text())
    yield Line(_BLANK, Text.assemble(("Over time", "bold"), ("  each from 0 to its most", "dim")))
    room = max(0, width - 31)
    for name, values, form in known:
        most = max(value for value in values if value is not None)
        line = glyphs.sparkline(values, width=room)
        yield Line(_SECOND, Text.assemble(f"  {name:<18}", (line, "cyan"), f"  {form(most)}"))


def _events(live: LiveState, count: int) -> Iterator[Line]:
    shown = list(live.events)[-count:] if count > 0 else []
    if not shown:
        return
    yield Line(_BLANK, Text())
    yield Line(_SECOND, Text("Events", "bold"))
    for index, event in enumerate(shown):
        yield Line(_SECOND if index >= len(shown) - EVENTS_FIRST else _OLDER, _event(event))


def _event(event: StoryLine) -> Text:
    style = "bold" if event.text.startswith("phase ") else _LEVEL_STYLES[event.level]
    return Text.assemble((f"{event.t_s:7.1f} s  ", "dim"), (event.text, style))


def _clock(seconds: float) -> str:
    """Format a time that runs, in whole seconds: ``59 s``, ``1m05s``, ``1h02m05s``."""
    minutes, secs = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m{secs:02d}s"
    return f"{minutes}m{secs:02d}s" if minutes else f"{secs} s"


def _cut(text: str, width: int) -> str:
    return f"{text:<{width}}" if len(text) <= width else f"{text[: width - 1]}…"


def _end(text: str, width: int) -> str:
    return f"{text[:width]:>{width}}"


def _count(value: float | None) -> str:
    return glyphs.NOTHING if value is None else format_count(value)
