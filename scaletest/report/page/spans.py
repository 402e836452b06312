"""What lasted in a run, in rows under each other: phases, flows, lock-outs, components that were down, actions, broken SLOs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from scaletest.analysis.evaluate import lockouts_of
from scaletest.analysis.series import Span
from scaletest.analysis.state import Event, RunState
from scaletest.core.units import format_duration
from scaletest.report.document import Document

__all__ = ["Row", "Stretch", "rows_of"]

Level = Literal["phase", "info", "good", "warning", "bad", "lever"]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Something that lasted."""

    start_s: float
    end_s: float
    level: Level
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """Stretches of one subject."""

    name: str
    stretches: list[Stretch]


def rows_of(state: RunState, document: Document, span: Span) -> list[Row]:
    """Return the rows that have something within a finite span, cut to it."""
    rows = [
        Row("phases", list(_phases(state))),
        *_flows(state),
        Row("SLOs", list(_slos(document, span[1]))),
        *_lockouts(state),
        *_components(state),
        *_nodes(state),
        Row("actions", list(_actions(state))),
    ]
    cut = [Row(row.name, [item for part in row.stretches if (item := _cut(part, span)) is not None]) for row in rows]
    return [row for row in cut if row.stretches]


def _cut(part: Stretch, span: Span) -> Stretch | None:
    start_s, end_s = max(part.start_s, span[0]), min(part.end_s, span[1])
    return Stretch(start_s, end_s, part.level, part.text) if end_s >= start_s else None


def _lasting(text: str, start_s: float, end_s: float, *, to_end: bool = False) -> str:
    return f"{text}: {format_duration(max(0.0, end_s - start_s))}{', to the end' if to_end else ''}"


def _phases(state: RunState) -> Iterator[Stretch]:
    for phase in state.phases:
        end_s = state.last_t_s if phase.end_s is None else phase.end_s
        yield Stretch(phase.start_s, end_s, "phase", phase.name)


def _flows(state: RunState) -> Iterator[Row]:
    for name in state.flows:
        stretches = list(_running(state, name)) + list(_blocked(state, name))
        yield Row(f"flow {name}", stretches)


def _running(state: RunState, name: str) -> Iterator[Stretch]:
    begun_s: float | None = None
    for event in sorted(state.events, key=lambda item: item.t_s):
        if event.fields.get("flow") != name:
            continue
        if event.kind == "flow.start" and begun_s is None:
            begun_s = event.t_s
        elif event.kind == "flow.stop" and begun_s is not None:
            yield Stretch(begun_s, event.t_s, "info", _lasting("runs", begun_s, event.t_s))
            begun_s = None
    if begun_s is not None:
        yield Stretch(begun_s, math.inf, "info", "runs, to the end")


def _blocked(state: RunState, name: str) -> Iterator[Stretch]:
    for blocked, group in itertools.groupby(state.flows[name].intervals, key=lambda item: item.blocked):
        spell = list(group)
        if blocked:
            start_s, end_s = spell[0].start_s, spell[-1].end_s
            yield Stretch(start_s, end_s, "lever", _lasting("blocked", start_s, end_s))


def _slos(document: Document, end_s: float) -> Iterator[Stretch]:
    for slo in document.incident.slos if document.incident is not None else ():
        if slo.broken_s is not None:
            until_s = end_s if slo.holds_from_s is None else slo.holds_from_s
            text = f"{slo.name} broken, {slo.condition}"
            yield Stretch(
                slo.broken_s, until_s, "bad", _lasting(text, slo.broken_s, until_s, to_end=slo.holds_from_s is None)
            )


def _lockouts(state: RunState) -> Iterator[Row]:
    for probe, series in state.probes.items():
        for identity in dict.fromkeys(identity for identity, _ in series):
            spans = [
                Stretch(start_s, end_s, "bad", _lasting("locked out", start_s, end_s, to_end=end_s >= state.end_s))
                for start_s, end_s in lockouts_of(state, probe, identity)
            ]
            yield Row(f"{probe} as {identity}", spans)


def _components(state: RunState) -> Iterator[Row]:
    for name, component in sorted(state.components.items()):
        stretches = []
        for item in component.exits:
            again_s = component.back_s(item)
            text = "killed out of memory, down" if item.reason == "oom" else "ended, down"
            said = f"{text} to the end" if math.isinf(again_s) else _lasting(text, item.t_s, again_s)
            stretches.append(Stretch(item.t_s, again_s, "bad", said))
        yield Row(name, stretches)


def _nodes(state: RunState) -> Iterator[Row]:
    for probe, counts in state.node_counts.items():
        ordered = sorted(counts, key=lambda item: item.sent_s)
        stretches = []
        for bad, group in itertools.groupby(ordered, key=lambda item: item.not_ready > 0):
            spell = list(group)
            if bad:
                most = max(item.not_ready for item in spell)
                text = _lasting(f"{most:,} nodes not Ready at worst", spell[0].sent_s, spell[-1].sent_s)
                stretches.append(Stretch(spell[0].sent_s, spell[-1].sent_s, "warning", text))
        yield Row(probe, stretches)


def _actions(state: RunState) -> Iterator[Stretch]:
    begun: dict[str, list[Event]] = {}
    for event in sorted(state.events, key=lambda item: item.t_s):
        action = str(event.fields.get("action"))
        if event.kind == "action.start":
            begun.setdefault(action, []).append(event)
        elif event.kind == "action.end":
            starts = begun.get(action)
            start_s = starts.pop(0).t_s if starts else event.t_s
            detail = event.fields.get("detail") if event.fields.get("ok") else event.fields.get("error")
            done = "done" if event.fields.get("ok") else "failed"
            text = f"{action} {done}{f': {detail}' if detail else ''}"
            yield Stretch(start_s, event.t_s, "lever" if event.fields.get("ok") else "warning", text)
    for action, starts in begun.items():
        for event in starts:
            yield Stretch(event.t_s, math.inf, "warning", f"{action} not done")
