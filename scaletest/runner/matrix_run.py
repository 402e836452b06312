"""Running a matrix: one run after the other, in a directory that says how far it got, and again where it stopped.

A run that came to a verdict on its objectives is kept when the matrix is resumed, whatever the verdict. One that was cut short
is run again; what it had written is set aside beside it, under a name that ends in ``.cut-1``.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scaletest.core.errors import EnvironmentProblem, ExitCode, RunDirectoryError, ScaletestError, UsageError
from scaletest.core.matrixdir import (
    VARIANT_AXIS,
    Axis,
    MatrixInfo,
    RunEntry,
    VariantEntry,
    is_matrix,
    kept_outcome,
    read_matrix_info,
    write_matrix_info,
)
from scaletest.core.rundir import MATRIX_INFO_NAME
from scaletest.core.texts import encodable
from scaletest.profile.places import show
from scaletest.runner.matrix import Matrix, first_difference, run_names
from scaletest.runner.session import RunResult

__all__ = ["MatrixRunner", "begin", "check_same", "execute_matrix", "held", "left_to_run", "new_info", "resumable"]

RunOne = Callable[[RunEntry, Path], RunResult]
"""Runs a variant into a directory that does not exist yet; raises what ``session.execute`` raises."""


def new_info(
    matrix: Matrix, directory: Path, *, reference: str, overrides: Sequence[str], repeat: int, argv: Sequence[str]
) -> MatrixInfo:
    """Return the ``matrix.json`` of a matrix of which nothing was run."""
    return MatrixInfo(
        id=directory.absolute().name,
        reference=encodable(reference),
        overrides=[encodable(text) for text in overrides],
        axes=list(matrix.axes),
        repeat=repeat,
        argv=[encodable(word) for word in argv],
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        limits={name: dict(values) for name, values in matrix.limits.items()},
        profile=dict(matrix.profile),
        variants=list(matrix.entries),
        runs=[
            RunEntry(directory=name, variant=variant, repeat=number)
            for variant, number, name in run_names(matrix, repeat)
        ],
    )


def resumable(directory: Path) -> MatrixInfo | None:
    """Return the matrix that a directory holds, None when there is no directory. Raises RunDirectoryError for others."""
    if is_matrix(directory):
        return read_matrix_info(directory)
    if directory.exists():
        what = f"exists already, and is no matrix: it has no {MATRIX_INFO_NAME}"
        raise RunDirectoryError(directory, what, hint="Name another with --output; nothing was changed.")
    return None


def begin(directory: Path, info: MatrixInfo) -> None:
    """Make the directory of a new matrix."""
    try:
        directory.mkdir(parents=True)
        write_matrix_info(directory, info)
    except OSError as error:
        msg = f"{directory}: cannot be made: {error.strerror}"
        raise EnvironmentProblem(msg, hint="Name another with --output.") from error


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Keep others from running the same matrix; the kernel lets go when this process ends. Raises RunDirectoryError."""
    handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise RunDirectoryError(directory, "another scaletest runs this matrix now") from None
    try:
        yield
    finally:
        os.close(handle)


def check_same(stored: MatrixInfo, wanted: MatrixInfo, directory: Path) -> None:
    """Raise UsageError, which names the key, when a directory holds another matrix or profile than the one wanted."""
    difference = _axes_differ(stored.axes, wanted.axes)
    if difference is None and stored.repeat != wanted.repeat:
        difference = f"--repeat was {stored.repeat} and is {wanted.repeat}"
    if difference is None:
        found = first_difference(stored.profile, wanted.profile) or _changes_differ(stored.variants, wanted.variants)
        difference = found and f"{found[0]} was {show(found[1])} and is {show(found[2])}"
    if difference is not None:
        msg = f"{directory}: cannot be resumed: {difference}"
        raise UsageError(msg, hint="Variants of different profiles do not belong into one table: leave --resume out.")


def _axes_differ(stored: Sequence[Axis], wanted: Sequence[Axis]) -> str | None:
    before = {axis.key: ",".join(axis.values) for axis in stored}
    after = {axis.key: ",".join(axis.values) for axis in wanted}
    for key in dict.fromkeys([*before, *after]):
        if before.get(key) != after.get(key):
            was = f"was {before[key]}" if key in before else "was not there"
            now = f"is {after[key]}" if key in after else "is not there"
            option = f"--{VARIANT_AXIS}" if key == VARIANT_AXIS else f"--matrix {key}"
            return f"{option} {was} and {now}"
    return None if list(before) == list(after) else f"--matrix {', '.join(before)}: in another order"


def _changes_differ(stored: Sequence[VariantEntry], wanted: Sequence[VariantEntry]) -> tuple[str, Any, Any] | None:
    for before, after in zip(stored, wanted, strict=True):
        found = _difference(before.changes, after.changes)
        if found is not None:
            key, was, now = found
            return f"{key} of {before.name}", was, now
    return None


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, Any, Any] | None:
    keys = dict.fromkeys([*before, *after])
    return next(((key, before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)), None)


def left_to_run(directory: Path, info: MatrixInfo) -> list[RunEntry]:
    """Return the runs that have not come to a verdict, in their order."""
    return [entry for entry in info.runs if kept_outcome(directory / entry.directory) is None]


def execute_matrix(
    directory: Path, info: MatrixInfo, run_one: RunOne, on_start: Callable[[int, RunEntry], None]
) -> MatrixInfo:
    """Do every run that is not done yet, in order; ``on_start`` is told the number of each, from 1 on.

    Ctrl-C ends the run that goes on, and with it the matrix. A run that could not take place (the machine, a control
    plane) does not keep the next ones from being tried. Returns what ``matrix.json`` says in the end.
    """
    runner = MatrixRunner(directory, info)
    runner.keep_finished()
    for index, entry in enumerate(info.runs):
        if runner.info.runs[index].status == "finished":
            continue
        on_start(index + 1, entry)
        if not runner.run(index, run_one):
            break
    return runner.info


@dataclass
class MatrixRunner:
    """``matrix.json`` and the runs of it."""

    directory: Path
    info: MatrixInfo
    _names: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self._names = {entry.directory for entry in self.info.runs}

    def keep_finished(self) -> None:
        """Take over the runs that came to a verdict, and let all others wait."""
        runs = [self._standing(entry) for entry in self.info.runs]
        self._write(runs)

    def _standing(self, entry: RunEntry) -> RunEntry:
        kept = kept_outcome(self.directory / entry.directory)
        if kept is None:
            return RunEntry(directory=entry.directory, variant=entry.variant, repeat=entry.repeat)
        return entry.model_copy(
            update={"status": "finished", "outcome": kept[0], "exit_code": kept[1], "message": None}
        )

    def run(self, index: int, run_one: RunOne) -> bool:
        """Do one run; returns whether the matrix goes on."""
        entry = self.info.runs[index]
        run_dir = self.directory / entry.directory
        self._set_aside(run_dir)
        self._note(index, status="running")
        try:
            verdict = run_one(entry, run_dir).verdict
        except KeyboardInterrupt:
            # Before or after the time in which the run itself listens to signals.
            self._incomplete(index, ExitCode.INTERRUPTED, "interrupted")
            return False
        except ScaletestError as error:
            self._incomplete(index, error.exit_code, error.message)
            return error.exit_code is not ExitCode.INTERRUPTED
        except BaseException as error:
            self._incomplete(index, ExitCode.BUG, f"{type(error).__name__}: {error}")
            raise
        if verdict.outcome == "incomplete":
            self._incomplete(index, verdict.exit_code, verdict.reasons[0])
            return verdict.exit_code is not ExitCode.INTERRUPTED
        self._note(index, status="finished", outcome=verdict.outcome.value, exit_code=int(verdict.exit_code))
        return True

    def _incomplete(self, index: int, code: ExitCode, message: str) -> None:
        self._note(index, status="incomplete", outcome="incomplete", exit_code=int(code), message=message)

    def _note(self, index: int, **fields: Any) -> None:
        runs = list(self.info.runs)
        runs[index] = runs[index].model_copy(update=fields)
        self._write(runs)

    def _write(self, runs: list[RunEntry]) -> None:
        self.info = self.info.model_copy(update={"runs": runs})
        try:
            write_matrix_info(self.directory, self.info)
        except OSError as error:
            msg = f"{self.directory}: cannot be written to: {error.strerror}"
            raise EnvironmentProblem(msg, hint="What was run is kept; go on with --resume.") from error

    def _set_aside(self, run_dir: Path) -> None:
        if not run_dir.exists():
            return
        number = 1
        while (aside := run_dir.with_name(f"{run_dir.name}.cut-{number}")).exists() or aside.name in self._names:
            number += 1
        run_dir.rename(aside)
