"""The records of a saturation search, folded: what was tried, how it went, where it went back to.

    search.start       the space that is searched, and when a load holds
    search.step.start  a load is set: of the search itself, past what it found, or on the way back
    search.step.end    what came of it
    search.end         the runner has no further step: why

A step without an end was cut short, and counts for nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from scaletest.analysis.numbers import amount, count, optional, seconds
from scaletest.analysis.search import Conclusion, Outcome, Reason, Space, Trial, conclude
from scaletest.analysis.series import Span

__all__ = ["SEARCH_KINDS", "Hold", "SearchLog", "SearchStep", "StepKind", "apply_search"]


class StepKind(enum.StrEnum):
    """What a step is for."""

    SEARCH = "search"
    PAST = "past"
    """A multiple of the saturation load."""
    BACK = "back"
    """A part of it, at the end."""


@dataclass(frozen=True, slots=True)
class Hold:
    """One condition of ``holds`` over a step."""

    check: str
    holds: bool
    said: str
    """What was measured, for people."""


@dataclass(slots=True)
class SearchStep:
    """One load."""

    number: int
    kind: StepKind
    value: float
    load: str
    """The value as the profile writes it."""
    factor: float | None
    """Multiple of the saturation load; None in the search itself."""
    why: str
    start_s: float
    nodes: int
    """Nodes of the fleet in this step."""
    end_s: float | None = None
    outcome: Outcome | None = None
    steady: Span | None = None
    """The part that was judged."""
    dropped_s: float = 0.0
    """Warm-up, from the time at which the whole load was there."""
    settled: bool = False
    trends: Mapping[str, str] = field(default_factory=dict)
    """What went on changing: ``worse`` or ``better`` by series."""
    holds: tuple[Hold, ...] = ()
    health: tuple[str, ...] = ()
    """Why the generator's load does not count."""
    reason: str = ""
    """Why it failed, or does not count."""
    taken_back: bool = False
    """Of the way back: whether all of the load was taken back."""
    recovered_after_s: float | None = None
    """Of the way back: time until all held again."""
    waited_s: float | None = None

    @property
    def counted(self) -> bool:
        """Whether the step says something of the system under test."""
        return self.outcome in {Outcome.HELD, Outcome.FAILED}


@dataclass(slots=True)
class SearchLog:
    """A search as far as it got."""

    start_s: float
    parameter: str
    unit: str
    space: Space
    holds: tuple[str, ...]
    flows: tuple[str, ...]
    """Flows that make the load."""
    back: float
    beyond: str | None = None
    """Parameter that makes the loads beyond ``space.landing``, which are derived; None where no load is."""
    steps: list[SearchStep] = field(default_factory=list)
    ended: Reason | None = None
    end_s: float | None = None

    @property
    def trials(self) -> list[Trial]:
        """The steps of the search itself that came to an outcome."""
        return [
            Trial(step.value, step.outcome)
            for step in self.steps
            if step.kind is StepKind.SEARCH and step.outcome is not None
        ]

    @property
    def conclusion(self) -> Conclusion:
        """What the search found, or has found so far."""
        return conclude(self.space, self.trials, self.ended or Reason.CUT)

    def is_derived(self, value: float) -> bool:
        """Whether a load is one that others stand for, who work harder."""
        landing = self.space.landing
        return landing is not None and self.space.key(value) > self.space.key(landing)

    def at(self, value: float | None) -> list[SearchStep]:
        """Return the counted steps of the search at a load."""
        return [step for step in self.steps if step.value == value and step.kind is StepKind.SEARCH and step.counted]

    def of_kind(self, kind: StepKind) -> list[SearchStep]:
        """Return the steps of a kind that came to an end."""
        return [step for step in self.steps if step.kind is kind and step.end_s is not None]


def apply_search(log: SearchLog | None, record: Mapping[str, Any]) -> SearchLog:
    """Take in one record of a search and return its log. Raises what a malformed record makes Python raise."""
    kind = str(record["kind"])
    if kind == "search.start":
        return _start(record)
    if log is None:
        msg = f"{kind} without search.start"
        raise ValueError(msg)
    _APPLY[kind](log, record)
    return log


def _start(record: Mapping[str, Any]) -> SearchLog:
    space = Space(
        start=amount(record["start"]),
        end=amount(record["end"]),
        resolution=amount(record["resolution"]),
        whole=bool(record["whole"]),
        factor=amount(record["factor"]),
        landing=optional(amount, record.get("made_end")) if record.get("beyond") else None,
    )
    return SearchLog(
        start_s=seconds(record["t"]),
        parameter=str(record["parameter"]),
        unit=str(record["unit"]),
        space=space,
        holds=tuple(str(check) for check in record["holds"]),
        flows=tuple(str(flow) for flow in record["flows"]),
        back=amount(record["back"]),
        beyond=record.get("beyond"),
    )


def _step_start(log: SearchLog, record: Mapping[str, Any]) -> None:
    log.steps.append(
        SearchStep(
            number=count(record["step"]),
            kind=StepKind(record["stage"]),
            value=amount(record["value"]),
            load=str(record["load"]),
            factor=optional(amount, record.get("factor")),
            why=str(record["why"]),
            start_s=seconds(record["t"]),
            nodes=count(record.get("nodes") or 0),
        )
    )


def _step_end(log: SearchLog, record: Mapping[str, Any]) -> None:
    number = count(record["step"])
    step = next((item for item in reversed(log.steps) if item.number == number and item.end_s is None), None)
    if step is None:
        msg = f"step {number} ends without having begun"
        raise ValueError(msg)
    outcome, steady = Outcome(record["outcome"]), record.get("steady")
    holds = tuple(Hold(str(item["check"]), bool(item["holds"]), str(item["said"])) for item in record["holds"])
    step.steady = (seconds(steady[0]), seconds(steady[1])) if steady else None
    step.dropped_s = seconds(record.get("dropped_s") or 0.0)
    step.settled = bool(record.get("settled"))
    step.trends = {str(name): str(trend) for name, trend in (record.get("trends") or {}).items()}
    step.health = tuple(str(text) for text in record.get("health") or ())
    step.reason = str(record.get("reason") or "")
    step.taken_back = bool(record.get("taken_back"))
    step.recovered_after_s = optional(seconds, record.get("recovered_after_s"))
    step.waited_s = optional(seconds, record.get("waited_s"))
    step.holds, step.outcome, step.end_s = holds, outcome, seconds(record["t"])


def _end(log: SearchLog, record: Mapping[str, Any]) -> None:
    log.ended, log.end_s = Reason(record["reason"]), seconds(record["t"])


_APPLY: Final[dict[str, Callable[[SearchLog, Mapping[str, Any]], None]]] = {
    "search.step.start": _step_start,
    "search.step.end": _step_end,
    "search.end": _end,
}

SEARCH_KINDS: Final = ("search.start", *_APPLY)
