"""The journal: an append-only file of facts, one JSON object a line, that several processes write.

Every record has ``v`` (schema version), ``t`` (seconds since the run began, from the machine-wide
monotonic clock), ``kind`` and ``src`` (the writing process: ``runner``, ``supervisor``, ``driver``). A line
is handed to the kernel in one ``write`` to a file opened with O_APPEND, so lines of different
processes never mix and a killed process loses nothing that it had appended. A machine that
loses power may lose what was not yet on disk; a crash of any of our processes may not.

A reader skips lines that it cannot parse (a write cut short by a full disk), counts them, and knows the first.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from scaletest.core.foreignfiles import Damaged, parse_json

__all__ = [
    "JOURNAL_NAME",
    "SCHEMA_VERSION",
    "WHOLE",
    "Journal",
    "JournalDamage",
    "JournalFile",
    "JournalReader",
    "MemoryJournal",
    "Record",
    "UnwrittenJournal",
]

JOURNAL_NAME: Final = "journal.jsonl"
SCHEMA_VERSION: Final = 1

Record = dict[str, Any]


class Journal:
    """Where facts of a run go. ``append`` never raises for a full disk: it counts what was lost.

    ``clock_origin_s`` is the value of ``time.monotonic()`` that ``t`` counts from.
    """

    clock_origin_s: float

    def append(self, kind: str, /, **fields: Any) -> Record:
        """Append one record and return it with ``v``, ``t``, ``kind`` and ``src`` set."""
        raise NotImplementedError


@dataclass
class MemoryJournal(Journal):
    """Keeps records in a list: for tests, and for a cluster that no run is attached to."""

    src: str = "test"
    clock_origin_s: float = 0.0
    records: list[Record] = field(default_factory=list)

    def append(self, kind: str, /, **fields: Any) -> Record:
        """Append one record to the list."""
        record = _record(kind, self.src, self.clock_origin_s, fields)
        self.records.append(record)
        return record


@dataclass
class UnwrittenJournal(Journal):
    """Makes records and keeps none: of a process whose owner writes them."""

    src: str
    clock_origin_s: float

    def append(self, kind: str, /, **fields: Any) -> Record:
        """Return a record."""
        return _record(kind, self.src, self.clock_origin_s, fields)


class JournalFile(Journal):
    """Appends to the journal file of a run.

    ``clock_origin_s`` is the value of ``time.monotonic()`` at the start of the run. That clock is one for all
    processes of the machine (CLOCK_MONOTONIC), so every process of a run passes the same origin.
    """

    def __init__(self, path: Path, *, src: str, clock_origin_s: float) -> None:
        self.path = path
        self.src = src
        self.clock_origin_s = clock_origin_s
        self.lost_records = 0
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._torn = False

    def append(self, kind: str, /, **fields: Any) -> Record:
        """Append one record in a single write; a failed or short write is counted in ``lost_records``."""
        record = _record(kind, self.src, self.clock_origin_s, fields)
        text = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
        # An argument or path that is not UTF-8 holds lone surrogates; written as \udcXX they are JSON's own escape.
        line = text.encode(errors="backslashreplace") + b"\n"
        if self._torn:
            line = b"\n" + line
        try:
            written = os.write(self._fd, line)
        except OSError:
            self.lost_records += 1
            return record
        self._torn = written != len(line)
        if self._torn:
            self.lost_records += 1
        return record

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _record(kind: str, src: str, clock_origin_s: float, fields: dict[str, Any]) -> Record:
    return {"v": SCHEMA_VERSION, "t": round(time.monotonic() - clock_origin_s, 4), "kind": kind, "src": src, **fields}


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True, slots=True)
class JournalDamage:
    """What of a journal could not be read."""

    found: bool = True
    """Whether there is a file."""
    broken_lines: int = 0
    """Lines that are no record, the last one among them where it is cut short."""
    first_broken_line: int | None = None
    """Its number, from 1 on; None where no line is broken."""
    cut_end: bool = False
    """Whether the file ends within a line."""


WHOLE: Final = JournalDamage()


class JournalReader:
    """Reads a journal from the start, and may be asked again for what was appended since.

    ``broken_lines`` counts complete lines that were no record; ``newer_lines`` those of a newer schema.
    A last line without its newline is left for the next call.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.broken_lines = 0
        self.newer_lines = 0
        self._first_broken_line: int | None = None
        self._found = False
        self._lines = 0
        self._offset = 0
        self._pending: list[bytes] = []

    def read(self) -> Iterator[Record]:
        """Yield the records appended since the last call, in file order."""
        for _, record in self.read_numbered():
            yield record

    def read_numbered(self) -> Iterator[tuple[int, Record]]:
        """Yield the records appended since the last call, each with the number of its line, from 1 on."""
        try:
            with self.path.open("rb") as stream:
                self._found = True
                stream.seek(self._offset)
                while block := stream.read(1 << 20):
                    self._offset += len(block)
                    first, *others = block.split(b"\n")
                    self._pending.append(first)
                    if not others:
                        continue
                    lines = [b"".join(self._pending), *others[:-1]]
                    self._pending = others[-1:]
                    for line in lines:
                        self._lines += 1
                        record = self._parse(line)
                        if record is not None:
                            yield self._lines, record
        except FileNotFoundError:
            return

    @property
    def damage(self) -> JournalDamage:
        """What could not be read so far."""
        cut_end = self.has_partial_line
        first = self._first_broken_line
        if first is None and cut_end:
            first = self._lines + 1
        return JournalDamage(self._found, self.broken_lines + cut_end, first, cut_end)

    @property
    def has_partial_line(self) -> bool:
        """Whether the file ends within a line (a writer was killed, or is writing now)."""
        return any(self._pending)

    def _parse(self, line: bytes) -> Record | None:
        if not line.strip():
            return None
        try:
            record = parse_json(line)
        except Damaged:
            record = None
        if not isinstance(record, dict) or not isinstance(record.get("kind"), str) or not _is_time(record.get("t")):
            self.broken_lines += 1
            self._first_broken_line = self._first_broken_line or self._lines
            return None
        version = record.get("v")
        if isinstance(version, int) and version > SCHEMA_VERSION:
            self.newer_lines += 1
            return None
        return record
