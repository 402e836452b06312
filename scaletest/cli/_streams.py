"""What is said on standard error, and reports that nobody need read to their end."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["reader_may_go", "say"]


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
        # What is left in the buffer would be written at the exit, and fail again.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def say(text: str) -> None:
    """Tell people something that is no part of the report."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201
