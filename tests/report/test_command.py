"""``scaletest report`` as people and scripts run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from scaletest.cli.report import report
from scaletest.core.errors import RunDirectoryError
from tests.analysis.journals import small_run, write_run

app = typer.Typer()
app.command()(report)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "results" / "20261130T120000Z-smoke", small_run())
    write_run(tmp_path / "results" / "20261130T130000Z-smoke", small_run(finished=False))
    return tmp_path / "results"


def test_a_report_that_was_made_exits_0_whatever_the_verdict(results: Path) -> None:
    done = CliRunner().invoke(app, ["20261130T120000Z-smoke"])

    assert done.exit_code == 0
    assert done.output.startswith("\nFAIL  smoke")


@pytest.mark.parametrize(
    ("runs", "code"),
    [
        (["20261130T120000Z-smoke"], 99),
        (["latest"], 3),
        (["20261130T120000Z-smoke", "latest"], 3),
    ],
)
def test_the_exit_code_of_the_verdict_is_given_when_asked_for(results: Path, runs: list[str], code: int) -> None:
    for form in ("text", "json"):
        assert CliRunner().invoke(app, [*runs, "--exit-code", "--format", form]).exit_code == code


def test_json_is_one_document_for_each_run(results: Path) -> None:
    done = CliRunner().invoke(app, ["20261130T120000Z-smoke", "latest", "--format", "json"])
    decoder, text, outcomes = json.JSONDecoder(), done.output, []
    while text.strip():
        data, end = decoder.raw_decode(text.lstrip())
        outcomes.append(data["verdict"]["outcome"])
        text = text.lstrip()[end:]

    assert outcomes == ["fail", "incomplete"]


def test_the_schema_is_printed(results: Path) -> None:
    done = CliRunner().invoke(app, ["--schema"])

    assert done.exit_code == 0
    assert json.loads(done.output)["title"] == "scaletest report"


def test_nothing_is_printed_when_one_of_several_runs_is_none(results: Path) -> None:
    done = CliRunner().invoke(app, ["latest", "no-such-run"])

    assert isinstance(done.exception, RunDirectoryError)
    assert done.output == ""


def test_another_results_directory_can_be_named(results: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "elsewhere" / "20260101T000000Z-other", [])

    assert CliRunner().invoke(app, ["latest", "--results", "elsewhere"]).output.startswith("\nINCOMPLETE")


def test_a_report_needs_no_engine(results: Path) -> None:
    """The report of a run can be made where neither Locust nor a Kubernetes client is installed."""
    code = (
        "import sys, scaletest.report.build, scaletest.report.terminal, scaletest.report.json_report\n"
        "heavy = {'locust', 'gevent', 'kubernetes', 'aiohttp', 'aetcd', 'cryptography'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    repository = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repository, env={**os.environ, "PYTHONPATH": str(repository)}, check=False,
        capture_output=True, text=True,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
