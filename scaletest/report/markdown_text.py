"""Words of Markdown as GitHub reads it: text that stays text, code, tables, folded parts, and a text of a limited size."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

__all__ = ["code", "cut", "folded", "table", "text"]

_SPECIAL = re.compile(r"([\\`*_{}\[\]|~])")
_LINKS = re.compile(r"([@#])(?=\w)")


def text(value: str) -> str:
    """Return a value as plain text in one line: nothing in it is markup, a mention or a reference."""
    line = html.escape(" ".join(value.split()), quote=False)
    # A mention is found in the finished HTML, whatever was escaped in the Markdown: a comment between is not.
    return _LINKS.sub(r"\1<!-- -->", _SPECIAL.sub(r"\\\1", line))


def code(value: str) -> str:
    """Return a value as code in one line, also within a table: there a bar ends the cell even in code."""
    line = " ".join(value.split()).replace("|", "\\|")
    if not line:
        return ""
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {line} {fence}" if longest else f"`{line}`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> list[str]:
    """Return the lines of a table; cells are Markdown, the columns after the first ``left`` are numbers."""
    rules = ["---" if index < left else "---:" for index in range(len(head))]
    return [f"| {' | '.join(row)} |" for row in (head, rules, *rows)]


def folded(title: str, lines: Iterable[str]) -> list[str]:
    """Return a part that is folded until somebody clicks; ``title`` is plain text."""
    return [f"<details><summary>{html.escape(title, quote=False)}</summary>", "", *lines, "", "</details>"]


def cut(parts: Sequence[Sequence[str]], limit: int) -> str:
    """Join parts, an empty line between them, as far as ``limit`` bytes of UTF-8 allow; the first comes whole or cut by lines.

    What is left out is said at the end. Parts are never cut within, so that no table or folded part stays open.
    """
    note = "_The report goes on: it was cut to fit. `scaletest report --format text` has all of it._\n"
    room = limit - len(note.encode()) - 1
    taken: list[str] = []
    used = 0
    for index, part in enumerate(parts):
        block = "\n".join(part) + "\n"
        size = len(block.encode()) + 1
        if used + size > room:
            if index == 0:
                taken.append(_cut_lines(part, room))
            return "\n".join([*taken, note])
        taken.append(block)
        used += size
    return "\n".join(taken)


def _cut_lines(lines: Sequence[str], room: int) -> str:
    taken, used = "", 0
    for line in lines:
        used += len(line.encode()) + 1
        if used > room:
            break
        taken += f"{line}\n"
    return taken
