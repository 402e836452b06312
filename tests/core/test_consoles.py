"""Colours: as the stream shows them, or as the user wants."""

from __future__ import annotations

import contextvars
import io
import re

import pytest
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from scaletest.core.consoles import MOST_WIDTH, Color, choose_color, color_system, console


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("color", "environ", "terminal", "expected"),
    [
        (Color.AUTO, {"TERM": "xterm-256color"}, True, True),
        (Color.AUTO, {"TERM": "xterm-256color"}, False, False),
        (Color.AUTO, {"TERM": "xterm-256color", "NO_COLOR": "1"}, True, False),
        (Color.AUTO, {"TERM": "dumb"}, True, False),
        (Color.AUTO, {"TERM": "xterm-256color", "FORCE_COLOR": "1"}, False, True),
        (Color.ALWAYS, {"TERM": "dumb", "NO_COLOR": "1"}, False, True),
        (Color.NEVER, {"TERM": "xterm-256color", "FORCE_COLOR": "1"}, True, False),
    ],
)
def test_colours_follow_the_option_then_the_environment_then_the_stream(
    color: Color, environ: dict[str, str], terminal: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TERM", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    stream = _Terminal() if terminal else io.StringIO()

    def draw() -> bool:
        choose_color(color)
        console(stream).print("[bold red]x[/]")
        return color_system(stream) is not None

    assert expected == contextvars.copy_context().run(draw)
    assert expected == ("\x1b" in stream.getvalue())


@pytest.mark.parametrize("color", [Color.ALWAYS, Color.NEVER])
def test_only_styles_make_escape_sequences(color: Color) -> None:
    hostile = "a\x1b[2Jb\x9b\u202e"
    table = Table(f"head {hostile}", box=None)
    table.add_row(Text(hostile, "red"))
    table.add_row(hostile)
    stream = io.StringIO()

    def draw() -> None:
        choose_color(color)
        for item in (table, Padding(Text(hostile), 1), Text(hostile), hostile):
            console(stream, width=80).print(item, markup=False)

    contextvars.copy_context().run(draw)
    styles = re.compile(r"\x1b\[[0-9;]*m")

    assert (color is Color.ALWAYS) == bool(styles.search(stream.getvalue()))
    plain = styles.sub("", stream.getvalue())
    assert 6 == plain.count("a\ufffd[2Jb\ufffd\ufffd")
    assert not [item for item in plain if item != "\n" and not item.isprintable()]


@pytest.mark.parametrize(("columns", "width"), [("120", 120), ("1001", MOST_WIDTH), ("100000000", MOST_WIDTH)])
def test_the_width_that_somebody_gives_is_taken_within_reason(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.delenv("TERM", raising=False)

    assert width == console(io.StringIO()).width


@pytest.mark.parametrize("columns", ["", "0", "-5", "wide", "²", "9" * 5_000])
def test_a_width_that_is_none_is_as_if_not_given(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    expected = console(io.StringIO()).width
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("LINES", columns)

    assert expected == console(io.StringIO()).width
