"""The verdict on a run: pass, fail, invalid or incomplete, with reasons and an exit code.

What the profile asks for decides, in this order (the exit code in brackets):

1. The run was cut short: *incomplete*. Interrupted (130), a bug of ours (1), or the environment: the host guard, a lost
   cluster, a killed process (3).
2. The generator or the host was the bottleneck: *invalid* (4); what the objectives say is then worth nothing.
3. An objective does not hold, was never measured, or ended the run: *fail* (99).
4. Otherwise *pass* (0).

Every reason that applies is given, not only the one that decided.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from scaletest.analysis.evaluate import ObjectiveResult, check
from scaletest.analysis.losses import said_skipped, why_nothing_measured
from scaletest.analysis.state import RunState
from scaletest.analysis.validity import Check, Grade, check_validity
from scaletest.core.errors import ExitCode
from scaletest.core.journal import WHOLE, JournalDamage
from scaletest.core.rundir import RunInfo
from scaletest.profile.objectives import Dimension, Objective, parse_objective

__all__ = ["Outcome", "Verdict", "beside", "format_measured", "judge", "worst"]

_PRECEDENCE: Final = (
    ExitCode.INTERRUPTED, ExitCode.BUG, ExitCode.USAGE, ExitCode.ENVIRONMENT, ExitCode.INVALID, ExitCode.FAILED, ExitCode.PASS,
)  # fmt: skip


class Outcome(enum.StrEnum):
    """The four verdicts."""

    PASS = "pass"  # noqa: S105 -- a verdict, no password
    FAIL = "fail"
    INVALID = "invalid"
    INCOMPLETE = "incomplete"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run came to."""

    outcome: Outcome
    exit_code: ExitCode
    reasons: tuple[str, ...]
    """Why it is not a pass, the deciding reason first; empty for a pass."""
    objectives: tuple[ObjectiveResult, ...]
    checks: tuple[Check, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON value of ``verdict.json``."""
        return {
            "schema_version": 1,
            "outcome": self.outcome.value,
            "exit_code": int(self.exit_code),
            "reasons": list(self.reasons),
            "objectives": [
                {
                    "objective": result.text,
                    "holds": result.holds,
                    "value": result.measured.value if math.isfinite(result.measured.value) else None,
                    "said": format_measured(result),
                    "samples": result.measured.samples,
                }
                for result in self.objectives
            ],
        }


_CUT_SHORT: Final[dict[str, tuple[ExitCode, str]]] = {
    "interrupted": (ExitCode.INTERRUPTED, "interrupted"),
    "error": (ExitCode.BUG, "ended by an error"),
    "host_guard": (ExitCode.ENVIRONMENT, "ended by the host guard"),
    "driver_lost": (ExitCode.ENVIRONMENT, "the load driver was lost"),
    "cluster_lost": (ExitCode.ENVIRONMENT, "the control plane was lost"),
}


def judge(info: RunInfo, state: RunState, damage: JournalDamage = WHOLE) -> Verdict:
    """Judge a run by its journal alone; ``damage`` is what of it could not be read."""
    results = tuple(check(text, objective, state) for text, objective in _objectives(info.profile))
    checks = tuple(check_validity(state, info.profile, damage))
    cut, cut_code = _cut_short(state, damage)
    invalid = [_said(item) for item in checks if item.grade is Grade.BAD]
    failed = _failures(state, results)
    reasons = (*([cut] if cut else []), *invalid, *failed)
    if cut:
        return Verdict(Outcome.INCOMPLETE, cut_code, reasons, results, checks)
    if invalid:
        return Verdict(Outcome.INVALID, ExitCode.INVALID, reasons, results, checks)
    if failed:
        return Verdict(Outcome.FAIL, ExitCode.FAILED, reasons, results, checks)
    return Verdict(Outcome.PASS, ExitCode.PASS, (), results, checks)


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the exit code of several runs together; pass for none."""
    return min(codes, key=_PRECEDENCE.index, default=ExitCode.PASS)


def format_measured(result: ObjectiveResult) -> str:
    """Format what was measured, for people."""
    measured = result.measured
    if math.isnan(measured.value) or result.objective is None:
        return f"not measured: {measured.why_nan}"
    if math.isinf(measured.value):
        return "no answer"
    return beside(result.objective.threshold, measured.value, result.objective.subject.dimension)


_UNITS: Final = {
    Dimension.DURATION: " s",
    Dimension.SHARE: " %",
    Dimension.BYTES: " B",
    Dimension.RATE: "/s",
    Dimension.COUNT: "",
}


_ROUND: Final = re.compile(r"\.0+(?![0-9])")
"""Decimals that say nothing: ``80.0`` looks like ``80``."""


def beside(threshold: float, value: float, dimension: Dimension) -> str:
    """Format a value so that it does not look like the threshold that it differs from: with the digits that show it."""
    said = dimension.format(value)
    if value == threshold or _ROUND.sub("", said) != _ROUND.sub("", dimension.format(threshold)):
        return said
    scale = 100.0 if dimension is Dimension.SHARE else 1.0
    for decimals in range(0 if dimension is Dimension.BYTES else 1, 16):
        digits = f"{value * scale:,.{decimals}f}"
        if digits != f"{threshold * scale:,.{decimals}f}":
            return f"{digits}{_UNITS[dimension]}"
    return said


def _objectives(profile: Mapping[str, Any]) -> list[tuple[str, Objective | None]]:
    found: list[tuple[str, Objective | None]] = []
    listed = profile.get("objectives")
    for item in listed if isinstance(listed, list) else []:
        text = str(item.get("check")) if isinstance(item, Mapping) else str(item)
        try:
            found.append((text, parse_objective(text)))
        except ValueError:
            found.append((text, None))
    return found


def _cut_short(state: RunState, damage: JournalDamage) -> tuple[str | None, ExitCode]:
    nothing = why_nothing_measured(state, damage)
    if nothing is not None:
        return nothing, ExitCode.ENVIRONMENT
    if state.end is None:
        said = f"killed at {state.last_t_s:.1f} s{_in_phase(state)}{said_skipped(state, damage)}"
        return said, ExitCode.ENVIRONMENT
    if state.end.status in {"finished", "aborted"}:
        return None, ExitCode.PASS
    code, said = _CUT_SHORT.get(state.end.status, (ExitCode.BUG, f"ended as {state.end.status!r}"))
    if state.end.exit_code in set(ExitCode):
        code = ExitCode(state.end.exit_code)
    detail = f": {state.end.reason}" if state.end.reason else ""
    return f"{said} at {state.end.t_s:.1f} s{_in_phase(state)}{detail}{said_skipped(state, damage)}", code


def _in_phase(state: RunState) -> str:
    phase = next((item for item in reversed(state.phases) if item.end_s is None or item.reason == "cut"), None)
    if phase is not None:
        return f" in phase {phase.name}"
    return "" if state.phases else " before the first phase"


def _failures(state: RunState, results: tuple[ObjectiveResult, ...]) -> list[str]:
    failed = [f"{result.text}: {format_measured(result)}" for result in results if not result.holds]
    if state.end is not None and state.end.status == "aborted":
        failed.insert(0, f"aborted at {state.end.t_s:.1f} s: {state.end.reason}")
    if not results:
        failed.append("the profile has no objective")
    return failed


def _said(item: Check) -> str:
    return f"{item.name}: {item.said}"
