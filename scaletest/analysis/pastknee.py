"""What a control plane does past its saturation point, and whether it comes back: a class, by explicit rules.

A saturation point alone misleads: of two servers the one with the larger may be the one that falls off a cliff behind it. So a
search goes on to multiples of the load that held, and then back to a part of it. The first rule that applies gives the class:

    metastable  the load has gone back to one that held before, all of it, and the objectives do not hold again within the time given.
                The trigger is gone and the failure stays (Bronson, Aghayev, Charapko, Zhu: "Metastable failures in distributed
                systems", HotOS 2021).
    collapsed   at some multiple goodput is less than half of that at the saturation point, or operators get a good answer to less than
                half of their requests, or a component of the control plane is killed at its memory cap or restarts.
    degraded    at some multiple goodput is less than nine tenths of that at the saturation point, or operators get a good answer to less
                than 99 % of their requests, or wait longer than 1 s at p99 (the Kubernetes SLO for a call about one object or namespace),
                or memory comes within a tenth of its cap.
    graceful    none of these: what is beyond capacity waits or is turned away, and nothing else changes.

Goodput is requests answered with 2xx, per second; or the bytes of answers, per second, where answers grow with the load (a LIST of pods that
stand on as many nodes as there are agents: half as many answers of twice the size are as much work done); or, where watches stand, the events
that came to them, per second. A stage whose load the generator could not make says nothing of goodput or operators; a
kill in it still counts.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from scaletest.core.units import format_bytes, format_count, format_duration, format_share

__all__ = ["Behaviour", "Goodput", "PastKnee", "Return", "Stage", "classify"]

COLLAPSED_SHARE: Final = 0.5
DEGRADED_SHARE: Final = 0.9
OPERATOR_SHARE: Final = 0.99
OPERATOR_P99_S: Final = 1.0
MEMORY_SHARE: Final = 0.9


class Behaviour(enum.StrEnum):
    """The class."""

    GRACEFUL = "graceful"
    DEGRADED = "degraded"
    COLLAPSED = "collapsed"
    METASTABLE = "metastable"


class Goodput(enum.StrEnum):
    """What goodput counts."""

    ANSWERS = "answers"
    BYTES = "bytes"
    EVENTS = "events"

    def written(self, per_s: float) -> str:
        """Format a goodput for people."""
        return f"{format_bytes(per_s) if self is Goodput.BYTES else format_count(per_s)}/s"


@dataclass(frozen=True, slots=True)
class Stage:
    """What was measured at a load; NaN for what was not."""

    factor: float
    """Load as a multiple of the one that held."""
    value: float
    counted: bool
    goodput_per_s: float
    memory_bytes: float
    """The most that one API server held."""
    memory_cap_bytes: float
    operator_success: float
    """Share of operators' requests with a good answer, of the worst identity."""
    operator_p99_s: float
    """Of the worst identity; infinite when more than one in a hundred got no good answer."""
    kills: tuple[str, ...] = ()
    """Components killed at their cap, or restarted, in this stage."""


@dataclass(frozen=True, slots=True)
class Return:
    """What came of the load going back."""

    value: float
    recovered_after_s: float | None
    """Time until the objectives held again, as long as they were watched for; None when they did not."""
    waited_s: float
    taken_back: bool
    """Whether all of the load went back; if not, nothing is known of a recovery that did not come."""


@dataclass(frozen=True, slots=True)
class PastKnee:
    """The class, and what it rests on."""

    behaviour: Behaviour
    reasons: tuple[str, ...]
    """What the rule saw, the first stage at which it did first; for `graceful`, the least goodput."""


def classify(knee: Stage, past: Sequence[Stage], back: Return | None, goodput: Goodput) -> PastKnee | None:
    """Return the class; None where no stage past the knee can be judged. ``goodput`` says what the stages' goodput counts."""
    if back is not None and back.taken_back and back.recovered_after_s is None:
        waited = format_duration(back.waited_s)
        said = f"the load is back at {format_count(back.value)}, and the objectives do not hold again within {waited}"
        return PastKnee(Behaviour.METASTABLE, (said,))
    rules: tuple[tuple[Behaviour, _Rule], ...] = ((Behaviour.COLLAPSED, _collapsed), (Behaviour.DEGRADED, _degraded))
    for behaviour, rule in rules:
        reasons = tuple(
            f"at {stage.factor:g} × the load {text}" for stage in past for text in rule(knee, stage, goodput)
        )
        if reasons:
            return PastKnee(behaviour, reasons)
    judged = [stage for stage in past if stage.counted and not math.isnan(stage.goodput_per_s)]
    if not judged:
        return None
    least = min(judged, key=lambda stage: stage.goodput_per_s)
    said = f"goodput is at least {_share_of_knee(knee, least, goodput)}"
    served = (
        "was not measured" if any(math.isnan(stage.operator_success) for stage in judged) else "is there throughout"
    )
    return PastKnee(Behaviour.GRACEFUL, (said, f"operator access {served}"))


_Rule = Callable[[Stage, Stage, Goodput], Iterator[str]]


def _collapsed(knee: Stage, stage: Stage, goodput: Goodput) -> Iterator[str]:
    for component in stage.kills:
        yield f"{component} was killed or restarted"
    if not stage.counted:
        return
    if stage.goodput_per_s < COLLAPSED_SHARE * knee.goodput_per_s:
        yield f"goodput is {_share_of_knee(knee, stage, goodput)}"
    if stage.operator_success < COLLAPSED_SHARE:
        yield f"operators get {format_share(stage.operator_success)} of their answers"


def _degraded(knee: Stage, stage: Stage, goodput: Goodput) -> Iterator[str]:
    if not stage.counted:
        return
    if stage.goodput_per_s < DEGRADED_SHARE * knee.goodput_per_s:
        yield f"goodput is {_share_of_knee(knee, stage, goodput)}"
    if stage.operator_success < OPERATOR_SHARE:
        yield f"operators get {format_share(stage.operator_success)} of their answers"
    elif stage.operator_p99_s > OPERATOR_P99_S:
        p99 = "for no answer" if math.isinf(stage.operator_p99_s) else format_duration(stage.operator_p99_s)
        yield f"operators wait {p99} at p99"
    if stage.memory_bytes >= MEMORY_SHARE * stage.memory_cap_bytes:
        yield f"an API server holds {format_bytes(stage.memory_bytes)} of {format_bytes(stage.memory_cap_bytes)}"


def _share_of_knee(knee: Stage, stage: Stage, goodput: Goodput) -> str:
    share = stage.goodput_per_s / knee.goodput_per_s if knee.goodput_per_s > 0 else math.nan
    return f"{goodput.written(stage.goodput_per_s)}, {format_share(share)} of that at the saturation point"
