"""Colours: as the stream shows them, or as the user wants."""

from __future__ import annotations

import contextvars
import io

import pytest

from scaletest.core.consoles import Color, choose_color, color_system, console


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
