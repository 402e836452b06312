"""Every action in one run on a real control plane, small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.runs import Place

pytestmark = pytest.mark.e2e

PROFILE = """
name: actions
summary: Every action, on ten nodes.
fleet:
  pools: [{name: gpu, nodes: 10, podsPerNode: 1}]
flows:
  telemetry:
    agents: {perNode: 2, rollout: 20/s}
    identity: serviceAccount:telemetry/agent
    daemonSet: telemetry/agent
    steps: [{list: pods, every: 1s}]
probes:
  operator: {get: apps/v1/daemonsets, namespace: telemetry, every: 500ms, identities: [system:masters, admin]}
phases:
  - {name: rollout, start: [telemetry], until: flow.telemetry.most_started >= 20, atMost: 60s}
  - {name: cut, do: [{block: {flow: telemetry}}, {slowDisk: {delay: 20ms}}], for: 2s}
  - {name: open, do: [{unblock: {flow: telemetry}}, {freeze: {component: kube-scheduler}}], for: 2s}
  - {name: faults, do: [{thaw: {component: kube-scheduler}}, {restart: {component: kube-scheduler}}], for: 2s}
  - name: levers
    do: [{addApiServers: {count: 1}}, {applyFlowControl: {}}, {shrink: {pool: gpu, by: 5}}]
    for: 20s
  - {name: rollback, do: [{deleteRollout: {flow: telemetry, identity: admin}}], for: 16s}
  - {name: after, do: [{kill: {component: kube-scheduler}}], for: 2s}
objectives: [flow.telemetry.most_started >= 20]
"""


def test_every_action_acts(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "actions.yaml").write_text(PROFILE)

    place.command("run", "actions.yaml", "-o", str(place.run_dir))

    journal = place.journal()
    ends = {record["action"]: record for record in journal if record["kind"] == "action.end"}
    assert {name: record["error"] for name, record in ends.items()} == dict.fromkeys(
        ["block", "slowDisk", "unblock", "freeze", "thaw", "restart", "addApiServers", "applyFlowControl", "shrink",
         "deleteRollout", "kill"]
    )  # fmt: skip
    started = [record["started"] for record in journal if record["kind"] == "flow"]
    assert (max(started), 10 in started, started[-1]) == (20, True, 0)
    assert {"kube-apiserver-2"} == replicas(journal)
    assert 2 == len({record["server"] for record in journal if record["kind"] == "probe" and record["ok"]})
    assert 2 == len({record["server"] for record in journal if record["kind"] == "metrics.apiserver"})
    seen = [set(record["apf"]) for record in journal if record["kind"] == "metrics.apiserver"]
    assert any("scaletest-agents" in levels for levels in seen)
    assert 2 == sum(r["kind"] == "component.exit" and r["component"] == "kube-scheduler" for r in journal)
    assert {} == place.processes()


def replicas(journal: list[dict[str, Any]]) -> set[str]:
    """Further API servers that were started, under a limit like the first's."""
    limits = {record["component"]: record["memory_bytes"] for record in journal if record["kind"] == "component.limit"}
    return {name for name, limit in limits.items() if name != "kube-apiserver" and limit == limits["kube-apiserver"]}
