"""``scaletest open``: the HTML report of a run, in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scaletest.cli import _completion as complete
from scaletest.cli._options import RESULTS, ResultsOption
from scaletest.cli._streams import answer

__all__ = ["open_report"]


def open_report(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="Run or matrix directory, its name under RESULTS, or `latest`.",
            autocompletion=complete.runs,
        ),
    ] = "latest",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="Where to write it. [default: report.html in RUN]"),
    ] = None,
    results: ResultsOption = RESULTS,
) -> None:
    """Make the HTML report of a run and open it in a browser; print its path.

    Examples:
      scaletest open
      scaletest open 20261130T120000Z-smoke
      BROWSER=firefox scaletest open latest --output report.html
    """
    import webbrowser

    from scaletest.cli import _reports
    from scaletest.cli._formats import Format
    from scaletest.core.errors import EnvironmentProblem
    from scaletest.report.rundir import find_run

    directory = find_run(run, results)
    path = output or directory / "report.html"
    problem = _reports.write_report([_reports.read_subject(directory)], _reports.ReportFile(Format.HTML, path))
    if problem is not None:
        raise problem
    answer(str(path))
    if not webbrowser.open(path.resolve().as_uri()):
        msg = "no browser could be started here"
        raise EnvironmentProblem(msg, hint="The page is one file: open it by hand, or copy it to where a browser is.")
