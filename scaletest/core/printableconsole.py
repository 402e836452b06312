"""A Rich console that no text can steer: whatever is printed on it, the only escape sequences are those of its styles."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from scaletest.core.texts import printable

__all__ = ["PrintableConsole"]


class PrintableConsole(Console):
    """Prints texts as ``printable`` gives them: names, reasons and notes come from files and servers."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render an object; all that Rich prints, each cell of a table too, comes through here."""
        return super().render(_printable(renderable), options)


def _printable(renderable: RenderableType) -> RenderableType:
    if isinstance(renderable, str):
        return printable(renderable)
    if isinstance(renderable, Text):
        plain = printable(renderable.plain)
        if plain != renderable.plain:
            # Character for character: its spans of style stay where they are.
            renderable = renderable.copy()
            renderable.plain = plain
    return renderable
