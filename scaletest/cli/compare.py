"""``scaletest compare``: runs held against a base, beyond chance."""

from __future__ import annotations

from typing import Annotated

import typer

from scaletest.cli import _completion as complete
from scaletest.cli._formats import COMPARED, ComparisonFormat, Format
from scaletest.cli._options import (
    RESULTS,
    BaselinesOption,
    ComparisonFilesOption,
    ComparisonFormatOption,
    DespiteOption,
    ResultsOption,
    schema_option,
)

__all__ = ["compare"]


def compare(
    base: Annotated[
        str,
        typer.Argument(
            metavar="BASE",
            help="Run directory, directory of runs, pattern in quotes, name under results/, `latest`, or saved baseline.",
            autocompletion=complete.sides,
        ),
    ],
    new: Annotated[
        list[str],
        typer.Argument(metavar="NEW", help="The same; each is compared with BASE.", autocompletion=complete.sides),
    ],
    fail: Annotated[
        list[str] | None,
        typer.Option(
            "--fail",
            metavar="METRIC:ALLOWED",
            help="Exit 99 when a metric is worse by more, like p99:10%; repeatable.",
            autocompletion=complete.fail_rules,
        ),
    ] = None,
    gate: Annotated[
        bool,
        typer.Option("--gate", help="Gate by the rules of settings or the profile; without any, on every metric."),
    ] = False,
    despite: DespiteOption = None,
    format_: ComparisonFormatOption = ComparisonFormat.TEXT,
    report: ComparisonFilesOption = None,
    results: ResultsOption = RESULTS,
    baselines: BaselinesOption = None,
    _schema: Annotated[bool, schema_option("comparison")] = False,
) -> None:
    """Compare runs with others, metric by metric: worse, better, or no change beyond chance (~).

    Four runs or more of each side show small changes; single runs only large ones.

    Exits 0, or with a gate (--fail, --gate): 99 for a regression, 4 when it cannot be told.

    Examples:
      scaletest compare 'results/*-before*' 'results/*-after*'
      scaletest compare main latest --fail p99:10%
      scaletest compare main latest --gate --report junit=junit.xml
    """
    from scaletest.cli._comparisons import deliver_comparison, find_sides
    from scaletest.cli._gating import rules_for, runs_profile
    from scaletest.cli._reports import parse_report_files
    from scaletest.cli._settings import settings
    from scaletest.cli._streams import tell
    from scaletest.report.comparison_build import build_comparison
    from scaletest.report.sides import said_in_both

    files = parse_report_files(report or (), COMPARED, "a comparison")
    found = settings()
    sides = find_sides((base, *new), results, baselines or found.baselines)
    for side in sides[1:]:
        if shared := said_in_both(sides[0], side):
            tell(f"warning: {shared}")
    rules = rules_for(fail or [], found, runs_profile(sides[1]), asked=gate)
    document = build_comparison(sides[0], sides[1:], rules, despite={item.value for item in despite or ()})
    raise typer.Exit(int(deliver_comparison(document, files, Format(format_))))
