"""What long work says while it goes on: notes, and tasks that count bytes or packages.

``Progress`` is the interface; ``TerminalProgress`` draws bars on a terminal and writes plain lines, a few
seconds apart, anywhere else; ``SilentProgress`` says nothing.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal, Protocol, TextIO

from scaletest.core.consoles import console
from scaletest.core.units import format_bytes, format_count

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

__all__ = ["Progress", "SilentProgress", "Task", "TerminalProgress", "Unit"]

Unit = Literal["bytes", "packages", "modules"]


class Task(Protocol):
    """One piece of work that is counted."""

    def update(self, done: int, total: int | None = None) -> None:
        """Say how much is done, and of how much where that is known."""


class Progress(Protocol):
    """Where long work reports to."""

    def note(self, text: str) -> None:
        """Say one line."""

    def task(self, label: str, unit: Unit) -> AbstractContextManager[Task]:
        """Open a counted task; it is over when the context ends."""


class _SilentTask:
    def update(self, done: int, total: int | None = None) -> None:
        pass


class SilentProgress:
    """Says nothing."""

    def note(self, text: str) -> None:
        """Drop the line."""

    def task(self, label: str, unit: Unit) -> AbstractContextManager[Task]:  # noqa: ARG002
        """Open a task that is not shown."""
        return contextlib.nullcontext(_SilentTask())


class TerminalProgress:
    """Bars on a terminal; elsewhere (a CI log) a line at most every ``interval_s`` seconds."""

    def __init__(
        self, stream: TextIO | None = None, *, interval_s: float = 5.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._interval_s = interval_s
        self._clock = clock

    def note(self, text: str) -> None:
        """Write one line."""
        print(text, file=self._stream, flush=True)

    @contextlib.contextmanager
    def task(self, label: str, unit: Unit) -> Iterator[Task]:
        """Open a task shown as a bar or as lines."""
        if self._stream.isatty():
            with self._bar(label, unit) as task:
                yield task
        else:
            lines = _LineTask(label, unit, self._stream, self._interval_s, self._clock)
            yield lines
            lines.finish()

    @contextlib.contextmanager
    def _bar(self, label: str, unit: Unit) -> Iterator[Task]:
        # Imported here: it costs the start of every command 30 ms.
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
        from rich.progress import Progress as RichProgress  # noqa: PLC0415

        columns: list[ProgressColumn] = [
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[amount]}"),
            TimeElapsedColumn(),
        ]
        with RichProgress(*columns, console=console(self._stream), transient=True) as bars:
            task_id = bars.add_task(label, total=None, amount="")

            class _Bar:
                def update(self, done: int, total: int | None = None) -> None:
                    bars.update(task_id, completed=done, total=total, amount=amount_text(done, total, unit))

            yield _Bar()


class _LineTask:
    def __init__(self, label: str, unit: Unit, stream: TextIO, interval_s: float, clock: Callable[[], float]) -> None:
        self._label, self._unit, self._stream = label, unit, stream
        self._interval_s, self._clock = interval_s, clock
        self._began_s = self._said_s = clock()
        self._last = ""

    def update(self, done: int, total: int | None = None) -> None:
        self._last = amount_text(done, total, self._unit)
        if self._clock() - self._said_s >= self._interval_s:
            self._said_s = self._clock()
            print(f"{self._label}: {self._last}", file=self._stream, flush=True)

    def finish(self) -> None:
        seconds = self._clock() - self._began_s
        amount = f"{self._last}, " if self._last else ""
        print(f"{self._label}: done, {amount}{seconds:.0f} s", file=self._stream, flush=True)


def amount_text(done: int, total: int | None, unit: Unit) -> str:
    """Format an amount: ``12.1 MiB of 27.0 MiB (45 %)``, ``310 of 1,204 packages (26 %)``."""
    if unit == "bytes":
        text, whole = format_bytes(done), format_bytes(total or 0)
    else:
        text, whole = format_count(done), format_count(total or 0)
    if total:
        text = f"{text} of {whole}"
    if unit != "bytes":
        text = f"{text} {unit}"
    return f"{text} ({min(done / total, 1.0) * 100:.0f} %)" if total else text
