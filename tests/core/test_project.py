"""``[tool.scaletest]`` and where a project is."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaletest.core.errors import UsageError
from scaletest.core.project import read_project


def test_without_a_project_the_current_directory_is_one(tmp_path: Path) -> None:
    project = read_project(tmp_path)
    assert () == project.fail
    assert "baselines" == project.baselines.name


def test_the_nearest_project_upwards_counts(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.scaletest]\nfail = ["p99:10%"]\n')
    (tmp_path / "a" / "b").mkdir(parents=True)
    project = read_project(tmp_path / "a" / "b")
    assert (tmp_path, ("p99:10%",)) == (project.directory, project.fail)
    (tmp_path / "a" / ".scaletest").mkdir()
    assert tmp_path / "a" == read_project(tmp_path / "a" / "b").directory


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.scaletest]\nfial = []", r"tool\.scaletest\.fial: no such key; there are: fail"),
        ("[tool.scaletest]\nfail = 'p99:10%'", r"tool\.scaletest\.fail: not a list of texts"),
        ("[tool]\nscaletest = 1", r"tool\.scaletest: no table"),
        ("[tool", "cannot be read"),
    ],
)
def test_a_file_that_is_wrong_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_project(tmp_path)
