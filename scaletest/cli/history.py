"""``scaletest history``: many runs of a profile in time order, and where the level of a metric shifted."""

from __future__ import annotations

from typing import Annotated

import typer

from scaletest.cli import _completion as complete
from scaletest.cli._formats import Format, HistoryFormat
from scaletest.cli._options import RESULTS, BaselinesOption, ResultsOption, schema_option

__all__ = ["history"]


def history(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN",
            help="Run directories, directories of runs, patterns in quotes, or saved baselines. [default: all under results/]",
            autocompletion=complete.sides,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="Only these, named as in --fail: p99, flow.*.p50, probe.*; repeatable.",
            autocompletion=complete.metrics,
        ),
    ] = None,
    format_: Annotated[HistoryFormat, typer.Option("--format", help="What to print on stdout.")] = HistoryFormat.TEXT,
    report: Annotated[
        list[str] | None,
        typer.Option("--report", metavar="FORMAT=PATH", help="Write the history to a file too; repeatable."),
    ] = None,
    results: ResultsOption = RESULTS,
    baselines: BaselinesOption = None,
    _schema: Annotated[bool, schema_option("history")] = False,
) -> None:
    """Show every metric over many runs, by profile and in time order, and where its level shifted.

    A shift is told when it is beyond chance and large enough to matter; eight runs are wanted. Exits 0: to gate, see `scaletest gate`.

    Examples:
      scaletest history
      scaletest history 'results/*-smoke' --metric p99
      scaletest history 'nightly/*.json' --format json
    """
    from scaletest.cli import _history

    request = _history.HistoryRequest(
        references=tuple(runs or ()),
        metrics=tuple(metric or ()),
        format=Format(format_),
        reports=tuple(report or ()),
        results=results,
        baselines=baselines,
    )
    raise typer.Exit(int(_history.show_history(request)))
