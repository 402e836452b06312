"""Saved baselines: what is kept, what is refused, and that nothing half-written stays."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from scaletest.analysis.measures import RunMeasures
from scaletest.analysis.metrickinds import Metric
from scaletest.core.errors import BaselineError, UsageError
from scaletest.report.baselines import (
    baseline_path,
    list_baselines,
    read_baseline,
    remove_baseline,
    save_baseline,
)

NOW = "2026-12-01T12:00:00+00:00"


def run(number: int = 1, **more: object) -> RunMeasures:
    made = RunMeasures(
        id=f"run-{number}", directory="results/run", started_at=NOW, outcome="pass", reason=None,
        profile={"name": "smoke", "phases": [{"name": "steady", "for": "15s"}]}, host={"cores": 2},
        versions={"kubernetes": "1.37.2"}, limits={"etcd": {"memory_bytes": 1}}, steady_phase="steady",
        metrics={"flow.a.p50": Metric(0.0123456, (0.01, 0.02)), "probe.o[admin].p50": Metric(math.inf)},
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    path = baseline_path("main", tmp_path / "baselines")
    save_baseline(path, [run(1), run(2)], NOW)
    read = read_baseline(path)
    assert ("main", "smoke", NOW) == (read.name, read.profile, read.saved_at)
    assert read.runs.is_baseline
    assert [replace(item, directory=None) for item in (run(1), run(2))] == list(read.runs.runs)
    assert [path] == list_baselines(tmp_path / "baselines") == list(path.parent.iterdir())
    json.loads(path.read_text(), parse_constant=pytest.fail)


def test_invalid_runs_are_left_out_and_none_is_no_baseline(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    assert 1 == len(save_baseline(path, [run(1), run(2, outcome="invalid")], NOW).runs)
    with pytest.raises(BaselineError, match="run-2 is invalid"):
        save_baseline(tmp_path / "c.json", [run(2, outcome="invalid")], NOW)
    assert [path] == list(tmp_path.iterdir())


def test_runs_that_differ_make_no_baseline(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match=r"not of the same host: host cores: 2 and 4"):
        save_baseline(tmp_path / "b.json", [run(1), run(2, host={"cores": 4})], NOW)
    assert [] == list(tmp_path.iterdir())


def test_a_baseline_is_replaced_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    save_baseline(path, [run(1)], NOW)
    before = path.read_bytes()
    with pytest.raises(BaselineError, match="exists already"):
        save_baseline(path, [run(2)], NOW)
    assert before == path.read_bytes()
    save_baseline(path, [run(2)], NOW, replace=True)
    assert "run-2" == read_baseline(path).runs.runs[0].id


@pytest.mark.parametrize("name", ["../x", "a/b", "a b", ".hidden", "", "a" * 65, "ü", ".json"])
def test_names_are_those_of_files(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no name of a baseline"):
        baseline_path(name, tmp_path)


def test_a_path_ends_in_json_and_a_name_is_in_the_directory(tmp_path: Path) -> None:
    assert tmp_path / "v1.2_a-b.json" == baseline_path("v1.2_a-b", tmp_path)
    assert Path("../nightly/x.json") == baseline_path("../nightly/x.json", tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such baseline"),
        ("", "empty"),
        pytest.param("[" * 200_000, "nested too deeply", id="brackets"),
        ('{"kind": "scaletest-base', "cut short or no JSON"),
        ("[]", "no JSON object"),
        ('{"kind": "scaletest-baseline", "schema_version": "1"}', "schema_version: a whole number is wanted"),
        ('{"kind": "other", "schema_version": 1}', "of another program"),
        ('{"kind": "scaletest-baseline", "schema_version": 2}', "written by a newer scaletest"),
        ('{"kind": "scaletest-baseline", "schema_version": 1}', "saved_at: missing"),
    ],
)
def test_what_is_no_baseline_is_refused(text: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    if text is not None:
        path.write_text(text)
    for action in (read_baseline, remove_baseline):
        with pytest.raises(BaselineError, match=message):
            action(path)
    assert path.exists() is (text is not None)


@pytest.mark.parametrize("value", ['"NaN"', '"many"', "NaN"])
def test_a_value_that_is_no_number_is_refused(value: str, tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    save_baseline(path, [run(1)], NOW)
    path.write_text(path.read_text().replace("0.0123456", value))
    with pytest.raises(BaselineError, match=r"flow\.a\.p50"):
        read_baseline(path)


def test_a_place_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BaselineError, match="cannot be written"):
        save_baseline(tmp_path / "file" / "b.json", [run(1)], NOW)


def test_a_baseline_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    save_baseline(path, [run(1)], NOW)
    remove_baseline(path)
    assert [] == list(tmp_path.iterdir())
