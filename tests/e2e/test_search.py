"""A search on a real control plane: the fleet grows and shrinks, agents follow, the knee is found, the load goes back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.runs import Place

pytestmark = pytest.mark.e2e

PROFILE = """
name: find
summary: A load of more than six agents does not hold, by decree.
parameters: {nodes: 4}
fleet:
  pools: [{name: gpu, nodes: "{nodes}", podsPerNode: 1}]
flows:
  telemetry:
    agents: {perNode: 1, rollout: 50/s}
    identity: serviceAccount:telemetry/agent
    steps: [{list: pods, every: 300ms, jitter: 50%}]
probes:
  operator: {get: apps/v1/daemonsets, namespace: telemetry, every: 200ms}
phases:
  - {name: warm-up, start: [telemetry], until: flow.telemetry.started >= 4, atMost: 10s}
search:
  parameter: nodes
  to: 8
  resolution: 100%
  step: {atLeast: 1s, atMost: 1s}
  holds: [flow.telemetry.started <= 6, flow.telemetry.error_rate < 1%]
  past: []
  back: 0.5
  recoverWithin: 20s
objectives:
  - search.capacity >= 4
  - search.recovery < 20s
"""


def test_a_search_changes_a_real_cluster_step_by_step(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "find.yaml").write_text(PROFILE)

    ended = place.command("run", "./find.yaml", "--output", str(place.run_dir), "--format", "json")
    found = json.loads(ended.stdout)["saturation"]

    assert 0 == ended.returncode, ended.stderr
    assert (4, 8, "found") == (found["capacity"], found["fails_at"], found["reason"])
    assert [(4, "held"), (8, "failed"), (4, "held"), (8, "failed"), (2, "held")] == [
        (step["value"], step["outcome"]) for step in found["steps"]
    ]
    assert found["recovered_after_s"] is not None
    # To a heavier load after one that held, agents go on; otherwise they start afresh.
    targets = [record["target"] for record in place.journal() if record["kind"] == "flow.start"]
    assert [4, 4] == targets
    sizes = {step["value"]: step["bytes_per_s"] / step["answers_per_s"] for step in found["steps"][:4]}
    assert sizes[4] < sizes[8]
    assert [] == list(place.processes())

    # Both times the load of 8 failed it was the same one: its profiles were captured once, while it ran, and parse.
    (captured,) = json.loads(ended.stdout)["profiles"]
    assert ("step-2", 2, "8", []) == tuple(captured[key] for key in ("capture", "step", "load", "problems"))
    assert 3 == len(captured["files"])
    assert {path.name for path in (place.run_dir / "profiles").iterdir()} == {
        Path(name).name for name in captured["files"]
    }
    assert 0.9 < captured["cpu"]["duration_s"] < 10
    assert captured["cpu"]["cpu_s"] > 0
    assert 1.0 == pytest.approx(sum(group["share"] for group in captured["cpu"]["groups"]))
    assert captured["heap"]["bytes"] > 2**20
    assert captured["goroutines"]["count"] > 100
    assert not any(b"PRIVATE KEY" in path.read_bytes() for path in place.run_dir.rglob("*") if path.is_file())
