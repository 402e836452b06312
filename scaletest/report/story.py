"""The story of a run: what happened, in order of time, in a line each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

from scaletest.analysis.evaluate import lockouts_of
from scaletest.analysis.incident import LEVER, ROLLBACK
from scaletest.analysis.state import Event, RunState
from scaletest.core.journal import Record
from scaletest.core.units import format_bytes, format_count, format_duration
from scaletest.report.document import StoryLine

__all__ = ["first_line", "tell", "tell_event", "tell_others"]

Level = Literal["info", "good", "warning", "bad"]
Told = tuple[Level, str]


def tell(state: RunState) -> list[StoryLine]:
    """Return the lines of the story, in order of time."""
    lines = [*_events(state), *_rollouts(state), *_lockouts(state), *_not_ready(state)]
    return sorted(lines, key=lambda line: line.t_s)


def tell_others(state: RunState) -> list[StoryLine]:
    """Return the lines of the story that no milestone of an incident tells better: phases, other actions, warnings, the end.

    What was told of the set-up is left out unless it went wrong, and so is the begin of an action whose end is told.
    """
    begin_s = state.measured[0]
    ended = {str(event.fields.get("action")) for event in state.events if event.kind == "action.end"}
    lines = []
    for event in sorted(state.events, key=lambda item: item.t_s):
        action = str(event.fields.get("action"))
        if event.kind in _MILESTONES or (event.kind.startswith("action.") and action in {LEVER, ROLLBACK}):
            continue
        line = None if event.kind == "action.start" and action in ended else _line(state, event)
        if line is not None and (event.t_s >= begin_s or line.level in {"warning", "bad"}):
            lines.append(line)
    return lines


_MILESTONES: Final = frozenset({"component.start", "component.exit", "component.backoff", "flow.start", "driver.end"})


def tell_event(record: Record) -> Told | None:
    """Return the level and the text of a record that tells something by itself; None for all others."""
    teller = _TELLERS.get(record["kind"])
    if teller is None:
        return None
    try:
        return teller(record)
    except (TypeError, ValueError):
        # A field of a wrong type: that it happened is told all the same.
        return "warning", f"{record['kind']} (a malformed record)"


def _events(state: RunState) -> Iterator[StoryLine]:
    for event in sorted(state.events, key=lambda item: item.t_s):
        # The steps of a search stop and start the flows that make its load, each time.
        of_a_step = state.search is not None and event.t_s >= state.search.start_s and event.kind in _FLOW_KINDS
        line = None if of_a_step else _line(state, event)
        if line is not None:
            yield line


def _line(state: RunState, event: Event) -> StoryLine | None:
    told = tell_event(event.fields) if event.kind in _TELLERS else _phase(state, event)
    return StoryLine(t_s=event.t_s, level=told[0], text=told[1]) if told is not None else None


def _phase(state: RunState, event: Event) -> Told | None:
    if event.kind != "phase.start":
        return None
    name = str(event.fields.get("phase"))
    phase = next((item for item in state.phases if item.name == name and item.start_s == event.t_s), None)
    if phase is None or phase.end_s is None:
        return "info", f"phase {name}"
    ended = {
        "time": "",
        "condition": ", until its condition held",
        "at_most": ", its condition never held",
        "cut": ", cut short",
    }
    length = format_duration(phase.end_s - phase.start_s)
    return "info", f"phase {name}: {length}{ended.get(phase.reason or '', '')}"


def _run_end(fields: dict[str, Any]) -> Told | None:
    status, reason = str(fields.get("status")), first_line(fields.get("reason"))
    level: Level = "info" if status == "finished" else "bad"
    return level, f"run {status.replace('_', ' ')}{f': {reason}' if reason else ''}"


def _seeded(fields: dict[str, Any]) -> Told | None:
    counts = f"{_count(fields.get('nodes'))} nodes, {_count(fields.get('pods'))} pods"
    return "info", f"seeded {counts} via {fields.get('via')} in {_duration(fields.get('seconds'))}"


def _action_start(fields: dict[str, Any]) -> Told | None:
    return "info", f"action {fields.get('action')} {_detail(fields.get('detail'))}".rstrip()


def _action_end(fields: dict[str, Any]) -> Told | None:
    took = _duration(fields.get("duration_s"))
    if fields.get("ok"):
        return "good", f"action {fields.get('action')} done in {took}: {_detail(fields.get('detail'))}".rstrip(": ")
    return "bad", f"action {fields.get('action')} failed after {took}: {first_line(fields.get('error'))}"


def _component_start(fields: dict[str, Any]) -> Told | None:
    restart = int(fields.get("restart") or 0)
    return ("warning", f"{fields.get('component')} started, restart {restart}") if restart else None


def _component_exit(fields: dict[str, Any]) -> Told | None:
    name, reason = fields.get("component"), fields.get("reason")
    if reason == "oom":
        peak, cap = fields.get("peak_rss_bytes"), fields.get("cap_bytes")
        at = f" at {format_bytes(peak)}" if peak else ""
        return "bad", f"{name} killed out of memory{at}{f' (cap {format_bytes(cap)})' if cap else ''}"
    how = f"signal {fields.get('signal')}" if reason == "signal" else f"code {fields.get('code')}"
    return "bad", f"{name} ended with {how}"


def _backoff(fields: dict[str, Any]) -> Told | None:
    wait_s = float(fields.get("wait_s") or 0)
    return (
        ("warning", f"{fields.get('component')} restarts in {format_duration(wait_s)} (back-off)") if wait_s else None
    )


def _guard(fields: dict[str, Any]) -> Told | None:
    available, floor = fields.get("available_bytes"), fields.get("floor_bytes")
    return "bad", f"host guard: {format_bytes(available or 0)} of memory available, floor {format_bytes(floor or 0)}"


def _cluster_end(fields: dict[str, Any]) -> Told | None:
    reason = str(fields.get("reason"))
    return None if reason == "asked" else ("bad", f"control plane ended: {reason.replace('_', ' ')}")


def _driver_end(fields: dict[str, Any]) -> Told | None:
    return "info", f"load driver ended: {fields.get('reason')}"


def _note(fields: dict[str, Any]) -> Told | None:
    return ("warning" if fields.get("level") == "warning" else "info"), first_line(fields.get("text"))


def _step_start(fields: dict[str, Any]) -> Told:
    return "info", f"step {fields.get('step')}: load {fields.get('load')} ({fields.get('why')})"


def _step_end(fields: dict[str, Any]) -> Told:
    outcome = fields.get("outcome")
    level: Level = "good" if outcome == "held" else "bad" if outcome == "failed" else "warning"
    reason = f": {first_line(fields.get('reason'))}" if fields.get("reason") else ""
    came_to = "does not count" if outcome == "not counted" else str(outcome)
    return level, f"step {fields.get('step')}, load {fields.get('load')}, {came_to}{reason}"


_FLOW_KINDS: Final = frozenset({"flow.start", "flow.stop"})


_TELLERS: Final[dict[str, Callable[[dict[str, Any]], Told | None]]] = {
    "search.step.start": _step_start,
    "search.step.end": _step_end,
    "run.end": _run_end,
    "cluster.ready": lambda fields: ("info", f"control plane ready after {_duration(fields.get('seconds'))}"),
    "cluster.end": _cluster_end,
    "fleet.seeded": _seeded,
    "fleet.ready": lambda fields: (
        "good",
        f"{_count(fields.get('nodes'))} nodes Ready after {_duration(fields.get('seconds'))}",
    ),
    "flow.start": lambda fields: (
        "info",
        f"flow {fields.get('flow')} starts: {_count(fields.get('target'))} {fields.get('unit') or 'agents'}",
    ),
    "flow.stop": lambda fields: ("info", f"flow {fields.get('flow')} stops"),
    "action.start": _action_start,
    "action.end": _action_end,
    "component.start": _component_start,
    "component.exit": _component_exit,
    "component.backoff": _backoff,
    "host.guard": _guard,
    "driver.end": _driver_end,
    "note": _note,
}


def _rollouts(state: RunState) -> Iterator[StoryLine]:
    for name, series in state.flows.items():
        rollout = (item for item in series.intervals if item.arrivals is None)
        full = next((item for item in rollout if 0 < item.target <= item.started), None)
        if full is not None:
            text = f"flow {name}: all {full.started:,} {state.flow_units.get(name, 'agents')} started"
            yield StoryLine(t_s=full.end_s, level="good", text=text)


def _lockouts(state: RunState) -> Iterator[StoryLine]:
    for probe, series in state.probes.items():
        for identity in sorted({identity for identity, _ in series}):
            for start_s, end_s in lockouts_of(state, probe, identity):
                length = format_duration(end_s - start_s)
                to_end = "" if end_s < state.end_s else ", to the end"
                text = f"{probe} locked out as {identity} for {length}{to_end}"
                yield StoryLine(t_s=start_s, level="bad", text=text)
                if end_s < state.end_s:
                    yield StoryLine(t_s=end_s, level="good", text=f"{probe} answered again as {identity}")


def _not_ready(state: RunState) -> Iterator[StoryLine]:
    for probe, counts in state.node_counts.items():
        ordered = sorted(counts, key=lambda item: item.sent_s)
        for bad, group in itertools.groupby(ordered, key=lambda item: item.not_ready > 0):
            spell = list(group)
            if bad:
                worst = max(spell, key=lambda item: item.not_ready)
                after = next((item for item in ordered if item.sent_s > spell[-1].sent_s), None)
                until = f"until {after.sent_s:.1f} s" if after else "to the end"
                text = f"{probe}: {worst.not_ready:,} of {worst.total:,} nodes not Ready at worst, {until}"
                yield StoryLine(t_s=spell[0].sent_s, level="warning", text=text)


def first_line(text: Any) -> str:
    """Return the first line of a message; what follows (the end of a log) is in the journal."""
    first, _, rest = str(text or "").strip().partition("\n")
    return first.removesuffix(":") if rest else first


def _duration(seconds: Any) -> str:
    return format_duration(float(seconds)) if isinstance(seconds, int | float) else "?"


def _count(value: Any) -> str:
    return format_count(float(value)) if isinstance(value, int | float) else "?"


def _detail(detail: Any) -> str:
    if isinstance(detail, dict):
        return ", ".join(f"{key} {value}" for key, value in detail.items())
    return "" if detail is None else str(detail)
