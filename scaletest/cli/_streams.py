"""What is said on standard error, and how much of it; and reports that nobody need read to their end."""

from __future__ import annotations

import enum
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from scaletest.core.errors import EnvironmentProblem, of_the_machine
from scaletest.core.texts import encodable, printable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from scaletest.controlplane.binaries import Progress

__all__ = [
    "Verbosity",
    "answer",
    "detail",
    "hand_over",
    "is_quiet",
    "is_verbose",
    "name_standard_output",
    "of_standard_output",
    "reader_may_go",
    "say",
    "set_verbosity",
    "task_progress",
    "tell",
]


class Verbosity(enum.StrEnum):
    """How much is said on standard error."""

    QUIET = "quiet"
    """What went wrong, and what has to be known."""
    NORMAL = "normal"
    """What goes on, too."""
    VERBOSE = "verbose"
    """Where things come from, too, and where an error was raised."""


_VERBOSITY: Final = ContextVar("verbosity", default=Verbosity.NORMAL)


def set_verbosity(verbosity: Verbosity) -> None:
    """Set how much this process says."""
    _VERBOSITY.set(verbosity)


def is_quiet() -> bool:
    """Whether only what has to be known is said."""
    return _VERBOSITY.get() is Verbosity.QUIET


def is_verbose() -> bool:
    """Whether more is said than most people want to know."""
    return _VERBOSITY.get() is Verbosity.VERBOSE


_STDOUT: Final = "standard output"


class _NamedOutput(io.FileIO):
    """Standard output whose errors say that they are of it, as those of files name the file."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = _STDOUT
            raise


def name_standard_output() -> None:
    """Have an error of writing to standard output be told from one of writing to a file."""
    old = sys.stdout
    # One that stands in for a closed stream would close its descriptor when it is let go.
    if old is not sys.__stdout__ or not isinstance(old, io.TextIOWrapper):
        return
    raw = _NamedOutput(1, "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        # As Python itself does it with PYTHONUNBUFFERED.
        raw if old.write_through else io.BufferedWriter(raw),
        encoding=old.encoding,
        errors=old.errors,
        line_buffering=old.line_buffering,
        write_through=old.write_through,
    )


def of_standard_output(error: BaseException) -> EnvironmentProblem | None:
    """Return what people are told where standard output takes no more, of which nothing is written from then on; None for other errors."""
    if not isinstance(error, OSError) or error.filename != _STDOUT or of_the_machine(error) is None:
        return None
    _to_nowhere()
    return EnvironmentProblem(f"{_STDOUT}: {error.strerror}", hint="Make room where it goes, or send it elsewhere.")


def _to_nowhere() -> None:
    # What is left in the buffer would be written at the exit, and fail again.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


@contextmanager
def reader_may_go() -> Iterator[None]:
    """Print within this a report that nobody need read to its end (``| head``, a terminal that was closed).

    The exit code stays the verdict's.
    """
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        if error.errno not in {errno.EPIPE, errno.EIO}:
            raise
        _to_nowhere()


def answer(text: str = "") -> None:
    """Print lines for people on standard output: what they asked for."""
    # At once: where the reader went away, this is the place to hear of it.
    print(printable(text), flush=True)  # noqa: T201


def hand_over(document: str) -> None:
    """Print a document for programs on standard output, as it is, in UTF-8 where its encoding lacks a character; a terminal is not steered by it either."""
    text = printable(document) if sys.stdout.isatty() else encodable(document)
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        # None of it was written: a text is encoded whole.
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())
    sys.stdout.flush()


def tell(text: str) -> None:
    """Tell people what they have to know: a warning, what is left behind."""
    print(printable(text), file=sys.stderr, flush=True)  # noqa: T201


def say(text: str) -> None:
    """Say what goes on, unless people want it quiet."""
    if not is_quiet():
        tell(text)


def detail(text: str) -> None:
    """Say what only those want to know who asked for more."""
    if is_verbose():
        tell(text)


def task_progress() -> Progress:
    """Return what shows the progress of downloads and builds on standard error."""
    from scaletest.controlplane.binaries import SilentProgress, TerminalProgress

    return SilentProgress() if is_quiet() else TerminalProgress()
