"""``scaletest baseline``: runs to compare with later, saved as one small file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scaletest.cli import _completion as complete
from scaletest.cli._options import RESULTS, BaselinesOption, ResultsOption
from scaletest.cli._streams import answer

__all__ = ["app"]

app = typer.Typer(name="baseline", help="Save, list, show and remove baselines.", no_args_is_help=True)

_NAME = typer.Argument(metavar="NAME", help="Name, or path of a .json file.", autocompletion=complete.baselines)


def _directory(given: Path | None) -> Path:
    from scaletest.cli._settings import settings

    return given or settings().baselines


@app.command()
def save(
    name: Annotated[str, _NAME],
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Run directories, directories of runs, patterns, or `latest`.",
            autocompletion=complete.runs,
        ),
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace a baseline of this name.")] = False,
    results: ResultsOption = RESULTS,
    baselines: BaselinesOption = None,
) -> None:
    """Save the valid ones of some runs as a baseline: one profile, host, set of versions and limits.

    Examples:
      scaletest baseline save main 'results/*-smoke'
      scaletest baseline save main latest --force
    """
    from datetime import UTC, datetime

    from scaletest.cli._comparisons import find_sides
    from scaletest.report.baselines import baseline_path, save_baseline

    directory = _directory(baselines)
    path = baseline_path(name, directory)
    found = [run for side in find_sides(runs, results, directory) for run in side.runs]
    now = datetime.now(UTC).isoformat(timespec="seconds")
    saved = save_baseline(path, found, now, replace=force)
    left_out = len(found) - len(saved.runs)
    said = f"; {left_out} left out: invalid or incomplete" if left_out else ""
    answer(f"{path}: {len(saved.runs)} run{'' if len(saved.runs) == 1 else 's'}{said}")


@app.command("list")
def list_(baselines: BaselinesOption = None) -> None:
    """List the baselines of the project.

    Examples:
      scaletest baseline list
    """
    from scaletest.core.errors import BaselineError
    from scaletest.report.baselines import list_baselines, read_baseline

    directory = _directory(baselines)
    paths = list_baselines(directory)
    if not paths:
        answer(f"no baseline under {directory}/; save one: scaletest baseline save NAME RUN...")
        return
    width = max(len(path.stem) for path in paths)
    for path in paths:
        try:
            baseline = read_baseline(path)
        except BaselineError as error:
            answer(f"{path.stem:<{width}}  unreadable: {error.message}")
            continue
        versions = baseline.runs.runs[0].versions
        kubernetes = versions.get("kubernetes", "?")
        runs = len(baseline.runs.runs)
        answer(
            f"{path.stem:<{width}}  {baseline.profile}, Kubernetes {kubernetes}, {runs} run{'' if runs == 1 else 's'}, "
            f"saved {baseline.saved_at}"
        )


@app.command()
def show(name: Annotated[str, _NAME], baselines: BaselinesOption = None) -> None:
    """Show a baseline: what it is of, and its metrics with their spread.

    Examples:
      scaletest baseline show main
    """
    from scaletest.report.baselines import baseline_path, read_baseline
    from scaletest.report.baselines_text import baseline_lines

    for line in baseline_lines(read_baseline(baseline_path(name, _directory(baselines)))):
        answer(line)


@app.command("rm")
def remove(name: Annotated[str, _NAME], baselines: BaselinesOption = None) -> None:
    """Remove a baseline.

    Examples:
      scaletest baseline rm main
    """
    from scaletest.report.baselines import baseline_path, remove_baseline

    path = baseline_path(name, _directory(baselines))
    remove_baseline(path)
    answer(f"{path}: removed")
