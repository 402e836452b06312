"""``scaletest report``: the report of a run, from its directory alone."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from scaletest.core.errors import ExitCode

__all__ = ["report"]


class Format(enum.StrEnum):
    """What the report is printed as."""

    TEXT = "text"
    JSON = "json"


def _print_schema(asked: bool) -> None:
    if asked:
        from scaletest.report.json_report import SCHEMA_FILE

        typer.echo(SCHEMA_FILE.read_text(encoding="utf-8"), nl=False)
        raise typer.Exit


def report(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="Run or matrix directory, its name under results/, or `latest`."),
    ],
    format_: Annotated[Format, typer.Option("--format", help="Text, or one JSON document for each run.")] = Format.TEXT,
    results: Annotated[Path, typer.Option("--results", help="Where runs are looked for by name.")] = Path("results"),
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit as the run did by its verdict; of several, the worst.")
    ] = False,
    _schema: Annotated[
        bool, typer.Option("--schema", callback=_print_schema, is_eager=True, help="Print the JSON schema and exit.")
    ] = False,
) -> None:
    """Report on runs and matrices: finished, killed or still going on.

    A report that could be made exits 0 whatever its verdict; --exit-code gives that of the verdict.

    Examples:  scaletest report latest   |   scaletest report results/* --format json | jq .verdict
    """
    from scaletest.analysis.verdict import worst
    from scaletest.report.rundir import find_run

    printers = [_printer(find_run(reference, results)) for reference in runs]
    codes = [code for code, _ in printers]
    for _, print_as in printers:
        print_as(format_)
    if exit_code:
        raise typer.Exit(int(worst(codes)))


def _printer(directory: Path) -> tuple[ExitCode, Callable[[Format], None]]:
    """Read a directory; return the exit code of what it holds, and what prints the report on it."""
    from scaletest.core.matrixdir import is_matrix
    from scaletest.report.build import build
    from scaletest.report.json_report import render_json
    from scaletest.report.matrix_build import build_matrix
    from scaletest.report.matrix_json import render_matrix_json
    from scaletest.report.matrix_table import print_matrix
    from scaletest.report.rundir import load_run
    from scaletest.report.terminal import print_report

    if is_matrix(directory):
        matrix = build_matrix(directory)

        def print_table(format_: Format) -> None:
            if format_ is Format.JSON:
                typer.echo(render_matrix_json(matrix), nl=False)
            else:
                print_matrix(matrix, sys.stdout)

        return ExitCode(matrix.verdict.exit_code), print_table
    run = load_run(directory)

    def print_run(format_: Format) -> None:
        document = build(run)
        if format_ is Format.JSON:
            typer.echo(render_json(document), nl=False)
        else:
            print_report(document, sys.stdout)

    return run.verdict.exit_code, print_run
