"""run.json: written whole, read back, and refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scaletest.core.errors import ExitCode, RunDirectoryError
from scaletest.core.rundir import RUN_INFO_NAME, RunInfo, read_run_info, write_json, write_run_info

INFO = RunInfo(id="r", profile={"name": "smoke"}, started_at="2026-11-30T12:00:00Z", argv=["scaletest", "run", "smoke"])


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    write_run_info(tmp_path, INFO)

    assert read_run_info(tmp_path) == INFO


def test_a_replaced_file_leaves_no_temporary_file(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"x": 1})
    write_json(tmp_path / "a.json", {"x": 2})

    assert [item.name for item in tmp_path.iterdir()] == ["a.json"]
    assert json.loads((tmp_path / "a.json").read_text()) == {"x": 2}


def test_a_value_that_is_no_json_leaves_the_old_file(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"x": 1})

    with pytest.raises(TypeError):
        write_json(tmp_path / "a.json", {"x": object()})

    assert [item.name for item in tmp_path.iterdir()] == ["a.json"]
    assert json.loads((tmp_path / "a.json").read_text()) == {"x": 1}


def test_unknown_keys_of_the_same_schema_are_passed_over(tmp_path: Path) -> None:
    write_run_info(tmp_path, INFO)
    data = json.loads((tmp_path / RUN_INFO_NAME).read_text())
    (tmp_path / RUN_INFO_NAME).write_text(json.dumps({**data, "colour": "green"}))

    assert read_run_info(tmp_path) == INFO


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no run directory: it has no run.json"),
        ("", "empty"),
        ('{"schema_version": 1, "id": "r", "prof', "line 1: cut short or no JSON"),
        ("[]", "no JSON object"),
        ("{}", "of another program"),
        ({"schema_version": 2, "profile": {}}, "written by a newer scaletest (run schema 2; this one reads up to 1)"),
        ({"schema_version": 1, "profile": {}}, "id: missing"),
        ({"schema_version": 1, "id": "r", "profile": {}}, "started_at: missing"),
        ({"schema_version": 1, "id": "r", "profile": [], "started_at": ""}, "profile: of a wrong type"),
        ({"schema_version": 1, "id": "r", "profile": {}, "started_at": "", "argv": 3}, "argv: of a wrong type"),
    ],
)
def test_what_is_no_run_directory_is_refused_with_a_reason(tmp_path: Path, content: Any, said: str) -> None:
    if content is not None:
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / RUN_INFO_NAME).write_text(text)

    with pytest.raises(RunDirectoryError) as caught:
        read_run_info(tmp_path)

    assert said in caught.value.message
    assert str(tmp_path) in caught.value.message
    assert caught.value.exit_code == ExitCode.USAGE


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / RUN_INFO_NAME).write_bytes(b"\xff\xfe\x00")

    with pytest.raises(RunDirectoryError, match="cannot be read"):
        read_run_info(tmp_path)


def test_a_missing_directory_and_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(RunDirectoryError, match="no such run directory"):
        read_run_info(tmp_path / "none")
    with pytest.raises(RunDirectoryError, match="a file, not a run directory"):
        read_run_info(tmp_path / "file")
