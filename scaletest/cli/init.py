"""``scaletest init``: a first profile of one's own, from three questions or options."""

from __future__ import annotations

import enum
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer

from scaletest.cli._streams import answer, tell
from scaletest.core.errors import Interrupted, UsageError, refused
from scaletest.core.units import whole_number
from scaletest.profile.starter import MOST_NODES, Goal, Load, Start, name_from, starter

__all__ = ["init"]

_LOADS: Final[Mapping[Load, str]] = {
    Load.AGENT: "an agent on every node, like the pods of a DaemonSet",
    Load.CONTROLLER: "one controller or operator: it watches, reads and writes",
    Load.CHURN: "workloads that come and go: Deployments, Jobs and pods",
}
_GOALS: Final[Mapping[Goal, str]] = {
    Goal.LATENCY: "are operators answered within a second, and do requests succeed?",
    Goal.SLO: "do the official Kubernetes SLOs hold?",
    Goal.CAPACITY: "how much does the control plane hold? a search for the limit",
}
_NODES: Final = 100


def init(
    path: Annotated[
        Path | None, typer.Argument(metavar="PATH", help="File to write, ending in .yaml. [default: LOAD.yaml]")
    ] = None,
    load: Annotated[Load | None, typer.Option("--load", help="What loads the control plane.")] = None,
    nodes: Annotated[
        int | None, typer.Option("--nodes", metavar="N", min=1, max=MOST_NODES, help="How many nodes the cluster has.")
    ] = None,
    goal: Annotated[Goal | None, typer.Option("--goal", help="What a run is to find out.")] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing: agent, 100 nodes, latency, where no option says other.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a commented profile to begin with: from three questions, or from their answers as options.

    Loads: `agent`, a client on every node; `controller`, one that watches, reads and writes; `churn`, workloads that come and
    go. Goals: `latency`, operators are answered within a second; `slo`, the official SLOs hold; `capacity`, a search for the limit.

    Examples:
      scaletest init
      scaletest init my-agent.yaml --load agent --nodes 5000 --goal capacity
      scaletest init ci.yaml --yes
    """
    if path is not None:
        _refuse(path, force=force)
    if not yes:
        _refuse_questions({"--load": load, "--nodes": nodes, "--goal": goal})
    try:
        load = load or (Load.AGENT if yes else _choose("What loads the control plane?", _LOADS))
        path = path or Path(f"{load}.yaml")
        _refuse(path, force=force)
        nodes = nodes or (_NODES if yes else _number("How many nodes does the cluster have?", _NODES, MOST_NODES))
        goal = goal or (Goal.LATENCY if yes else _choose("What is a run to find out?", _GOALS))
    except typer.Abort:
        msg = "interrupted; nothing was written"
        raise Interrupted(msg) from None
    _write(path, load, nodes, goal)
    answer(f"{path} is written. What now:")
    file = shlex.quote(str(path))
    for line in (f"profiles validate {file}", f"run {file} --dry-run", f"run {file}"):
        answer(f"  scaletest {line}")


def _refuse(path: Path, *, force: bool) -> None:
    """Refuse what cannot become a profile, before anything is asked."""
    if not str(path).isprintable():
        msg = f"{str(path)!r}: a character that cannot be shown"
        raise UsageError(msg, hint="The path stands in the comments of the profile: give another.")
    if path.suffix not in {".yaml", ".yml"}:
        msg = f"{path}: a profile's file ends in .yaml"
        raise UsageError(msg, hint=f"For example: scaletest init {path}.yaml")
    if not name_from(path.stem):
        msg = f"{path}: no name of a profile can be made of it: use letters a to z, or digits"
        raise UsageError(msg, hint=f"For example: scaletest init {path.with_name('mine.yaml')}")
    if path.exists() and not (force and path.is_file()):
        msg = f"{path}: exists already"
        raise UsageError(
            msg, hint="--force replaces it." if path.is_file() else "Name another file; nothing was changed."
        )


def _refuse_questions(answers: Mapping[str, object]) -> None:
    """Refuse to ask where nobody can answer."""
    missing = [option for option, given in answers.items() if given is None]
    if missing and not sys.stdin.isatty():
        msg = f"no terminal to ask on: {', '.join(missing)} missing"
        raise UsageError(msg, hint="Give them, or take what is usual: --yes")


_Word = TypeVar("_Word", bound=enum.StrEnum)


def _choose(question: str, choices: Mapping[_Word, str]) -> _Word:
    """Ask for one of some words; a number or the beginning of a word does, and nothing takes the first. Raises typer.Abort."""
    tell(question)
    for number, (word, meaning) in enumerate(choices.items(), start=1):
        tell(f"  {number}  {word:<11} {meaning}")
    words = list(choices)
    while True:
        given = typer.prompt("Number or name", default="1", err=True).strip().lower()
        meant = [word for number, word in enumerate(words, start=1) if given == str(number) or word.startswith(given)]
        if given and len(meant) == 1:
            return meant[0]
        tell(f"  {given!r} is none of {', '.join(words)}")


def _number(question: str, usual: int, most: int) -> int:
    """Ask for a number of nodes. Raises typer.Abort."""
    while True:
        given = typer.prompt(question, default=str(usual), err=True).strip().replace(",", "")
        number = whole_number(given)
        if number is not None and 1 <= number <= most:
            return number
        tell(f"  {given!r} is no number from 1 to {most}")


def _write(path: Path, load: Load, nodes: int, goal: Goal) -> None:
    from scaletest.core.wholefile import write_whole
    from scaletest.profile.schema import ControlPlaneSpec

    start = Start(name_from(path.stem), load, nodes, goal, ControlPlaneSpec().kubernetes, shlex.quote(str(path)))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, starter(start))
    except OSError as error:
        raise refused(error, f"{path}: cannot be written", hint="Name another file: scaletest init PATH") from None
