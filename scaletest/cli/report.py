"""``scaletest report``: the report of a run, from its directory alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scaletest.cli import _completion as complete
from scaletest.cli._formats import Format
from scaletest.cli._options import RESULTS, ResultsOption, schema_option

__all__ = ["report"]


def report(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Run or matrix directory, its name under RESULTS, or `latest`.",
            autocompletion=complete.runs,
        ),
    ],
    format_: Annotated[Format, typer.Option("--format", help="What to write the report as.")] = Format.TEXT,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PATH", help="Write to this file, not to stdout.")
    ] = None,
    comparison: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Put this comparison in: what `compare --format json` printed."),
    ] = None,
    results: ResultsOption = RESULTS,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit as the run did by its verdict; of several, the worst.")
    ] = False,
    _schema: Annotated[bool, schema_option("report")] = False,
) -> None:
    """Report on runs and matrices: finished, killed or still going on.

    A report that could be made exits 0 whatever its verdict; --exit-code gives that of the verdict.

    Examples:
      scaletest report latest
      scaletest report latest --format html --output report.html
      scaletest report results/* --format junit --output junit.xml --exit-code
    """
    from scaletest.analysis.verdict import worst
    from scaletest.cli import _reports
    from scaletest.report.rundir import find_run

    compared = _reports.read_comparison(comparison, format_) if comparison is not None else None
    subjects = [_reports.read_subject(find_run(reference, results)) for reference in runs]
    if compared is not None:
        _reports.tell_if_not_compared(subjects, compared)
    if output is None:
        _reports.print_reports(subjects, format_, compared)
    else:
        problem = _reports.write_report(subjects, _reports.ReportFile(format_, output), compared)
        if problem is not None:
            raise problem
    if exit_code:
        raise typer.Exit(int(worst(subject.exit_code for subject in subjects)))
