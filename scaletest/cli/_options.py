"""Options that several commands take: said, spelled and explained the same way everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from scaletest.report.json_report import Form

__all__ = [
    "RESULTS",
    "BaselinesOption",
    "BinaryOption",
    "ProfileArgument",
    "QuietOption",
    "ResultsOption",
    "SetOption",
    "SizeOption",
    "schema_option",
]

RESULTS: Final = Path("results")

ProfileArgument = Annotated[str, typer.Argument(help="Built-in profile, or path of a YAML file.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a parameter or any key of the profile; repeatable."),
]
SizeOption = Annotated[
    str | None, typer.Option("--size", metavar="NAME", help="Take one of the sizes that the profile names.")
]
BinaryOption = Annotated[
    list[str] | None, typer.Option("--binary", metavar="COMPONENT=PATH", help="Use this binary; repeatable.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
ResultsOption = Annotated[Path, typer.Option("--results", help="Where runs are looked for by name.")]
BaselinesOption = Annotated[
    Path | None, typer.Option("--baselines", help="Directory of baselines. [default: .scaletest/baselines]")
]


def schema_option(form: Form) -> Any:
    """Make the flag of a command that prints the JSON schema of its form, and ends."""

    def show(asked: bool) -> None:
        if asked:
            from scaletest.report.json_report import schema_file

            typer.echo(schema_file(form).read_text(encoding="utf-8"), nl=False)
            raise typer.Exit

    return typer.Option("--schema", callback=show, is_eager=True, help="Print the JSON schema and exit.")
