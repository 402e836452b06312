"""Run a command in a terminal and keep what it showed, for the documentation.

    python -m benchmarks.capture docs/captures/outage-80 --columns 80 --rows 36 --at 60 --at 150 -- scaletest run openai-outage

The command gets a pseudo-terminal of that size. Each ``--at`` (seconds after the start) keeps the screen as NAME-SECONDS.txt
and .svg; ``--widen SECONDS:COLUMNS`` gives the terminal another width, as somebody who pulls at the window does; at the end NAME-end.txt and .svg have all that stayed on the terminal, what has scrolled off included. The
command's exit code is returned.
"""

from __future__ import annotations

import argparse
import fcntl
import io
import itertools
import os
import pty
import select
import struct
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import pyte
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import MONOKAI
from rich.text import Text

_READ_BYTES: Final = 1 << 16
_NAMED: Final = {"brown": "yellow"}
"""What pyte calls differently from Rich."""

_SVG: Final = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's own picture of a terminal, without fonts from the network."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", type=Path, help="where to write: a path without its suffix")
    parser.add_argument("--columns", type=int, default=80)
    parser.add_argument("--rows", type=int, default=36)
    parser.add_argument("--at", type=float, action="append", default=[], metavar="SECONDS")
    parser.add_argument("--widen", type=_widening, action="append", default=[], metavar="SECONDS:COLUMNS")
    parser.add_argument("command", nargs="+", help="after --")
    options = parser.parse_args()
    options.name.parent.mkdir(parents=True, exist_ok=True)
    events: list[tuple[float, int | None]] = [*((at_s, None) for at_s in options.at), *options.widen]
    sys.exit(
        capture(
            options.command,
            options.name,
            columns=options.columns,
            rows=options.rows,
            events=sorted(events, key=itemgetter(0)),
        )
    )


def _widening(text: str) -> tuple[float, int]:
    at_s, _, columns = text.partition(":")
    return float(at_s), int(columns)


def capture(
    argv: Sequence[str], name: Path, *, columns: int, rows: int, events: Sequence[tuple[float, int | None]]
) -> int:
    """Run a command in a terminal, write its pictures, and return its exit code."""
    screen = pyte.HistoryScreen(columns, rows, history=10_000, ratio=0.5)
    stream = pyte.ByteStream(screen)
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
        os.execvp(argv[0], list(argv))
    _resize(terminal, rows, columns)
    began_s = time.monotonic()
    left = list(events)
    while True:
        readable, _, _ = select.select([terminal], [], [], 0.2)
        if readable:
            try:
                data = os.read(terminal, _READ_BYTES)
            except OSError:  # the other side is closed
                data = b""
            if not data:
                break
            stream.feed(data)
        while left and time.monotonic() - began_s >= left[0][0]:
            at_s, width = left.pop(0)
            if width is None:
                _write(name.with_name(f"{name.name}-{at_s:g}"), _lines(screen, with_history=False), screen.columns)
            else:
                screen.resize(rows, width)
                _resize(terminal, rows, width)
    _write(name.with_name(f"{name.name}-end"), _lines(screen, with_history=True), screen.columns)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _resize(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _lines(screen: pyte.HistoryScreen, *, with_history: bool) -> list[Text]:
    shown = [screen.buffer[row] for row in range(screen.lines)]
    rows: list[Mapping[int, Any]] = [*(screen.history.top if with_history else []), *shown]
    lines = [_line(row, screen.columns) for row in rows]
    while lines and not lines[-1].plain.strip():
        lines.pop()
    return lines


def _line(row: Mapping[int, Any], columns: int) -> Text:
    line = Text(no_wrap=True, end="")
    for style, characters in itertools.groupby((row[column] for column in range(columns)), key=_style):
        line.append("".join(character.data for character in characters), style)
    line.rstrip()
    return line


def _style(character: Any) -> Style:
    return Style(
        color=_color(character.fg), bgcolor=_color(character.bg), bold=character.bold, italic=character.italics,
        reverse=character.reverse,
    )  # fmt: skip


def _color(name: str) -> str | None:
    if name == "default":
        return None
    if len(name) == 6 and all(letter in "0123456789abcdef" for letter in name):
        return f"#{name}"
    bright = name.removeprefix("bright")
    return f"{'bright_' if bright != name else ''}{_NAMED.get(bright, bright)}"


def _write(path: Path, lines: Sequence[Text], columns: int) -> None:
    text = "".join(f"{line.plain}\n" for line in lines)
    path.with_name(f"{path.name}.txt").write_text(text, encoding="utf-8")
    console = Console(record=True, width=columns, file=io.StringIO())
    for line in lines:
        console.print(line, soft_wrap=True)
    console.save_svg(str(path.with_name(f"{path.name}.svg")), title="", theme=MONOKAI, code_format=_SVG)


if __name__ == "__main__":
    main()
