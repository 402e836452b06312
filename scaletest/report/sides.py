"""What an argument of ``scaletest compare`` stands for: a run, a set of runs, or a saved baseline."""

from __future__ import annotations

import glob
from difflib import get_close_matches
from pathlib import Path

from scaletest.analysis.comparison import RunSet
from scaletest.analysis.measures import RunMeasures, measure_run
from scaletest.core.errors import RunDirectoryError, UsageError
from scaletest.core.matrixdir import is_matrix, read_matrix_info
from scaletest.core.rundir import RUN_INFO_NAME
from scaletest.report.baselines import baseline_path, list_baselines, read_baseline
from scaletest.report.rundir import find_run, load_run

__all__ = ["find_side", "read_run", "read_runs"]

_PATTERN = frozenset("*?[")
_BASELINE = ".json"


def find_side(reference: str, results: Path, baselines: Path) -> RunSet:
    """Return what a reference stands for.

    In this order: a path that exists (a run, a directory of runs, a baseline's file), a pattern of run directories (also under
    ``results``) or, where it ends in ``.json``, of baselines' files, a baseline of the project, a run under ``results``, or ``latest``.
    Raises UsageError.
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
    """Return the run in a directory, or all runs that lie directly within it. Raises RunDirectoryError."""
    if (directory / RUN_INFO_NAME).exists():
        return RunSet(str(directory), (read_run(directory),))
    if is_matrix(directory):
        variants = [variant.name for variant in read_matrix_info(directory).variants]
        if len(variants) > 1:
            what = f"a matrix of {len(variants)} variants: {', '.join(variants[:4])}"
            raise RunDirectoryError(directory, what, hint=f"Name the runs of one: '{directory}/{variants[0]}*'")
    runs = _runs_of(sorted(directory.iterdir())) if directory.is_dir() else ()
    if not runs:
        # Says what is missing of a run.
        return RunSet(str(directory), (read_run(directory),))
    return RunSet(str(directory), runs)


def _matching(pattern: str, results: Path) -> RunSet:
    for root in (Path(), results):
        # Unlike Path.glob, this takes absolute patterns too.
        paths = [root / path for path in sorted(glob.glob(pattern, root_dir=root))]  # noqa: PTH207
        if pattern.endswith(_BASELINE):
            runs = tuple(run for path in paths if path.is_file() for run in read_baseline(path).runs.runs)
        else:
            runs = _runs_of(paths)
        if runs:
            return RunSet(pattern, runs)
    raise RunDirectoryError(
        Path(pattern), f"matches no {'baseline' if pattern.endswith(_BASELINE) else 'run directory'}"
    )


def _runs_of(paths: list[Path]) -> tuple[RunMeasures, ...]:
    return tuple(read_run(path) for path in paths if (path / RUN_INFO_NAME).exists())


def read_run(directory: Path) -> RunMeasures:
    """Read and measure a run. Raises RunDirectoryError."""
    run = load_run(directory)
    outcome = run.verdict.outcome.value
    reason = run.verdict.reasons[0] if run.verdict.reasons and outcome in {"invalid", "incomplete"} else None
    return measure_run(run.info, run.state, outcome=outcome, reason=reason, directory=str(directory))
