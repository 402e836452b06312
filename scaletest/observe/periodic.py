"""Do something every so often, one at a time, for as long as the run lasts.

An error is handed on and does not end the series; a turn that takes longer than the period swallows
the turns that it covers, so that nothing piles up behind a hung server.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable

__all__ = ["next_due_s", "periodically"]


def next_due_s(first_s: float, every_s: float, now_s: float) -> float:
    """Return the first time ``first + k × every`` after ``now``."""
    return first_s + max(0, math.floor((now_s - first_s) / every_s) + 1) * every_s


async def periodically(
    every_s: float, turn: Callable[[], Awaitable[None]], failed: Callable[[Exception], None], stop: asyncio.Event
) -> None:
    """Await ``turn()`` at once and then every ``every_s`` until ``stop``; a turn under way is cut off by it."""
    first_s = time.monotonic()
    stopped = asyncio.ensure_future(stop.wait())
    try:
        while not stop.is_set():
            work = asyncio.ensure_future(turn())
            try:
                await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                work.cancel()
                (result,) = await asyncio.gather(work, return_exceptions=True)
            if isinstance(result, Exception):
                failed(result)
            wait_s = next_due_s(first_s, every_s, time.monotonic()) - time.monotonic()
            await asyncio.wait({stopped}, timeout=max(0.0, wait_s))
    finally:
        stopped.cancel()
