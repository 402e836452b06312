"""The profile's ``slo`` over time: when each condition was first broken, and from when on it held to the end.

A condition is evaluated, as objectives are, over a trailing window of ``WINDOW_S``: at time t over what was sent, or sampled, in the
10 s before t. It is *broken* at the end of the first window over which it does not hold, and *holds from* the beginning of the
first window after the last one over which it did not: everything sent from then on is within it. A window in which nothing was
measured says nothing, so a condition that was broken and never measured again has not recovered.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from scaletest.analysis.evaluate import measure
from scaletest.analysis.series import Span
from scaletest.analysis.state import RunState
from scaletest.profile.objectives import Objective, parse_objective

__all__ = ["WINDOW_S", "SloHistory", "slo_histories"]

WINDOW_S: Final = 10.0
"""Ten requests of a probe that asks once a second, two scrapes of /metrics: the least of which a p99 says something."""

_STEP_S: Final = 1.0
"""Windows end once a second, as the samples come."""

_WINDOWS: Final = 720
"""Windows of a run at most, as long as they still touch: evaluating costs the square of their number. Twelve minutes have one a second."""


@dataclass(frozen=True, slots=True)
class SloHistory:
    """A condition of the profile's ``slo`` over the measured time."""

    name: str
    text: str
    broken_s: float | None
    """When it was first broken; None when it never was."""
    holds_from_s: float | None
    """From when on it held to the end; the begin of the measurement when it was never broken, None when it did not hold at the end."""
    measured: bool
    """Whether there was anything to evaluate it over."""


def slo_histories(state: RunState, profile: Mapping[str, Any]) -> list[SloHistory]:
    """Follow each condition of a resolved profile's ``slo`` through the run; those that this version does not understand are left out."""
    return [_follow(state, name, text, objective) for name, text, objective in _conditions(profile)]


def _conditions(profile: Mapping[str, Any]) -> Iterator[tuple[str, str, Objective]]:
    slo = profile.get("slo")
    for name, text in slo.items() if isinstance(slo, Mapping) else ():
        try:
            yield str(name), str(text), parse_objective(str(text))
        except ValueError:
            continue


def _windows(state: RunState) -> Iterator[Span]:
    start_s, end_s = state.measured[0], state.end_s
    if not math.isfinite(start_s):
        return
    step_s = min(WINDOW_S, max(_STEP_S, (end_s - start_s) / _WINDOWS))
    for index in range(1, math.ceil((end_s - start_s) / step_s) + 1):
        at_s = min(end_s, start_s + index * step_s)
        yield max(start_s, at_s - WINDOW_S), at_s


def _follow(state: RunState, name: str, text: str, objective: Objective) -> SloHistory:
    broken_s: float | None = None
    holds_from_s: float | None = None
    measured = False
    for window in _windows(state):
        value = measure(state, objective.subject, window).value
        if math.isnan(value):
            continue
        measured = True
        if objective.holds(value):
            holds_from_s = window[0] if holds_from_s is None else holds_from_s
        else:
            holds_from_s = None
            broken_s = window[1] if broken_s is None else broken_s
    return SloHistory(name, text, broken_s, holds_from_s, measured)
