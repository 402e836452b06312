"""How long does a report take? ``python -m benchmarks.report [NODES] [MINUTES]``.

Writes the journal of a synthetic run (7,000 nodes and ten minutes unless told otherwise), then reads, judges, builds and
prints it in a process of its own, as ``scaletest report`` does, and so for every form. Exits 1 when one of them takes more than 3 s of CPU
(CPU, so that a busy machine does not change the result) or 300 MB.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scaletest.analysis.evaluate import holds
from scaletest.analysis.state import RunState
from scaletest.cli._formats import Format
from scaletest.core.journal import JOURNAL_NAME
from scaletest.profile.objectives import parse_objective
from scaletest.report.build import build
from scaletest.report.json_report import render_json
from scaletest.report.rundir import load_run
from scaletest.report.terminal import render
from tests.analysis.journals import big_run, write_run

LIMIT_S = 3.0
LIMIT_BYTES = 300e6

_COMMAND = """
import resource, sys, typer
from scaletest.cli.report import report
try:
    typer.run(report)
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, file=sys.stderr)
"""


def main() -> int:
    nodes, minutes = int(sys.argv[1]) if sys.argv[1:] else 7_000, float(sys.argv[2]) if sys.argv[2:] else 10.0
    with tempfile.TemporaryDirectory() as scratch:
        records = big_run(nodes_count=nodes, minutes=minutes)
        directory = write_run(Path(scratch) / "run", records)
        size_mb = (directory / JOURNAL_NAME).stat().st_size / 1e6
        print(f"{nodes:,} nodes, {minutes:g} minutes: {len(records):,} records, {size_mb:.1f} MB")
        started_s = time.process_time()
        run = load_run(directory)
        loaded_s = time.process_time()
        document = build(run)
        built_s = time.process_time()
        render(document, width=120)
        drawn_s = time.process_time()
        size_kb = len(render_json(document)) / 1e3
        print(f"read and judge {loaded_s - started_s:.2f} s, build {built_s - loaded_s:.2f} s", end=", ")
        print(f"draw {drawn_s - built_s:.2f} s; JSON {size_kb:.0f} KB")
        _live(records)
        used = [_whole_command(directory, form.value) for form in Format]
    return 0 if all(cpu_s <= LIMIT_S and held_bytes <= LIMIT_BYTES for cpu_s, held_bytes in used) else 1


def _whole_command(directory: Path, form: str) -> tuple[float, float]:
    """Report in a process of its own; return its CPU time and the most memory that it held."""
    began_s = time.perf_counter()
    command = [sys.executable, "-c", _COMMAND, str(directory), "--format", form, "--output", str(directory / "report")]
    done = subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True)
    cpu_s, held_bytes = (float(word) for word in done.stderr.split()[-2:])
    size_kb = (directory / "report").stat().st_size / 1e3
    print(
        f"{form}: {cpu_s:.2f} s of CPU, {time.perf_counter() - began_s:.2f} s, {held_bytes / 1e6:.0f} MB; {size_kb:,.0f} KB"
    )
    return cpu_s, held_bytes


def _live(records: list[dict[str, object]]) -> None:
    """Print what following the run costs its runner, with a condition evaluated every second."""
    conditions = [
        parse_objective(text)
        for text in ("flow.agents.p99 < 1s", "flow.agents.started >= 7000", "probe.operator.p99 < 1s")
    ]
    lines = [json.dumps(item) for item in records]
    state, began_s, second, slowest_s = RunState(), time.process_time(), 0, 0.0
    for line in lines:
        state.apply(json.loads(line))
        if state.last_t_s >= second:
            before_s = time.process_time()
            for condition in conditions:
                holds(condition, state)
            slowest_s = max(slowest_s, time.process_time() - before_s)
            second = int(state.last_t_s) + 1
    used_s = time.process_time() - began_s
    share = used_s / state.last_t_s
    print(f"followed live: {share:.2%} of a core, three conditions at most {slowest_s * 1e3:.1f} ms a second")


if __name__ == "__main__":
    sys.exit(main())
