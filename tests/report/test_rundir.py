"""Run directories: found by path, name or ``latest``; read whole, cut short, torn, newer, or not ours."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from scaletest.analysis.verdict import Outcome
from scaletest.core.errors import RunDirectoryError
from scaletest.core.journal import JOURNAL_NAME
from scaletest.report.build import build
from scaletest.report.document import Document
from scaletest.report.rundir import find_run, load_run
from scaletest.report.terminal import render
from tests.analysis.journals import record, small_run, write_run


def test_a_finished_run_is_read_whole(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path / "run", small_run()))

    assert run.journal.records == len(small_run())
    assert run.journal.broken_lines == 0
    assert not run.journal.growing
    assert run.verdict.outcome is Outcome.FAIL


class Killed:
    """A run directory whose journal ends wherever a test says."""

    def __init__(self, directory: Path) -> None:
        self.directory = write_run(directory, [])
        self.lines = [json.dumps(item).encode() + b"\n" for item in small_run()]

    def report(self, records: int, *, more_bytes: int = 0) -> Document:
        """Report after ``records`` whole records and some bytes of the next."""
        journal = b"".join(self.lines[:records]) + self.lines[records][:more_bytes]
        (self.directory / JOURNAL_NAME).write_bytes(journal)
        document = build(load_run(self.directory))
        assert document.verdict.outcome == "incomplete"
        assert document.verdict.reasons[0].startswith("killed at ")
        assert document.journal.records == records
        assert document.journal.broken_lines == (1 if more_bytes else 0)
        assert ("1 broken line" in document.verdict.reasons[0]) == bool(more_bytes)
        return document


def test_a_run_killed_after_any_record_is_reported_as_incomplete(tmp_path: Path) -> None:
    killed = Killed(tmp_path / "run")
    for records in range(len(killed.lines)):
        document = killed.report(records)
        if records % 25 == 0:
            assert render(document, width=80).startswith("\nINCOMPLETE  smoke")


def test_a_run_killed_within_any_byte_of_a_record_is_reported_as_incomplete(tmp_path: Path) -> None:
    killed = Killed(tmp_path / "run")
    for records in (0, 1, 7, 12):
        for more_bytes in range(1, len(killed.lines[records])):
            killed.report(records, more_bytes=more_bytes)


def test_a_run_killed_within_a_record_of_any_kind_is_reported_as_incomplete(tmp_path: Path) -> None:
    killed = Killed(tmp_path / "run")
    firsts = {item["kind"]: index for index, item in reversed(list(enumerate(small_run())))}
    assert len(firsts) > 20
    for records in firsts.values():
        length = len(killed.lines[records])
        for more_bytes in (1, length // 2, length - 1):
            killed.report(records, more_bytes=more_bytes)


def test_a_torn_line_within_the_journal_is_skipped_and_said(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", small_run())
    path = directory / JOURNAL_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:50], lines[50][:20] + b"\n", b"\xff\xfe\x00\n", *lines[50:]]))

    run = load_run(directory)

    assert run.journal.broken_lines == 2
    assert run.journal.records == len(lines)
    assert f"journal: 2 broken of {len(lines) + 2} records" in render(build(run), width=140)


def test_lines_of_a_newer_version_are_passed_over_and_said(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", [*small_run(), {**record("note", 50.0, text="?"), "v": 99}])

    run = load_run(directory)

    assert run.journal.newer_lines == 1
    assert "1 lines of a newer version of scaletest passed over" in render(build(run), width=140)


def test_a_journal_wholly_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", [{**item, "v": 2} for item in small_run()])

    with pytest.raises(RunDirectoryError, match="written by a newer version"):
        load_run(directory)


def test_a_journal_that_is_a_directory_is_refused(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", [])
    (directory / JOURNAL_NAME).unlink()
    (directory / JOURNAL_NAME).mkdir()

    with pytest.raises(RunDirectoryError, match="cannot be read"):
        load_run(directory)


def test_a_run_without_a_journal_was_killed_at_its_very_beginning(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", [])
    (directory / JOURNAL_NAME).unlink()

    assert load_run(directory).verdict.reasons[0] == "killed at 0.0 s before the first phase"


def test_a_run_that_is_still_going_on_is_said_to_be(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", small_run(finished=False))
    now_s = time.time()
    os.utime(directory / JOURNAL_NAME, (now_s, now_s))

    assert "the run may still be going on" in render(build(load_run(directory)), width=140)

    os.utime(directory / JOURNAL_NAME, (now_s - 60, now_s - 60))

    assert "the run may still be going on" not in render(build(load_run(directory)), width=140)


def test_runs_are_found_by_path_by_name_and_as_the_latest(tmp_path: Path) -> None:
    results = tmp_path / "results"
    old = write_run(results / "20261130T120000Z-smoke", [])
    new = write_run(results / "20261130T130000Z-smoke", [])
    (results / "99999999-no-run").mkdir()

    assert find_run(str(old), results) == old
    assert find_run(old.name, results) == old
    assert find_run("latest", results) == new


def test_a_name_that_is_no_run_is_answered_with_the_nearest(tmp_path: Path) -> None:
    write_run(tmp_path / "20261130T120000Z-smoke", [])

    with pytest.raises(RunDirectoryError) as caught:
        find_run("20261130T120000Z-smok", tmp_path)

    assert caught.value.hint == "Did you mean 20261130T120000Z-smoke?"


def test_a_path_that_does_not_exist_and_an_empty_results_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="no such run directory"):
        find_run(str(tmp_path / "none"), tmp_path)
    with pytest.raises(RunDirectoryError, match="holds no run"):
        find_run("latest", tmp_path)
    with pytest.raises(RunDirectoryError, match="holds no run"):
        find_run("latest", tmp_path / "none")


def test_a_journal_without_a_single_record_is_an_error_not_a_killed_run(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", small_run())
    (directory / JOURNAL_NAME).write_text('{"no": "record"}\n' * 3)
    with pytest.raises(RunDirectoryError, match="none of its 3 lines is a record"):
        load_run(directory)
