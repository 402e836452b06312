"""Rich consoles on our streams: in the colours that the stream shows and the user wants (``--color``).

``auto`` is Rich's own judgement: colours on a terminal, none with ``NO_COLOR`` or ``TERM=dumb``, and everywhere with ``FORCE_COLOR``.
"""

from __future__ import annotations

import enum
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Literal, TextIO

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Color", "ColorSystem", "choose_color", "color_system", "console"]

ColorSystem = Literal["standard", "256", "truecolor"]

_SYSTEMS: Final[dict[str, ColorSystem]] = {"standard": "standard", "256": "256", "truecolor": "truecolor"}


class Color(enum.StrEnum):
    """When output has colours."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


_CHOSEN: Final = ContextVar("color", default=Color.AUTO)


def choose_color(color: Color) -> None:
    """Set when the output of this process has colours."""
    _CHOSEN.set(color)


def console(stream: TextIO, *, width: int | None = None) -> Console:
    """Return a console on a stream; without colours it writes no escape sequence at all."""
    # Imported here: it costs the start of every command 30 ms.
    from scaletest.core.printableconsole import PrintableConsole  # noqa: PLC0415

    wanted = _CHOSEN.get()
    found = PrintableConsole(file=stream, force_terminal=True if wanted is Color.ALWAYS else None)
    system = _SYSTEMS.get(found.color_system or "")
    if wanted is Color.ALWAYS:
        system = system or "standard"
    elif wanted is Color.NEVER or found.no_color or not found.is_terminal:
        system = None
    return PrintableConsole(
        file=stream,
        width=width,
        force_terminal=True if wanted is Color.ALWAYS else None,
        color_system=system,
        no_color=system is None,
        highlight=False,
    )


def color_system(stream: TextIO) -> ColorSystem | None:
    """Return the colours that a stream gets; None for none."""
    return _SYSTEMS.get(console(stream).color_system or "")
