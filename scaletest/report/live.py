"""The live view of a run on a terminal: what happens now, drawn twice a second, gone when the run ends.

Records of the journal go in through ``LiveView.__call__``. They fold into the same ``RunState`` that the final report is made
of (``live_state``); ``live_figures`` reads the last seconds off it, ``live_view`` draws them as text, and
``live_screen`` puts that on the terminal. The final report, and everything else printed meanwhile, stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Final, Self, TextIO

from rich import color
from rich.console import Console
from rich.text import Text

from scaletest.core.consoles import ColorSystem, color_system
from scaletest.core.journal import Record
from scaletest.core.texts import printable
from scaletest.profile.schema import Profile
from scaletest.report.glyphs import to_ascii
from scaletest.report.live_screen import Screen, Size, size_of
from scaletest.report.live_state import LiveState
from scaletest.report.live_view import draw
from scaletest.report.progress import ProgressWriter
from scaletest.report.terminal import shows_unicode

__all__ = ["DRAWN_EVERY_S", "LiveView", "can_show", "to_lines"]

DRAWN_EVERY_S: Final = 0.5
"""Figures come once a second. A picture takes 5 ms of the event loop that also times the probes: no more of them than needed."""


_SYSTEMS: Final[dict[ColorSystem, color.ColorSystem]] = {
    "standard": color.ColorSystem.STANDARD,
    "256": color.ColorSystem.EIGHT_BIT,
    "truecolor": color.ColorSystem.TRUECOLOR,
}


def can_show(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether a stream is a terminal on which the cursor can be moved."""
    return stream.isatty() and environ.get("TERM", "dumb") not in {"", "dumb", "unknown"}


def to_lines(drawn: Sequence[Text], *, unicode: bool, colors: ColorSystem | None) -> list[str]:
    """Turn drawn lines into characters for a terminal."""
    if colors is None:
        lines = [printable(line.plain).rstrip() for line in drawn]
    else:
        console, system = Console(file=io.StringIO(), _environ={}), _SYSTEMS[colors]
        lines = [_paint(line, console, system) for line in drawn]
    return lines if unicode else [to_ascii(line) for line in lines]


def _paint(line: Text, console: Console, system: color.ColorSystem) -> str:
    # Console.print() wraps and measures each line as well, which doubles the cost of a picture.
    whole = console.get_style(line.style)
    segments = [(printable(segment.text), segment.style or whole) for segment in line.render(console)]
    return "".join(style.render(text, color_system=system) for text, style in segments)


class LiveView:
    """Shows a run on a terminal while its context is open; records go in by calling it."""

    def __init__(self, profile: Profile, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._live = LiveState(profile)
        self._stream = stream
        self._clock = clock
        self._origin_s = math.inf
        self._colors = color_system(stream)
        self._unicode = shows_unicode(stream)
        self._screen = Screen(stream)
        self._plain: ProgressWriter | None = None
        self._ticking: asyncio.Task[None] | None = None

    def __call__(self, record: Record) -> None:
        """Take in a record; it is seen with the next picture."""
        if self._plain is None:
            with self._surviving():
                self._live.apply(record)
                # A record is read a little after it was written: the earliest reading is nearest to the truth.
                self._origin_s = min(self._origin_s, self._clock() - self._live.run.last_t_s)
        else:
            self._plain(record)

    async def __aenter__(self) -> Self:
        self._screen.open()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTSTP, self._suspend)
        self._ticking = asyncio.create_task(self._tick())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTSTP)
        try:
            if self._ticking is not None:
                self._ticking.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._ticking
        finally:
            self._screen.close()

    def _suspend(self) -> None:
        """Leave the terminal to the shell on Ctrl-Z; the next picture after ``fg`` begins below what stands there then."""
        self._screen.pause()
        os.kill(os.getpid(), signal.SIGSTOP)

    async def _tick(self) -> None:
        while self._plain is None:
            if not self._screen.busy:
                size = size_of(self._stream)
                with self._surviving():
                    self._screen.show(self._picture(size), size)
            await asyncio.sleep(DRAWN_EVERY_S)

    def _picture(self, size: Size) -> list[str]:
        """Draw the view as it is now; the cursor needs the last row."""
        now_s = max(self._live.run.last_t_s, self._clock() - self._origin_s)
        drawn = draw(self._live, now_s, width=size.columns, height=size.rows - 1)
        return to_lines(drawn, unicode=self._unicode, colors=self._colors)

    @contextlib.contextmanager
    def _surviving(self) -> Iterator[None]:
        """Go on in plain lines when the view fails: a run is worth more than its picture."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is, the run must not end of it
            self._screen.close()
            self._plain = ProgressWriter(self._stream)
            with contextlib.suppress(OSError, ValueError):
                said = printable(f"live view ended by {type(error).__name__}: {error}; plain lines from here on")
                self._stream.write(f"{said}\n")
