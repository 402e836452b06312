"""A saved baseline as text."""

from __future__ import annotations

import math
from collections.abc import Iterator

from scaletest.analysis.gating import said_amount
from scaletest.analysis.metrickinds import kind_of
from scaletest.core.units import format_bytes
from scaletest.report.baselines import Baseline

__all__ = ["baseline_lines"]


def baseline_lines(baseline: Baseline) -> Iterator[str]:
    """Yield what a baseline is of, its runs, and each metric with the range over its runs."""
    first, runs = baseline.runs.runs[0], baseline.runs.runs
    yield f"{baseline.name}: {baseline.profile}, saved {baseline.saved_at}, {format_bytes(baseline.path.stat().st_size)}"
    yield "versions: " + ", ".join(f"{name} {version}" for name, version in first.versions.items())
    yield "host:     " + ", ".join(
        f"{key} {first.host[key]}" for key in ("cpu_model", "cores", "kernel") if first.host.get(key)
    )
    for run in runs:
        steady = f", steady in {run.steady_phase}" if run.steady_phase else ", over the whole run"
        yield f"run:      {run.id}, {run.outcome}{steady}"
    names = list(dict.fromkeys(name for run in runs for name in run.metrics))
    width = max((len(name) for name in names), default=0)
    for name in names:
        kind = kind_of(name)
        values = sorted(run.metrics[name].value for run in runs if name in run.metrics)
        if kind is None or not values or all(math.isnan(value) for value in values):
            continue
        low, middle, high = values[0], values[len(values) // 2], values[-1]
        spread = f"  ({said_amount(kind, low)} to {said_amount(kind, high)})" if low != high else ""
        yield f"{name:<{width}}  {said_amount(kind, middle):>12}{spread}"
