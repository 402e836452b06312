"""``scaletest run --matrix`` up to the point where something would be started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from scaletest.cli.main import app
from scaletest.controlplane.host import read_host
from scaletest.core.errors import ExitCode, ScaletestError
from scaletest.runner.matrix import make_matrix, parse_axes
from scaletest.runner.matrix_run import begin, new_info
from tests.analysis.journals import small_run, write_run
from tests.report.matrices import write_matrix


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*argv: str) -> Result:
    return CliRunner().invoke(app, ["run", "smoke", *argv])


def refused(*argv: str) -> str:
    """Return what a command that is refused with exit code 2 says."""
    error = run(*argv).exception
    assert isinstance(error, ScaletestError)
    assert ExitCode.USAGE is error.exit_code
    assert [] == list(Path().iterdir())
    return error.message


def test_a_dry_run_prints_variants_limits_and_the_time_of_all_and_makes_nothing() -> None:
    done = run("--matrix", "nodes=5,10", "--matrix", "rollout=20/s,40/s", "--repeat", "3", "--dry-run")
    assert 0 == done.exit_code
    assert "4 variants, 3 runs each" in done.output
    for name in ("nodes=5,rollout=20_s", "nodes=10,rollout=40_s"):
        assert name in done.output
    assert "12 runs, at most 13m36s with set-up" in done.output
    assert "-smoke-matrix" in done.output
    assert [] == list(Path().iterdir())


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--repeat", "0"], "--repeat 0: at least 1"),
        (["--repeat", "101"], "101 repeats make 101 runs: at most 100"),
        (["--repeat", "3", "--keep"], "--repeat and --keep exclude each other"),
        (["--repeat", "3", "--cluster", "x"], "--repeat and --cluster exclude each other"),
        (["--resume", "x"], "x: no such directory"),
        (["--matrix", "nodes=5", "--repeat", "0"], "--repeat 0: at least 1"),
        (["--matrix", "nodes=5", "--cluster", "x"], "--matrix and --cluster exclude each other"),
        (["--matrix", "nodes=5", "--keep"], "--matrix and --keep exclude each other"),
        (["--matrix", "nodes=5", "--resume", "x"], "x: no such directory"),
        (["--matrix", "nodes=5", "--resume", "x", "--output", "y"], "--resume and --output name different directories"),
        (["--matrix", "nods=5,6"], "did you mean 'nodes'"),
        (["--matrix", "nodes="], "no values"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(argv: list[str], message: str) -> None:
    assert message in refused(*argv)


def test_a_profile_as_it_is_is_repeated() -> None:
    done = run("--repeat", "5", "--dry-run")

    assert 0 == done.exit_code, done.exception
    assert "1 variant, 5 runs each\n  smoke " in done.output
    assert "\n5 runs, at most " in done.output
    assert [] == list(Path().iterdir())


def test_repeats_have_a_table_and_every_form_of_report(tmp_path: Path) -> None:
    matrix = make_matrix("smoke", (), [], repeat=2, host=read_host())
    directory = tmp_path / "there"
    begin(directory, new_info(matrix, directory, reference="smoke", overrides=(), repeat=2, argv=[]))
    for name in ("smoke-r1", "smoke-r2"):
        write_run(directory / name, small_run())
        (directory / name / "verdict.json").write_text('{"outcome": "fail", "exit_code": 99}')

    shown = run("--repeat", "2", "--resume", "there")
    assert 99 == shown.exit_code, shown.exception
    assert "MATRIX  smoke" in shown.output
    assert "\n  2 runs\n" in shown.output
    assert "--repeat was 2 and is 3" in str(run("--repeat", "3", "--resume", "there").exception)
    for form in ("html", "markdown", "json"):
        done = CliRunner().invoke(app, ["report", "there", "--format", form])
        assert 0 == done.exit_code, done.exception
        assert "2 runs" in done.output or form == "json"


def test_a_directory_that_cannot_be_made_is_refused_before_anything_is_planned() -> None:
    Path("file").touch()
    for argv in (("--output", "file/x"), ("--matrix", "nodes=5", "--output", "file/x"), ("--results", "file")):
        error = run(*argv, "--dry-run").exception
        assert isinstance(error, ScaletestError)
        assert ExitCode.USAGE is error.exit_code
        assert "cannot be made: file is no directory" in error.message


def what_if(*argv: str) -> Result:
    return CliRunner().invoke(app, ["run", "what-if-agent", *argv])


def test_a_profile_with_variants_is_run_in_all_of_them_or_in_those_that_are_named() -> None:
    everything, two = what_if("--dry-run"), what_if("--variant", "quorum,own-node", "--dry-run")

    assert 0 == everything.exit_code == two.exit_code
    assert "11 variants" in everything.output
    assert "2 variants" in two.output
    assert two.output.index("variant=quorum ") < two.output.index("variant=own-node ")
    assert "2 runs, about " in two.output
    assert [] == list(Path().iterdir())


def test_of_one_variant_an_ordinary_run_is_made() -> None:
    done = what_if("--variant", "own-node", "--dry-run")

    assert 0 == done.exit_code
    assert "nodes                      from 50 to" in done.output
    assert "(derived, period up to 2s)" in done.output


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--cluster", "x"], "several variants and --cluster exclude each other"),
        (["--keep"], "several variants and --keep exclude each other"),
        (["--variant", "quorum,quorum"], "a name is there twice"),
        (["--variant", "quorum,"], "a name is empty"),
        (["--variant", "quorun"], "profile what-if-agent has no variant 'quorun'"),
        (["--variant", "quorum,quorun"], "profile what-if-agent has no variant 'quorun'"),
    ],
)
def test_variants_that_cannot_be_run_are_refused(argv: list[str], message: str) -> None:
    error = what_if(*argv).exception

    assert isinstance(error, ScaletestError)
    assert ExitCode.USAGE is error.exit_code
    assert message in error.message


def test_a_profile_without_variants_has_none_to_choose() -> None:
    assert "profile smoke has no variants" in refused("--variant", "quorum")


@pytest.mark.parametrize("option", ["--output", "--resume"])
def test_a_directory_with_something_else_in_it_is_left_alone(option: str) -> None:
    Path("mine").mkdir()
    Path("mine/letter").write_text("x")
    error = run("--matrix", "nodes=5", option, "mine").exception
    assert isinstance(error, ScaletestError)
    assert "is no matrix" in error.message
    assert ["letter"] == [path.name for path in Path("mine").iterdir()]


def test_a_matrix_that_is_resumed_must_be_the_same() -> None:
    write_matrix(Path("there"), {"5": [None], "10": [None]}, key="nodes")
    for option in ("--output", "--resume"):
        error = run("--matrix", "nodes=5,20", option, "there").exception
        assert isinstance(error, ScaletestError)
        assert "--matrix nodes was 5,10 and is 5,20" in error.message
    assert "waiting" == json.loads(Path("there/matrix.json").read_text())["runs"][0]["status"]


def test_a_matrix_that_is_finished_is_only_shown() -> None:
    axes = ["--matrix", "nodes=5,10", "--output", "there"]
    _finished_matrix(Path("there"))
    shown = run(*axes, "--dry-run")
    assert "0 runs, at most 0 s with set-up; 2 are finished and kept" in shown.output
    table = run(*axes)
    assert 99 == table.exit_code
    assert "MATRIX  smoke" in table.output


def _finished_matrix(directory: Path) -> None:
    """Write what ``run smoke --matrix nodes=5,10`` leaves behind, with other runs in it."""
    axes = parse_axes(["nodes=5,10"])
    matrix = make_matrix("smoke", (), axes, repeat=1, host=read_host())
    begin(directory, new_info(matrix, directory, reference="smoke", overrides=(), repeat=1, argv=[]))
    for name in ("nodes=5", "nodes=10"):
        write_run(directory / name, small_run())
        (directory / name / "verdict.json").write_text('{"outcome": "fail", "exit_code": 99}')
