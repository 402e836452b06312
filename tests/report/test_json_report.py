"""JSON against the published schema."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from scaletest.core.journal import Record
from scaletest.report.build import build
from scaletest.report.json_report import SCHEMA_FILE, render_json, schema_text
from scaletest.report.rundir import load_run
from tests.analysis.journals import probe, record, small_run, write_run
from tests.analysis.outages import outage

SCHEMA: dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))


def report(tmp_path: Path, records: list[Record]) -> dict[str, Any]:
    text = render_json(build(load_run(write_run(tmp_path / "run", records))))

    def refuse(constant: str) -> float:
        msg = f"JSON has no {constant}"
        raise ValueError(msg)

    loaded: dict[str, Any] = json.loads(text, parse_constant=refuse)
    return loaded


def test_the_published_schema_is_that_of_the_models() -> None:
    """After a change: python -m scaletest.report.json_report."""
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text()


def test_the_published_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("helps", [True, False])
@pytest.mark.parametrize("count", [30, 300, 10_000])
def test_the_report_of_an_outage_is_valid(tmp_path: Path, count: int, *, helps: bool) -> None:
    jsonschema.validate(report(tmp_path, outage(helps=helps)[:count]), SCHEMA)


@pytest.mark.parametrize("count", [0, 1, 5, 10, 30, 100, 200, 250, 10_000])
def test_the_report_of_a_run_killed_anywhere_is_valid(tmp_path: Path, count: int) -> None:
    jsonschema.validate(report(tmp_path, small_run()[:count]), SCHEMA)


def test_every_key_is_required_so_that_readers_can_rely_on_it() -> None:
    for part in [SCHEMA, *SCHEMA["$defs"].values()]:
        assert set(part["properties"]) == set(part["required"])


def test_a_consumer_finds_the_main_numbers(tmp_path: Path) -> None:
    data = report(tmp_path, small_run())

    assert data["schema_version"] == 1
    assert data["verdict"]["outcome"] == "fail"
    assert data["verdict"]["exit_code"] == 99
    assert data["objectives"][0] == {
        "objective": "flow.agents.error_rate < 1%", "holds": False, "value": 0.04, "said": "4 %", "samples": 2500,
    }  # fmt: skip
    (flow,) = data["flows"]
    assert [step["step"] for step in flow["steps"]] == ["list-pods", "get-node"]
    assert flow["steps"][0]["outcomes"] == {"200": 800, "refused": 100}
    assert flow["connections"] == 50
    (lockout,) = data["probes"][0]["lockouts"]
    assert lockout == {"start_s": pytest.approx(24.156), "end_s": pytest.approx(30.168), "open": False}
    api_server = next(item for item in data["components"] if item["component"] == "kube-apiserver")
    assert (api_server["oom_kills"], api_server["restarts"]) == (1, 1)
    assert api_server["memory_max_bytes"] == api_server["memory_cap_bytes"]


def test_what_got_no_answer_is_null_and_said(tmp_path: Path) -> None:
    records = [record("phase.start", 0.0, phase="one"), *(probe(float(t), outcome="timeout") for t in range(5))]
    data = report(tmp_path, records)

    assert data["probes"][0]["p99_s"] is None
    assert data["probes"][0]["success_rate"] == 0.0
    assert data["objectives"][1]["value"] is None
    assert data["objectives"][1]["said"] == "no answer"


def test_nothing_measured_is_null_and_not_zero(tmp_path: Path) -> None:
    data = report(tmp_path, [record("phase.start", 0.0, phase="one")])

    assert data["host"]["available_min_bytes"] is None
    assert data["etcd"] is None
    assert data["generator"] is None
    assert data["phases"][0]["requests_per_s"] is None
    assert not any(isinstance(value, float) and math.isnan(value) for value in data["phases"][0].values())
