"""``scaletest gate``: run a profile as often as it takes, and say whether it got worse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scaletest.cli import _completion as complete
from scaletest.cli._formats import COMPARED, ComparisonFormat, Format
from scaletest.cli._options import (
    RESULTS,
    BaselinesOption,
    BinaryOption,
    ComparisonFilesOption,
    ComparisonFormatOption,
    DespiteOption,
    ProfileArgument,
    ResultsOption,
    SetOption,
    SizeOption,
)

__all__ = ["gate"]


def gate(
    profile: ProfileArgument,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="NAME", help="Saved baseline to compare with.", autocompletion=complete.baselines
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against",
            metavar="KEY=VALUE",
            help="Run the base, too, with kubernetes=1.31, etcd=3.5 or set:KEY=VALUE, in turns; repeatable.",
            autocompletion=complete.against,
        ),
    ] = None,
    repeat: Annotated[
        int | None, typer.Option("--repeat", metavar="N", help="Most runs of each side. [default: the profile's, or 8]")
    ] = None,
    fail: Annotated[
        list[str] | None,
        typer.Option(
            "--fail",
            metavar="METRIC:ALLOWED",
            help="A metric may be worse by so much, like p99:10%; repeatable.",
            autocompletion=complete.fail_rules,
        ),
    ] = None,
    despite: DespiteOption = None,
    set_: SetOption = None,
    size: SizeOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Directory of the runs. [default: RESULTS/<UTC time>-<profile>-gate]"),
    ] = None,
    results: ResultsOption = RESULTS,
    binary: BinaryOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be run, or refuse as the gate would; do nothing.")
    ] = False,
    baselines: BaselinesOption = None,
    format_: ComparisonFormatOption = ComparisonFormat.TEXT,
    report: ComparisonFilesOption = None,
) -> None:
    """Run a profile several times and compare: with a saved baseline, or with runs of a base in turns.

    Stops as soon as the answer is clear. Exits 0, 99 for a regression, 4 when it cannot be told, 2 for what it refuses to begin with.

    Examples:
      scaletest gate smoke --baseline main --fail p99:20%
      scaletest gate smoke --against kubernetes=1.36
      scaletest gate ./mine.yaml --against set:flows.agent.steps.0.every=30s
    """
    from scaletest.cli import _gate
    from scaletest.cli._reports import parse_report_files
    from scaletest.cli._settings import settings

    _gate.run_gate(
        _gate.GateRequest(
            reference=profile,
            overrides=tuple(set_ or ()),
            size=size,
            baseline=baseline,
            against=tuple(against or ()),
            repeat=repeat,
            fail=tuple(fail or ()),
            despite=frozenset(item.value for item in despite or ()),
            output=output,
            binaries=tuple(binary or ()),
            dry_run=dry_run,
            baselines=baselines,
            format=Format(format_),
            reports=tuple(parse_report_files(report or (), COMPARED, "a comparison")),
            results=results,
            settings=settings(),
        )
    )
