"""Options that several commands take: said, spelled and explained the same way everywhere."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scaletest.cli import _completion as complete
from scaletest.cli._formats import ComparisonFormat
from scaletest.cli._streams import hand_over
from scaletest.core.settings import RESULTS

if TYPE_CHECKING:
    from scaletest.report.json_report import Form

__all__ = [
    "RESULTS",
    "BaselinesOption",
    "BinaryOption",
    "ComparisonFilesOption",
    "ComparisonFormatOption",
    "DespiteOption",
    "ProfileArgument",
    "ResultsOption",
    "SetOption",
    "SizeOption",
    "schema_option",
]


class Despite(enum.StrEnum):
    """What a gate is told not to mind."""

    PROFILE = "profile"
    HOST = "host"
    VERSIONS = "versions"
    LIMITS = "limits"
    FEW_SAMPLES = "few-samples"


ProfileArgument = Annotated[
    str,
    typer.Argument(
        metavar="PROFILE", help="Built-in profile, or path of a YAML file.", autocompletion=complete.profiles
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a parameter or any key of the profile; repeatable.",
        autocompletion=complete.set_keys,
    ),
]
SizeOption = Annotated[
    str | None,
    typer.Option(
        "--size", metavar="NAME", help="Take one of the sizes that the profile names.", autocompletion=complete.sizes
    ),
]
BinaryOption = Annotated[
    list[str] | None,
    typer.Option(
        "--binary", metavar="COMPONENT=PATH", help="Use this binary; repeatable.", autocompletion=complete.binaries
    ),
]
ResultsOption = Annotated[Path, typer.Option("--results", help="Directory that holds the runs.")]
BaselinesOption = Annotated[
    Path | None, typer.Option("--baselines", help="Directory of baselines. [default: .scaletest/baselines]")
]

DespiteOption = Annotated[
    list[Despite] | None,
    typer.Option(
        "--despite",
        metavar="WHAT",
        help=f"Gate although these differ, or samples are few: {', '.join(Despite)}; repeatable.",
    ),
]
ComparisonFormatOption = Annotated[ComparisonFormat, typer.Option("--format", help="What to print on stdout.")]
ComparisonFilesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--report",
        metavar="FORMAT=PATH",
        help="Write the comparison to a file too; repeatable.",
        autocompletion=complete.comparison_files,
    ),
]


def schema_option(form: Form) -> Any:
    """Make the flag of a command that prints the JSON schema of its form, and ends."""

    def show(asked: bool) -> None:
        if asked:
            from scaletest.report.json_report import schema_file

            hand_over(schema_file(form).read_text(encoding="utf-8"))
            raise typer.Exit

    return typer.Option("--schema", callback=show, is_eager=True, help="Print the JSON schema and exit.")
