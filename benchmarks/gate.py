"""How often the regression gate cries wolf, and what it finds: simulated series, or equal real runs.

    python -m benchmarks.gate simulate [ROUNDS]      false alarms (over all metrics together) and power, by number of runs and noise
    python -m benchmarks.gate real DIR [SIZE]        splits the runs within DIR at random into sets of SIZE and compares those

Of real runs each split is a comparison of equals: every change that is called is a false alarm.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

from scaletest.analysis.changes import SETTING, compare_metrics
from scaletest.report.sides import read_runs
from tests.analysis.gate_series import LARGE, SLOW, simulated

_QUICK = replace(SETTING, resamples=200)
"""The bootstrap's error is then known within 5 %, which makes the test a little worse than it is."""


def _called(rng: Random, runs: int, blocks: int, noise: float, factors: dict[str, float]) -> set[str]:
    base = simulated(rng, runs, noise=noise, blocks=blocks)
    new = simulated(rng, runs, noise=noise, blocks=blocks, factors=factors)
    return {change.metric for change in compare_metrics(base, new, _QUICK) if change.call(_QUICK) != "same"}


def _simulate(rounds: int) -> None:
    print(f"{SETTING}, {rounds} rounds each")
    print("runs  blocks  noise  false alarms   20 % slower found   30 % more objects found   alarms by")
    for runs, blocks in ((1, 20), (4, 0), (5, 0), (6, 0), (8, 0)):
        for noise in (0.5, 1.0, 1.5):
            rng = Random(f"{runs} {noise}")
            by: Counter[str] = Counter()
            alarms = slow = large = 0
            for _ in range(rounds):
                called = _called(rng, runs, blocks, noise, {})
                by.update(name.rsplit(".", 1)[-1] for name in called)
                alarms += bool(called)
                slow += bool(_called(rng, runs, blocks, noise, SLOW) & set(SLOW))
                large += "component.kube-apiserver.memory" in _called(rng, runs, blocks, noise, LARGE)
            counts = ", ".join(f"{name} {count}" for name, count in by.most_common(4))
            print(
                f"{runs:4}  {blocks:6}  {noise:5}  {alarms / rounds:12.1%}   {slow / rounds:17.1%}   {large / rounds:23.1%}   {counts}",
                flush=True,
            )


def _real(directory: Path, size: int) -> None:
    runs = [run for run in read_runs(directory).runs if run.valid]
    rng = Random(1)
    alarms = 0
    print(f"{len(runs)} valid runs, sets of {size}")
    for number in range(1, 21):
        chosen = rng.sample(runs, 2 * size)
        changes = compare_metrics([run.metrics for run in chosen[:size]], [run.metrics for run in chosen[size:]])
        called = [item for item in changes if item.call(SETTING) != "same"]
        alarms += bool(called)
        said = ", ".join(f"{item.metric} {item.change:+.1%}" for item in called)
        print(f"{number:3}  {len(changes)} metrics  {said or '~'}", flush=True)
    print(f"{alarms} of 20 comparisons with a false alarm")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["simulate", *more]:
            _simulate(int(more[0]) if more else 200)
        case ["real", where, *more]:
            _real(Path(where), int(more[0]) if more else 5)
        case _:
            sys.exit(__doc__)
