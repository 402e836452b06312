"""run.json: written whole, read back, and refused with a reason."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
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
        pytest.param("[" * 200_000, "nested too deeply", id="brackets"),
        pytest.param('{"a":' * 300 + "1" + "}" * 300, "nested too deeply", id="objects"),
        pytest.param(f'{{"host": {"9" * 5_000}}}', "a number of thousands of digits", id="digits"),
        pytest.param(f'{{"host": {{"cores": {"9" * 300}}}}}', "host.cores: a number of more than 64 bits", id="bits"),
        ('{"limits": [1, NaN]}', "limits.1: nan is no number"),
        ('{"limits": 1e999}', "limits: inf is no number"),
        ({"schema_version": "1", "profile": {}}, 'schema_version: a whole number is wanted, not "1"'),
        ({"schema_version": True, "profile": {}}, "schema_version: a whole number is wanted, not true"),
        pytest.param({"schema_version": "x" * 500, "profile": {}}, f'not "{"x" * 39}…', id="long"),
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

    with pytest.raises(RunDirectoryError, match=r"run\.json: line 1: not UTF-8 \(byte 0xff\)"):
        read_run_info(tmp_path)


def test_a_missing_directory_and_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(RunDirectoryError, match="no such run directory"):
        read_run_info(tmp_path / "none")
    with pytest.raises(RunDirectoryError, match="a file, not a run directory"):
        read_run_info(tmp_path / "file")


def test_a_lone_surrogate_is_replaced_where_it_is_read_and_can_be_written_again(tmp_path: Path) -> None:
    text = json.dumps(
        {**asdict(INFO), "id": "\ud800x", "profile": {"n\udfff": ["\ud83d\ude00"]}, "argv": ["caf\udce9"]}
    )
    (tmp_path / RUN_INFO_NAME).write_text(text)
    info = read_run_info(tmp_path)

    assert ("\ufffdx", {"n\ufffd": ["\U0001f600"]}, ["caf\ufffd"]) == (info.id, info.profile, info.argv)


def test_an_argument_that_is_no_unicode_is_written(tmp_path: Path) -> None:
    write_run_info(tmp_path, replace(INFO, argv=["caf\udce9"]))

    assert "caf\\udce9" in (tmp_path / RUN_INFO_NAME).read_text()
    assert ["caf\ufffd"] == read_run_info(tmp_path).argv


def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path: Path) -> None:
    write_run_info(tmp_path, INFO)
    path = tmp_path / RUN_INFO_NAME
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())

    assert INFO == read_run_info(tmp_path)
