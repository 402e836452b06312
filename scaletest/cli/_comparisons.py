"""Behind the commands that compare: the comparison in any form, to stdout or whole into files, and to a GitHub step."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from scaletest.analysis.verdict import worst
from scaletest.cli._formats import COMPARED, Format
from scaletest.cli._reports import ReportFile, parse_report_files, write_text
from scaletest.cli._streams import reader_may_go, say
from scaletest.core.errors import ExitCode, UsageError
from scaletest.report.comparison_document import ComparisonDocument
from scaletest.report.comparison_json import render_comparison_json
from scaletest.report.comparison_table import print_comparison, render_comparison
from scaletest.report.github import annotation_lines, tell_github
from scaletest.report.junit import render_junit
from scaletest.report.markdown import render_markdown
from scaletest.report.markdown_comparison import comparison_cases

__all__ = ["check_format", "deliver_comparison", "parse_comparison_files"]

_TEXT_WIDTH = 100


def check_format(format_: Format) -> Format:
    """Return a format that a comparison has. Raises UsageError for others."""
    if format_ not in COMPARED:
        msg = f"a comparison is not written as {format_}: {', '.join(COMPARED)}"
        raise UsageError(msg, hint="That is a form of a run's report: scaletest report RUN --format …")
    return format_


def parse_comparison_files(texts: Iterable[str]) -> list[ReportFile]:
    """Read ``FORMAT=PATH``, before anything is run. Raises UsageError."""
    files = parse_report_files(texts)
    for file in files:
        check_format(file.format)
    return files


def deliver_comparison(document: ComparisonDocument, files: Sequence[ReportFile], format_: Format) -> ExitCode:
    """Write and print a comparison; return the exit code: the gate's, if all could be written."""
    written = [write_text(file.path, _render(document, file.format)) for file in files]
    problems = [problem for problem in written if problem is not None]
    for problem in problems:
        say(f"scaletest: {problem.message}")
    if {"GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS"} & set(os.environ):
        tell_github(_render(document, Format.MARKDOWN), annotation_lines([], document), os.environ, sys.stderr)
    with reader_may_go():
        if format_ is Format.TEXT:
            print_comparison(document, sys.stdout)
        else:
            sys.stdout.write(_render(document, format_))
    return worst([ExitCode(document.verdict.exit_code), *(problem.exit_code for problem in problems)])


def _render(document: ComparisonDocument, format_: Format) -> str:
    match format_:
        case Format.JSON:
            return render_comparison_json(document)
        case Format.MARKDOWN:
            return render_markdown([], document)
        case Format.JUNIT:
            return render_junit([], comparison_cases(document))
        case _:
            return render_comparison(document, width=_TEXT_WIDTH)
