"""``scaletest doctor``: what this machine lacks for a profile, and the command that mends it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from scaletest.cli import _completion as complete
from scaletest.cli._options import BinaryOption, SetOption, SizeOption
from scaletest.cli._streams import hand_over
from scaletest.core.errors import ExitCode

if TYPE_CHECKING:
    from scaletest.runner.preflight import Check

__all__ = ["doctor"]


class Format(StrEnum):
    """How the checks are printed."""

    TEXT = "text"
    JSON = "json"


def doctor(
    profile: Annotated[
        str | None,
        typer.Argument(
            metavar="PROFILE",
            help="Built-in profile, or path of a YAML file. [default: what every run needs]",
            autocompletion=complete.profiles,
        ),
    ] = None,
    set_: SetOption = None,
    size: SizeOption = None,
    binary: BinaryOption = None,
    format_: Annotated[Format, typer.Option("--format", help="Print text or JSON.")] = Format.TEXT,
) -> None:
    """Say what this machine lacks for a profile, and what mends it. Exit code 3 when something is missing.

    Examples:
      scaletest doctor
      scaletest doctor smoke --set nodes=7000
    """
    from scaletest.cli._settings import settings, versions_of
    from scaletest.controlplane.binaries import parse_binary_flags
    from scaletest.core.errors import UsageError
    from scaletest.profile.loading import load_profile
    from scaletest.runner.preflight import Level, preflight

    if profile is None and (set_ or size):
        msg = f"{'--set' if set_ else '--size'} changes a profile, and none is named"
        raise UsageError(msg, hint="For example: scaletest doctor smoke --set nodes=7000")
    loaded = (
        load_profile(profile, set_ or (), size=size, versions=versions_of(settings())) if profile is not None else None
    )
    checks = preflight(loaded.profile if loaded else None, parse_binary_flags(binary or ()))
    if format_ is Format.JSON:
        hand_over(json.dumps([asdict(check) for check in checks], indent=2, ensure_ascii=False) + "\n")
    else:
        _print(checks)
    if any(check.level is Level.FAIL for check in checks):
        raise typer.Exit(int(ExitCode.ENVIRONMENT))


def _print(checks: Sequence[Check]) -> None:
    from rich.table import Table
    from rich.text import Text

    from scaletest.core.consoles import console

    styles = {"ok": "green", "warn": "yellow", "fail": "bold red"}
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        detail = Text(check.detail)
        if check.remedy is not None:
            detail.append(f"\n→ {check.remedy}", style="dim" if check.level == "ok" else "")
        table.add_row(Text(check.level.value, style=styles[check.level]), check.name, detail)
    console(sys.stdout).print(table)
