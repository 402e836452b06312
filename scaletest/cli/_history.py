"""Behind ``scaletest history``: read the runs, find the shifts, and write them in any form."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scaletest.analysis.gating import Rule, refuse_unknown
from scaletest.analysis.history import histories, metrics_of
from scaletest.analysis.segments import load_segmenter
from scaletest.cli._comparisons import tell_passed_over
from scaletest.cli._formats import HISTORIES, Format
from scaletest.cli._reports import TEXT_WIDTH, deliver_report, parse_report_files
from scaletest.cli._settings import settings
from scaletest.core.errors import ExitCode
from scaletest.report.history_build import build_history
from scaletest.report.history_document import HistoryDocument
from scaletest.report.history_runs import find_runs
from scaletest.report.history_table import print_history, render_history
from scaletest.report.json_report import render_json
from scaletest.report.markdown_history import render_history_markdown

__all__ = ["HistoryRequest", "show_history"]


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """What the command line asked for."""

    references: Sequence[str]
    metrics: Sequence[str]
    format: Format
    reports: Sequence[str]
    results: Path
    baselines: Path | None


def show_history(request: HistoryRequest) -> ExitCode:
    """Write and print a history; return the exit code: 0, if all could be written."""
    files = parse_report_files(request.reports, HISTORIES, "a history")
    segment = load_segmenter()
    found = find_runs(request.references, request.results, request.baselines or settings().baselines)
    if request.references:
        tell_passed_over(found.passed_over)
    # Metrics are named as in the rules of a gate.
    wanted = [Rule(name, "--metric", name, None) for name in request.metrics]
    refuse_unknown(wanted, metrics_of(found.runs))
    told = histories(
        found.runs, segment, lambda metric: not wanted or any(rule.matches(metric) for rule in wanted)
    )  # fmt: skip
    document = build_history(told, found.passed_over)
    return deliver_report(
        lambda form: _render(document, form),
        files,
        list,
        request.format,
        lambda: print_history(document, sys.stdout),
        ExitCode.PASS,
    )


def _render(document: HistoryDocument, format_: Format) -> str:
    match format_:
        case Format.JSON:
            return render_json(document)
        case Format.MARKDOWN:
            return render_history_markdown(document)
        case _:
            return render_history(document, width=TEXT_WIDTH)
