"""Comparisons for tests of their reports."""

from __future__ import annotations

from pathlib import Path
from random import Random

from scaletest.core.journal import Record
from scaletest.core.rundir import RunInfo
from tests.analysis.journals import step, write_run
from tests.report.matrices import calm_run


def calm_runs(seed: int, slow: float = 1.0) -> list[Record]:
    """The calm run, a little different for each seed: LISTs take ``slow`` times as long."""
    rng = Random(seed)
    machine = rng.gauss(1, 0.03)
    records = []
    for item in calm_run():
        if item["kind"] == "flow" and item["steps"].get("list-pods"):
            count = item["started"]
            times = [20_000 * slow * machine * rng.lognormvariate(0, 0.2) for _ in range(count)]
            steps = {**item["steps"], "list-pods": step(times, bytes=3_000_000 * count)}
            records.append({**item, "steps": steps})
        elif item["kind"] == "process":
            processes = {
                name: {**data, "rss_bytes": int(data["rss_bytes"] * machine), "cpu_s": data["cpu_s"] * machine}
                for name, data in item["processes"].items()
            }
            records.append({**item, "processes": processes})
        else:
            records.append(item)
    return records


def write_runs(
    directory: Path, name: str, count: int = 5, *, slow: float = 1.0, seed: int = 0, info: RunInfo | None = None
) -> list[Path]:
    """Write run directories ``NAME-0``, ``NAME-1`` and so on."""
    return [write_run(directory / f"{name}-{number}", calm_runs(seed + number, slow), info) for number in range(count)]
