"""The ends of log files, for error messages and for the journal."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Final

__all__ = ["LastWords", "quote_log", "readable"]

_LINE_CHARS: Final = 240

MOST_BYTES: Final = 2_048
"""Of the last words of one process: they are in the journal once for each exit."""

_LINES: Final = 5

_WINDOW_BYTES: Final = 256 * 1024
"""How far before its end a log is read: Go prints the stacks of all goroutines after the line that says what is wrong."""

_TELLING: Final = re.compile(r"[EF]\d{4} |panic: |fatal error: |runtime: |scaletest: ")
"""Beginnings of lines that say why a process ends: klog's errors and fatal errors, Go's run time, our shim."""

_TELLING_LEVELS: Final = ("error: ", "fatal: ", "panic: ")

_SECRETS: Final = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"), r"\1 <removed>"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)?"), "<removed>"),
    (re.compile(r"(?i)\b(password|passwd|secret|token|api[_-]?key)(\\?[\"']?\s*[=:]\s*)\S+"), r"\1\2<removed>"),
    (re.compile(r"-----BEGIN .*"), "<removed>"),
)
"""What is never written into a run directory: Authorization headers, JSON Web Tokens, named secrets, PEM blocks."""

_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def quote_log(path: Path) -> str:
    """Return a paragraph with the last words of a log file; empty when there are none."""
    found = LastWords(path).take()
    if not found:
        return ""
    return "\n".join([f"last lines of {path}:", *(f"  {line}" for line in found)])


def readable(line: str) -> str:
    """Shorten a line of a log for people: of JSON (etcd, kwok) level, message and error; at most 240 characters."""
    try:
        entry = json.loads(line)
        parts = [str(entry["level"]).lower(), entry["msg"], entry.get("error") or entry.get("err")]
        line = ": ".join(str(part) for part in parts if part)
    except (ValueError, KeyError, TypeError):
        pass
    return line if len(line) <= _LINE_CHARS else line[: _LINE_CHARS - 1] + "…"


class LastWords:
    """What the processes of one component said last, each from where the one before it ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._from_byte = 0

    def take(self) -> list[str]:
        """Return the last lines that were written since the last call, at most 2 KiB of them, made safe to keep.

        The last line that tells of an error is among them, even where others follow it (the stacks of a panic, what other
        threads had to say while the process ended). Each is shortened as by ``readable``, and has neither control characters nor
        anything that looks like a credential. Empty where the log cannot be read.
        """
        try:
            with self._path.open("rb") as stream:
                size = stream.seek(0, os.SEEK_END)
                # A log that was replaced by a shorter one is new from its beginning.
                begin = self._from_byte if self._from_byte <= size else 0
                stream.seek(max(begin, size - _WINDOW_BYTES))
                text = stream.read(size - stream.tell()).decode(errors="replace")
        except OSError:
            return []
        self._from_byte = size
        lines = [line for line in text.splitlines() if line.strip()]
        chosen = lines[-_LINES:]
        telling = next((line for line in reversed(lines) if _tells(line)), None)
        if telling is not None and telling not in chosen:
            chosen = [telling, *chosen[1:]]
        return _within([_safe(line) for line in chosen], MOST_BYTES)


def _tells(line: str) -> bool:
    return _TELLING.match(line) is not None or readable(line).startswith(_TELLING_LEVELS)


def _safe(line: str) -> str:
    # Secrets go before the line is shortened: a cut token is a token still.
    line = _ESCAPES.sub("", line)
    for pattern, instead in _SECRETS:
        line = pattern.sub(instead, line)
    return readable("".join(char if char.isprintable() else " " for char in line).strip())


def _within(lines: list[str], most_bytes: int) -> list[str]:
    """Leave out lines until the rest fits: the first is the last to go, for it may be the one that tells."""
    while sum(len(line.encode()) + 1 for line in lines) > most_bytes:
        del lines[1 if len(lines) > 1 else 0]
    return lines
