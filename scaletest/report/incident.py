"""The text of an incident: its milestones among the other events, as one timeline, and what kept a lever from helping."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from scaletest.analysis.incident import Incident, Kind, LeverPhase, Milestone
from scaletest.analysis.limiting import Finding, Resource, limiting
from scaletest.analysis.slo import WINDOW_S
from scaletest.analysis.state import Event, RunState
from scaletest.core.units import format_bytes, format_count, format_duration
from scaletest.report.document import (
    IncidentLine,
    IncidentReport,
    LeverReport,
    SloReport,
)
from scaletest.report.limits import figures_text, limit_report, limit_text
from scaletest.report.story import Told, first_line, tell_others

__all__ = ["tell_incident"]

_TOGETHER_S: Final = 2.0
"""What happens to several identities within two periods of a probe is told in one line."""


def tell_incident(state: RunState, incident: Incident) -> IncidentReport | None:
    """Tell an incident; None when nothing of the kind happened."""
    if not incident.happened:
        return None
    lines = [*_milestones(incident), *_others(state, incident)]
    return IncidentReport(
        flow=incident.flow,
        rollout_s=incident.rollout_s,
        first_breach_s=incident.first_breach_s,
        recovered=incident.recovered,
        recovered_s=incident.recovered_s if incident.recovered else None,
        window_s=WINDOW_S,
        timeline=sorted(lines, key=lambda line: line.t_s),
        slos=[
            SloReport(
                name=item.name, condition=item.text, broken_s=item.broken_s, holds_from_s=item.holds_from_s,
                measured=item.measured,
            )
            for item in incident.slos
        ],
        levers=[_lever(phase) for phase in incident.levers],
    )  # fmt: skip


def _others(state: RunState, incident: Incident) -> Iterator[IncidentLine]:
    for line in tell_others(state):
        yield _line(incident, line.t_s, (line.level, line.text), None)


def _line(incident: Incident, t_s: float, told: Told, milestone: str | None) -> IncidentLine:
    since_s = None if incident.rollout_s is None else t_s - incident.rollout_s
    return IncidentLine(t_s=t_s, since_rollout_s=since_s, level=told[0], milestone=milestone, text=told[1])


def _milestones(incident: Incident) -> Iterator[IncidentLine]:
    recovered_s = incident.recovered_s
    for group in _together(incident.milestones):
        first = group[0]
        # The line on the recovery says it of all: nothing is said twice.
        part = first.kind in {Kind.SLO_HOLDS, Kind.GOOD_AGAIN}
        if part and recovered_s is not None and recovered_s - first.t_s <= _TOGETHER_S:
            continue
        told = _recovered(incident) if first.kind is Kind.RECOVERED else _TELLERS[first.kind](group)
        yield _line(incident, first.t_s, told, first.kind.value)


_OF_IDENTITIES: Final = frozenset({Kind.LOCKOUT, Kind.FIRST_ANSWER, Kind.GOOD_AGAIN})


def _together(milestones: Iterable[Milestone]) -> list[list[Milestone]]:
    """Put what happened to several identities of a probe at about the same time into one group; all else stands alone."""
    groups: list[list[Milestone]] = []
    latest: dict[tuple[Kind, str], list[Milestone]] = {}
    for item in milestones:
        key = item.kind, item.subject
        group = latest.get(key)
        if item.kind in _OF_IDENTITIES and group is not None and item.t_s - group[0].t_s <= _TOGETHER_S:
            group.append(item)
        else:
            latest[key] = [item]
            groups.append(latest[key])
    return groups


def _rollout(group: list[Milestone]) -> Told:
    agents = f": {format_count(group[0].count)} {group[0].said}" if group[0].count is not None else ""
    return "info", f"rollout of {group[0].subject} begins{agents}"


def _started(group: list[Milestone]) -> Told:
    return "info", f"all {format_count(group[0].count or 0)} {group[0].said} of {group[0].subject} started"


def _slo_broken(group: list[Milestone]) -> Told:
    return "bad", f"SLO {group[0].subject} broken: {group[0].said} does not hold over {WINDOW_S:g} s"


def _slo_holds(group: list[Milestone]) -> Told:
    return "good", f"SLO {group[0].subject} holds from here on"


def _lockout(group: list[Milestone]) -> Told:
    each = [
        f"{item.identity} to the end" if item.until_s is None
        else f"{item.identity} for {format_duration(item.until_s - item.t_s)}, to {item.until_s:.1f} s"
        for item in group
    ]  # fmt: skip
    return "bad", f"{group[0].subject} locked out: {'; '.join(each)}"


def _killed(group: list[Milestone]) -> Told:
    (item,) = group
    # The largest resident set has pages of files in it that count against no cap: the cap, where there is one, is what it hit.
    size_bytes = (item.exit.cap_bytes or item.exit.peak_rss_bytes) if item.exit else None
    at = f" at {format_bytes(size_bytes)}" if size_bytes else ""
    again = f", kill {item.count}" if (item.count or 0) > 1 else ""
    return "bad", f"{item.subject} killed out of memory{at}{again}; {_back(item)}"


def _lease_lost(group: list[Milestone]) -> Told:
    return "bad", f"{group[0].subject} lost its leader lease and ended; {_back(group[0])}"


def _ended(group: list[Milestone]) -> Told:
    (item,) = group
    how = ""
    if item.exit is not None:
        how = f" with signal {item.exit.signal}" if item.exit.reason == "signal" else f" with code {item.exit.code}"
    return "bad", f"{item.subject} ended{how}; {_back(item)}"


def _back(item: Milestone) -> str:
    return (
        "not started again"
        if item.until_s is None
        else f"started again after {format_duration(item.until_s - item.t_s)}"
    )


def _not_ready(group: list[Milestone]) -> Told:
    (item,) = group
    until = "to the end" if item.until_s is None else f"until {item.until_s:.1f} s"
    return "warning", f"nodes NotReady, {item.count or 0:,} of {item.total or 0:,} at most, {until}"


def _rollback(group: list[Milestone]) -> Told:
    identity = f" as {group[0].identity}" if group[0].identity else ""
    return "info", f"rollback of {group[0].subject} tried{identity}, through the API"


def _rollback_failed(group: list[Milestone]) -> Told:
    return "bad", f"rollback given up{_took(group[0])}{_said(group[0])}"


def _rollback_done(group: list[Milestone]) -> Told:
    return "good", f"rollback done{_took(group[0])}{_said(group[0])}"


def _took(item: Milestone) -> str:
    return "" if item.since_s is None else f" after {format_duration(item.t_s - item.since_s)}"


def _said(item: Milestone) -> str:
    return f": {first_line(item.said)}" if item.said else ""


def _lever_pulled(group: list[Milestone]) -> Told:
    lever = group[0].subject
    return "info", "no lever is pulled" if lever == "none" else f"lever {lever} is pulled"


def _first_answer(group: list[Milestone]) -> Told:
    each = ", ".join(f"{item.identity} after {format_duration(item.t_s - (item.since_s or 0.0))}" for item in group)
    lever = "the lever's moment" if group[0].said == "none" else f"lever {group[0].said}"
    return "good", f"{group[0].subject} has its first good answer since {lever}: {each}"


def _good_again(group: list[Milestone]) -> Told:
    return (
        "good",
        f"{group[0].subject} answered within 1 s from here on: {', '.join(str(item.identity) for item in group)}",
    )


def _recovered(incident: Incident) -> Told:
    slos = ["every SLO holds"] if incident.slos_hold_from_s is not None else []
    operators = ["every operator is answered within 1 s"] if incident.identities_good_from_s is not None else []
    return "good", f"recovered: {' and '.join([*slos, *operators])}, to the end"


_TELLERS: Final[dict[Kind, Callable[[list[Milestone]], Told]]] = {
    Kind.ROLLOUT: _rollout,
    Kind.STARTED: _started,
    Kind.SLO_BROKEN: _slo_broken,
    Kind.SLO_HOLDS: _slo_holds,
    Kind.LOCKOUT: _lockout,
    Kind.KILLED: _killed,
    Kind.LEASE_LOST: _lease_lost,
    Kind.ENDED: _ended,
    Kind.NOT_READY: _not_ready,
    Kind.ROLLBACK: _rollback,
    Kind.ROLLBACK_FAILED: _rollback_failed,
    Kind.ROLLBACK_DONE: _rollback_done,
    Kind.LEVER: _lever_pulled,
    Kind.FIRST_ANSWER: _first_answer,
    Kind.GOOD_AGAIN: _good_again,
}


def _lever(phase: LeverPhase) -> LeverReport:
    did = [_did(event) for event in phase.did]
    return LeverReport(
        phase=phase.phase.name,
        levers=list(phase.levers),
        start_s=phase.phase.start_s,
        recovered=phase.recovered,
        did=did,
        looked_at_from_s=phase.looked_at[0],
        limits=[limit_report(item) for item in phase.found],
        said=_why(phase, did) if phase.recovered is False else None,
    )  # fmt: skip


def _did(event: Event) -> str:
    name, fields = event.fields.get("action"), event.fields
    if fields.get("ok"):
        return f"{name}: {first_line(fields.get('detail')) or 'done'}"
    return f"{name} failed: {first_line(fields.get('error'))}{_proof(fields.get('proof'))}"


def _proof(proof: Any) -> str:
    """Say what an action did before it failed."""
    if not isinstance(proof, Mapping) or not proof:
        return ""
    figures = (f"{value} {str(name).replace('_', ' ')}" for name, value in proof.items())
    return f" ({', '.join(figures)})"


def _why(phase: LeverPhase, did: list[str]) -> str:
    lasted_s = phase.looked_at[1] - phase.phase.start_s
    levers = " and ".join(f"lever {name}" for name in phase.levers if name != "none") or "No lever"
    head = f"{levers[0].upper()}{levers[1:]} in phase {phase.phase.name}: operators had not recovered after {format_duration(lasted_s)}."
    what = f" {_sentence('; '.join(did))}" if did else ""
    over = format_duration(phase.looked_at[1] - phase.looked_at[0])
    limit = limiting(phase.found)
    if limit is not None:
        return f"{head}{what} What stayed at its limit, in the last {over}: {limit_text(limit)}."
    near = "; ".join(figures_text(item) for item in _one_of_each(phase.found)) or "nothing was measured"
    return f"{head}{what} No resource at its limit in the last {over}: {near}."


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _one_of_each(found: Iterable[Finding]) -> list[Finding]:
    """Return the fullest of each resource: the rules order them so."""
    first: dict[Resource, Finding] = {}
    for item in found:
        first.setdefault(item.resource, item)
    return list(first.values())
