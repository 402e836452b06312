"""A comparison as data: what ``scaletest compare --format json`` prints, and what every other form of it is drawn from.

The published schema ``comparison.schema.json`` is generated from these models. The promises are those of ``report.document``: keys
stay as they are within one ``schema_version``, values are in base units, a number that was not measured is null. ``…_said`` is the
same for people.

    ComparisonDocument
    ├── base: SideReport                  the runs, or the saved baseline, that all others are held against
    ├── setting: SettingReport            the statistics that decided
    ├── candidates: [CandidateReport]     one for each NEW of the command line
    │   ├── side: SideReport
    │   ├── differences: [DifferenceReport]   what is not equal beside the numbers: host, profile, versions, limits
    │   ├── notes: [str]                      what a reader has to know
    │   ├── changes: [ChangeReport]           one for each metric of both, in the order of the table
    │   └── gate: GateReport | null           null where no gate was asked for
    └── verdict: ComparisonVerdict        all gates together, and the exit code
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from scaletest.report.document import Number, Part

__all__ = [
    "COMPARISON_SCHEMA_VERSION",
    "CandidateReport",
    "ChangeReport",
    "CheckReport",
    "ComparedRun",
    "ComparisonDocument",
    "ComparisonVerdict",
    "DifferenceReport",
    "GateReport",
    "MetricUnit",
    "SettingReport",
    "SideReport",
]

COMPARISON_SCHEMA_VERSION: Final = 1

MetricUnit = Literal["seconds", "share", "bytes", "per_second", "bytes_per_second", "cores", "count"]
GateOutcome = Literal["pass", "fail", "undecided"]


class ComparedRun(Part):
    """One run of a side."""

    id: str
    directory: str | None = Field(
        description="As it was named on the command line; null for a run of a saved baseline."
    )
    started_at: str = Field(description="UTC, ISO 8601.")
    outcome: Literal["pass", "fail", "invalid", "incomplete"]
    counted: bool = Field(description="Its numbers are among those compared.")
    reason: str | None = Field(description="Why it is not counted, or counts for no gate.")


class SideReport(Part):
    """What one argument of the command line stands for."""

    name: str = Field(description="Directory, pattern or baseline, as it was named on the command line.")
    kind: Literal["runs", "baseline"]
    profile: str
    runs: list[ComparedRun]
    versions: dict[str, str] = Field(description="Of the first counted run.")
    valid: bool = Field(description="The runs that count are valid ones; invalid and incomplete runs never gate.")


class DifferenceReport(Part):
    """Something beside the numbers in which the sides are not equal."""

    what: Literal["profile", "host", "versions", "limits"]
    key: str = Field(description="For example fleet.pools.0.nodes.")
    base: str
    new: str


class ChangeReport(Part):
    """One metric of both sides."""

    metric: str = Field(description="Name as objectives spell it: flow.telemetry.p99, component.kube-apiserver.memory.")
    section: str = Field(description="What it is about: Flow telemetry, Component kube-apiserver.")
    label: str = Field(description="The rest of the name, for a table with sections.")
    unit: MetricUnit
    better: Literal["lower", "higher"]
    call: Literal["worse", "better", "same"] = Field(description="`same` (~): no change is called.")
    why: str | None = Field(description="Why no change could have been called: too few samples, a value of infinity.")
    scale: Literal["ratio", "difference"] = Field(
        description="What is compared: new by base, or new less base (shares and counts, which may be 0)."
    )
    base: Number = Field(description="Of the samples: geometric mean (ratio) or mean (difference).")
    new: Number
    base_said: str
    new_said: str
    change: Number = Field(description="Ratio less 1 (0.2: a fifth more), or the difference.")
    low: Number = Field(description="95 % confidence interval of the change.")
    high: Number
    change_said: str = Field(description="For example +21 %.")
    interval_said: str | None = Field(description="For example +15 % to +27 %; null without an interval.")
    least_said: str = Field(description="The smallest change that is called, for example 10 %.")
    samples: Literal["runs", "blocks"] = Field(description="Each sample is a run, or a block of time of one.")
    base_samples: int
    new_samples: int
    p: Number = Field(description="Of the Mann-Whitney test, two-sided.")
    p_adjusted: Number = Field(description="Of the change, adjusted by Holm for all metrics of the comparison.")


class CheckReport(Part):
    """One rule of the gate, held against one metric: a test case of JUnit."""

    rule: str = Field(description="As given: p99:10%.")
    given_by: str = Field(description="--fail, [tool.scaletest], the profile's gate, or default.")
    metric: str
    outcome: GateOutcome
    said: str = Field(description="For example: 1.31 s instead of 1.02 s: +28 % (+20 % to +37 %), allowed 10 %.")


class GateReport(Part):
    """What the gate says of one candidate."""

    outcome: GateOutcome = Field(
        description="fail: a metric got worse by more than its rule allows; undecided: no rule failed, and it could not be told of all."
    )
    exit_code: int = Field(description="0 pass, 99 fail, 4 undecided.")
    reasons: list[str] = Field(
        description="Why it is no pass: each failed metric, or what keeps the gate from deciding."
    )
    checks: list[CheckReport]


class CandidateReport(Part):
    """One NEW, held against BASE."""

    side: SideReport
    differences: list[DifferenceReport]
    notes: list[str]
    changes: list[ChangeReport]
    gate: GateReport | None


class SettingReport(Part):
    """The setting of the statistics, the same for every comparison."""

    alpha: float = Field(
        description="Chance that a comparison of equals calls any change, over all of its metrics together."
    )
    mann_whitney: float = Field(description="Largest p of the Mann-Whitney test with which a change is called.")
    seed: int
    resamples: int


class ComparisonVerdict(Part):
    """All candidates together."""

    outcome: GateOutcome | None = Field(description="The worst of all gates; null where none was asked for.")
    exit_code: int
    reasons: list[str]


class ComparisonDocument(Part):
    """A comparison."""

    schema_version: Literal[1]
    base: SideReport
    setting: SettingReport
    candidates: list[CandidateReport]
    verdict: ComparisonVerdict
