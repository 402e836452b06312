"""What API Priority and Fairness is said to do, and what it did: predictions over the runs of ``benchmarks/truths/apf-*.yaml``.

Pure functions of what the runs' journals say; ``python -m benchmarks.truths apf`` makes the runs. Formulas are those of
``k8s.io/apiserver/pkg/util/flowcontrol`` (v0.31.4; apf_controller.go, conc_alloc.go and fairqueuing/queueset are the same in v0.37.2). What was learned
stands in docs/decisions/027-flow-control.md. A prediction that is known to be wrong stays in the table: ``known`` says how it comes out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from scaletest.analysis.evaluate import measure
from scaletest.analysis.metrics import ApfSample
from scaletest.analysis.series import Span
from scaletest.analysis.state import RunState
from scaletest.profile.objectives import Subject

__all__ = ["DEFAULT_LEVELS", "PREDICTIONS", "PROFILES", "Level", "Prediction", "Seats", "Seen", "seats", "table"]

TOTAL_SEATS: Final = 600
"""``--max-requests-inflight`` 400 and ``--max-mutating-requests-inflight`` 200."""

LIST_SEATS: Final = 10
"""Of a cached LIST of more than 900 objects (1.31), or of 1 MB and more (from 1.34 on)."""

HAND_SIZE: Final = 6
QUEUE_LENGTH: Final = 50
"""Of ``workload-low`` and ``workload-high``."""

AGENT_SHARES: Final = 1
"""Of the level ``scaletest-agents``, that the action ``applyFlowControl`` makes."""
BREAK_GLASS_SHARES: Final = 30

ACCESS_S: Final = 1.0
"""An operator has access whose answers come within it, as for the measure ``recovered``."""

POD_STARTUP_S: Final = 5.0
"""Of the official pod start-up SLO."""

CPU_FULL: Final = 0.9
"""Of its quota, as for the attribution of a saturation point."""

_SETTLED_S: Final = 23.0
"""From a change to its effect: a request waits in a queue for 15 s, and a slow reader keeps its seats for 8 s."""

_BACKED_UP_S: Final = 8.0
"""From the begin of a flood until all that the API server can do at once is under way."""

_NEIGHBOUR: Final = "serviceAccount:telemetry/neighbour"
_SAME_FLOW: Final = "serviceAccount:telemetry/wide"
_MASTERS: Final = "system:masters"
_API_SERVER: Final = "kube-apiserver"
_POD_STARTUP: Final = Subject("flow", "churn", None, None, "pod_startup_p99")


class Level(NamedTuple):
    """A priority level: its part of the seats, and how much of it others may borrow."""

    shares: int
    lendable_percent: int


DEFAULT_LEVELS: Final = {
    "system": Level(30, 33),
    "node-high": Level(40, 25),
    "leader-election": Level(10, 0),
    "workload-high": Level(40, 50),
    "workload-low": Level(100, 90),
    "global-default": Level(20, 50),
    "catch-all": Level(5, 0),
}
"""k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap/default.go."""


class Seats(NamedTuple):
    """How many seats a level has: by its shares, when nobody asks for any, and when it alone asks for more than there are."""

    nominal: int
    quiet: int
    alone: int


def seats(levels: Mapping[str, Level] = DEFAULT_LEVELS, total: int = TOTAL_SEATS) -> dict[str, Seats]:
    """Return the seats of each level.

    A level keeps at least what it does not lend. Every 10 s all seats are given out anew, in proportion to the demand, which counts as no less than that
    (``updateBorrowingLocked``, ``computeConcurrencyAllocation``): so a quiet cluster has them in proportion to what each level does not lend.
    """
    all_shares = sum(level.shares for level in levels.values())
    nominal = {name: math.ceil(total * level.shares / all_shares) for name, level in levels.items()}
    kept = {
        name: nominal[name] - _round(nominal[name] * level.lendable_percent / 100) for name, level in levels.items()
    }
    there, asked = sum(nominal.values()), sum(kept.values())
    return {
        name: Seats(nominal[name], _round(kept[name] * there / asked), there - asked + kept[name]) for name in levels
    }


def _round(value: float) -> int:
    """Round as Go's math.Round does."""
    return math.floor(value + 0.5)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a prediction came to."""

    confirmed: bool
    measured: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """What should be seen in one of the runs."""

    letter: str
    said: str
    expected: str
    profile: str
    look: Callable[[RunState], Seen]
    known: bool = True
    """Whether it is known to come out confirmed. False for what was expected at first, and was refuted."""


PROFILES: Final = ("apf-wide", "apf-narrow", "apf-controllers", "apf-cpu", "apf-memory")

_SEATS: Final = seats()
_LOW: Final = _SEATS["workload-low"]


def span_of(state: RunState, phase: str) -> Span:
    """Return the span of a phase. Raises SystemExit when the run was cut short."""
    found = state.phase(phase)
    if found is None or found.end_s is None:
        msg = f"the run has no whole phase {phase!r}: run it again"
        raise SystemExit(msg)
    return found.span


def value(state: RunState, subject: Subject, span: Span) -> float:
    """Measure a subject over a span; NaN where it was never measured."""
    return measure(state, subject, span).value


def _probe(identity: str, name: str) -> Subject:
    return Subject("probe", "operator", None, identity, name)


def waiting(state: RunState, level: str, phase: str) -> list[ApfSample]:
    """Return the scrapes of a phase at which requests waited in a level."""
    return [item for item in state.api_servers.level(level, span_of(state, phase)) if item.queued > 0]


def _at_once_by_shares(state: RunState) -> Seen:
    found = [item.executing for item in waiting(state, "workload-low", "flood")]
    expected = _LOW.nominal // LIST_SEATS
    said = f"{min(found):.0f} at first, {max(found):.0f} later" if found else "nothing waited"
    return Seen(bool(found) and abs(found[0] - expected) <= 1, said)


def _at_once(state: RunState) -> Seen:
    found = waiting(state, "workload-low", "flood")
    if not found:
        return Seen(False, "nothing waited")
    # Between a scrape's gauges a LIST may have ended.
    fitting = sum(abs(item.executing - item.seats_limit // LIST_SEATS) <= 1 for item in found)
    first, most = found[0], max(item.seats_limit for item in found)
    held = (
        fitting >= 0.8 * len(found) and first.seats_limit < _LOW.nominal and abs(most - _LOW.alone) <= 0.05 * _LOW.alone
    )
    return Seen(
        held,
        f"{first.executing:.0f} of {first.seats_limit:.0f} seats, then {max(item.executing for item in found):.0f} of {most:.0f}; "
        f"⌊seats ÷ {LIST_SEATS}⌋ at {fitting} of {len(found)} scrapes",
    )


def _queue(state: RunState) -> tuple[float, dict[str, float], str]:
    queued = max((item.queued for item in waiting(state, "workload-low", "flood")), default=0.0)
    rejected = state.api_servers.rejected("workload-low", span_of(state, "flood"))
    reasons = ", ".join(f"{count:,.0f} {reason}" for reason, count in sorted(rejected.items()) if count)
    return queued, rejected, f"{queued:,.0f} waiting at most; rejected: {reasons or 'none'}"


def _narrow_queue(state: RunState) -> Seen:
    queued, rejected, said = _queue(state)
    full = HAND_SIZE * QUEUE_LENGTH
    return Seen(0.95 * full <= queued <= full and rejected.get("queue-full", 0) > 0, said)


def _wide_queue_by_length(state: RunState) -> Seen:
    queued, rejected, said = _queue(state)
    return Seen(queued <= HAND_SIZE * QUEUE_LENGTH and rejected.get("queue-full", 0) > 0, said)


def _wide_queue(state: RunState) -> Seen:
    queued, _, said = _queue(state)
    longest = max(waiting(state, "workload-low", "flood"), key=lambda item: item.queued, default=None)
    if longest is None:
        return Seen(False, said)
    said += f"; {longest.seats_in_use:.0f} of {longest.seats_limit:.0f} seats in use then"
    return Seen(queued > HAND_SIZE * QUEUE_LENGTH and longest.seats_in_use < longest.seats_limit, said)


def _controllers(state: RunState) -> Seen:
    outside, inside = (value(state, _POD_STARTUP, span_of(state, phase)) for phase in ("outside", "inside"))
    return Seen(
        outside < POD_STARTUP_S < inside,
        f"pod start-up p99 {_duration(outside)} beside readers in telemetry, {_duration(inside)} in kube-system",
    )


def _access(state: RunState, identity: str, span: Span) -> tuple[bool, str]:
    p99_s, good = (value(state, _probe(identity, name), span) for name in ("p99", "success_rate"))
    return p99_s < ACCESS_S and good == 1.0, f"{good:.0%} good, p99 {_duration(p99_s)}"


def _cores(state: RunState, span: Span) -> tuple[float, float]:
    component = state.components[_API_SERVER]
    quota = component.limit.cpu_cores if component.limit and component.limit.cpu_cores else math.nan
    return component.process.mean_cores(span), quota


def _masters_in_a_queue(state: RunState) -> Seen:
    span = span_of(state, "flood")
    masters, said = _access(state, _MASTERS, span)
    same, same_said = _access(state, _SAME_FLOW, span)
    cores, quota = _cores(state, span)
    return Seen(
        masters and not same and cores < CPU_FULL * quota,
        f"masters {said}; same flow as the readers {same_said}; CPU {cores:.2f} of {quota:.2f} cores",
    )


def _masters_without_cpu(state: RunState) -> Seen:
    begin_s, end_s = span_of(state, "flood")
    span = (begin_s + _BACKED_UP_S, end_s)
    masters, said = _access(state, _MASTERS, span)
    cores, quota = _cores(state, span)
    return Seen(not masters and cores >= CPU_FULL * quota, f"masters {said}; CPU {cores:.2f} of {quota:.2f} cores")


def _masters_without_memory(state: RunState) -> Seen:
    span = span_of(state, "flood")
    kills = state.components[_API_SERVER].oom_kills(span)
    locked_out_s = value(state, _probe(_MASTERS, "locked_out"), span)
    return Seen(
        kills >= 1 and locked_out_s >= ACCESS_S,
        f"killed {kills} times, masters locked out for {_duration(locked_out_s)}",
    )


def _isolated(state: RunState) -> Seen:
    begin_s, end_s = span_of(state, "level")
    before, before_said = _access(state, _NEIGHBOUR, span_of(state, "flood"))
    settled = (begin_s + _SETTLED_S, end_s)
    after, after_said = _access(state, _NEIGHBOUR, settled)
    own = state.api_servers.level("scaletest-agents", settled)
    at_once = max((item.executing for item in own), default=math.nan)
    rejected = sum(state.api_servers.rejected("scaletest-agents", settled).values())
    return Seen(
        not before and after and at_once <= 1 and rejected > 0,
        f"neighbour {before_said}; then {after_said}; {at_once:.0f} LIST at once, {rejected:,.0f} rejected",
    )


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if math.isfinite(seconds) else "without end" if seconds > 0 else "not measured"


_OWN_LEVEL: Final = seats({
    **DEFAULT_LEVELS, "scaletest-agents": Level(AGENT_SHARES, 0), "scaletest-break-glass": Level(BREAK_GLASS_SHARES, 0),
})["scaletest-agents"].nominal  # fmt: skip

PREDICTIONS: Final = (
    Prediction(
        "a",
        "wide LISTs in workload-low at once, as first expected: by its shares",
        f"⌊{_LOW.nominal} ÷ {LIST_SEATS}⌋ = {_LOW.nominal // LIST_SEATS} before it borrows",
        "apf-wide",
        _at_once_by_shares,
        known=False,
    ),
    Prediction(
        "a",
        "wide LISTs in workload-low at once: by the seats it has now, few in a quiet cluster",
        f"⌊seats ÷ {LIST_SEATS}⌋: of {_LOW.quiet} or fewer {_LOW.quiet // LIST_SEATS}, then of {_LOW.alone} {_LOW.alone // LIST_SEATS}",
        "apf-wide",
        _at_once,
    ),
    Prediction(
        "b",
        "requests of one seat and one flow: the rest gets 429 queue-full",
        f"{HAND_SIZE} queues × {QUEUE_LENGTH} = {HAND_SIZE * QUEUE_LENGTH} waiting",
        "apf-narrow",
        _narrow_queue,
    ),
    Prediction(
        "b",
        "wide LISTs of one flow, as first expected: likewise",
        f"{HAND_SIZE * QUEUE_LENGTH} waiting at most, and queue-full",
        "apf-wide",
        _wide_queue_by_length,
        known=False,
    ),
    Prediction(
        "b",
        "wide LISTs of one flow: no limit while some seats are free and too few",
        f"more than {HAND_SIZE * QUEUE_LENGTH} waiting, seats in use < seats",
        "apf-wide",
        _wide_queue,
    ),
    Prediction(
        "c",
        "readers in kube-system hold up controller-manager and scheduler, elsewhere they do not",
        f"pod start-up p99 over {POD_STARTUP_S:g} s, and under",
        "apf-controllers",
        _controllers,
    ),
    Prediction(
        "d",
        "system:masters outlives queues",
        f"p99 under {ACCESS_S:g} s where the same flow waits; CPU under {CPU_FULL:.0%}",
        "apf-wide",
        _masters_in_a_queue,
    ),
    Prediction(
        "d",
        "system:masters does not outlive a server without CPU",
        f"p99 over {ACCESS_S:g} s at {CPU_FULL:.0%} of the CPU or more",
        "apf-cpu",
        _masters_without_cpu,
    ),
    Prediction(
        "d",
        "system:masters does not outlive a server without memory",
        f"killed at its cap, locked out for {ACCESS_S:g} s or more",
        "apf-memory",
        _masters_without_memory,
    ),
    Prediction(
        "e",
        "a level of their own for the agents frees their neighbours",
        f"neighbour p99 over {ACCESS_S:g} s, then under; {_OWN_LEVEL} seats: 1 LIST at once",
        "apf-wide",
        _isolated,
    ),
)


def table(seen: Sequence[tuple[Prediction, Seen]]) -> str:
    """Return the predictions and what became of them, as text."""
    lines = []
    for prediction, item in seen:
        came = "confirmed" if item.confirmed else "refuted"
        surprise = "" if item.confirmed == prediction.known else "  ← NOT AS KNOWN"
        lines += [
            f"({prediction.letter}) {prediction.said}",
            f"      expected  {prediction.expected}",
            f"      measured  {item.measured}",
            f"      {came}{surprise}",
        ]
    return "\n".join(lines)
