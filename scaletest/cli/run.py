"""``scaletest run``: a profile on a control plane, to its report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scaletest.cli import _completion as complete
from scaletest.cli._formats import Format
from scaletest.cli._options import RESULTS, BinaryOption, ProfileArgument, ResultsOption, SetOption, SizeOption

__all__ = ["run"]


def run(
    profile: ProfileArgument,
    set_: SetOption = None,
    size: SizeOption = None,
    variant: Annotated[
        str | None,
        typer.Option(
            "--variant",
            metavar="NAME[,NAME]",
            help="Of a profile with variants, only these. [default: all, as a matrix]",
            autocompletion=complete.variants,
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Run directory. [default: RESULTS/<UTC time>-<profile>]")
    ] = None,
    results: ResultsOption = RESULTS,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Run on a cluster that `scaletest cluster up` started.",
            autocompletion=complete.clusters,
        ),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the control plane up after the run.")] = False,
    binary: BinaryOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan, the memory it needs and the time it takes; do nothing.")
    ] = False,
    matrix: Annotated[
        list[str] | None,
        typer.Option(
            "--matrix",
            metavar="KEY=V1,V2",
            help="Run every combination of values; repeatable.",
            autocompletion=complete.matrix_keys,
        ),
    ] = None,
    repeat: Annotated[int, typer.Option("--repeat", metavar="N", help="Run N times; of a matrix, every variant.")] = 1,
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="DIR", help="Go on with the matrix or repeats in this directory.")
    ] = None,
    format_: Annotated[Format, typer.Option("--format", help="What to write the report on stdout as.")] = Format.TEXT,
    report: Annotated[
        list[str] | None,
        typer.Option(
            "--report",
            metavar="FORMAT=PATH",
            help="Write the report to a file too; repeatable.",
            autocompletion=complete.report_files,
        ),
    ] = None,
    processes: Annotated[
        str | None,
        typer.Option(
            "--processes",
            metavar="N|auto",
            help="Processes that make each flow of agents, watchers, arrivals or etcd. auto: one for each 4 cores.",
        ),
    ] = None,
) -> None:
    """Run a profile on a real control plane and report where it stands.

    The exit code is the verdict: 0 pass, 99 an objective failed, 4 invalid measurement, 3 environment, 130 interrupted.

    Examples:
      scaletest run smoke --set nodes=200
      scaletest run openai-outage --size quick --report html=report.html
      scaletest run smoke --matrix kubernetes=1.31,1.37 --repeat 3
    """
    from scaletest.cli import _running
    from scaletest.cli._reports import parse_report_files, refuse_on_terminal
    from scaletest.cli._settings import settings, versions_of

    refuse_on_terminal(format_)
    request = _running.RunRequest(
        reference=profile,
        overrides=_running.with_processes(profile, tuple(set_ or ()), size, processes),
        size=size,
        variants=_running.chosen_variants(profile, variant),
        output=output,
        cluster=cluster,
        keep=keep,
        binaries=tuple(binary or ()),
        dry_run=dry_run,
        format=format_,
        reports=tuple(parse_report_files(report or ())),
        results=results,
        versions=versions_of(settings()),
    )
    if not matrix and repeat == 1 and resume is None and len(request.variants) < 2:
        _running.run_profile(request)
        return
    from scaletest.cli import _matrix

    _matrix.run_matrix(_matrix.MatrixRequest(request, tuple(matrix or ()), repeat, resume))
