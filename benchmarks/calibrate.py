"""Do LISTs cost here what was published? ``python -m benchmarks.calibrate DIRECTORY``, of a matrix of the profile ``calibrate``.

    scaletest run calibrate --matrix objects=100,300,1000,3000,10000 --output results/calibration

Prints answers per second, MB/s, MB/s per core and memory by the size of the answer, and the slope of the law (``scaletest.analysis.calibration``)
beside the published table's. Runs of one size are taken together by their median. Ends with 99 when the slope is not -1 ± 0.2. Runs that are no measurement are left out, and said.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median

from scaletest.analysis.calibration import PUBLISHED, SLOPE_TOLERANCE, ListCost, calibrate
from scaletest.analysis.limiting import API_SERVER
from scaletest.core.errors import ExitCode
from scaletest.core.matrixdir import read_matrix_info
from scaletest.core.units import format_bytes
from scaletest.report.rundir import load_run

PHASE = "measure"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="of the matrix")
    directory = parser.parse_args().directory
    matrix = read_matrix_info(directory)
    found: dict[str, list[tuple[ListCost, float]]] = {}
    for entry in matrix.runs:
        if entry.outcome not in {"pass", "fail"}:
            print(f"{entry.directory}: {entry.outcome or entry.status}, left out")
            continue
        found.setdefault(entry.variant, []).append(_cost(directory / entry.directory))
    costs = []
    print(f"{'answer':>10} {'per s':>8} {'MB/s':>7} {'cores':>6} {'MB/s/core':>10} {'memory':>10}")
    for variant in matrix.variants:
        runs = found.get(variant.name)
        if not runs:
            continue
        cost = ListCost(
            median(item.answer_bytes for item, _ in runs),
            median(item.answers_per_s for item, _ in runs),
            median(item.cores for item, _ in runs),
        )
        costs.append(cost)
        print(
            f"{cost.answer_bytes / 1e6:>7.2f} MB {cost.answers_per_s:>8.1f} {cost.bytes_per_s / 1e6:>7.1f} {cost.cores:>6.2f} "
            f"{cost.bytes_per_core_s / 1e6:>10.1f} {format_bytes(max(memory for _, memory in runs)):>10}"
        )
    here, published = calibrate(costs), calibrate(PUBLISHED)
    for name, item in (("here", here), ("kubernetes#132233", published)):
        print(
            f"{name}: answers/s ∝ size^{item.slope:.2f}, {item.bytes_per_core_s / 1e6:.1f} MB/s per core (median), "
            f"largest {item.spread:.1f} times the smallest"
        )
    print(f"law (size^-1 ± {SLOPE_TOLERANCE:g}): {'holds' if here.holds else 'DOES NOT HOLD'}")
    return ExitCode.PASS if here.holds else ExitCode.FAILED


def _cost(run_dir: Path) -> tuple[ListCost, float]:
    """Return what a run's LISTs cost, and the API server's largest memory."""
    state = load_run(run_dir).state
    phase = state.phase(PHASE)
    if phase is None or phase.end_s is None:
        msg = f"{run_dir} has no whole phase {PHASE!r}: run the matrix again"
        raise SystemExit(msg)
    totals = state.flows["lists"].totals(phase.span)
    step = totals.step(None)
    assert step is not None
    component = state.components[API_SERVER]
    cost = ListCost(step.bytes / step.requests, step.good / totals.covered_s, component.process.mean_cores(phase.span))
    return cost, component.most_memory_bytes(phase.span)


if __name__ == "__main__":
    sys.exit(main())
