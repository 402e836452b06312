"""A block of lines at the bottom of a terminal that is drawn over itself, with ordinary output above it.

The block stays in the normal screen and vanishes when it is closed; what was written above it stays. A ``Screen`` writes from a
thread of its own and keeps the newest picture alone: a terminal that is slow, or stopped by Ctrl-S, holds up neither
probes nor phases, it just misses pictures.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TextIO

from scaletest.core.consoles import MOST_WIDTH

__all__ = ["Block", "Screen", "Size", "size_of"]

_HIDE_CURSOR: Final = "\x1b[?25l"
_SHOW_CURSOR: Final = "\x1b[?25h"
_CLEAR_SCREEN: Final = "\x1b[H\x1b[2J"
_TO_LINE_END: Final = "\x1b[K"
_TO_SCREEN_END: Final = "\x1b[J"

_CLOSE_TIMEOUT_S: Final = 2.0
"""A terminal that takes nothing for so long will not be tidied up."""


class Size(NamedTuple):
    """Size of a terminal in characters."""

    columns: int
    rows: int


def size_of(stream: TextIO) -> Size:
    """Return the size of a terminal, of its columns those that are drawn at most; 80 by 24 where it has none."""
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        columns = rows = 0
    return Size(min(columns or 80, MOST_WIDTH), rows or 24)


class Block:
    """Makes the characters that replace one picture by the next.

    The cursor rests in the first column below the block, so that the ``^C`` that a terminal echoes falls on an
    empty line. After a change of size nobody knows how the terminal has wrapped the old picture: the screen is cleared.
    """

    def __init__(self) -> None:
        self._height = 0
        self._size: Size | None = None

    def draw(self, lines: Sequence[str], size: Size, above: str = "") -> str:
        """Draw a picture over the last one, with text above it that stays. ``lines`` must fit the size, less one row."""
        parts = [_HIDE_CURSOR, self._back(size), f"{_TO_SCREEN_END}{above}" if above else ""]
        # Erased before it is written: after a full line the cursor stands on the last character, not behind it.
        parts += [f"{_TO_LINE_END}{line}\n" for line in lines]
        self._height, self._size = len(lines), size
        return "".join([*parts, _TO_SCREEN_END])

    def erase(self, size: Size, above: str = "") -> str:
        """Remove the picture and give the cursor back, where the block began."""
        text = f"{self._back(size)}{_TO_SCREEN_END}{above}{_SHOW_CURSOR}"
        self._height, self._size = 0, None
        return text

    def _back(self, size: Size) -> str:
        if self._size is not None and size != self._size:
            return _CLEAR_SCREEN
        return f"\r\x1b[{self._height}A" if self._height else "\r"


class Screen:
    """Owns a terminal while a block is shown on it; also takes what others print to stdout and stderr meanwhile."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._block = Block()
        self._wake = threading.Condition()
        self._lines: Sequence[str] | None = None
        self._size = size_of(stream)
        self._above = ""
        self._closing = self._pausing = False
        self._redirected = contextlib.ExitStack()
        self._thread = threading.Thread(target=self._write_all, name="live-view", daemon=True)

    def open(self) -> None:
        """Begin; from now on stdout and stderr go above the block where they are terminals."""
        if sys.stdout.isatty():
            out = self._redirected.enter_context(contextlib.closing(_Above(sys.stdout, self.print_above)))
            self._redirected.enter_context(contextlib.redirect_stdout(out))
        if sys.stderr.isatty():
            err = self._redirected.enter_context(contextlib.closing(_Above(sys.stderr, self.print_above)))
            self._redirected.enter_context(contextlib.redirect_stderr(err))
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether the last picture has not been written yet."""
        return self._lines is not None

    def show(self, lines: Sequence[str], size: Size) -> None:
        """Show a picture; one that was not written yet is dropped for it."""
        with self._wake:
            self._lines, self._size = lines, size
            self._wake.notify()

    def print_above(self, text: str) -> None:
        """Print whole lines above the block, where they stay."""
        with self._wake:
            self._above += text if text.endswith("\n") else f"{text}\n"
            self._wake.notify()

    def pause(self) -> None:
        """Erase the block and show the cursor until the next picture; returns when that is done."""
        with self._wake:
            self._pausing = True
            self._wake.notify()
            self._wake.wait_for(lambda: not self._pausing, _CLOSE_TIMEOUT_S)

    def close(self) -> None:
        """Erase the block, give back cursor, stdout and stderr; harmless when closed already."""
        self._redirected.close()
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(_CLOSE_TIMEOUT_S)

    def _write_all(self) -> None:
        shown: Sequence[str] = ()
        # A terminal that went away ends the view, not the run.
        with contextlib.suppress(OSError, ValueError):
            while True:
                with self._wake:
                    self._wake.wait_for(
                        lambda: self._lines is not None or self._above or self._closing or self._pausing
                    )
                    lines, above, size, closing = self._lines, self._above, self._size, self._closing
                    self._above = ""
                if self._pausing:
                    self._write(self._block.erase(size_of(self._stream), above))
                    with self._wake:
                        self._lines, self._pausing = None, False
                        self._wake.notify_all()
                    continue
                if closing:
                    self._write(self._block.erase(size_of(self._stream), above))
                    return
                shown = lines if lines is not None else shown
                self._write(self._block.draw(shown, size, above))
                with self._wake:
                    if self._lines is lines:
                        self._lines = None

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class _Above(io.TextIOBase):
    """Stands in for a stream of the terminal: whole lines are printed above the block."""

    def __init__(self, stream: TextIO, print_above: Callable[[str], None]) -> None:
        self._terminal = stream
        self._print_above = print_above
        self._rest = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._terminal.encoding

    def fileno(self) -> int:
        return self._terminal.fileno()

    def isatty(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self.closed:
            # Whoever has kept the stand-in (a log handler made meanwhile) still has a terminal.
            return self._terminal.write(text)
        whole, newline, self._rest = (self._rest + text).rpartition("\n")
        if newline:
            self._print_above(whole)
        return len(text)

    def close(self) -> None:
        if self._rest and not self.closed:
            self._print_above(self._rest)
        super().close()
