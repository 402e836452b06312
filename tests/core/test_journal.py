from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.core.journal import (
    SCHEMA_VERSION,
    WHOLE,
    JournalDamage,
    JournalFile,
    JournalReader,
    MemoryJournal,
    Record,
)

WRITER = """
import sys, time
from pathlib import Path
from scaletest.core.journal import JournalFile
journal = JournalFile(Path(sys.argv[1]), src=sys.argv[2], clock_origin_s=float(sys.argv[3]))
for n in range(int(sys.argv[4])):
    journal.append("test", n=n, text=sys.argv[2] * (n % 700))
"""


def line(**fields: object) -> bytes:
    return json.dumps({"v": 1, "t": 0.5, "kind": "x", "src": "test", **fields}).encode() + b"\n"


def read(path: Path) -> tuple[list[Record], JournalReader]:
    reader = JournalReader(path)
    return list(reader.read()), reader


def test_what_was_appended_is_read_in_order_with_its_stamp(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = JournalFile(path, src="runner", clock_origin_s=time.monotonic() - 5)
    appended = [journal.append("note", text=f"ünï {n}\nline") for n in range(10)]
    journal.close()
    journal.close()
    records, reader = read(path)

    assert appended == records
    assert {(SCHEMA_VERSION, "note", "runner")} == {(record["v"], record["kind"], record["src"]) for record in records}
    assert all(5 <= record["t"] < 65 for record in records)
    assert (0, 0, False) == (reader.broken_lines, reader.newer_lines, reader.has_partial_line)


def test_a_second_writer_appends_and_does_not_overwrite(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    for src in ("runner", "driver"):
        journal = JournalFile(path, src=src, clock_origin_s=0)
        journal.append("x")
        journal.close()

    assert ["runner", "driver"] == [record["src"] for record in read(path)[0]]


def test_lines_of_several_processes_never_mix(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    each = 400
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name, str(time.monotonic()), str(each)])
        for name in "abcd"
    ]

    assert [0, 0, 0, 0] == [writer.wait(timeout=120) for writer in writers]

    records, reader = read(path)

    assert 0 == reader.broken_lines
    for name in "abcd":
        own = [record for record in records if record["src"] == name]

        assert list(range(each)) == [record["n"] for record in own]
        assert all(name * (record["n"] % 700) == record["text"] for record in own)


def test_a_killed_writer_loses_nothing_that_it_had_appended(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), "a", "0", str(10**9)])
    while not path.exists() or path.stat().st_size < 100_000:
        time.sleep(0.01)
    writer.kill()
    writer.wait()
    records, reader = read(path)

    assert list(range(len(records))) == [record["n"] for record in records]
    assert 0 == reader.broken_lines


def test_torn_and_foreign_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    broken = [b'{"v":1,"t":1,"ki\n', b"\xff\xfe\n", b"[1]\n", b"5\n", b"null\n", b'{"v":1,"kind":"x"}\n', b'{"t":1}\n', b'{"t":NaN,"kind":"x"}\n', b'{"t":true,"kind":"x"}\n', b'{"t":1,"kind":5}\n', b'{"t":"1","kind":"x"}\n',
              b"\x00\x00\x00\n", b"[" * 100_000 + b"\n", b'{"t":1,"kind":"x","v":1}trailing\n']  # fmt: skip
    path.write_bytes(line(n=1) + b"".join(broken) + b"\n  \n" + line(n=2))
    records, reader = read(path)

    assert [1, 2] == [record["n"] for record in records]
    assert len(broken) == reader.broken_lines


def test_records_of_a_newer_schema_are_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(line(n=1) + line(v=SCHEMA_VERSION + 1) + line(n=2))
    records, reader = read(path)

    assert [1, 2] == [record["n"] for record in records]
    assert (1, 0) == (reader.newer_lines, reader.broken_lines)


def test_a_line_without_its_newline_waits_for_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    whole = line(n=2, text="ü" * 10)
    path.write_bytes(line(n=1) + whole[:-9])
    reader = JournalReader(path)

    assert [1] == [record["n"] for record in reader.read()]
    assert reader.has_partial_line
    assert [] == list(reader.read())

    with path.open("ab") as stream:
        stream.write(whole[-9:])

    assert [2] == [record["n"] for record in reader.read()]
    assert not reader.has_partial_line


@given(cuts=st.lists(st.integers(0, 600), max_size=6))
def test_a_journal_read_in_any_pieces_gives_the_same_records(
    cuts: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    whole = b"".join(line(n=n, text="ä" * n) for n in range(8))
    reader = JournalReader(path)
    found: list[Record] = []
    done = 0
    for cut in sorted(min(cut, len(whole)) for cut in [*cuts, len(whole)]):
        with path.open("ab") as stream:
            stream.write(whole[done:cut])
        done = cut
        found += reader.read()

    assert list(range(8)) == [record["n"] for record in found]
    assert 0 == reader.broken_lines


def test_a_journal_that_is_not_there_has_no_records(tmp_path: Path) -> None:
    assert [] == read(tmp_path / "none.jsonl")[0]


def test_a_full_disk_is_counted_and_never_raises() -> None:
    journal = JournalFile(Path("/dev/full"), src="runner", clock_origin_s=0)
    record = journal.append("note", text="x")
    journal.append("note", text="y")
    journal.close()

    assert "note" == record["kind"]
    assert 2 == journal.lost_records


def test_after_a_short_write_the_next_record_stands_on_its_own_line(tmp_path: Path) -> None:
    """A pipe whose buffer is nearly full takes part of a line, as a disk that fills up does."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader_fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    journal = JournalFile(path, src="runner", clock_origin_s=0)
    os.set_blocking(journal._fd, False)
    journal.append("big", text="x" * 200_000)

    assert 1 == journal.lost_records

    taken = b""
    while block := os.read(reader_fd, 1 << 20):
        taken += block
        if len(block) < 4096:
            break
        if len(taken) >= 65_536:
            break
    journal.append("small", n=1)
    taken += os.read(reader_fd, 1 << 20)
    os.close(reader_fd)
    journal.close()
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(taken)
    records, reader = read(copy)

    assert ["small"] == [record["kind"] for record in records]
    assert 1 == reader.broken_lines


def test_text_that_is_no_unicode_is_written_and_read_as_what_can_be_written_again(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = JournalFile(path, src="runner", clock_origin_s=0)
    journal.append("run.start", argv=[os.fsdecode(b"--set"), os.fsdecode(b"caf\xe9"), "\U0001f600 \\ud800"])
    journal.close()

    assert b"caf\\udce9" in path.read_bytes()
    assert [["--set", "caf\ufffd", "\U0001f600 \\ud800"]] == [record["argv"] for record in read(path)[0]]


def test_the_reader_knows_the_line_of_each_record_and_of_the_first_that_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(line(n=1) + b"\n" + line(n=2) + b"torn\n" + line(n=3))
    reader = JournalReader(path)
    found = [(number, record["n"]) for number, record in reader.read_numbered()]
    with path.open("ab") as stream:
        stream.write(b"again\n" + line(n=4) + b'{"cut')
    found += [(number, record["n"]) for number, record in reader.read_numbered()]

    assert [(1, 1), (3, 2), (5, 3), (7, 4)] == found
    assert JournalDamage(broken_lines=3, first_broken_line=4, cut_end=True) == reader.damage


def test_what_is_missing_of_a_journal_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    assert JournalDamage(found=False) == read(path)[1].damage

    path.touch()

    assert WHOLE == read(path)[1].damage

    path.write_bytes(b"{")

    assert JournalDamage(broken_lines=1, first_broken_line=1, cut_end=True) == read(path)[1].damage


def test_the_memory_journal_keeps_what_it_returns() -> None:
    journal = MemoryJournal(src="probe")
    record = journal.append("x", a=1)

    assert [record] == journal.records
    assert ("probe", 1) == (record["src"], record["a"])
