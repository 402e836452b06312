"""Run directories of twenty nights, with a shift: a run that was killed, a new Kubernetes version, and LISTs that then take longer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.analysis.journals import run_info, write_run
from tests.report.comparisons import calm_runs
from tests.report.matrices import killed_run


def write_nights(
    results: Path, nights: Sequence[int] = range(20), *, slower_from: int = 12, killed: int | None = 5
) -> list[Path]:
    """Write a run directory for each night; from ``slower_from`` on LISTs take 1.4 times as long, on Kubernetes 1.37.2."""
    written = []
    for night in nights:
        begun = datetime(2026, 11, 1, 3, 17, tzinfo=UTC) + timedelta(days=night)
        name = f"{begun:%Y%m%dT%H%M%SZ}-smoke"
        versions = {"kubernetes": "1.37.2" if night >= slower_from else "1.36.2"}
        info = run_info(id=name, started_at=begun.isoformat(), versions=versions)
        records = killed_run() if night == killed else calm_runs(night, 1.4 if night >= slower_from else 1.0)
        directory = write_run(results / name, records, info)
        # Without a verdict, a journal that was just written may be of a run that goes on.
        os.utime(directory / "journal.jsonl", (0, 0))
        written.append(directory)
    return written
