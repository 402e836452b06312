"""The gate on real control planes: a base and a new side in turns, and a regression that is in the bytes, not in the clock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scaletest.analysis.gating import parse_rule, refuse_unknown
from scaletest.analysis.measures import possible_metrics
from scaletest.profile.loading import load_profile
from tests.e2e.runs import Place

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SHORT = (
    "--set", "nodes=5", "--set", "phases.baseline.for=1s", "--set", "phases.steady.for=2s", "--set", "phases.after.for=1s",
)  # fmt: skip
RULE = "services.answer_bytes:10%"


def test_a_list_that_grew_fails_the_gate_and_an_equal_one_does_not(tmp_path: Path) -> None:
    place = Place(tmp_path)
    grown = ("--set", "fleet.services.count=40", "--against", "set:fleet.services.count=10")
    done = place.command(
        "gate", "smoke", *SHORT, *grown, "--repeat", "1", "--fail", RULE, "--despite", "few-samples",
        "--output", "results/gate", "--format", "json", "--quiet", timeout_s=240,
    )  # fmt: skip
    data = json.loads(done.stdout)
    assert data == json.loads((place.results / "gate" / "comparison.json").read_text())
    (candidate,) = data["candidates"]
    if not (data["base"]["valid"] and candidate["side"]["valid"]):
        # A machine that is too busy for the load driver; then there is no gate, and that is said.
        assert 4 == done.returncode
        assert "no valid run" in candidate["gate"]["reasons"][0]
        return
    assert 99 == done.returncode, done.stderr
    assert "flow.telemetry.services.answer_bytes" in candidate["gate"]["reasons"][0]
    change = next(item for item in candidate["changes"] if item["metric"] == "flow.telemetry.services.answer_bytes")
    assert change["change"] > 1
    assert {"profile"} == {item["what"] for item in candidate["differences"]}
    possible = possible_metrics(load_profile("smoke").profile)
    refuse_unknown([parse_rule(f"{item['metric']}:10%", "--fail") for item in candidate["changes"]], possible)

    same = place.command(
        "compare", "results/gate/base-1", "results/gate/base-1", "--fail", RULE, "--despite", "few-samples"
    )
    assert 0 == same.returncode, same.stderr
    assert "results/gate/base-1 is compared with itself" in same.stderr
    assert {} == place.processes()
