"""A matrix on real control planes: interrupted in its second variant, resumed, and its table."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.runs import Place

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SHORT = ("--set", "phases.baseline.for=2s", "--set", "phases.steady.for=3s", "--set", "phases.after.for=1s")
WHOLE = {0, 4, 99}
"""A busy machine may make a verdict invalid or an objective fail: not what is tested here."""


def wait_until(condition: Callable[[], object], timeout_s: float = 200) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "waited in vain"
        time.sleep(0.1)


def test_an_interrupted_matrix_is_resumed_where_it_stopped(tmp_path: Path) -> None:
    place = Place(tmp_path)
    matrix = ("run", "smoke", *SHORT, "--matrix", "nodes=5,10", "--output", "results/sizes")
    directory = place.results / "sizes"
    second = directory / "nodes=10" / "journal.jsonl"

    with place.started(*matrix) as process:
        wait_until(lambda: second.exists() and '"phase.start"' in second.read_text())
        process.send_signal(signal.SIGINT)
        assert 130 == process.wait(timeout=120), place.said()
    said = place.said()
    assert "run 2 of 2: nodes=10" in said
    assert "interrupted" in said
    assert f"--resume {directory.relative_to(tmp_path)}" in said
    assert {} == place.processes()
    kept = (directory / "nodes=5" / "journal.jsonl").read_bytes()

    other = place.command("run", "smoke", *SHORT[2:], "--matrix", "nodes=5,10", "--resume", "results/sizes")
    assert 2 == other.returncode
    assert "phases.0.for was '2s' and is '5s'" in other.stderr

    resumed = place.command(*matrix[:-2], "--resume", "results/sizes", "--format", "json", timeout_s=240)
    assert resumed.returncode in WHOLE, resumed.stderr
    assert "run 1 of 2" not in resumed.stderr
    assert kept == (directory / "nodes=5" / "journal.jsonl").read_bytes()
    assert (directory / "nodes=10.cut-1" / "journal.jsonl").is_file()
    assert {} == place.processes()

    table = json.loads(resumed.stdout)
    assert (2, 2) == (table["verdict"]["runs"], table["verdict"]["finished"])
    rows = {(row["section"], row["measure"]): [cell["value"] for cell in row["cells"]] for row in table["rows"]}
    assert [5, 10] == rows["Flow telemetry", "agents started"]
    caps = rows["API server", "memory cap"]
    assert caps[0] == caps[1] == table["matrix"]["limits"]["kube-apiserver"]["memory_bytes"]

    again = place.command("report", "results/sizes")
    assert 0 == again.returncode, again.stderr
    assert "MATRIX  smoke" in again.stdout
    one = place.command("report", "results/sizes/nodes=10")
    assert 0 == one.returncode, one.stderr
    assert "10 nodes" in one.stdout
