"""The guide to CI: its workflow is YAML that GitHub reads, and its commands are those of this version."""

from __future__ import annotations

import itertools
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from scaletest import __version__
from scaletest.cli.main import app
from scaletest.core.errors import ExitCode, ScaletestError
from scaletest.core.paths import cache_dir
from scaletest.core.project import BASELINES_DIR
from scaletest.profile.builtin import built_in_profiles
from tests.ciguide import GUIDE, Step, steps, workflow

STEPS = steps()
COMMANDS = [command for step in STEPS for command in step.commands()]


def parse(words: list[str]) -> list[str]:
    """Parse a command line with the real parser, and run nothing; returns the names of the commands within one another."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("scaletest", list(words))
    names: list[str] = []
    while hasattr(command, "resolve_command"):
        name, command, words = command.resolve_command(context, words)
        names.append(name)
        context = command.make_context(name, list(words), parent=context)
    return names


def test_the_workflow_has_the_jobs_of_the_page() -> None:
    told = workflow()
    assert ["baseline", "gate", "nightly"] == list(told["jobs"])
    # YAML 1.1 reads `on` as true.
    assert {"pull_request", "schedule", "workflow_dispatch"} == set(told[True])
    assert {"contents": "read"} == told["permissions"]
    for job in told["jobs"].values():
        used = [step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step]
        assert ["actions/checkout", "actions/setup-python", "actions/cache"] == used[:3]
        assert "actions/upload-artifact" == used[-1]
        assert "${{ !cancelled() }}" == job["steps"][-1]["if"]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_is_one_of_this_version(words: list[str]) -> None:
    assert parse(words)


@pytest.mark.parametrize("words", [words for words in COMMANDS if words[0] == "run"], ids=" ".join)
def test_every_run_could_begin(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, [*words, "--dry-run"])
    assert not isinstance(done.exception, ScaletestError), done.exception
    # Where programs of that version have still to be fetched, a plan says so.
    assert done.exit_code in {ExitCode.PASS, ExitCode.ENVIRONMENT}


def test_no_command_is_overlooked() -> None:
    assert len(COMMANDS) == sum(len(re.findall(r"^ *scaletest ", step.run, re.MULTILINE)) for step in STEPS)
    assert {"binaries fetch", "run", "baseline save", "gate", "history"} == {
        " ".join(parse(words)) for words in COMMANDS
    }
    with pytest.raises(Exception, match="No such option"):
        parse(["gate", "smoke", "--no-such-option"])


def test_no_expression_gets_into_a_shell() -> None:
    assert [] == [step.run for step in STEPS if "${{" in step.run]


def test_each_job_installs_this_version_with_what_it_needs() -> None:
    extras = tomllib.loads((GUIDE.parents[2] / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert __version__ == workflow()["env"]["SCALETEST"]
    installed = {step.job: shlex.split(step.run)[-1] for step in STEPS if "pip install" in step.run}
    assert {
        "baseline": "scaletest==$SCALETEST",
        "gate": "scaletest==$SCALETEST",
        "nightly": "scaletest[history]==$SCALETEST",
    } == installed
    assert "history" in extras


def test_profiles_and_places_are_those_of_scaletest(monkeypatch: pytest.MonkeyPatch) -> None:
    told = workflow()
    profiles = {told["env"]["PROFILE"], told["jobs"]["nightly"]["env"]["PROFILE"]}
    assert profiles <= {profile.name for profile in built_in_profiles()}
    for name in ("SCALETEST_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    caches = [
        step["with"] for job in told["jobs"].values() for step in job["steps"] if step.get("uses", "").startswith("actions/cache@")
    ]  # fmt: skip
    assert {cache_dir()} == {Path(item["path"]).expanduser() for item in caches}
    assert all("env.SCALETEST" in item["key"] and "env.KUBERNETES" in item["key"] for item in caches)


def test_what_is_uploaded_is_what_the_commands_write() -> None:
    for job in workflow()["jobs"].values():
        uploaded = job["steps"][-1]["with"]
        kept = uploaded["path"].split()
        assert {"reports", "results"} <= set(kept)
        # Hidden files are left out unless asked for.
        hidden = [path for path in kept if path.startswith(".")]
        assert uploaded.get("include-hidden-files", False) == bool(hidden)
    assert str(BASELINES_DIR) in workflow()["jobs"]["baseline"]["steps"][-1]["with"]["path"].split()
    for words in COMMANDS:
        written = [Path(word.partition("=")[2]) for flag, word in itertools.pairwise(words) if flag == "--report"]
        written += [Path(word) for flag, word in itertools.pairwise(words) if flag == "--output"]
        assert {path.parts[0] for path in written} <= {"reports", "results"}


def test_the_page_says_what_every_exit_code_means() -> None:
    rows = re.findall(r"^\| (\d+) \|", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(ExitCode) == {ExitCode(int(code)) for code in rows}
    assert len(rows) == len(set(rows))


def test_a_step_may_have_several_commands() -> None:
    step = Step("gate", 'cd x\nscaletest run "$PROFILE" \\\n  --quiet\nscaletest runs list\n', {"PROFILE": "smoke"})
    assert [["run", "smoke", "--quiet"], ["runs", "list"]] == step.commands()
