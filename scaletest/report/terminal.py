"""The final report in the terminal: verdict and objectives first, then the story, then the numbers.

Drawn with Rich at any width from 80 columns on, into text: the same document gives the same text on every machine. Colours
follow ``--color`` and the terminal (``NO_COLOR``, ``TERM=dumb`` and pipes get none); a terminal without Unicode gets ASCII.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import TextIO

from scaletest.core.consoles import ColorSystem, color_system, console
from scaletest.core.printableconsole import PrintableConsole
from scaletest.report.document import Document
from scaletest.report.glyphs import to_ascii
from scaletest.report.sections import SECTIONS, Drawn

__all__ = ["print_drawn", "print_report", "render", "render_drawn", "shows_unicode"]

Parts = Callable[[int], Iterable[Iterable[Drawn]]]
"""Gives what is drawn at a width, in parts with an empty line before each."""


def render(document: Document, *, width: int, unicode: bool = True, colors: ColorSystem | None = None) -> str:
    """Draw the report as text that ends in a newline."""
    return render_drawn(_sections(document), width=width, unicode=unicode, colors=colors)


def print_report(document: Document, stream: TextIO) -> None:
    """Print the report as the stream can show it."""
    print_drawn(_sections(document), stream)


def _sections(document: Document) -> Parts:
    return lambda width: (section(document, width) for section in SECTIONS)


def render_drawn(parts: Parts, *, width: int, unicode: bool = True, colors: ColorSystem | None = None) -> str:
    """Draw parts as text that ends in a newline."""
    out = io.StringIO()
    drawn = PrintableConsole(
        file=out, width=max(width, 40), force_terminal=colors is not None, color_system=colors, no_color=colors is None,
        markup=False, emoji=False, highlight=False, legacy_windows=False, _environ={},
    )  # fmt: skip
    for part in parts(drawn.width):
        _print_part(drawn, part)
    text = out.getvalue()
    if colors is None:
        text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    return text if unicode else to_ascii(text)


def _print_part(drawn: PrintableConsole, part: Iterable[Drawn]) -> None:
    for index, item in enumerate(part):
        if index == 0:
            drawn.print()
        drawn.print(item)


def print_drawn(parts: Parts, stream: TextIO) -> None:
    """Print parts as the stream can show them."""
    width, unicode = console(stream).width, shows_unicode(stream)
    stream.write(render_drawn(parts, width=width, unicode=unicode, colors=color_system(stream)))
    stream.flush()


def shows_unicode(stream: TextIO) -> bool:
    """Whether a stream takes every character of the report."""
    encoding = (getattr(stream, "encoding", None) or "utf-8").lower()
    return encoding.replace("-", "").startswith("utf")
