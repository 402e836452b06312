"""Settings on the command line: what they do to commands, and what ``scaletest config`` shows of them."""

from __future__ import annotations

import contextvars
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from scaletest.cli.main import app
from scaletest.core.settings import SETTINGS
from tests.analysis.journals import write_run
from tests.report.matrices import killed_run


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, and a user without settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "scaletest").mkdir(parents=True)
    (tmp_path / ".scaletest").mkdir()
    return tmp_path


def scaletest(*argv: str) -> Result:
    """Run a command; what it chooses for its process stays in a context of its own."""
    return contextvars.copy_context().run(lambda: CliRunner().invoke(app, argv))


def shown(*argv: str) -> Any:
    return json.loads(scaletest(*argv, "config", "show", "--origin", "--format", "json").stdout)


def test_config_shows_each_value_and_where_it_comes_from(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "pyproject.toml").write_text('[tool.scaletest]\nresults = "runs"\n', encoding="utf-8")
    (project / "home" / "scaletest" / "config.toml").write_text('\netcd = "3.6"\n', encoding="utf-8")
    monkeypatch.setenv("SCALETEST_KUBERNETES", "1.36")
    monkeypatch.setenv("SCALETEST_RESLUTS", "x")
    found = shown("--color", "never", "-q")

    assert {"value": "runs", "origin": f"{project}/pyproject.toml:2"} == found["results"]
    assert {"value": "3.6", "origin": f"{project}/home/scaletest/config.toml:2"} == found["etcd"]
    assert {"value": "1.36", "origin": "SCALETEST_KUBERNETES"} == found["kubernetes"]
    assert {"value": "never", "origin": "--color"} == found["color"]
    assert {"value": "quiet", "origin": "--quiet"} == found["verbosity"]
    assert {"value": str(project / ".scaletest" / "baselines"), "origin": "default"} == found["baselines"]
    assert {"value": None, "origin": "default"} == found["fail"]
    table = scaletest("config", "show", "--origin")
    assert f"{project}/home/scaletest/config.toml" in table.stdout.splitlines()[-1]
    assert "warning: SCALETEST_RESLUTS in the environment is no setting" in table.stderr
    assert "kubernetes  1.36\n" == scaletest("config", "show", "kubernetes").stdout


def test_a_setting_is_the_default_of_its_option_and_a_flag_goes_over_it(project: Path) -> None:
    write_run(project / "runs" / "20261201T000000Z-smoke", killed_run())
    (project / "pyproject.toml").write_text('[tool.scaletest]\nresults = "runs"\nformat = "json"\n', encoding="utf-8")

    assert 1 == len(json.loads(scaletest("runs", "list").stdout))
    assert "smoke" in scaletest("runs", "list", "--format", "text").stdout
    assert "no such directory" in str(scaletest("runs", "list", "--results", "none").exception)
    assert {"name", "summary", "path"} == set(json.loads(scaletest("profiles", "list").stdout)[0])


def test_a_mistake_in_a_setting_ends_every_command_with_its_place(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.scaletest]\nreslts = 1\n", encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "scaletest", "clean"], capture_output=True, text=True, check=False)

    assert 2 == done.returncode
    assert done.stderr.startswith(f"scaletest: {project}/pyproject.toml:2: tool.scaletest.reslts: no such setting\n")
    assert "Did you mean results?" in done.stderr


@pytest.mark.parametrize(
    ("argv", "version"),
    [
        ([], "1.36"),
        (["--set", "kubernetes=1.31"], "1.31"),
        (["--set", "controlPlane.kubernetes=1.31"], "1.31"),
    ],
)
def test_a_version_setting_goes_over_the_profile_and_under_the_command_line(
    argv: list[str], version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALETEST_KUBERNETES", "1.36")
    done = scaletest("profiles", "show", "smoke", "--origin", "--format", "json", *argv)
    document = json.loads(done.stdout)

    assert (version, "") == (document["profile"]["controlPlane"]["kubernetes"], done.stderr)
    if not argv:
        assert "SCALETEST_KUBERNETES: kubernetes=1.36" == document["origins"]["parameters.kubernetes"]


def test_a_size_or_variant_that_names_a_version_keeps_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = scaletest("profiles", "show", "smoke").stdout
    (project / "mine.yaml").write_text(
        text.replace("sizes: {}", "sizes: {old: {controlPlane.kubernetes: '1.31'}}"), encoding="utf-8"
    )
    monkeypatch.setenv("SCALETEST_KUBERNETES", "1.36")

    for argv, version in (([], "1.36"), (["--size", "old"], "1.31")):
        document = json.loads(scaletest("profiles", "show", "mine.yaml", "--format", "json", *argv).stdout)
        assert version == document["profile"]["controlPlane"]["kubernetes"]


def test_the_common_options_stand_before_or_behind_the_command(project: Path) -> None:
    write_run(project / "results" / "20261201T000000Z-smoke", killed_run())
    plain = scaletest("report", "latest").stdout

    before, behind = (
        scaletest("--color", "always", "report", "latest"),
        scaletest("report", "latest", "--color", "always"),
    )
    assert before.stdout == behind.stdout != plain
    assert "\x1b[" in before.stdout
    assert plain == scaletest("--color", "always", "report", "latest", "--color", "never").stdout
    assert "exclude each other" in str(scaletest("report", "latest", "-q", "-v").exception)


def test_verbose_says_which_settings_hold_and_where_an_error_was_raised(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.scaletest]\nresults = "runs"\n', encoding="utf-8")
    command = [sys.executable, "-m", "scaletest", "runs", "list", "--verbose"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert 2 == done.returncode
    assert f"results is runs ({project}/pyproject.toml:2)\n" in done.stderr
    assert "Traceback" in done.stderr
    assert "scaletest: runs: no such directory\n" in done.stderr


def test_the_guide_has_every_setting_and_its_option() -> None:
    text = (Path(__file__).parents[2] / "docs" / "guide" / "configuration.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.partition("## Settings")[2].splitlines() if line.startswith("| `")]
    documented = {key: row[3] for row in rows for key in re.findall(r"`([^`]+)`", row[1])}

    assert set(SETTINGS) == set(documented)
    for key, setting in SETTINGS.items():
        assert (setting.option is None) == (not documented[key].strip())
        assert all(option in documented[key] for option in (setting.option or "").split(", "))
