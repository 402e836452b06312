"""How often the regression gate cries wolf, and what it finds: simulated series, or equal real runs.

    python -m benchmarks.gate simulate [ROUNDS]      false alarms (over all metrics together) and power, by number of runs and noise
    python -m benchmarks.gate slow DIR [SERIES]      gates of writes, with 24 ms of delay to each fdatasync of etcd against 20: is the fifth found in each?
    python -m benchmarks.gate objects DIR            a gate with 30 % more objects: is the memory found?
    python -m benchmarks.gate real DIR [SIZE]        splits the base runs of the gates in DIR at random into sets of SIZE and compares those

Of equal real runs each split is a comparison of equals: every change that is called is a false alarm. How much
slower a side of ``slow`` is, etcd counts itself. (A fifth less CPU cannot be found with six runs on a machine whose neighbours make the same CPU
time worth 57 to 114 LISTs a second.)
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any, Final

from scaletest.analysis.changes import SETTING, compare_metrics
from scaletest.core.errors import ExitCode
from scaletest.report.rundir import load_run
from scaletest.report.sides import read_runs
from tests.analysis.gate_series import LARGE, SLOW, simulated

PROFILES: Final = Path(__file__).resolve().parent / "truths"
REPEAT: Final = 6
SLOWER: Final = (1.15, 1.25)
"""The slowdown that is wanted: a fifth, within 5 points."""

_QUICK: Final = replace(SETTING, resamples=200)
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


def _slow(directory: Path, series: int) -> bool:
    held = True
    for number in range(1, series + 1):
        where = directory / f"slow-{number}"
        sides = (
            "--set",
            "delay=24ms",
            "--against",
            "set:delay=20ms",
            "--fail",
            "puts.p50:10%",
            "--fail",
            "puts.rate:5%",
        )
        code, changed = _gate("gate-writes", where, sides)
        waits_s = {side: mean(map(_fsync_mean_s, sorted(where.glob(f"{side}-*")))) for side in ("base", "new")}
        slower = waits_s["new"] / waits_s["base"]
        found = code == ExitCode.FAILED and bool(set(changed) & {"flow.puts.p50", "flow.puts.rate"})
        held &= found and SLOWER[0] <= slower <= SLOWER[1]
        runs = len(list(where.glob("new-*")))
        print(
            f"{number}  slower by {slower - 1:.1%} (counted by etcd), {runs} runs each, exit {code}: {_said(changed)}",
            flush=True,
        )
    return held


def _objects(directory: Path) -> bool:
    sides = (
        "--set",
        "objects=26000",
        "--against",
        "set:objects=20000",
        "--fail",
        "apiserver.memory:10%",
        "--fail",
        "db_size:10%",
    )
    code, changed = _gate("gate-objects", directory / "objects", sides)
    print(f"30 % more objects, exit {code}: {_said(changed)}")
    return code == ExitCode.FAILED and "component.kube-apiserver.memory" in changed


def _gate(profile: str, where: Path, words: Sequence[str]) -> tuple[int, dict[str, float]]:
    """Run a gate; return its exit code, and what became worse by how much."""
    argv = [
        sys.executable, "-m", "scaletest", "gate", str(PROFILES / f"{profile}.yaml"), "--repeat", str(REPEAT), *words,
        "--output", str(where), "--format", "json", "--quiet",
    ]  # fmt: skip
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=False)
    if not done.stdout:
        sys.exit(f"the gate of {profile} ended with {done.returncode} and without an answer")
    (candidate,) = json.loads(done.stdout)["candidates"]
    return done.returncode, {item["metric"]: item["change"] for item in candidate["changes"] if item["call"] == "worse"}


def _said(changed: dict[str, Any]) -> str:
    return ", ".join(f"{metric} {change:+.1%}" for metric, change in changed.items()) or "nothing is worse"


def _fsync_mean_s(run_dir: Path) -> float:
    """Return how long an fsync of etcd took in the measured phase, by its own sum and count."""
    phase = load_run(run_dir).state.phase("measure")
    assert phase is not None
    assert phase.end_s is not None
    lines = (run_dir / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    scrapes = [record for record in map(json.loads, lines) if record["kind"] == "metrics.etcd"]
    scrapes = [record["fsync"] for record in scrapes if phase.span[0] <= record["t"] < phase.end_s]
    first, last = scrapes[0], scrapes[-1]
    return float((last["sum_s"] - first["sum_s"]) / (last["count"] - first["count"]))


def _real(directory: Path, size: int) -> bool:
    runs = [run for path in sorted(directory.glob("*/base-*")) for run in read_runs(path).runs if run.valid]
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
    return alarms <= 1


def main() -> bool:
    """Whether what was asked for holds."""
    match sys.argv[1:]:
        case ["simulate", *more]:
            _simulate(int(more[0]) if more else 200)
            return True
        case ["slow", where, *more]:
            return _slow(Path(where), int(more[0]) if more else 5)
        case ["objects", where]:
            return _objects(Path(where))
        case ["real", where, *more]:
            return _real(Path(where), int(more[0]) if more else 5)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(not main())
