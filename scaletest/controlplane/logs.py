"""The ends of log files, for error messages."""

from __future__ import annotations

import json
import os
from pathlib import Path

__all__ = ["quote_log", "readable", "tail"]

_LINE_CHARS = 240


def tail(path: Path, *, lines: int = 5, limit_bytes: int = 16_384) -> list[str]:
    """Return the last lines of a text file, at most ``limit_bytes`` of them; none when it cannot be read."""
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - limit_bytes))
            text = stream.read().decode(errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()][-lines:]


def quote_log(path: Path) -> str:
    """Return a paragraph with the last lines of a log file; empty when there are none."""
    found = tail(path)
    if not found:
        return ""
    return "\n".join([f"last lines of {path}:", *(f"  {readable(line)}" for line in found)])


def readable(line: str) -> str:
    """Shorten a line of a log for people: of JSON (etcd, kwok) level, message and error; at most 240 characters."""
    try:
        entry = json.loads(line)
        parts = [str(entry["level"]).lower(), entry["msg"], entry.get("error") or entry.get("err")]
        line = ": ".join(str(part) for part in parts if part)
    except (ValueError, KeyError, TypeError):
        pass
    return line if len(line) <= _LINE_CHARS else line[: _LINE_CHARS - 1] + "…"
