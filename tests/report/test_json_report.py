"""JSON of every form against its published schema: a run, a matrix, a comparison without a gate and with one, a list of runs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from scaletest.core.journal import Record
from scaletest.core.rundir import RunInfo
from scaletest.report.build import build
from scaletest.report.json_report import FORMS, Form, render_json, schema_file, schema_text
from scaletest.report.matrix_build import build_matrix
from scaletest.report.rundir import load_run
from scaletest.report.runlist import list_runs
from tests.analysis.journals import probe, record, small_run, write_run
from tests.analysis.outages import outage, outage_info
from tests.report.built import every_flow
from tests.report.comparison_documents import comparison
from tests.report.matrices import mixed_runs, write_matrix
from tests.report.schemas import valid

EVERY = tuple(FORMS)


def report(tmp_path: Path, records: list[Record], info: RunInfo | None = None) -> dict[str, Any]:
    text = render_json(build(load_run(write_run(tmp_path / "run", records, info))))
    found: dict[str, Any] = valid(text, "report")
    return found


@pytest.mark.parametrize("form", EVERY)
def test_the_published_schema_is_that_of_the_models(form: Form) -> None:
    """After a change: python -m scaletest.report.json_report."""
    assert schema_file(form).read_text(encoding="utf-8") == schema_text(form)


@pytest.mark.parametrize("form", EVERY)
def test_the_published_schema_is_a_schema_in_which_every_key_is_required(form: Form) -> None:
    schema = json.loads(schema_text(form))

    jsonschema.Draft202012Validator.check_schema(schema)
    parts = [part for part in [schema, *schema["$defs"].values()] if "properties" in part]
    assert parts
    for part in parts:
        assert set(part["properties"]) == set(part["required"])
        assert part["additionalProperties"] is False


def test_every_schema_is_in_the_package_and_no_other() -> None:
    published = schema_file("report").parent.glob("*.schema.json")

    assert {path.name.partition(".")[0] for path in published} == set(FORMS)


@pytest.mark.parametrize("helps", [True, False])
@pytest.mark.parametrize("count", [30, 300, 10_000])
def test_the_report_of_an_outage_is_valid(tmp_path: Path, count: int, *, helps: bool) -> None:
    report(tmp_path, outage(helps=helps)[:count], outage_info())


@pytest.mark.parametrize("count", [0, 1, 5, 10, 30, 100, 200, 250, 10_000])
def test_the_report_of_a_run_killed_anywhere_is_valid(tmp_path: Path, count: int) -> None:
    report(tmp_path, small_run()[:count])


def test_a_run_of_every_flow_is_valid(tmp_path: Path) -> None:
    data = report(tmp_path, every_flow())

    assert {"agents", "churn", "lists", "watchers"} == {item["flow"] for item in data["flows"]}


def test_a_matrix_is_valid(tmp_path: Path) -> None:
    data = valid(render_json(build_matrix(write_matrix(tmp_path / "matrix", mixed_runs()))), "matrix")

    assert ["finished", "finished", "incomplete", "waiting"] == [
        run["status"] for variant in data["variants"] for run in variant["runs"]
    ]


@pytest.mark.parametrize("outcome", ["pass", "fail", "undecided", None])
def test_a_comparison_is_valid_without_a_gate_and_with_one(outcome: str | None) -> None:
    compared = comparison(outcome or "pass")
    if outcome is None:
        (candidate,) = compared.candidates
        compared = compared.model_copy(update={"candidates": [candidate.model_copy(update={"gate": None})]})
    data = valid(render_json(compared), "comparison")

    assert (None if outcome is None else {"pass": 0, "fail": 99, "undecided": 4}[outcome]) == (
        data["candidates"][0]["gate"] and data["candidates"][0]["gate"]["exit_code"]
    )


def test_a_list_of_runs_is_valid(tmp_path: Path) -> None:
    write_run(tmp_path / "a", small_run())
    write_matrix(tmp_path / "b", mixed_runs())
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "run.json").write_text("{", encoding="utf-8")
    data = valid(render_json([item.to_report() for item in list_runs(tmp_path)]), "runs")

    assert ["a", "b", "c"] == [Path(item["directory"]).name for item in data]
    assert (None, "unreadable") == (data[2]["started_at"], data[2]["outcome"])
    assert valid(render_json([]), "runs") == []


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
