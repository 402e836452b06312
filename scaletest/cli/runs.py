"""``scaletest runs``: list the runs under a directory, and remove those that nobody needs any more."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scaletest.cli import _completion as complete
from scaletest.cli._options import RESULTS, ResultsOption, schema_option
from scaletest.cli._streams import answer, hand_over

if TYPE_CHECKING:
    from scaletest.report.drawing import Drawn
    from scaletest.report.runlist import Filter, ListedRun

__all__ = ["app"]

app = typer.Typer(help="List runs, and remove old ones.", no_args_is_help=True)


class Format(enum.StrEnum):
    """What the list is printed as."""

    TEXT = "text"
    JSON = "json"


class Outcome(enum.StrEnum):
    """What a run came to."""

    PASS = "pass"  # noqa: S105 -- a verdict, no password
    FAIL = "fail"
    INVALID = "invalid"
    INCOMPLETE = "incomplete"
    RUNNING = "running"
    MATRIX = "matrix"
    UNREADABLE = "unreadable"


_Profile = Annotated[
    str | None, typer.Option("--profile", metavar="NAME", help="Of this profile.", autocompletion=complete.profiles)
]
_Outcomes = Annotated[
    list[Outcome] | None,
    typer.Option("--verdict", metavar="WHAT", help=f"That came to {', '.join(Outcome)}; repeatable."),
]
_Older = Annotated[str | None, typer.Option("--older-than", metavar="AGE", help="Begun longer ago: 12h, 30d.")]
_Newer = Annotated[str | None, typer.Option("--newer-than", metavar="AGE", help="Begun since: 12h, 30d.")]


@app.command("list")
def list_(
    results: ResultsOption = RESULTS,
    profile: _Profile = None,
    verdict: _Outcomes = None,
    older_than: _Older = None,
    newer_than: _Newer = None,
    format_: Annotated[Format, typer.Option("--format", help="Print as text or JSON.")] = Format.TEXT,
    _schema: Annotated[bool, schema_option("runs")] = False,
) -> None:
    """List runs and matrices, the oldest first.

    Examples:
      scaletest runs list
      scaletest runs list --verdict fail --newer-than 7d
    """
    import sys

    found = _taken(results, _filter(profile, verdict, older_than, newer_than))
    if format_ is Format.JSON:
        from scaletest.report.json_report import render_json

        hand_over(render_json([run.to_report() for run in found]))
    elif found:
        from scaletest.report.terminal import print_drawn

        print_drawn(lambda width: [part for part in (_table(found, width), _unreadable(found)) if part], sys.stdout)
    else:
        is_filtered = profile or verdict or older_than or newer_than
        answer(f"no {'such ' if is_filtered else ''}run under {results}/")


@app.command()
def prune(
    results: ResultsOption = RESULTS,
    profile: _Profile = None,
    verdict: _Outcomes = None,
    older_than: _Older = None,
    newer_than: _Newer = None,
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep", metavar="N", min=0, help="Keep so many of them, the newest of each profile; 0 keeps none."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Remove them; without it they are only named.")] = False,
) -> None:
    """Remove run and matrix directories; without --yes only say which.

    What may still be going on, or cannot be read, is never removed.

    Examples:
      scaletest runs prune --older-than 30d
      scaletest runs prune --profile smoke --keep 10 --yes
    """
    import shutil

    from scaletest.core.errors import EnvironmentProblem, UsageError
    from scaletest.core.units import format_bytes

    if keep is None and not (profile or verdict or older_than or newer_than):
        msg = "prune wants to know which runs"
        raise UsageError(msg, hint="For example --older-than 30d, --verdict invalid or --keep 10.")
    meant = _taken(results, _filter(profile, verdict, older_than, newer_than))
    doomed = _beyond([run for run in meant if run.outcome not in {"running", "unreadable"}], keep or 0)
    for run in doomed:
        if yes:
            try:
                shutil.rmtree(run.directory)
            except OSError as error:
                msg = f"{run.directory}: not removed: {error.strerror}"
                raise EnvironmentProblem(msg) from None
        answer(f"{'removed' if yes else 'would remove'} {run.directory}  {format_bytes(run.size_bytes)}")
    total = f"{len(doomed)} of {len(meant)} runs, {format_bytes(sum(run.size_bytes for run in doomed))}"
    answer(total if yes or not doomed else f"{total}; nothing was removed: --yes does it")


def _beyond(runs: list[ListedRun], keep: int) -> list[ListedRun]:
    """Return the runs but for the newest ``keep`` of each profile."""
    by_profile: dict[str, list[ListedRun]] = {}
    for run in runs:
        by_profile.setdefault(run.profile, []).append(run)
    kept = {id(run) for found in by_profile.values() for run in found[max(0, len(found) - keep) :]}
    return [run for run in runs if id(run) not in kept]


def _taken(results: Path, which: Filter) -> list[ListedRun]:
    from datetime import UTC, datetime

    from scaletest.core.errors import RunDirectoryError
    from scaletest.report.runlist import list_runs

    if not results.is_dir():
        what = "no directory, but a file" if results.exists() else "no such directory"
        raise RunDirectoryError(results, what, hint="Make a run: scaletest run smoke")
    now = datetime.now(UTC)
    found = [run for run in list_runs(results) if which.takes(run, now)]
    return sorted(found, key=lambda run: (run.started.timestamp() if run.started else 0.0, run.directory))


def _filter(profile: str | None, verdicts: list[Outcome] | None, older: str | None, newer: str | None) -> Filter:
    import math

    from scaletest.report.runlist import Filter

    outcomes = frozenset(item.value for item in verdicts or ())
    older_s = -math.inf if older is None else _age_s("--older-than", older)
    newer_s = math.inf if newer is None else _age_s("--newer-than", newer)
    return Filter(profile, outcomes, older_s, newer_s)


def _age_s(option: str, text: str) -> float:
    """Read an age: a duration as in profiles, or days."""
    from scaletest.core.errors import UsageError
    from scaletest.core.units import parse_duration_s, whole_number

    days = whole_number(text.removesuffix("d")) if text.endswith("d") else None
    try:
        return days * 86_400.0 if days is not None else parse_duration_s(text)
    except ValueError:
        msg = f"{option} {text}: no age: write 30m, 12h or 30d"
        raise UsageError(msg) from None


def _table(runs: list[ListedRun], width: int) -> list[Drawn]:
    from rich.text import Text

    from scaletest.core.units import format_bytes
    from scaletest.report import drawing

    styles = {"pass": "green", "fail": "red", "matrix": ""}
    names = [Text(run.directory.name) for run in runs]
    profiles = [Text(run.profile) for run in runs]
    sizes = [format_bytes(run.size_bytes) for run in runs]
    for profile in profiles:
        profile.truncate(_PROFILE_CELLS, overflow="ellipsis")
    beside = max(len("verdict"), *(len(run.outcome) for run in runs)) + max(map(len, ["size", *sizes])) + _BETWEEN_CELLS
    room = max(_START_CELLS, width - beside - max(len("profile"), *(profile.cell_len for profile in profiles)))
    for name in names:
        name.truncate(room, overflow="ellipsis")
    left = max(len("profile"), width - beside - max(len("run"), *(name.cell_len for name in names)))
    for profile in profiles:
        profile.truncate(left, overflow="ellipsis")
    table = drawing.table("run", "profile", "verdict", "size", "", left=3)
    for column in table.columns:
        column.no_wrap = True
    # The first column to give way: the others are names, which are to be copied; then names do, for verdicts are why one lists runs.
    table.columns[-1].justify, table.columns[-1].no_wrap = "left", False
    for run, name, profile, size in zip(runs, names, profiles, sizes, strict=True):
        verdict = Text(run.outcome, styles.get(run.outcome, "yellow"))
        said = Text("see below" if _is_unreadable(run) else run.said, "dim", no_wrap=True, overflow="ellipsis")
        drawing.row(table, name, profile, verdict, size, said)
    return [table]


_PROFILE_CELLS: Final = 40
"""A name is shorter; a damaged run may have anything for one."""
_START_CELLS: Final = len("20261130T120000Z-…")
"""What is always shown of a run's name: when it was started."""
_BETWEEN_CELLS: Final = 11
"""Blanks between the columns, and one cell of what is said of the run."""


def _is_unreadable(run: ListedRun) -> bool:
    return run.outcome == "unreadable"


def _unreadable(runs: list[ListedRun]) -> list[Drawn]:
    """Say in full, once for each, why runs cannot be read."""
    from scaletest.report import drawing

    return [drawing.line(f"{run.directory.name}: {run.said}", "yellow") for run in runs if _is_unreadable(run)]
