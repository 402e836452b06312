"""Saved baselines: one small JSON file each, with the metrics of some runs and what they were of, to be committed beside the code.

A baseline is of one profile, host, set of versions and limits: runs that differ in these make no baseline.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from scaletest.analysis.comparison import RunSet, differences_of
from scaletest.analysis.measures import RunMeasures
from scaletest.analysis.metrickinds import Metric
from scaletest.core.errors import BaselineError, UsageError
from scaletest.core.foreignfiles import check_schema, read_object
from scaletest.core.mistakes import first_mistake
from scaletest.core.rundir import write_json

__all__ = [
    "BASELINE_SCHEMA_VERSION",
    "Baseline",
    "baseline_path",
    "list_baselines",
    "read_baseline",
    "remove_baseline",
    "save_baseline",
]

BASELINE_SCHEMA_VERSION: Final = 1
_KIND: Final = "scaletest-baseline"
_SUFFIX: Final = ".json"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_INFINITE: Final = "inf"

_Value = float | str
"""A number, or ``inf``, which JSON has not."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class _StoredMetric(_Part):
    value: _Value
    blocks: str = ""
    """Numbers with a blank between them: a line for each would be most of the file."""


class _StoredRun(_Part):
    id: str
    started_at: str
    outcome: str
    steady_phase: str | None
    metrics: dict[str, _StoredMetric]


class _Stored(_Part):
    """The whole file."""

    kind: str = _KIND
    schema_version: int = BASELINE_SCHEMA_VERSION
    saved_at: str
    profile: dict[str, Any]
    host: dict[str, Any]
    versions: dict[str, str]
    limits: dict[str, Any]
    runs: list[_StoredRun] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Baseline:
    """A saved baseline."""

    name: str
    path: Path
    saved_at: str
    runs: RunSet

    @property
    def profile(self) -> str:
        """Name of the profile that it is of."""
        return str(self.runs.runs[0].profile.get("name"))


def baseline_path(name: str, directory: Path) -> Path:
    """Return the file of a baseline: ``NAME.json`` in the project's directory, or a path that ends in ``.json``. Raises UsageError."""
    path = Path(name)
    if path.suffix == _SUFFIX:
        return path
    if not _NAME.fullmatch(name):
        msg = f"{name!r} is no name of a baseline: up to 64 letters, digits, dots, underscores and hyphens, a letter or digit first"
        raise UsageError(msg, hint=f"A file elsewhere ends in {_SUFFIX}: {name}{_SUFFIX}" if "/" in name else None)
    return directory / f"{name}{_SUFFIX}"


def save_baseline(path: Path, runs: Sequence[RunMeasures], saved_at: str, *, replace: bool = False) -> RunSet:
    """Save the valid ones of some runs; returns them. Raises BaselineError when there are none, when they differ, or a file is there."""
    valid = [run for run in runs if run.valid]
    if not valid:
        raise BaselineError(path, f"not saved: {runs[0].id} is {runs[0].outcome}, and no other run is valid")
    differences = differences_of(valid, [])
    if differences:
        what = f"not saved: the runs are not of the same {differences[0].what}: {differences[0]}"
        raise BaselineError(path, what, hint="Save a baseline of each.")
    if path.exists() and not replace:
        raise BaselineError(
            path, "exists already", hint="Save it under another name, or over the old one with --force."
        )
    first = valid[0]
    stored = _Stored(
        saved_at=saved_at,
        profile=dict(first.profile),
        host=dict(first.host),
        versions=dict(first.versions),
        limits=dict(first.limits),
        runs=[_stored_run(run) for run in valid],
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, stored.model_dump(mode="json"))
    except OSError as error:
        raise BaselineError(path, f"cannot be written: {error.strerror}") from error
    return RunSet(path.stem, tuple(valid), is_baseline=True)


def _stored_run(run: RunMeasures) -> _StoredRun:
    metrics = {
        name: _StoredMetric(value=_written(metric.value), blocks=" ".join(f"{value:.6g}" for value in metric.blocks))
        for name, metric in run.metrics.items()
    }
    return _StoredRun(
        id=run.id, started_at=run.started_at, outcome=run.outcome, steady_phase=run.steady_phase, metrics=metrics
    )


def _written(value: float) -> _Value:
    return _INFINITE if math.isinf(value) else value


def read_baseline(path: Path) -> Baseline:
    """Read a baseline. Raises BaselineError when there is none, or it is foreign, damaged or newer."""
    try:
        data = read_object(path, BaselineError, hint="Save it anew, or take the file from version control.")
    except (FileNotFoundError, NotADirectoryError):
        raise BaselineError(path, "no such baseline") from None
    if data.get("kind") != _KIND:
        raise BaselineError(path, "of another program: no baseline")
    check_schema(path, data, "baseline", BASELINE_SCHEMA_VERSION, BaselineError)
    try:
        stored = _Stored.model_validate(data)
        runs = tuple(_run(stored, run) for run in stored.runs)
    except ValidationError as error:
        raise BaselineError(path, first_mistake(error)) from None
    except ValueError as error:
        raise BaselineError(path, f"a value that is no number: {error}") from None
    return Baseline(path.stem, path, stored.saved_at, RunSet(path.stem, runs, is_baseline=True))


def _run(stored: _Stored, run: _StoredRun) -> RunMeasures:
    metrics = {
        name: Metric(_read(name, metric.value), tuple(float(value) for value in metric.blocks.split()))
        for name, metric in run.metrics.items()
    }
    return RunMeasures(
        id=run.id,
        directory=None,
        started_at=run.started_at,
        outcome=run.outcome,
        reason=None,
        profile=stored.profile,
        host=stored.host,
        versions=stored.versions,
        limits=stored.limits,
        steady_phase=run.steady_phase,
        metrics=metrics,
    )


def _read(name: str, value: _Value) -> float:
    if value == _INFINITE:
        return math.inf
    if isinstance(value, str) or math.isnan(value):
        msg = f"{name}: {value!r} is no number"
        raise ValueError(msg)
    return float(value)


def list_baselines(directory: Path) -> list[Path]:
    """Return the files of all baselines of a directory, by name."""
    return sorted(directory.glob("*.json")) if directory.is_dir() else []


def remove_baseline(path: Path) -> None:
    """Remove a baseline; what is none is left alone. Raises BaselineError."""
    read_baseline(path)
    try:
        path.unlink()
    except OSError as error:
        raise BaselineError(path, f"cannot be removed: {error.strerror}") from error
