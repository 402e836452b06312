"""The forms of a report, by the names that the command line has for them."""

from __future__ import annotations

import enum
from typing import Final

__all__ = ["COMPARED", "HISTORIES", "OF_RUNS", "ComparisonFormat", "Format", "HistoryFormat"]


class Format(enum.StrEnum):
    """What a report is written as."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"
    MARKDOWN = "markdown"
    JUNIT = "junit"
    CSV = "csv"
    OPENMETRICS = "openmetrics"
    BENCHMARK_SMALLER = "benchmark-smaller"
    """For github-action-benchmark: figures that are the better the smaller they are."""
    BENCHMARK_BIGGER = "benchmark-bigger"


class ComparisonFormat(enum.StrEnum):
    """What a comparison of runs is written as."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    JUNIT = "junit"


class HistoryFormat(enum.StrEnum):
    """What a history is written as."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


COMPARED: Final = tuple(Format(form) for form in ComparisonFormat)
HISTORIES: Final = tuple(Format(form) for form in HistoryFormat)
OF_RUNS: Final = frozenset(
    {Format.JUNIT, Format.CSV, Format.OPENMETRICS, Format.BENCHMARK_SMALLER, Format.BENCHMARK_BIGGER}
)
"""Forms that know runs alone: a matrix is the runs that it has."""
