"""Lines of a stream whose other end may write anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

__all__ = ["whole_lines"]


async def whole_lines(stream: asyncio.StreamReader, on_too_long: Callable[[], None]) -> AsyncIterator[bytes]:
    """Yield the lines of a stream until its end; one cut short by the end is left out.

    ``on_too_long`` is called for each line that is longer than the limit of the stream, which is passed over whole.
    """
    passing_over = False
    while True:
        try:
            line = await stream.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            return
        except asyncio.LimitOverrunError as error:
            if not passing_over:
                on_too_long()
            passing_over = True
            await stream.readexactly(error.consumed)
            continue
        if not passing_over:
            yield line
        passing_over = False
