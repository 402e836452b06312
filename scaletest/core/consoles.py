"""Rich consoles on our streams: in the colours that the stream shows and the user wants (``--color``).

``auto`` is Rich's own judgement: colours on a terminal, none with ``NO_COLOR`` or ``TERM=dumb``, and everywhere with ``FORCE_COLOR``.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Literal, TextIO

if TYPE_CHECKING:
    from rich.console import Console

from scaletest.core.units import whole_number

__all__ = ["MOST_WIDTH", "Color", "ColorSystem", "choose_color", "color_system", "console"]

ColorSystem = Literal["standard", "256", "truecolor"]

_SYSTEMS: Final[dict[str, ColorSystem]] = {"standard": "standard", "256": "256", "truecolor": "truecolor"}


MOST_WIDTH: Final = 1_000
"""Columns that are drawn at most. No screen is wider; lines are filled up to the width, so that each column costs in every line."""


class Color(enum.StrEnum):
    """When output has colours."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


_CHOSEN: Final = ContextVar("color", default=Color.AUTO)


def choose_color(color: Color) -> None:
    """Set when the output of this process has colours."""
    _CHOSEN.set(color)


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without sizes that are none: Rich takes any digit for a number, and fails on ``²``."""
    return {name: value for name, value in environ.items() if name not in {"COLUMNS", "LINES"} or whole_number(value)}


def console(stream: TextIO, *, width: int | None = None) -> Console:
    """Return a console on a stream; without colours it writes no escape sequence at all.

    Without ``width``, it is as wide as ``COLUMNS`` or the terminal say, up to ``MOST_WIDTH``.
    """
    # Imported here: it costs the start of every command 30 ms.
    from scaletest.core.printableconsole import PrintableConsole  # noqa: PLC0415

    wanted, environ = _CHOSEN.get(), _environment(os.environ)
    found = PrintableConsole(file=stream, force_terminal=True if wanted is Color.ALWAYS else None, _environ=environ)
    system = _SYSTEMS.get(found.color_system or "")
    if wanted is Color.ALWAYS:
        system = system or "standard"
    elif wanted is Color.NEVER or found.no_color or not found.is_terminal:
        system = None
    return PrintableConsole(
        file=stream,
        width=min(found.width if width is None else width, MOST_WIDTH),
        _environ=environ,
        force_terminal=True if wanted is Color.ALWAYS else None,
        color_system=system,
        no_color=system is None,
        highlight=False,
    )


def color_system(stream: TextIO) -> ColorSystem | None:
    """Return the colours that a stream gets; None for none."""
    return _SYSTEMS.get(console(stream).color_system or "")
