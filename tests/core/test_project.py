"""Where a project is."""

from __future__ import annotations

from pathlib import Path

from scaletest.core.project import find_project


def test_without_a_project_the_current_directory_is_one(tmp_path: Path) -> None:
    project = find_project(tmp_path)

    assert (tmp_path, tmp_path / ".scaletest" / "baselines") == (project.directory, project.baselines)


def test_the_nearest_project_upwards_counts(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert tmp_path == find_project(tmp_path / "a" / "b").directory

    (tmp_path / "a" / ".scaletest").mkdir()
    assert tmp_path / "a" == find_project(tmp_path / "a" / "b").directory


def test_a_project_file_that_is_none_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "a" / "pyproject.toml").mkdir(parents=True)
    (tmp_path / "a" / "b").mkdir()
    (tmp_path / "a" / "b" / "pyproject.toml").symlink_to("nowhere")

    assert tmp_path / "a" == find_project(tmp_path / "a").directory
    assert tmp_path / "a" / "b" == find_project(tmp_path / "a" / "b").directory
