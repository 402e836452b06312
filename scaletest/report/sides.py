"""What an argument of ``scaletest compare`` stands for: a run, a set of runs, or a saved baseline."""

from __future__ import annotations

import glob
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

from scaletest.analysis.comparison import LeftOut, RunSet
from scaletest.analysis.measures import RunMeasures, measure_run
from scaletest.core.errors import BaselineError, RunDirectoryError, UsageError, without_place
from scaletest.core.matrixdir import MatrixInfo, is_matrix, read_matrix_info
from scaletest.core.rundir import RUN_INFO_NAME
from scaletest.core.texts import encodable
from scaletest.report.baselines import baseline_path, list_baselines, read_baseline
from scaletest.report.rundir import find_run, load_run

__all__ = ["find_side", "read_run", "read_runs", "said_in_both"]

_PATTERN = frozenset("*?[")
_BASELINE = ".json"


def find_side(reference: str, results: Path, baselines: Path) -> RunSet:
    """Return what a reference stands for.

    In this order: a path that exists (a run, a directory of runs, a baseline's file), a pattern of run directories (also under
    ``results``) or, where it ends in ``.json``, of baselines' files, a baseline of the project, a run under ``results``, or ``latest``.
    What a pattern or a directory of runs finds and that cannot be read is passed over, as long as something is left. Raises UsageError.
    """
    path = Path(reference)
    if path.is_file():
        return read_baseline(path).runs
    if path.exists():
        return read_runs(path)
    if _PATTERN & set(reference):
        return _matching(reference, results)
    names = [item.stem for item in list_baselines(baselines)]
    if reference in names:
        return read_baseline(baseline_path(reference, baselines)).runs
    if reference.endswith(_BASELINE):
        return read_baseline(path).runs
    try:
        found = find_run(reference, results)
    except RunDirectoryError as error:
        near = get_close_matches(reference, names, n=1)
        said = f"Baselines: {', '.join(names)}." if names else f"There is no baseline under {baselines}/."
        hint = f"Did you mean the baseline {near[0]}?" if near else f"{error.hint or ''} {said}".strip()
        msg = f"{error.message}, and no baseline of this name"
        raise UsageError(msg, hint=hint) from None
    return read_runs(found)


def read_runs(directory: Path) -> RunSet:
    """Return the run in a directory, or those that lie directly within it and can be read. Raises RunDirectoryError."""
    if (directory / RUN_INFO_NAME).exists():
        return RunSet(str(directory), (read_run(directory),))
    if is_matrix(directory):
        matrix = read_matrix_info(directory)
        variants = [variant.name for variant in matrix.variants]
        if len(variants) > 1:
            what = (
                f"a matrix of {len(variants)} variants: {', '.join(variants[:4])}{', …' if len(variants) > 4 else ''}"
            )
            hint = f"Name the runs of one: {shlex.quote(_runs_of(directory, matrix, variants[0]))}"
            raise RunDirectoryError(directory, what, hint=hint)
    within = _run_dirs(sorted(directory.iterdir())) if directory.is_dir() else []
    if not within:
        # Says what is missing of a run.
        return RunSet(str(directory), (read_run(directory),))
    return _readable(str(directory), within, lambda path: (read_run(path),))


def _runs_of(directory: Path, matrix: MatrixInfo, variant: str) -> str:
    """Return the run of a variant, or a pattern of its repeats that matches no run of another."""
    first = next((run.directory for run in matrix.runs if run.variant == variant), variant)
    if matrix.repeat == 1:
        return str(directory / first)
    return f"{glob.escape(str(directory / first.removesuffix('-r1')))}-r[0-9]*"


def _matching(pattern: str, results: Path) -> RunSet:
    for root in (Path(), results):
        # Unlike Path.glob, this takes absolute patterns too.
        paths = [root / path for path in sorted(glob.glob(pattern, root_dir=root))]  # noqa: PTH207
        if pattern.endswith(_BASELINE):
            files = [path for path in paths if path.is_file()]
            if files:
                return _readable(pattern, files, lambda path: read_baseline(path).runs.runs)
        elif directories := _run_dirs(paths):
            return _readable(pattern, directories, lambda path: (read_run(path),))
    raise RunDirectoryError(
        Path(pattern), f"matches no {'baseline' if pattern.endswith(_BASELINE) else 'run directory'}"
    )


def _run_dirs(paths: Iterable[Path]) -> list[Path]:
    return [path for path in paths if (path / RUN_INFO_NAME).exists()]


def _readable(name: str, paths: Sequence[Path], read: Callable[[Path], Iterable[RunMeasures]]) -> RunSet:
    """Return the runs of those that can be read; nobody named the others, so they are passed over. Raises RunDirectoryError where none is left."""
    runs: list[RunMeasures] = []
    passed_over: list[LeftOut] = []
    for path in paths:
        try:
            runs += read(path)
        except (RunDirectoryError, BaselineError) as error:
            passed_over.append(LeftOut(str(path), without_place(error, path)))
    if not runs:
        first = passed_over[0]
        what = f"nothing of it can be read: {first.run}: {first.why}"
        more = f" (and {len(passed_over) - 1} more)" if len(passed_over) > 1 else ""
        raise RunDirectoryError(Path(name), what + more)
    return RunSet(name, tuple(runs), passed_over=tuple(passed_over))


def said_in_both(base: RunSet, new: RunSet) -> str | None:
    """Say which runs stand on both sides, however they are spelled; None where none does.

    Runs are the same by their directory; where a side is a saved baseline, by name and start.
    """
    places = {os.path.realpath(run.directory) for run in base.runs if run.directory is not None}
    names = {(run.id, run.started_at): run.directory is None for run in base.runs}

    def is_in_base(run: RunMeasures) -> bool:
        name = (run.id, run.started_at)
        if run.directory is None:
            return name in names
        return os.path.realpath(run.directory) in places or names.get(name, False)

    shared = [run for run in new.runs if is_in_base(run)]
    if not shared:
        return None
    if len(shared) == len(new.runs):
        return f"{new.name} is compared with itself: its runs are in {base.name} too"
    more = f" and {len(shared) - 1} more" if len(shared) > 1 else ""
    return f"{len(shared)} of {len(new.runs)} runs of {new.name} are in {base.name} too: {shared[0].id}{more}"


def read_run(directory: Path) -> RunMeasures:
    """Read and measure a run. Raises RunDirectoryError."""
    run = load_run(directory)
    outcome = run.verdict.outcome.value
    reason = run.verdict.reasons[0] if run.verdict.reasons and outcome in {"invalid", "incomplete"} else None
    return measure_run(run.info, run.state, outcome=outcome, reason=reason, directory=encodable(str(directory)))
