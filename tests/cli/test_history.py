"""``scaletest history`` as people and scripts run it."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from scaletest.cli.main import app
from scaletest.core.errors import ScaletestError, UsageError
from tests.report.histories import write_nights

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 14), reason="ruptures refuses this Python")

METRIC = "flow.agents.list-pods.p50"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("project")
    (directory / ".scaletest").mkdir()
    write_nights(directory / "results")
    return directory


@pytest.fixture(autouse=True)
def _there(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def run(*argv: str) -> Result:
    return CliRunner().invoke(app, argv)


def refused(*argv: str) -> ScaletestError:
    result = run(*argv)
    assert isinstance(result.exception, UsageError), result.output
    assert "" == result.output
    return result.exception


def test_a_shift_is_found_among_all_metrics_and_exits_0() -> None:
    done = run("history", "--format", "json")
    assert 0 == done.exit_code, done.exception
    (profile,) = json.loads(done.output)["profiles"]
    shifted = {metric["metric"]: metric["shifts"] for metric in profile["metrics"] if metric["shifts"]}
    assert METRIC in shifted
    assert {"20261113T031700Z-smoke"} == {shift["run_id"] for shifts in shifted.values() for shift in shifts}
    assert all(name.startswith("flow.agents.") for name in shifted)


def test_metrics_are_chosen_as_in_the_rules_of_a_gate() -> None:
    done = run("history", "*-smoke", "--metric", "list-pods.p*", "--metric", "etcd.memory")
    assert 0 == done.exit_code, done.exception
    assert "3 metrics, 2 with a shift" in done.output


def test_all_of_a_flow_or_step_are_chosen_by_a_star_at_the_end() -> None:
    done = run("history", "*-smoke", "--metric", "flow.*", "--format", "json")
    assert 0 == done.exit_code, done.exception
    names = {metric["metric"] for metric in json.loads(done.output)["profiles"][0]["metrics"]}
    assert METRIC in names
    assert {"flow"} == {name.partition(".")[0] for name in names}


def test_a_form_that_a_history_has_not_is_not_offered() -> None:
    done = run("history", "--format", "junit")
    assert 2 == done.exit_code
    assert "markdown" in done.stderr
    assert "html" not in done.stderr


def test_few_runs_have_no_verdict() -> None:
    done = run("history", "2026110[1-4]*")
    assert 0 == done.exit_code
    assert "? too few runs: 4, 8 are wanted: flow.agents.p50, flow.agents.p90" in done.output


def test_damaged_runs_that_a_pattern_finds_are_told_and_passed_over(project: Path) -> None:
    damaged = project / "results" / "20261106T031700Z-damaged"
    damaged.mkdir()
    (damaged / "run.json").write_text("[" * 200_000)
    try:
        done = run("history", "2026110*", "--metric", METRIC, "--format", "json")
        everything = run("history", "--metric", METRIC, "--format", "json")
    finally:
        shutil.rmtree(damaged)

    assert 0 == done.exit_code, done.exception
    assert f"results/{damaged.name} is left out: run.json: nested too deeply\n" == done.stderr
    assert ["run.json: nested too deeply"] == [item["why"] for item in json.loads(done.stdout)["passed_over"]]
    assert damaged.name in {item["run"] for item in json.loads(everything.stdout)["passed_over"]}


def test_saved_baselines_are_a_history(project: Path) -> None:
    for night in range(1, 20):
        if night != 6:
            run("baseline", "save", f"nightly/{night:02}.json", f"202611{night:02}T031700Z-smoke")
    assert 18 == len(list((project / "nightly").iterdir()))
    done = run("history", "nightly/*.json", "latest", "--metric", METRIC, "--format", "markdown")
    assert f"| ❌ | `{METRIC}` | 2026-11-13 03:17 UTC" in done.output


def test_files_and_a_github_step_get_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    done = run("history", "--metric", METRIC, "--report", f"json={tmp_path / 'history.json'}")
    assert 0 == done.exit_code
    assert 1 == len(json.loads((tmp_path / "history.json").read_text())["profiles"])
    assert METRIC in summary.read_text()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nowhere"], "no baseline of this name"),
        (["nowhere-*"], "matches no run directory"),
        (["20261101*", "--metric", "p98"], "no metric p98"),
        (["--report", "csv=x.csv"], "--report csv=x.csv: a history is not written as csv: text, json, markdown"),
        (["--report", "pdf=x"], "--report pdf=x: not FORMAT=PATH with one of text, json, markdown"),
        (["--results", "elsewhere"], "holds no run"),
    ],
)
def test_bad_input_is_refused_before_anything_is_printed(argv: list[str], message: str) -> None:
    assert message in refused("history", *argv).message


def test_the_schema_is_printed() -> None:
    assert "scaletest history" == json.loads(run("history", "--schema").output)["title"]
