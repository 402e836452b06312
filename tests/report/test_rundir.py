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
from scaletest.core.rundir import RUN_INFO_NAME
from scaletest.report.build import build
from scaletest.report.document import Document
from scaletest.report.json_report import render_json
from scaletest.report.page.render import render_page
from scaletest.report.rundir import find_run, load_run
from scaletest.report.terminal import render
from tests.analysis.journals import record, run_info, small_run, write_run


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
        assert document.journal.records == records
        assert document.journal.broken_lines == (1 if more_bytes else 0)
        reason = document.verdict.reasons[0]
        if records:
            assert reason.startswith("killed at ")
            assert ("1 broken line" in reason) == bool(more_bytes)
        else:
            assert reason == f"{JOURNAL_NAME} {'has no whole line' if more_bytes else 'is empty'}: nothing was measured"
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
    assert f"journal: 2 broken (first in line 51) of {len(lines) + 2} records" in render(build(run), width=140)


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


def test_a_run_without_a_journal_is_told_as_one(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", [])
    (directory / JOURNAL_NAME).unlink()
    run = load_run(directory)

    assert run.verdict.reasons[0] == "there is no journal.jsonl: nothing was measured"
    assert "nothing was measured: there is nothing to judge" in render(build(run), width=140)


def test_records_with_impossible_numbers_are_left_out_and_told_with_their_line(tmp_path: Path) -> None:
    records = small_run()
    damaged = [{**item, "latency_s": -5.0} if item["kind"] == "probe" else item for item in records]
    run = load_run(write_run(tmp_path / "run", damaged))
    first = next(number for number, item in enumerate(records, start=1) if item["kind"] == "probe")
    probes = sum(item["kind"] == "probe" for item in records)

    assert not run.state.probes.get("operator")
    assert run.verdict.outcome is Outcome.INVALID
    said = f"journal: {probes} malformed (probe {probes}; first in line {first}) of {len(records)} records"
    assert said == run.verdict.reasons[0]
    text = render(build(run), width=200)
    assert said in text
    assert "the file was changed or damaged later" in text
    assert "-5.0" not in text


@pytest.mark.parametrize("form", ["text", "json", "page"])
def test_a_lone_surrogate_in_a_run_breaks_no_report(form: str, tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run\udcff", small_run())
    for name, old in ((RUN_INFO_NAME, '"smoke"'), (RUN_INFO_NAME, '"6.1.0"'), (JOURNAL_NAME, '"heartbeats of')):
        text = (directory / name).read_text(encoding="utf-8")
        assert old in text
        (directory / name).write_text(text.replace(old, f'{old[:-1]}\\ud800"' if old.endswith('"') else '"\\ud800'))
    run = load_run(directory)
    document = build(run)
    rendered = {
        "text": lambda: render(document, width=100),
        "json": lambda: render_json(document),
        "page": lambda: render_page(run, document),
    }[form]()

    assert "smoke\ufffd" in rendered
    assert rendered.encode()


def test_nothing_in_a_run_steers_a_terminal(tmp_path: Path) -> None:
    hostile = "\x1b[31mred\x1b]0;x\x07 \x9b2J \u202eleft"
    records = [*small_run(), record("note", 35.0, level="warning", text=f"note {hostile}")]
    info = run_info(profile={**run_info().profile, "summary": f"summary {hostile}"}, facts={f"a {hostile}": hostile})
    text = render(build(load_run(write_run(tmp_path / "run", records, info))), width=100)

    assert "\ufffd[31mred\ufffd]0;x" in text
    assert not [item for item in text if item != "\n" and not item.isprintable()]


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
