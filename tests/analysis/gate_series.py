"""Simulated sets of runs, for the tests and the benchmark of the regression gate.

A run has the metrics of a small real one. What one run does differently from the next is drawn from three sources: a state of the machine that all
metrics of time share, a spread of each metric of its own, and now and then a wild run. Blocks of time within a run follow one another
with an autocorrelation of ``rho``. The spreads are those of runs of a minute on a shared machine of two cores, rather too large than too small.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from scaletest.analysis.metrickinds import Metric, Scale, kind_of


@dataclass(frozen=True)
class Spread:
    """Of the logarithm, or in the unit of a difference."""

    base: float
    run: float
    block: float
    machine: float = 0.0
    """How much of the machine's state the metric takes."""


_LATENCY = {
    "p50": Spread(0.004, 0.03, 0.05, 1.0),
    "p90": Spread(0.012, 0.04, 0.08, 1.0),
    "p99": Spread(0.040, 0.10, 0.20, 1.5),
}
_SYSTEM = {"memory": Spread(4e8, 0.03, 0.01, 0.2), "cpu": Spread(0.4, 0.03, 0.06, 1.0)}
_STEPS = ("own-pods", "services", "configmaps")
_COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_IDENTITIES = ("system:masters", "admin", "on-call")

SPREADS: dict[str, Spread] = {
    **{f"flow.telemetry.{name}": spread for name, spread in _LATENCY.items()},
    "flow.telemetry.rate": Spread(50.0, 0.01, 0.03, -0.2),
    "flow.telemetry.error_rate": Spread(0.001, 0.0005, 0.001),
    "flow.telemetry.answer_bytes": Spread(5000.0, 0.002, 0.01),
    **{f"flow.telemetry.{step}.{name}": _LATENCY[name] for step in _STEPS for name in ("p50", "p99")},
    **{
        f"probe.operator[{identity}].{name}": _LATENCY[name] for identity in _IDENTITIES for name in ("p50", "p90")
    },
    **{f"component.{name}.{measure}": spread for name in _COMPONENTS for measure, spread in _SYSTEM.items()},
    **{f"apf.{level}.rejected": Spread(0.0, 3.0, 0.0) for level in ("global-default", "workload-low")},
    "etcd.fsync_p99": Spread(0.004, 0.20, 0.30, 1.0),
    "etcd.commit_p99": Spread(0.008, 0.20, 0.30, 1.0),
    "etcd.db_size": Spread(2e7, 0.01, 0.002),
}  # fmt: skip

SLOW = {name: 1.2 for name in SPREADS if name.startswith("flow.") and name.endswith((".p50", ".p90", ".p99"))}
"""A server that is a fifth slower."""
LARGE = {f"component.{name}.memory": 1.2 for name in ("etcd", "kube-apiserver")} | {"etcd.db_size": 1.3}
"""What 30 % more objects do: a part of the memory is not of objects."""


def simulated(
    rng: Random, runs: int, *, noise: float = 1.0, blocks: int = 0, rho: float = 0.5, wild: float = 0.05,
    factors: Mapping[str, float] | None = None,
) -> list[dict[str, Metric]]:  # fmt: skip
    """Return runs; ``noise`` multiplies every spread, ``wild`` is the chance of a wild run, ``factors`` are what changed."""
    return [_run(rng, noise, blocks, rho, wild=wild, factors=factors or {}) for _ in range(runs)]


def _run(
    rng: Random, noise: float, blocks: int, rho: float, *, wild: float, factors: Mapping[str, float]
) -> dict[str, Metric]:  # fmt: skip
    machine = rng.gauss(0, 0.03 * noise) + (rng.uniform(0.1, 0.5) if rng.random() < wild else 0.0)
    metrics: dict[str, Metric] = {}
    for name, spread in SPREADS.items():
        kind = kind_of(name)
        assert kind is not None
        off = rng.gauss(0, spread.run * noise) + spread.machine * machine
        series, state = [], rng.gauss(0, 1)
        for _ in range(blocks):
            state = rho * state + math.sqrt(1 - rho * rho) * rng.gauss(0, 1)
            series.append(state * spread.block)
        if kind.scale is Scale.RATIO:
            level = spread.base * factors.get(name, 1.0) * math.exp(off)
            metrics[name] = Metric(level, tuple(level * math.exp(item) for item in series))
        else:
            level = max(0.0, spread.base + factors.get(name, 0.0) + off)
            level = float(round(level)) if kind.unit == "count" else level
            metrics[name] = Metric(level, tuple(max(0.0, level + item) for item in series) if spread.block else ())
    return metrics
