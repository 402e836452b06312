"""A matrix as data: what ``--format json`` prints, and what its table is drawn from.

The published schema ``matrix.schema.json`` is generated from these models. The promises are those of ``report.document``.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from scaletest.report.document import Number, Part

__all__ = [
    "MATRIX_REPORT_SCHEMA_VERSION",
    "AxisReport",
    "CellReport",
    "MatrixDocument",
    "MatrixReport",
    "MatrixRunReport",
    "MatrixVerdict",
    "RankReport",
    "RankingReport",
    "RowReport",
    "Unit",
    "VariantReport",
]

MATRIX_REPORT_SCHEMA_VERSION: Final = 1

Unit = Literal["text", "count", "share", "seconds", "bytes", "per_second", "cores"]


class AxisReport(Part):
    """A key and its values."""

    key: str
    values: list[str]


class MatrixReport(Part):
    """What was asked for."""

    id: str
    directory: str = Field(description="Matrix directory, as it was named on the command line.")
    profile: str
    summary: str
    started_at: str = Field(description="UTC, ISO 8601.")
    axes: list[AxisReport]
    repeat: int = Field(description="Runs of each variant.")
    overrides: list[str]
    limits: dict[str, dict[str, Number]] = Field(description="Limits that all variants share, by component.")


class MatrixVerdict(Part):
    """All runs together."""

    exit_code: int = Field(description="The worst of all runs; 130 when some were not run.")
    runs: int
    finished: int = Field(description="Runs that came to a verdict on their objectives.")


class MatrixRunReport(Part):
    """One run of a variant."""

    directory: str = Field(description="Name within the matrix directory.")
    repeat: int = Field(description="1 for the first run of its variant.")
    status: Literal["waiting", "running", "finished", "incomplete", "unreadable"]
    outcome: str | None = Field(description="pass, fail, invalid or incomplete; null when it was not run.")
    exit_code: int | None
    reasons: list[str] = Field(description="Why it is no pass, the deciding reason first.")
    counted: bool = Field(description="Its numbers are in the rows.")


class VariantReport(Part):
    """One combination of values, and its runs."""

    name: str
    values: dict[str, str]
    runs: list[MatrixRunReport]


class CellReport(Part):
    """A measure of one variant: median and range over the runs that count."""

    value: Number = Field(description="Median, in base units; null when not measured, infinite or no number.")
    low: Number
    high: Number
    runs: int = Field(description="Runs in which it was measured.")
    holds: int | None = Field(
        description="Runs in which the objective holds, or the action was done; null for all else."
    )
    said: str = Field(description="The median, or what there is instead, for people.")
    spread: str | None = Field(description="The range for people; null with a single value.")


class RowReport(Part):
    """A measure of all variants."""

    section: str
    measure: str
    unit: Unit
    cells: list[CellReport] = Field(description="In the order of the variants.")
    differs: bool = Field(
        description="The variants are not equal within a tenth and within the range of their repeats."
    )
    ratio: Number = Field(description="Largest median by smallest; null when one is 0, infinite or no number.")


class RankReport(Part):
    """What a variant's searches found, over the runs that count."""

    variant: str
    label: str = Field(description="Its values, for people.")
    summary: str | None = Field(description="What it changes, as the profile says it.")
    runs: int
    capacity: Number = Field(description="N*, the largest load that holds: the median of the runs.")
    low: Number = Field(description="The smallest of them.")
    fails_at: Number = Field(
        description="The smallest load that fails, of all runs the largest; null where one failed nowhere."
    )
    derived: bool = Field(description="N* stands for more than was made: fewer agents worked harder.")
    made_as_it_is: Number = Field(description="The largest load that holds and is not derived: the median of the runs.")
    factor: Number = Field(description="N* by that of the first variant; null where either was not found.")
    measured_factor: Number = Field(description="The same of what is not derived: a lower bound where `derived`.")
    gave_out: str | None = Field(description="The resource at its limit where it failed.")
    past: str | None = Field(description="Class past the saturation point.")
    said: str = Field(description="N* for people, of what is not derived.")
    notes: list[str] = Field(description="What is derived, and why a search has no interval.")


class RankingReport(Part):
    """Variants by what their searches found, the largest N* first."""

    parameter: str
    unit: str
    holds: list[str] = Field(description="A load holds when all of these do.")
    reference: str = Field(description="Label of the variant that factors are against: the first of the matrix.")
    ranks: list[RankReport]


class MatrixDocument(Part):
    """A report on a matrix."""

    schema_version: Literal[1]
    matrix: MatrixReport
    verdict: MatrixVerdict
    variants: list[VariantReport]
    ranking: RankingReport | None = Field(description="Null where no run has a search.")
    rows: list[RowReport]
