"""Matrix directories for tests of their report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scaletest.core.journal import JOURNAL_NAME, Record
from scaletest.core.matrixdir import Axis, MatrixInfo, RunEntry, VariantEntry, write_matrix_info
from scaletest.core.rundir import RunInfo
from tests.analysis.journals import GIB, run_info, small_run, write_run


def calm_run() -> list[Record]:
    """The small run without the API server's end: nothing is killed, nobody is locked out."""
    records = []
    for item in small_run():
        if item["kind"] in {"component.exit", "component.backoff", "flow.sample"}:
            continue
        if item["kind"] == "component.start" and item["restart"]:
            continue
        failed = item["kind"] == "probe" and not item["ok"]
        good = {"ok": True, "outcome": "ok", "status": 200, "latency_s": 0.05, "reason": None}
        records.append({**item, **good} if failed else item)
    return records


def killed_run() -> list[Record]:
    return [item for item in small_run(finished=False) if item["t"] < 29]


def mixed_runs() -> dict[str, Sequence[Sequence[Record] | None]]:
    """A run that failed, one that was calm, one that was killed, and one that was not begun."""
    return {"none": [small_run()], "block-agents": [calm_run()], "scale-down": [killed_run()], "all-three": [None]}


def write_matrix(
    directory: Path,
    runs: Mapping[str, Sequence[Sequence[Record] | None]],
    *,
    key: str = "lever",
    more: Mapping[str, str] | None = None,
    info: RunInfo | None = None,
    **fields: Any,
) -> Path:
    """Write a matrix of one axis: the runs of each value, None for one that was not begun."""
    directory.mkdir(parents=True)
    repeat = max(len(several) for several in runs.values())
    entries: list[RunEntry] = []
    for value, several in runs.items():
        for number, records in enumerate(several, start=1):
            name = f"{key}={value}" if repeat == 1 else f"{key}={value}-r{number}"
            entries.append(RunEntry(directory=name, variant=f"{key}={value}", repeat=number))
            if records is not None:
                write_run(directory / name, records, info)
                # Long enough ago not to be taken for a run that goes on.
                os.utime(directory / name / JOURNAL_NAME, (0, 0))
    given = {key: "", **(more or {})}
    matrix = MatrixInfo(
        id="20261130T120000Z-smoke-matrix",
        reference="smoke",
        overrides=[],
        axes=[Axis(key=key, values=list(runs)), *(Axis(key=name, values=[value]) for name, value in (more or {}).items())],
        repeat=repeat,
        argv=["run", "smoke", "--matrix", f"{key}={','.join(runs)}"],
        started_at="2026-11-30T12:00:00.000+00:00",
        limits={"kube-apiserver": {"memory_bytes": 4 * GIB, "cpu_cores": 1.7}},
        profile=dict(run_info().profile),
        variants=[VariantEntry(name=f"{key}={value}", values={**given, key: value}, changes={}) for value in runs],
        runs=entries,
    )  # fmt: skip
    write_matrix_info(directory, matrix.model_copy(update=fields))
    return directory
