"""Options that several commands take: said, spelled and explained the same way everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

__all__ = [
    "RESULTS",
    "BaselinesOption",
    "BinaryOption",
    "ProfileArgument",
    "QuietOption",
    "ResultsOption",
    "SetOption",
    "SizeOption",
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
