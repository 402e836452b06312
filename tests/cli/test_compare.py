"""``scaletest compare`` and ``scaletest baseline`` as people and scripts run them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner, Result

from scaletest.cli.main import app
from scaletest.core.errors import ExitCode, ScaletestError
from tests.analysis.journals import run_info, write_run
from tests.report.comparisons import write_runs
from tests.report.matrices import killed_run


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".scaletest").mkdir()
    write_runs(tmp_path / "results", "before", 4)
    write_runs(tmp_path / "results", "after", 4, slow=1.6, seed=50)
    return tmp_path / "results"


def run(*argv: str) -> Result:
    return CliRunner().invoke(app, argv)


def refused(*argv: str, code: ExitCode = ExitCode.USAGE) -> ScaletestError:
    """Run a command that is refused without a word on standard output."""
    result = run(*argv)
    error = result.exception
    assert isinstance(error, ScaletestError), result.output
    assert code is error.exit_code
    assert "" == result.output
    return error


def test_a_comparison_exits_0_and_a_gate_as_it_decides() -> None:
    assert 0 == run("compare", "before-*", "after-*").exit_code
    failed = run("compare", "before-*", "after-*", "--fail", "list-pods.p50:10%", "--fail", "apiserver.memory:30%")
    assert 99 == failed.exit_code
    assert "FAIL" in failed.output
    assert "flow.agents.list-pods.p50" in failed.output
    assert 0 == run("compare", "before-*", "after-*", "--fail", "apiserver.memory:30%").exit_code
    assert 99 == run("compare", "before-*", "after-*", "--gate").exit_code
    assert 4 == run("compare", "before-0", "after-0", "--fail", "list-pods.p50:10%").exit_code


def test_json_names_the_metric() -> None:
    done = run("compare", "before-*", "after-*", "before-*", "--fail", "list-pods.p50:10%", "--format", "json")
    data = json.loads(done.stdout)
    assert 99 == done.exit_code == data["verdict"]["exit_code"]
    assert ["fail", "pass"] == [candidate["gate"]["outcome"] for candidate in data["candidates"]]
    assert "after-*: flow.agents.list-pods.p50" in data["verdict"]["reasons"][0]


def test_a_saved_baseline_is_a_side(tmp_path: Path) -> None:
    saved = run("baseline", "save", "main", "before-*")
    assert 0 == saved.exit_code, saved.exception
    assert "main.json: 4 runs" in saved.output
    assert (tmp_path / ".scaletest" / "baselines" / "main.json").stat().st_size < 100_000
    assert 99 == run("compare", "main", "after-*", "--fail", "list-pods.p50:10%").exit_code
    assert "main  smoke, Kubernetes 1.37.2, 4 runs" in run("baseline", "list").output
    assert "flow.agents.list-pods.p50" in run("baseline", "show", "main").output
    assert 0 == run("baseline", "rm", "main").exit_code
    assert "no baseline under" in run("baseline", "list").output


def test_the_projects_rules_hold_unless_the_command_line_has_some(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.scaletest]\nfail = ["apiserver.memory:30%"]\n')
    assert 0 == run("compare", "before-*", "after-*", "--gate").exit_code
    assert 99 == run("compare", "before-*", "after-*", "--fail", "list-pods.p50:10%").exit_code


def test_the_profiles_rules_hold_where_the_project_has_none(results: Path) -> None:
    profile = {**run_info().profile, "gate": {"fail": ["list-pods.p50:90%"]}}
    write_runs(results, "ruled", 4, slow=1.6, seed=50, info=run_info(profile=profile))
    assert 0 == run("compare", "before-*", "ruled-*", "--gate").exit_code


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["before-0", "nowhere"], "no baseline of this name"),
        (["before-0", "nowhere-*"], "matches no run directory"),
        (["before-0", "after-0", "--fail", "p98:10%"], "no metric p98"),
        (["before-0", "after-0", "--fail", "p99"], "not METRIC:ALLOWED"),
        (["before-0", "foreign"], "of another program"),
        (["before-0", "truncated"], "cut short or no JSON"),
        (["before-0", "newer"], "written by a newer scaletest"),
        (["before-0", "other.json"], "of another program"),
    ],
)
def test_bad_input_is_refused_before_anything_is_printed(argv: list[str], message: str, results: Path) -> None:
    for name, text in (("foreign", "{}"), ("truncated", '{"id": "x", "prof')):
        (results / name).mkdir()
        (results / name / "run.json").write_text(text)
    write_run(results / "newer", [], run_info(schema_version=99))
    Path("other.json").write_text("{}")
    assert message in refused("compare", *argv).message


def damage(results: Path, name: str, text: str = "[" * 200_000) -> None:
    (results / name).mkdir()
    (results / name / "run.json").write_text(text)


def test_damaged_runs_that_a_pattern_finds_are_left_out_and_told(results: Path) -> None:
    damage(results, "before-5")
    damage(results, "before-6", '{"schema_version": 1, "id": "r", "prof')
    done = run("compare", "before-*", "after-*", "--fail", "list-pods.p50:10%")

    assert 99 == done.exit_code
    assert [
        "results/before-5 is left out: run.json: nested too deeply",
        "results/before-6 is left out: run.json: line 1: cut short or no JSON: Unterminated string starting at",
    ] == [line.partition(" (")[0] for line in done.stderr.splitlines()]

    saved = run("baseline", "save", "main", "before-*")
    assert "main.json: 4 runs" in saved.stdout
    assert 2 == saved.stderr.count("is left out")

    whole = run("compare", "results", "after-*")
    assert 0 == whole.exit_code
    assert 2 == whole.stderr.count("is left out")


def test_a_damaged_run_that_is_named_is_an_error_and_so_is_a_pattern_of_nothing_else(results: Path) -> None:
    damage(results, "bad-1")
    damage(results, "bad-2")

    assert "results/bad-1/run.json: nested too deeply" == refused("compare", "bad-1", "after-*").message
    message = refused("compare", "bad-*", "after-*").message
    assert "bad-*: nothing of it can be read: results/bad-1: run.json: nested too deeply (and 1 more)" == message


def test_a_damaged_baseline_ends_no_list_and_no_pattern(results: Path) -> None:
    run("baseline", "save", "main", "before-*")
    (results.parent / ".scaletest" / "baselines" / "deep.json").write_text("[" * 200_000)
    listed = run("baseline", "list").output.splitlines()

    assert 2 == len(listed)
    assert listed[0].startswith("deep  unreadable: ")
    assert listed[0].endswith("deep.json: nested too deeply")
    done = run("compare", ".scaletest/baselines/*.json", "after-*")
    assert 0 == done.exit_code
    assert ".scaletest/baselines/deep.json is left out: nested too deeply\n" == done.stderr


def test_a_metric_that_is_nowhere_is_answered_with_the_near_ones() -> None:
    assert "p99" in str(refused("compare", "before-0", "after-0", "--fail", "p98:10%").hint)


def test_runs_that_were_cut_short_never_gate(results: Path) -> None:
    write_run(results / "killed", killed_run())
    done = run("compare", "before-*", "killed", "--fail", "p50:10%")
    assert 4 == done.exit_code
    assert "killed has no valid run" in done.output


def test_another_profile_is_said_and_gates_only_when_asked(results: Path) -> None:
    profile = {**run_info().profile, "fleet": {"pools": [{"name": "default", "nodes": 65}]}}
    write_runs(results, "larger", 4, info=run_info(profile=profile))
    done = run("compare", "before-*", "larger-*", "--fail", "memory:10%")
    assert 4 == done.exit_code
    assert "fleet.pools.0.nodes" in done.output
    assert 0 == run("compare", "before-*", "larger-*", "--fail", "memory:10%", "--despite", "profile").exit_code


def test_the_schema_is_printed() -> None:
    assert "scaletest comparison" == json.loads(run("compare", "--schema").output)["title"]


def test_a_comparison_needs_no_engine() -> None:
    code = (
        "import sys, scaletest.cli.compare, scaletest.cli._gating, scaletest.cli._streams\n"
        "import scaletest.report.comparison_build, scaletest.report.comparison_table, scaletest.report.sides\n"
        "heavy = {'locust', 'gevent', 'kubernetes', 'aiohttp', 'aetcd', 'cryptography'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    repository = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(repository)}, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_failed_gate_names_the_metric_in_every_form(tmp_path: Path) -> None:
    files = {form: tmp_path / "out" / form for form in ("json", "junit", "markdown", "text")}
    wanted = [word for form, path in files.items() for word in ("--report", f"{form}={path}")]

    failed = run("compare", "before-*", "after-*", "--fail", "list-pods.p50:10%", *wanted)

    assert 99 == failed.exit_code
    assert all("flow.agents.list-pods.p50" in path.read_text() for path in files.values())
    (suite,) = ET.parse(files["junit"]).getroot()
    assert "1" == suite.get("failures")


def test_a_github_step_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))

    run("compare", "before-*", "after-*", "--fail", "list-pods.p50:10%")

    assert "flow.agents.list-pods.p50" in (tmp_path / "summary.md").read_text()


def test_a_form_that_a_comparison_has_not_is_refused_and_none_such_is_offered() -> None:
    sides = ("compare", "before-*", "after-*")
    error = refused(*sides, "--report", "html=x.html")
    assert "--report html=x.html: a comparison is not written as html: text, json, markdown, junit" == error.message
    assert "with one of text, json, markdown, junit" in refused(*sides, "--report", "pdf=x").message

    for form in ("csv", "pdf"):
        done = run(*sides, "--format", form)
        assert 2 == done.exit_code
        assert "junit" in done.stderr
        assert "html" not in done.stderr


@pytest.mark.parametrize("name", ["../evil", "a/b", ".hidden", "", "-x", "x" * 65, "ü", "/tmp/x", ".json", "a/.json"])
def test_a_baseline_has_a_plain_name(name: str, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*")), sorted(tmp_path.parent.iterdir())
    for command in (["save", "--", name, "before-*"], ["show", "--", name], ["rm", "--", name]):
        error = refused("baseline", *command)
        assert f"{name!r} is no name of a baseline: up to 64 letters, digits, dots" in error.message
    assert ("A file elsewhere ends in .json" in (error.hint or "")) == ("/" in name)
    assert before == (sorted(tmp_path.rglob("*")), sorted(tmp_path.parent.iterdir()))


def test_a_path_that_ends_in_json_is_a_baseline_elsewhere(tmp_path: Path) -> None:
    assert 0 == run("baseline", "save", "nightly/one.json", "before-*").exit_code
    assert (tmp_path / "nightly" / "one.json").is_file()
    assert 0 == run("baseline", "rm", "nightly/one.json").exit_code


@pytest.mark.parametrize(
    ("base", "new", "named"),
    [
        ("before-0", "./results/../results/before-0", "results/../results/before-0"),
        ("before-0", "again", "results/again"),
        ("results", "before-0", "results/before-0"),
        ("main", "main", "main"),
        ("main", "before-0", "results/before-0"),
    ],
)
def test_runs_that_are_compared_with_themselves_are_pointed_out(base: str, new: str, named: str, results: Path) -> None:
    (results / "again").symlink_to("before-0")
    run("baseline", "save", "main", "before-0")
    done = run("compare", base, new, "--format", "json")

    assert 0 == done.exit_code, done.exception
    assert done.stderr.startswith(f"warning: {named} is compared with itself: its runs are in ")
    assert json.loads(done.stdout)


def test_runs_of_which_some_stand_on_both_sides_are_pointed_out() -> None:
    said = run("compare", "before-0", "before-*").stderr
    assert said.startswith("warning: 1 of 4 runs of before-* are in results/before-0 too: ")
    assert "" == run("compare", "before-0", "after-0").stderr
