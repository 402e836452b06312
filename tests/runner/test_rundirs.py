"""Run directories are new, or an error."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from scaletest.core.errors import EnvironmentProblem, ExitCode, RunDirectoryError
from scaletest.runner.rundirs import create_run_dir, default_run_dir


def test_the_name_is_utc_time_and_profile(tmp_path: Path) -> None:
    now = datetime(2024, 12, 11, 23, 12, 7, tzinfo=UTC)
    assert tmp_path / "20241211T231207Z-openai-outage" == default_run_dir(tmp_path, "openai-outage", now)


def test_parents_and_the_log_directory_are_made(tmp_path: Path) -> None:
    create_run_dir(tmp_path / "a/b")
    assert (tmp_path / "a/b/logs").is_dir()


def test_an_existing_directory_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("x")
    with pytest.raises(RunDirectoryError, match="exists already") as caught:
        create_run_dir(tmp_path)
    assert caught.value.exit_code is ExitCode.USAGE
    assert ["kept"] == [path.name for path in tmp_path.iterdir()]


def test_a_file_among_the_parents_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunDirectoryError, match="one of its parents is a file"):
        create_run_dir(tmp_path / "file/run")


def test_a_place_that_cannot_be_written_is_the_environment_s_fault() -> None:
    with pytest.raises(EnvironmentProblem, match="cannot be made"):
        create_run_dir(Path("/proc/scaletest-run"))
