"""``scaletest init``: questions on a terminal, options without one, and a profile that can be run."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from scaletest.cli.main import app
from scaletest.core.errors import Interrupted, ScaletestError, UsageError
from scaletest.profile.loading import load_profile


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def on_a_terminal(answers: str, *argv: str) -> tuple[int, str]:
    """Run the command on a terminal; return its exit code and what the terminal shows."""
    mine, its = pty.openpty()
    command = [sys.executable, "-m", "scaletest", "init", *argv]
    process = subprocess.Popen(command, stdin=its, stdout=its, stderr=its, start_new_session=True)
    os.close(its)
    os.write(mine, answers.encode())
    shown = b""
    with contextlib.suppress(OSError):
        while part := os.read(mine, 4096):
            shown += part
    os.close(mine)
    return process.wait(timeout=60), shown.decode()


def test_three_questions_make_a_profile(here: Path) -> None:
    code, shown = on_a_terminal("chrun\n3\nmany\n1,500\nsl\n")

    loaded = load_profile(str(here / "churn.yaml"))
    assert (0, "churn", 1500) == (code, loaded.profile.name, loaded.profile.fleet.node_count)
    assert "sli.slo_violations == 0" in (here / "churn.yaml").read_text(encoding="utf-8")
    for words in (
        "'chrun' is none of agent, controller, churn",
        "'many' is no number",
        "scaletest run churn.yaml --dry-run",
    ):
        assert words in shown


def test_the_end_of_input_ends_in_130_and_writes_nothing(here: Path) -> None:
    assert 130 == on_a_terminal("agent\n\x04")[0]
    assert [] == list(here.iterdir())


def test_without_a_terminal_options_answer_and_nothing_waits(here: Path) -> None:
    missing = CliRunner().invoke(app, ["init", "mine.yaml", "--nodes", "5"])
    assert isinstance(missing.exception, UsageError)
    assert ("no terminal to ask on: --load, --goal missing", []) == (missing.exception.message, list(here.iterdir()))

    full = CliRunner().invoke(
        app, ["init", "a/My Load.yaml", "--load", "controller", "--nodes", "5", "--goal", "capacity"]
    )
    assert "scaletest profiles validate 'a/My Load.yaml'" in full.stdout
    profile = load_profile(str(here / "a" / "My Load.yaml")).profile
    assert ("my-load", 5, True) == (profile.name, profile.fleet.node_count, profile.search is not None)

    usual = CliRunner().invoke(app, ["init", "--yes"])
    assert (0, "agent") == (usual.exit_code, load_profile(str(here / "agent.yaml")).profile.name)


def test_a_file_that_is_there_stays_but_for_force(here: Path) -> None:
    (here / "mine.yaml").write_text("mine", encoding="utf-8")
    refused = CliRunner().invoke(app, ["init", "mine.yaml", "--yes"])
    assert isinstance(refused.exception, UsageError)
    assert ("mine.yaml: exists already", "mine") == (
        refused.exception.message,
        (here / "mine.yaml").read_text(encoding="utf-8"),
    )

    assert 0 == CliRunner().invoke(app, ["init", "mine.yaml", "--yes", "--force"]).exit_code
    assert 100 == load_profile(str(here / "mine.yaml")).profile.fleet.node_count


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("mine", "mine: a profile's file ends in .yaml"),
        ("---.yaml", "---.yaml: no name of a profile can be made of it"),
        ("dir.yaml", "dir.yaml: exists already"),
        ("file/mine.yaml", "file/mine.yaml: cannot be written: one of its parents is a file"),
        ("file/below/mine.yaml", "file/below/mine.yaml: cannot be written: one of its parents is a file"),
        ("/proc/mine.yaml", "/proc/mine.yaml: cannot be written: No such file"),
        ("日本.yaml", "日本.yaml: no name of a profile can be made of it: use letters a to z, or digits"),
        ("a\nb.yaml", "'a\\nb.yaml': a character that cannot be shown"),
        ("pipe.yaml", "pipe.yaml: exists already"),
    ],
)
def test_what_cannot_be_written_is_refused(path: str, message: str, here: Path) -> None:
    (here / "dir.yaml").mkdir()
    (here / "file").touch()
    os.mkfifo(here / "pipe.yaml")
    before = sorted(here.iterdir())
    refused = CliRunner().invoke(app, ["init", "--yes", "--force", "--", path])

    assert isinstance(refused.exception, UsageError | Interrupted)
    assert refused.exception.message.startswith(message)
    assert before == sorted(here.iterdir())


def test_where_nothing_may_be_written_the_hint_is_of_init() -> None:
    refused = CliRunner().invoke(app, ["init", "--yes", "/sys/mine.yaml"]).exception

    assert isinstance(refused, ScaletestError)
    assert refused.message.startswith("/sys/mine.yaml: cannot be written: ")
    assert "Name another file: scaletest init PATH" == refused.hint


def test_letters_with_accents_make_a_name_without_them(here: Path) -> None:
    assert 0 == CliRunner().invoke(app, ["init", "--yes", "Überlast-é.yaml"]).exit_code
    assert "uberlast-e" == load_profile("Überlast-é.yaml").profile.name


def test_a_name_that_is_too_long_for_a_file_is_said_in_short(here: Path) -> None:
    command = [sys.executable, "-m", "scaletest", "init", "--yes", f"{'x' * 2000}.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (2, []) == (done.returncode, list(here.iterdir()))
    assert done.stderr.startswith("scaletest: xxx")
    assert "the name is too long for a file" in done.stderr
    assert len(done.stderr) < 400
