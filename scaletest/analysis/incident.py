"""An incident as its milestones: what broke when, who was locked out, what was tried, when all was well again.

Times are seconds since the run began; T+ is the time since the *rollout* began: the start of the flow that ``deleteRollout`` or
``block`` names, else of the first flow. An incident *happened* when an SLO was broken, somebody was locked out, a component ended
unasked, or a lever was pulled: a rollout alone is none.

- ``lockout``: as in ``analysis.lockouts``, for each probe and identity.
- ``killed``, ``ended``: a component, and when it was started again. ``lease_lost``: kube-controller-manager or kube-scheduler that
  ended by itself because it could not renew its leader lease. The end of its log says so where there is one; without it, exit code 1 does,
  which is how both end then.
- ``not_ready``: from the first count with NotReady nodes to the first after the last, and the most.
- ``first_answer``: for an identity that was locked out when a lever was pulled, its next good answer, before the next lever.
- ``good_again``: for an identity that was locked out, the begin of its last good spell (``recovered`` is the length of that).
- ``recovered``: from then on every SLO held (see ``analysis.slo``) and every identity of the operator probes was in its last good spell.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from scaletest.analysis.components import ComponentExit
from scaletest.analysis.evaluate import SUSTAINED_S, good_spell_of, lockouts_of
from scaletest.analysis.limiting import Finding, findings
from scaletest.analysis.lockouts import Observation
from scaletest.analysis.series import Span, contains
from scaletest.analysis.slo import SloHistory, slo_histories
from scaletest.analysis.state import Event, PhaseSpan, RunState

__all__ = ["LEVER", "LIMITING_S", "ROLLBACK", "Incident", "Kind", "LeverPhase", "Milestone", "analyse"]

LIMITING_S: Final = 60.0
"""The end of a phase that is looked at for what stayed at its limit: what the lever has become, not what it met."""

LEVER: Final = "lever"
ROLLBACK: Final = "deleteRollout"

_NAMES_ROLLOUT: Final = frozenset({ROLLBACK, "block"})
_LEADERS: Final = ("kube-controller-manager", "kube-scheduler")
_LEASE_LOST: Final = ("leaderelection lost", "lost lease", "failed to renew lease")


class Kind(enum.StrEnum):
    """What a milestone is."""

    ROLLOUT = "rollout"
    STARTED = "started"
    SLO_BROKEN = "slo_broken"
    SLO_HOLDS = "slo_holds"
    LOCKOUT = "lockout"
    KILLED = "killed"
    LEASE_LOST = "lease_lost"
    ENDED = "ended"
    NOT_READY = "not_ready"
    ROLLBACK = "rollback"
    ROLLBACK_FAILED = "rollback_failed"
    ROLLBACK_DONE = "rollback_done"
    LEVER = "lever"
    FIRST_ANSWER = "first_answer"
    GOOD_AGAIN = "good_again"
    RECOVERED = "recovered"


BROKEN: Final = frozenset({Kind.SLO_BROKEN, Kind.LOCKOUT})
"""What there is to recover from."""

_HAPPENED: Final = frozenset({*BROKEN, Kind.KILLED, Kind.LEASE_LOST, Kind.ENDED, Kind.LEVER})
"""What makes an incident."""


@dataclass(frozen=True, slots=True)
class Milestone:
    """Something of an incident that happened at a moment, or began at it."""

    t_s: float
    kind: Kind
    subject: str
    """A flow, an SLO, a probe, a component or a lever."""
    identity: str | None = None
    until_s: float | None = None
    """The end of what has one; None when it lasted to the end of the run."""
    since_s: float | None = None
    """What it is counted from: the lever of a first answer, the begin of a rollback."""
    count: int | None = None
    """Agents, NotReady nodes, or how many times this component was killed so far."""
    total: int | None = None
    said: str | None = None
    """What the journal says of it: the text of an SLO, an action's result or error, what a flow consists of."""
    exit: ComponentExit | None = None


@dataclass(frozen=True, slots=True)
class LeverPhase:
    """A phase in which levers were pulled."""

    phase: PhaseSpan
    levers: tuple[str, ...]
    did: tuple[Event, ...]
    """The ends of the actions of the phase: what they did, or why they could not."""
    recovered: bool | None
    """Whether at the end of the phase every answer to every identity of the operator probes had been good, and quick, for 10 s, or
    for all of it. None where no operator asked."""
    looked_at: Span
    """The last ``LIMITING_S`` of the phase."""
    found: tuple[Finding, ...]
    """What the rules found then; empty unless the operators did not recover."""


@dataclass(frozen=True, slots=True)
class Incident:
    """A run as an incident."""

    rollout_s: float | None
    flow: str | None
    """The flow that was rolled out."""
    milestones: tuple[Milestone, ...]
    """In order of time."""
    slos: tuple[SloHistory, ...]
    levers: tuple[LeverPhase, ...]
    identities_good_from_s: float | None
    """From when on every answer to every identity of the operator probes was good, and quick; None when it was not so at the end."""
    slos_hold_from_s: float | None
    """From when on every SLO held; None when one did not at the end, or there is none."""
    recovered_s: float | None
    """From when on both were so, as far as there are SLOs and operators; None when not so at the end."""

    @property
    def happened(self) -> bool:
        """Whether anything of an incident happened."""
        return any(item.kind in _HAPPENED for item in self.milestones)

    @property
    def recovered(self) -> bool | None:
        """Whether all was well at the end; None where there was nothing to recover from."""
        broken = any(item.kind in BROKEN for item in self.milestones)
        return self.recovered_s is not None if broken else None

    @property
    def first_breach_s(self) -> float | None:
        """When the first SLO was broken."""
        return min((item.broken_s for item in self.slos if item.broken_s is not None), default=None)


def analyse(state: RunState, profile: Mapping[str, Any]) -> Incident:
    """Find the milestones of a run; ``profile`` is the resolved one of ``run.json``."""
    flow = _rollout_flow(state)
    slos = tuple(slo_histories(state, profile))
    probes = _operator_probes(state, profile)
    slos_hold_from_s = _latest([item.holds_from_s for item in slos if item.measured])
    identities_good_from_s = _identities_good_from_s(state, probes)
    parts = [slos_hold_from_s] if any(item.measured for item in slos) else []
    parts += [identities_good_from_s] if probes else []
    recovered_s = _latest(parts)
    milestones = [
        *_rollouts(state, flow),
        *_slos(slos),
        *_lockouts(state),
        *_exits(state),
        *_not_ready(state),
        *_actions(state),
        *_first_answers(state, probes),
        *_good_again(state, probes),
    ]
    if recovered_s is not None and any(item.kind in BROKEN for item in milestones):
        milestones.append(Milestone(recovered_s, Kind.RECOVERED, ""))
    return Incident(
        rollout_s=state.flow_starts_s.get(flow) if flow else None,
        flow=flow,
        milestones=tuple(sorted(milestones, key=lambda item: item.t_s)),
        slos=slos,
        levers=tuple(_lever_phases(state, probes, profile)),
        identities_good_from_s=identities_good_from_s,
        slos_hold_from_s=slos_hold_from_s,
        recovered_s=recovered_s,
    )


def _latest(times_s: list[float | None]) -> float | None:
    """Return the latest of times, None when there is none or one of them is None."""
    known = [item for item in times_s if item is not None]
    return max(known) if known and len(known) == len(times_s) else None


def _rollout_flow(state: RunState) -> str | None:
    for event in state.events:
        detail = event.fields.get("detail")
        if (
            event.kind == "action.start"
            and event.fields.get("action") in _NAMES_ROLLOUT
            and isinstance(detail, Mapping)
        ):
            flow = str(detail.get("flow"))
            if flow in state.flow_starts_s:
                return flow
    # Agents before what stands beside them: watches, arrivals.
    return min(
        state.flow_starts_s,
        key=lambda name: (state.flow_units.get(name) != "agents", state.flow_starts_s[name]),
        default=None,
    )


def _operator_probes(state: RunState, profile: Mapping[str, Any]) -> list[str]:
    """Return the probes that stand for operators: those that do not count nodes."""
    specs = profile.get("probes")
    counting = {
        name for name, spec in (specs.items() if isinstance(specs, Mapping) else ())
        if isinstance(spec, Mapping) and spec.get("nodeReadiness")
    }  # fmt: skip
    return [name for name in state.probes if name not in counting and name not in state.node_counts]


def _identities(state: RunState, probe: str) -> list[str]:
    return list(dict.fromkeys(identity for identity, _ in state.probes.get(probe, ())))


def _asked(state: RunState, probe: str, identity: str) -> list[Observation]:
    return [item for (of, _), items in state.probes[probe].items() if of == identity for item in items]


def _identities_good_from_s(state: RunState, probes: list[str]) -> float | None:
    spells = [good_spell_of(state, probe, identity) for probe in probes for identity in _identities(state, probe)]
    return _latest([spell[0] if spell else None for spell in spells])


def _rollouts(state: RunState, rolled_out: str | None) -> Iterator[Milestone]:
    for name, series in state.flows.items():
        rollout = (item for item in series.intervals if item.arrivals is None)
        full = next((item for item in rollout if 0 < item.target <= item.started), None)
        if full is not None:
            yield Milestone(full.end_s, Kind.STARTED, name, said=_unit(state, name), count=full.started)
    for event in state.events:
        name = str(event.fields.get("flow"))
        if event.kind == "flow.start" and name == rolled_out and event.t_s == state.flow_starts_s.get(name):
            target = event.fields.get("target")
            count = target if isinstance(target, int) else None
            yield Milestone(event.t_s, Kind.ROLLOUT, name, said=_unit(state, name), count=count)


def _unit(state: RunState, flow: str) -> str:
    return state.flow_units.get(flow, "agents")


def _slos(slos: tuple[SloHistory, ...]) -> Iterator[Milestone]:
    for item in slos:
        if item.broken_s is not None:
            yield Milestone(item.broken_s, Kind.SLO_BROKEN, item.name, said=item.text, until_s=item.holds_from_s)
            if item.holds_from_s is not None:
                yield Milestone(item.holds_from_s, Kind.SLO_HOLDS, item.name, said=item.text)


def _lockouts(state: RunState) -> Iterator[Milestone]:
    for probe in state.probes:
        for identity in _identities(state, probe):
            for start_s, end_s in lockouts_of(state, probe, identity):
                until_s = end_s if end_s < state.end_s else None
                yield Milestone(start_s, Kind.LOCKOUT, probe, identity, until_s)


def _exits(state: RunState) -> Iterator[Milestone]:
    for name, component in state.components.items():
        kills = 0
        for item in sorted(component.exits, key=lambda item: item.t_s):
            kind = Kind.KILLED if item.reason == "oom" else Kind.LEASE_LOST if _lost_lease(name, item) else Kind.ENDED
            kills += kind is Kind.KILLED
            back_s = component.back_s(item)
            yield Milestone(
                item.t_s, kind, name, exit=item,
                until_s=back_s if math.isfinite(back_s) else None,
                count=kills if kind is Kind.KILLED else None,
            )  # fmt: skip


def _lost_lease(name: str, item: ComponentExit) -> bool:
    if not name.startswith(_LEADERS) or item.reason != "exit":
        return False
    if item.log_tail:
        return any(said in item.log_tail.lower() for said in _LEASE_LOST)
    return item.code == 1


def _not_ready(state: RunState) -> Iterator[Milestone]:
    for probe, counts in state.node_counts.items():
        ordered = sorted(
            (item for item in counts if contains(state.measured, item.sent_s)), key=lambda item: item.sent_s
        )
        bad = [item for item in ordered if item.not_ready > 0]
        if bad:
            worst = max(bad, key=lambda item: item.not_ready)
            until_s = next((item.sent_s for item in ordered if item.sent_s > bad[-1].sent_s), None)
            yield Milestone(
                bad[0].sent_s, Kind.NOT_READY, probe, until_s=until_s, count=worst.not_ready, total=worst.total
            )


def _actions(state: RunState) -> Iterator[Milestone]:
    began_s: dict[str, float] = {}
    for event in state.events:
        action, detail = str(event.fields.get("action")), event.fields.get("detail")
        if event.kind == "action.start":
            began_s[action] = event.t_s
            identity = str(detail["identity"]) if isinstance(detail, Mapping) and detail.get("identity") else None
            if action == LEVER:
                yield Milestone(event.t_s, Kind.LEVER, str(detail))
            elif action == ROLLBACK:
                yield Milestone(event.t_s, Kind.ROLLBACK, _flow_of(detail), identity)
        elif event.kind == "action.end" and action == ROLLBACK:
            done = bool(event.fields.get("ok"))
            kind = Kind.ROLLBACK_DONE if done else Kind.ROLLBACK_FAILED
            said = detail if done else event.fields.get("error")
            yield Milestone(event.t_s, kind, "", since_s=began_s.get(action), said=str(said) if said else None)


def _flow_of(detail: object) -> str:
    return str(detail.get("flow", "")) if isinstance(detail, Mapping) else ""


def _levers(state: RunState) -> list[tuple[float, str]]:
    return [
        (event.t_s, str(event.fields.get("detail")))
        for event in state.events
        if event.kind == "action.start" and event.fields.get("action") == LEVER
    ]


def _first_answers(state: RunState, probes: list[str]) -> Iterator[Milestone]:
    levers = _levers(state)
    for index, (lever_s, lever) in enumerate(levers):
        next_s = levers[index + 1][0] if index + 1 < len(levers) else math.inf
        for probe in probes:
            for identity in _identities(state, probe):
                span = next((item for item in lockouts_of(state, probe, identity) if contains(item, lever_s)), None)
                if span is not None and span[1] < min(next_s, state.end_s):
                    yield Milestone(span[1], Kind.FIRST_ANSWER, probe, identity, since_s=lever_s, said=lever)


def _good_again(state: RunState, probes: list[str]) -> Iterator[Milestone]:
    for probe in probes:
        for identity in _identities(state, probe):
            spell = good_spell_of(state, probe, identity)
            if spell is not None and lockouts_of(state, probe, identity):
                yield Milestone(spell[0], Kind.GOOD_AGAIN, probe, identity)


def _lever_phases(state: RunState, probes: list[str], profile: Mapping[str, Any]) -> Iterator[LeverPhase]:
    for phase in state.phases:
        levers = tuple(name for t_s, name in _levers(state) if contains(phase.span, t_s))
        if not levers:
            continue
        end_s = state.last_t_s if phase.end_s is None else phase.end_s
        recovered = _well_at_end(state, probes, (phase.start_s, end_s))
        looked_at = max(phase.start_s, end_s - LIMITING_S), end_s
        found = tuple(findings(state, looked_at, profile)) if recovered is False else ()
        yield LeverPhase(phase, levers, tuple(_ends(state, phase)), recovered, looked_at, found)


def _ends(state: RunState, phase: PhaseSpan) -> Iterator[Event]:
    """Yield the ends of a phase's actions, by the order of the journal: times of neighbours may be equal."""
    inside = False
    for event in state.events:
        if event.kind == "phase.start":
            inside = event.fields.get("phase") == phase.name and event.t_s == phase.start_s
        elif inside and event.kind == "action.end" and event.fields.get("action") != LEVER:
            yield event


def _well_at_end(state: RunState, probes: list[str], span: Span) -> bool | None:
    """Whether the latest answers of each identity were good, for 10 s or all that the phase has: as its ``until`` saw it."""
    well: bool | None = None
    for probe in probes:
        for identity in _identities(state, probe):
            sent_s = [item.sent_s for item in _asked(state, probe, identity) if contains(span, item.sent_s)]
            if not sent_s:
                continue
            spell = good_spell_of(state, probe, identity, span, answered_by_s=span[1])
            if spell is None or (spell[1] - spell[0] < SUSTAINED_S and spell[0] > min(sent_s)):
                return False
            well = True
    return well
