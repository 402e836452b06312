"""A history as data: what ``scaletest history --format json`` prints, and what every other form of it is drawn from.

The published schema ``history.schema.json`` is generated from these models. The promises are those of ``report.document``.

    HistoryDocument
    ├── setting: HistorySetting           the statistics that decided
    ├── passed_over: [LeftOutRun]         of the results directory: unreadable, going on, a matrix
    └── profiles: [ProfileHistory]        one for each profile, that of the oldest run first
        ├── runs: [HistoryRun]                those that count, in time order
        ├── left_out: [LeftOutRun]            invalid and incomplete ones
        ├── notes: [str]                      what a reader has to know
        └── metrics: [MetricHistoryReport]    values, one for each run, and shifts
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from scaletest.report.comparison_document import DifferenceReport, MetricUnit
from scaletest.report.document import Number, Part

__all__ = [
    "HISTORY_SCHEMA_VERSION",
    "HistoryDocument",
    "HistoryRun",
    "HistorySetting",
    "LeftOutRun",
    "MetricHistoryReport",
    "NearbyReport",
    "ProfileHistory",
    "ShiftReport",
]

HISTORY_SCHEMA_VERSION: Final = 1


class HistoryRun(Part):
    """One run that counts."""

    id: str
    directory: str | None = Field(description="Null for a run of a saved baseline.")
    started_at: str = Field(description="UTC, ISO 8601.")
    versions: dict[str, str]


class LeftOutRun(Part):
    """A run that does not count."""

    run: str
    why: str


class NearbyReport(DifferenceReport):
    """Something beside the numbers that changed at a shift or up to two runs from it; `base` is before, `new` after."""

    runs_after: int = Field(
        description="First run with the new value, counted from that of the shift: 0 the same, -1 the one before."
    )
    said: str = Field(description="All of it for people.")


class ShiftReport(Part):
    """A change of the level of a metric."""

    run: int = Field(description="First run of the new level, as an index of `runs`.")
    run_id: str
    started_at: str = Field(description="Of that run.")
    call: Literal["worse", "better"]
    before: Number = Field(
        description="Level up to the shift before this one: geometric mean (ratio) or mean (difference)."
    )
    after: Number = Field(description="Level up to the next shift.")
    before_said: str
    after_said: str
    change: Number = Field(description="Ratio less 1 (0.2: a fifth more), or the difference.")
    change_said: str = Field(description="For example +21 %.")
    p: Number = Field(description="Of the Mann-Whitney test, two-sided.")
    p_adjusted: Number = Field(description="Of the t test, multiplied by the places and metrics that were looked at.")
    nearby: list[NearbyReport] = Field(description="What else changed about then, the closest first.")


class MetricHistoryReport(Part):
    """One metric over all runs."""

    metric: str = Field(description="Name as objectives spell it: flow.telemetry.p99.")
    section: str = Field(description="What it is about: Flow telemetry.")
    label: str = Field(description="The rest of the name, for a table with sections.")
    unit: MetricUnit
    better: Literal["lower", "higher"]
    scale: Literal["ratio", "difference"]
    values: list[Number] = Field(
        description="In base units, one for each of `runs`; null where not measured, or without an answer."
    )
    first_said: str = Field(description="The oldest value that was measured.")
    last_said: str = Field(description="The newest.")
    shifts: list[ShiftReport]
    why: str | None = Field(description="Why no shift can be told: too few runs, a value of 0.")


class ProfileHistory(Part):
    """All runs of a profile."""

    profile: str
    runs: list[HistoryRun]
    left_out: list[LeftOutRun]
    notes: list[str]
    metrics: list[MetricHistoryReport]


class HistorySetting(Part):
    """The setting of the statistics."""

    alpha: float = Field(
        description="Chance of any shift in runs that are alike, over all metrics of a profile together."
    )
    mann_whitney: float = Field(description="Largest p of the Mann-Whitney test with which a shift is told.")
    fewest_runs: int = Field(description="Shortest level, in runs; a series needs twice as many.")


class HistoryDocument(Part):
    """A history."""

    schema_version: Literal[1]
    setting: HistorySetting
    passed_over: list[LeftOutRun]
    profiles: list[ProfileHistory]
