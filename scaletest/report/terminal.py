"""The final report in the terminal: verdict and objectives first, then the story, then the numbers.

Drawn with Rich at any width from 80 columns on, into text: the same document gives the same text on every machine. Colours
follow the terminal (``NO_COLOR``, ``TERM=dumb`` and pipes get none); a terminal without Unicode gets ASCII.
"""

from __future__ import annotations

import io
from typing import Final, Literal, TextIO

from rich.console import Console

from scaletest.report.document import Document
from scaletest.report.glyphs import to_ascii
from scaletest.report.sections import SECTIONS, Section

__all__ = ["print_report", "render"]

ColorSystem = Literal["standard", "256", "truecolor"]

_SYSTEMS: Final[dict[str, ColorSystem]] = {"standard": "standard", "256": "256", "truecolor": "truecolor"}


def render(document: Document, *, width: int, unicode: bool = True, colors: ColorSystem | None = None) -> str:
    """Draw the report as text that ends in a newline."""
    out = io.StringIO()
    console = Console(
        file=out, width=max(width, 40), force_terminal=colors is not None, color_system=colors, no_color=colors is None,
        markup=False, emoji=False, highlight=False, legacy_windows=False, _environ={},
    )  # fmt: skip
    for section in SECTIONS:
        _print_section(console, document, section)
    text = out.getvalue()
    if colors is None:
        text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    return text if unicode else to_ascii(text)


def _print_section(console: Console, document: Document, section: Section) -> None:
    for index, part in enumerate(section(document, console.width)):
        if index == 0:
            console.print()
        console.print(part)


def print_report(document: Document, stream: TextIO) -> None:
    """Print the report as the stream can show it."""
    console = Console(file=stream)
    system = console.color_system if console.is_terminal and not console.no_color else None
    encoding = (getattr(stream, "encoding", None) or "utf-8").lower()
    unicode = encoding.replace("-", "").startswith("utf")
    stream.write(render(document, width=console.width, unicode=unicode, colors=_SYSTEMS.get(system or "")))
    stream.flush()
