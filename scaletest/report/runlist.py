"""What runs there are: read from the small files of each directory, never from journals, so that hundreds are listed in a moment."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from scaletest.core.errors import RunDirectoryError, without_place
from scaletest.core.foreignfiles import read_object
from scaletest.core.journal import JOURNAL_NAME
from scaletest.core.matrixdir import is_matrix, read_matrix_info
from scaletest.core.rundir import MATRIX_INFO_NAME, RUN_INFO_NAME, VERDICT_NAME, read_run_info
from scaletest.core.texts import encodable
from scaletest.report.document import Part

__all__ = ["OUTCOMES", "Filter", "ListedRun", "ListedRunReport", "list_runs"]

Outcome = Literal["pass", "fail", "invalid", "incomplete", "running", "matrix", "unreadable"]

OUTCOMES: Final[tuple[Outcome, ...]] = ("pass", "fail", "invalid", "incomplete", "running", "matrix", "unreadable")

_GROWING_S: Final = 60.0
"""A run without a verdict whose journal changed so lately may be going on: it is said to be, and never removed."""


class ListedRunReport(Part):
    """A run or matrix in a list."""

    directory: str
    profile: str
    started_at: str | None = Field(description="ISO 8601; null where the directory cannot be read.")
    outcome: Outcome
    said: str = Field(description="The deciding reason, or why it cannot be read.")
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run or matrix directory."""

    directory: Path
    profile: str
    started: datetime | None
    """Null where the directory cannot be read."""
    outcome: Outcome
    said: str
    """The deciding reason, or why it cannot be read."""
    size_bytes: int

    def to_report(self) -> ListedRunReport:
        """Return what ``--format json`` prints of it."""
        return ListedRunReport(
            directory=encodable(str(self.directory)),
            profile=self.profile,
            started_at=self.started.isoformat() if self.started else None,
            outcome=self.outcome,
            said=self.said,
            size_bytes=self.size_bytes,
        )


@dataclass(frozen=True, slots=True)
class Filter:
    """Which of them are meant; all conditions hold together."""

    profile: str | None = None
    outcomes: frozenset[str] = frozenset()
    older_than_s: float = -math.inf
    newer_than_s: float = math.inf

    def takes(self, run: ListedRun, now: datetime) -> bool:
        """Whether a run is meant; one whose age is not known is not, where age matters."""
        if self.profile is not None and run.profile != self.profile:
            return False
        if self.outcomes and run.outcome not in self.outcomes:
            return False
        if math.isinf(self.older_than_s) and math.isinf(self.newer_than_s):
            return True
        return run.started is not None and self.older_than_s <= (now - run.started).total_seconds() <= self.newer_than_s


def list_runs(results: Path) -> Iterator[ListedRun]:
    """Yield the runs and matrices right under a directory, oldest first; links are passed over."""
    try:
        entries = sorted(entry for entry in results.iterdir() if entry.is_dir() and not entry.is_symlink())
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunDirectoryError(results, f"cannot be read: {error.strerror}") from None
    for entry in entries:
        if is_matrix(entry):
            yield _matrix(entry)
        elif (entry / RUN_INFO_NAME).is_file():
            yield _run(entry)


def _run(directory: Path) -> ListedRun:
    size = _size_bytes(directory)
    try:
        info = read_run_info(directory)
    except RunDirectoryError as error:
        return ListedRun(directory, "?", None, "unreadable", without_place(error, directory), size)
    outcome, said = _verdict(directory)
    return ListedRun(directory, str(info.profile.get("name", "?")), _time(info.started_at), outcome, said, size)


def _matrix(directory: Path) -> ListedRun:
    size = _size_bytes(directory)
    try:
        info = read_matrix_info(directory)
    except RunDirectoryError as error:
        return ListedRun(directory, "?", None, "unreadable", without_place(error, directory), size)
    finished = sum(run.status == "finished" for run in info.runs)
    running = finished < len(info.runs) and _age_s(directory / MATRIX_INFO_NAME) < _GROWING_S
    said = f"{finished} of {len(info.runs)} runs finished"
    outcome: Outcome = "running" if running or _runs_within(directory) else "matrix"
    return ListedRun(directory, str(info.profile.get("name", "?")), _time(info.started_at), outcome, said, size)


def _runs_within(directory: Path) -> bool:
    """Whether a run of a matrix is going on."""
    return any(_verdict(path.parent)[0] == "running" for path in directory.glob(f"*/{JOURNAL_NAME}"))


def _verdict(directory: Path) -> tuple[Outcome, str]:
    path = directory / VERDICT_NAME
    try:
        verdict = read_object(path, RunDirectoryError)
    except FileNotFoundError:
        return _without_verdict(directory / JOURNAL_NAME)
    except RunDirectoryError as error:
        return "unreadable", without_place(error, directory)
    outcome, reasons = verdict.get("outcome"), verdict.get("reasons")
    known = next((item for item in OUTCOMES if item == outcome), None)
    if known is None or not isinstance(reasons, list):
        return "unreadable", f"{VERDICT_NAME}: of an outcome unknown here, or damaged"
    return known, str(reasons[0]).partition("\n")[0] if reasons else ""


def _without_verdict(journal: Path) -> tuple[Outcome, str]:
    try:
        status = journal.stat()
    except OSError:
        return "incomplete", f"there is no {JOURNAL_NAME}: nothing was measured"
    if time.time() - status.st_mtime < _GROWING_S:
        return "running", "no verdict yet"
    if not status.st_size:
        return "incomplete", f"{JOURNAL_NAME} is empty: nothing was measured"
    return "incomplete", "killed: no verdict was written"


def _age_s(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return math.inf


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _size_bytes(directory: Path) -> int:
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.lstat().st_size if not path.is_dir() else 0
        except OSError:
            continue
    return total
