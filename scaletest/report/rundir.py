"""Find and read run directories: finished, cut short, half-written, or not ours at all."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple

from scaletest.analysis.state import RunState
from scaletest.analysis.verdict import Verdict, judge
from scaletest.core.errors import RunDirectoryError
from scaletest.core.journal import JOURNAL_NAME, JournalReader
from scaletest.core.matrixdir import is_matrix, read_matrix_info
from scaletest.core.rundir import RunInfo, read_run_info, run_names

__all__ = ["LATEST", "JournalHealth", "LoadedRun", "MatrixPlace", "find_run", "load_run"]

LATEST: Final = "latest"

_GROWING_S: Final = 5.0
"""A run appends several records a second: a journal without an end that changed so lately is perhaps still written."""


@dataclass(frozen=True, slots=True)
class JournalHealth:
    """What a reader met in the journal."""

    records: int
    broken_lines: int
    """Lines that were no record, the last one cut short among them."""
    newer_lines: int
    """Lines that a newer version of scaletest wrote; passed over."""
    growing: bool
    """Whether the run has no end yet and the file changed in the last seconds."""


class MatrixPlace(NamedTuple):
    """Which run of which matrix a run is."""

    matrix: str
    """Name of the matrix directory when it was begun."""
    variant: str


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run as its directory tells it."""

    directory: Path
    info: RunInfo
    state: RunState
    verdict: Verdict
    journal: JournalHealth
    matrix: MatrixPlace | None = None
    """Where it stands in the matrix that it is of."""


def load_run(directory: Path) -> LoadedRun:
    """Read a run directory and judge the run. Raises RunDirectoryError when it is none, or one of a newer version."""
    info = read_run_info(directory)
    path = directory / JOURNAL_NAME
    reader, state = JournalReader(path), RunState()
    try:
        for line, record in reader.read_numbered():
            state.apply(record, line)
    except OSError as error:
        raise RunDirectoryError(path, f"cannot be read: {error.strerror}") from None
    if reader.newer_lines and not state.records:
        what = "written by a newer version of scaletest"
        raise RunDirectoryError(path, what, hint="Upgrade scaletest to read it.")
    if reader.broken_lines and not state.records:
        what = f"none of its {reader.broken_lines} lines is a record"
        raise RunDirectoryError(path, what, hint="It is of another program, or damaged.")
    growing = state.end is None and _age_s(path) < _GROWING_S
    damage = reader.damage
    health = JournalHealth(state.records, damage.broken_lines, reader.newer_lines, growing)
    return LoadedRun(directory, info, state, judge(info, state, damage), health, _matrix_place(directory))


def _matrix_place(directory: Path) -> MatrixPlace | None:
    """Return where a run stands in the matrix whose directory it lies in; None where there is none, or it cannot be read."""
    place = directory.absolute()
    if not is_matrix(place.parent):
        return None
    try:
        matrix = read_matrix_info(place.parent)
    except RunDirectoryError:
        return None
    return next((MatrixPlace(matrix.id, run.variant) for run in matrix.runs if run.directory == place.name), None)


def _age_s(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return _GROWING_S


def find_run(reference: str, results: Path) -> Path:
    """Return the directory that a path, a name under ``results`` or ``latest`` refers to. Raises RunDirectoryError."""
    names = run_names(results)
    if reference == LATEST:
        if not names:
            raise RunDirectoryError(results, "holds no run", hint="Make one: scaletest run smoke")
        return results / names[-1]
    path = Path(reference)
    if path.exists() or reference in names:
        return path if path.exists() else results / reference
    if os.sep in reference:
        raise RunDirectoryError(path, "no such run directory")
    near = get_close_matches(reference, names, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Runs are under {results}/; `{LATEST}` is the newest."
    raise RunDirectoryError(path, f"no such directory, and no run of this name under {results}/", hint=hint)
