"""Behind the commands that compare: the comparison in any form, to stdout or whole into files, and to a GitHub step."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from scaletest.cli._formats import COMPARED, Format
from scaletest.cli._reports import TEXT_WIDTH, ReportFile, deliver_report, parse_report_files
from scaletest.core.errors import ExitCode, UsageError
from scaletest.report.comparison_document import ComparisonDocument
from scaletest.report.comparison_table import print_comparison, render_comparison
from scaletest.report.github import annotation_lines
from scaletest.report.json_report import render_json
from scaletest.report.junit import render_junit
from scaletest.report.markdown import render_markdown
from scaletest.report.markdown_comparison import comparison_cases

__all__ = ["check_format", "deliver_comparison", "parse_comparison_files"]


def check_format(format_: Format, possible: Sequence[Format] = COMPARED, what: str = "a comparison") -> Format:
    """Return a format that a comparison, or something like it, has. Raises UsageError for others."""
    if format_ not in possible:
        msg = f"{what} is not written as {format_}: {', '.join(possible)}"
        raise UsageError(msg, hint="That is a form of a run's report: scaletest report RUN --format …")
    return format_


def parse_comparison_files(
    texts: Iterable[str], possible: Sequence[Format] = COMPARED, what: str = "a comparison"
) -> list[ReportFile]:
    """Read ``FORMAT=PATH``, before anything is run. Raises UsageError."""
    files = parse_report_files(texts)
    for file in files:
        check_format(file.format, possible, what)
    return files


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
