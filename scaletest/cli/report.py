"""``scaletest report``: the report of a run, from its directory alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from scaletest.cli import _completion as complete
from scaletest.cli._formats import OF_RUNS, Format
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
    subjects = [_reports.read_subject(path) for path in _once([find_run(name, results) for name in runs], format_)]
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


def _once(directories: Sequence[Path], format_: Format) -> list[Path]:
    """Return the directories without those named before, however they are spelled, and say which; in a form of runs alone, a run of a matrix too."""
    from scaletest.cli._streams import tell
    from scaletest.core.matrixdir import is_matrix

    places = [directory.resolve() for directory in directories]
    matrices = {place for place in places if format_ in OF_RUNS and is_matrix(place)}
    kept: dict[Path, Path] = {}
    for directory, place in zip(directories, places, strict=True):
        if place in kept:
            tell(f"scaletest: {directory}: named twice; reported once")
        elif place.parent in matrices:
            tell(f"scaletest: {directory}: its matrix is named too; reported once")
        else:
            kept[place] = directory
    return list(kept.values())
