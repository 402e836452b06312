"""The runs that a history is of: those that were named, or all under the results directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scaletest.analysis.comparison import LeftOut
from scaletest.analysis.measures import RunMeasures
from scaletest.core.errors import RunDirectoryError, without_place
from scaletest.report.runlist import list_runs
from scaletest.report.sides import find_side, read_run

__all__ = ["FoundRuns", "find_runs"]


@dataclass(frozen=True, slots=True)
class FoundRuns:
    """Runs in no order, and what was passed over."""

    runs: tuple[RunMeasures, ...]
    passed_over: tuple[LeftOut, ...]


def find_runs(references: Sequence[str], results: Path, baselines: Path) -> FoundRuns:
    """Return the runs that references stand for (``report.sides``); without any, those right under ``results``.

    Of ``results``, what cannot be read, is going on or is a matrix is passed over; of patterns and directories of runs, what cannot be read.
    Raises UsageError for a reference that stands for nothing, and where there is no run at all.
    """
    if references:
        sides = [find_side(reference, results, baselines) for reference in references]
        runs_of_sides = tuple(run for side in sides for run in side.runs)
        return FoundRuns(runs_of_sides, tuple(item for side in sides for item in side.passed_over))
    runs: list[RunMeasures] = []
    passed_over: list[LeftOut] = []
    for listed in list_runs(results):
        why = {"matrix": "a matrix: name its runs", "running": "going on"}.get(listed.outcome)
        if why is None:
            try:
                runs.append(read_run(listed.directory))
            except RunDirectoryError as error:
                why = without_place(error, listed.directory)
        if why is not None:
            passed_over.append(LeftOut(listed.directory.name, why))
    if not runs:
        more = f" ({passed_over[0].run}: {passed_over[0].why})" if passed_over else ""
        raise RunDirectoryError(results, f"holds no run{more}", hint="Make one: scaletest run smoke")
    return FoundRuns(tuple(runs), tuple(passed_over))
