"""What does the live view take? ``python -m benchmarks.live [NODES] [MINUTES]``.

Feeds the records of a synthetic run (7,000 nodes and ten minutes unless told otherwise) as they came and draws every picture that
would have been drawn, at 80 and at 140 columns. Exits 1 when that takes more than 5 % of a core: CPU, so that a busy
machine changes little.
"""

from __future__ import annotations

import resource
import sys
import time

from scaletest.core.journal import Record
from scaletest.report.live import DRAWN_EVERY_S, to_lines
from scaletest.report.live_state import LiveState
from scaletest.report.live_view import draw
from tests.analysis.journals import big_run
from tests.report.live_run import profile

LIMIT = 0.05


def main() -> int:
    nodes, minutes = int(sys.argv[1]) if sys.argv[1:] else 7_000, float(sys.argv[2]) if sys.argv[2:] else 10.0
    records = big_run(nodes_count=nodes, minutes=minutes)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{nodes:,} nodes, {minutes:g} minutes: {len(records):,} records")
    shares = [play(records, width, height) for width, height in ((80, 23), (140, 45))]
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    print(f"memory: {grown_kb / 1024:.0f} MiB at most for both")
    return 0 if max(shares) < LIMIT else 1


def play(records: list[Record], width: int, height: int) -> float:
    live, fold_s = LiveState(profile()), 0.0
    pictures_s: list[float] = []
    next_s = float(records[0]["t"])
    for item in records:
        started_s = time.process_time()
        live.apply(item)
        fold_s += time.process_time() - started_s
        while next_s <= item["t"]:
            started_s = time.process_time()
            to_lines(draw(live, next_s, width=width, height=height), unicode=True, colors="256")
            pictures_s.append(time.process_time() - started_s)
            next_s += DRAWN_EVERY_S
    length_s = float(records[-1]["t"] - records[0]["t"])
    share = (fold_s + sum(pictures_s)) / length_s
    pictures_s.sort()
    mean, p99 = sum(pictures_s) / len(pictures_s), pictures_s[len(pictures_s) * 99 // 100]
    print(
        f"{width} columns: folding {1000 * fold_s / length_s:.2f} ms a second, {len(pictures_s):,} pictures of "
        f"{1000 * mean:.1f} ms ({1000 * p99:.1f} ms at p99): {share:.1%} of a core"
    )
    return share


if __name__ == "__main__":
    sys.exit(main())
