"""Behind the commands that compare: the comparison in any form, to stdout or whole into files, and to a GitHub step."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from scaletest.analysis.comparison import LeftOut, RunSet
from scaletest.cli._formats import Format
from scaletest.cli._reports import TEXT_WIDTH, ReportFile, deliver_report
from scaletest.cli._streams import tell
from scaletest.core.errors import ExitCode
from scaletest.report.comparison_document import ComparisonDocument
from scaletest.report.comparison_table import print_comparison, render_comparison
from scaletest.report.github import annotation_lines
from scaletest.report.json_report import render_json
from scaletest.report.junit import render_junit
from scaletest.report.markdown import render_markdown
from scaletest.report.markdown_comparison import comparison_cases
from scaletest.report.sides import find_side

__all__ = ["deliver_comparison", "find_sides", "tell_passed_over"]


def find_sides(references: Iterable[str], results: Path, baselines: Path) -> list[RunSet]:
    """Return what references stand for, and tell what of it is passed over. Raises UsageError."""
    sides = [find_side(reference, results, baselines) for reference in references]
    tell_passed_over(item for side in sides for item in side.passed_over)
    return sides


def tell_passed_over(left_out: Iterable[LeftOut]) -> None:
    """Tell people which runs are not among those that they meant, and why."""
    for item in left_out:
        tell(f"{item.run} is left out: {item.why}")


def deliver_comparison(document: ComparisonDocument, files: Sequence[ReportFile], format_: Format) -> ExitCode:
    """Write and print a comparison; return the exit code: the gate's, if all could be written."""
    return deliver_report(
        lambda form: _render(document, form),
        files,
        lambda: annotation_lines([], document),
        format_,
        lambda: print_comparison(document, sys.stdout),
        document.verdict.exit_code,
    )


def _render(document: ComparisonDocument, format_: Format) -> str:
    match format_:
        case Format.JSON:
            return render_json(document)
        case Format.MARKDOWN:
            return render_markdown([], document)
        case Format.JUNIT:
            return render_junit([], comparison_cases(document))
        case _:
            return render_comparison(document, width=TEXT_WIDTH)
