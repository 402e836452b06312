"""How often the rule of ``scaletest history`` tells a shift where there is none, and finds one where there is: simulated series of a p50.

``python -m benchmarks.history`` prints the table of docs/decisions/026-shifts-in-a-history.md; 15 s of CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from scaletest.analysis.changepoints import find_shifts
from scaletest.analysis.metrickinds import kind_of
from scaletest.analysis.segments import load_segmenter
from tests.analysis.series_of_runs import noisy

LENGTHS = ((8, 14), (20, 40), (100, 100))
NOISES = (0.05, 0.10)
SERIES = 500
METRICS = 40
WILD = 0.05
"""Chance that a run takes 10 to 65 % longer."""
RHO = 0.5
"""Correlation of each run with the one before."""


def shifts(values: Sequence[float], metrics: int = 1) -> list[int]:
    """Return where shifts are told in a p50, looked at among ``metrics``."""
    kind = kind_of("flow.telemetry.p50")
    assert kind is not None
    return [shift.at for shift in find_shifts(kind, values, load_segmenter(), series=metrics)]


def alarms(length: tuple[int, int], spread: float, *, wild: float = 0.0, rho: float = 0.0) -> float:
    """Return the share of series without a shift in which one is told."""
    rng = Random(1)
    levels = ([1.0] * rng.randint(*length) for _ in range(SERIES))
    return sum(bool(shifts(noisy(rng, level, spread, wild=wild, rho=rho))) for level in levels) / SERIES


def found(length: tuple[int, int], spread: float, step: float, *, wild: float = 0.0, metrics: int = 1) -> float:
    """Return the share of series in which a step is found within two runs of its place."""
    rng, hits = Random(2), 0
    for _ in range(SERIES):
        count = rng.randint(*length)
        place = rng.randint(4, count - 4)
        values = noisy(rng, [1.0] * place + [1 + step] * (count - place), spread, wild=wild)
        hits += any(abs(at - place) <= 2 for at in shifts(values, metrics))
    return hits / SERIES


def main() -> None:
    head = (
        "runs",
        "noise",
        "false alarms",
        "some wild",
        "correlated",
        "+20 % found",
        "some wild",
        f"of {METRICS} metrics",
        f"+40 % of {METRICS}",
    )
    print("| " + " | ".join(head) + " |")
    print("|---" * len(head) + "|")
    for length in LENGTHS:
        for spread in NOISES:
            shares = (
                alarms(length, spread), alarms(length, spread, wild=WILD), alarms(length, spread, rho=RHO),
                found(length, spread, 0.2), found(length, spread, 0.2, wild=WILD), found(length, spread, 0.2, metrics=METRICS),
                found(length, spread, 0.4, metrics=METRICS),
            )  # fmt: skip
            runs = "-".join(dict.fromkeys(map(str, length)))
            print(f"| {runs} | {spread:.0%} | " + " | ".join(f"{share:.0%}" for share in shares) + " |", flush=True)


if __name__ == "__main__":
    main()
