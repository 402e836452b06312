"""The workflow of the guide to CI, run as it stands in a repository of a user: its shell steps, with a small profile."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from scaletest.controlplane.binaries import Binaries
from tests.ciguide import Step, shell_env, steps
from tests.e2e.runs import Place

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

AGENT = """\
name: agent
summary: An agent of this repository, in small.
parameters: {nodes: 5}
sizes: {quick: {nodes: 10}}
fleet:
  pools: [{name: gpu, nodes: "{nodes}", podsPerNode: 1}]
  services: {count: 10}
flows:
  agent:
    agents: {perNode: 1, rollout: 20/s}
    identity: serviceAccount:agent/agent
    steps: [{list: services, every: 200ms}]
probes:
  operator: {get: apps/v1/daemonsets, namespace: default, every: 500ms, identities: [admin]}
phases:
  - {name: rollout, start: [agent], until: "flow.agent.started >= {nodes}", atMost: 30s}
  - {name: steady, for: 2s}
objectives:
  - flow.agent.error_rate < 50%
"""


class Runner:
    """A machine that runs the steps of a job in a checkout."""

    def __init__(self, root: Path) -> None:
        self.place = Place(root)
        self.summary = root / "summary.md"
        self.path = root / "bin"
        self.path.mkdir()
        command = self.path / "scaletest"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m scaletest "$@"\n')
        command.chmod(0o755)
        self.checkout = root / "checkout"
        (self.checkout / "load").mkdir(parents=True)
        (self.checkout / "load" / "agent.yaml").write_text(AGENT)

    def run(self, step: Step) -> subprocess.CompletedProcess[str]:
        """Run a step as GitHub does: by ``bash -e``, in the checkout."""
        places = {
            "PATH": f"{self.path}:{self.place.env['PATH']}",
            "SCALETEST_STATE_DIR": self.place.env["SCALETEST_STATE_DIR"],
            "GITHUB_ACTIONS": "true",
            "GITHUB_STEP_SUMMARY": str(self.summary),
        }
        return subprocess.run(
            ["bash", "-e", "-c", step.run], cwd=self.checkout, env=shell_env(step, **places), capture_output=True, text=True,
            timeout=200, check=False,
        )  # fmt: skip

    def job(self, name: str, **variables: str) -> list[subprocess.CompletedProcess[str]]:
        """Run the steps of a job that call scaletest, on a fresh machine; what is not committed or cached is gone."""
        for left in ("results", "reports"):
            shutil.rmtree(self.checkout / left, ignore_errors=True)
        meant = [step for step in steps(**variables) if step.job == name and step.commands()]
        return [self.run(step) for step in meant]

    def report(self, name: str) -> Path:
        return self.checkout / "reports" / name


def test_the_workflow_runs_as_it_stands(tmp_path: Path, binaries: Binaries) -> None:
    kubernetes = binaries.kubernetes
    runner = Runner(tmp_path)
    # Two runs are a matrix, as the six of the page are.
    of_the_user = {"PROFILE": "load/agent.yaml", "KUBERNETES": kubernetes}

    fetched, ran, saved = runner.job("baseline", REPEAT="2", **of_the_user)
    assert 0 == fetched.returncode, fetched.stderr
    assert ran.returncode in {0, 4}, ran.stderr
    assert 0 == saved.returncode, saved.stderr
    assert "agent" in runner.report("baseline.md").read_text()
    baseline = runner.checkout / ".scaletest" / "baselines" / "main.json"
    assert "agent" == json.loads(baseline.read_text())["profile"]["name"]

    runner.summary.unlink(missing_ok=True)
    *_, gated = runner.job("gate", REPEAT="1", **of_the_user)
    # One run is too few to tell, and that must not be green.
    assert 4 == gated.returncode, gated.stderr
    assert "::warning" in gated.stderr
    gate = json.loads(runner.report("gate.json").read_text())
    (candidate,) = gate["candidates"]
    assert "undecided" == gate["verdict"]["outcome"]
    assert {"profile", "versions"}.isdisjoint({item["what"] for item in candidate["differences"]})
    ET.parse(runner.report("gate.xml"))
    assert "answer_bytes" in runner.report("gate.md").read_text()
    assert "answer_bytes" in runner.summary.read_text()

    fetched, ran, saved, told = runner.job("nightly", **of_the_user)
    assert ran.returncode in {0, 4}, ran.stderr
    assert ET.parse(runner.report("nightly.xml")).getroot().get("tests") != "0"
    assert runner.report("nightly.html").read_text().endswith("</html>\n")
    if ran.returncode == 4:
        # A machine that is too busy for the load driver; then there is nothing to keep, and that is said.
        assert (2, 2) == (saved.returncode, told.returncode)
        assert "no other run is valid" in saved.stderr
    else:
        assert (0, 0) == (saved.returncode, told.returncode), (saved.stderr, told.stderr)
        (profile,) = json.loads(runner.report("history.json").read_text())["profiles"]
        assert ("agent", 1) == (profile["profile"], len(profile["runs"]))
        assert "too few runs" in runner.report("history.md").read_text()
    assert {} == runner.place.processes()
