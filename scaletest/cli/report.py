"""``scaletest report``: the report of a run, from its directory alone."""

from __future__ import annotations

import enum
import sys
from pathlib import Path
from typing import Annotated

import typer

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
        list[str], typer.Argument(metavar="RUN...", help="Run directory, its name under results/, or `latest`.")
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
    """Report on runs: finished, killed or still going on.

    A report that could be made exits 0 whatever its verdict; --exit-code gives that of the verdict.

    Examples:  scaletest report latest   |   scaletest report results/* --format json | jq .verdict
    """
    from scaletest.analysis.verdict import worst
    from scaletest.report.build import build
    from scaletest.report.json_report import render_json
    from scaletest.report.rundir import find_run, load_run
    from scaletest.report.terminal import print_report

    loaded = [load_run(find_run(reference, results)) for reference in runs]
    for run in loaded:
        document = build(run)
        if format_ is Format.JSON:
            typer.echo(render_json(document), nl=False)
        else:
            print_report(document, sys.stdout)
    if exit_code:
        raise typer.Exit(int(worst(run.verdict.exit_code for run in loaded)))
