"""When an open loop sends: at ``first + k × every``, whatever became of the sends before.

A send that could not take place (the process slept, or as many requests as can still succeed are
under way) is *missed*: it is reported, never made up for, and never moves the sends after it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

__all__ = ["DRAIN_S", "OpenLoop", "Tick", "run_open_loop"]

DRAIN_S: Final = 5.0
"""How long the end of a loop waits for answers that are under way; what is left then is cancelled."""


@dataclass(frozen=True, slots=True)
class Tick:
    """One due time, and whether it went by for want of a running process."""

    due_s: float
    missed: bool


@dataclass(slots=True)
class OpenLoop:
    """Due times on the clock that is passed in; ``first_s`` and ``every_s`` in seconds."""

    first_s: float
    every_s: float
    _next: int = field(default=0)

    @property
    def next_due_s(self) -> float:
        """The next due time."""
        return self.first_s + self._next * self.every_s

    def take(self, now_s: float) -> list[Tick]:
        """Return the due times reached by ``now_s``, oldest first; all but the last are missed."""
        due_s: list[float] = []
        while self.next_due_s <= now_s:
            due_s.append(self.next_due_s)
            self._next += 1
        return [Tick(each_s, missed=index < len(due_s) - 1) for index, each_s in enumerate(due_s)]


def most_in_flight(timeout_s: float, every_s: float) -> int:
    """Return how many requests can be under way when each ends by its time-out, and one to spare."""
    return math.ceil(timeout_s / every_s) + 1


async def run_open_loop(
    loop: OpenLoop,
    send: Callable[[float], Awaitable[None]],
    miss: Callable[[float, str], None],
    *,
    limit: int,
    stop: asyncio.Event,
) -> None:
    """Call ``send(due_s)`` at every due time until ``stop``, at most ``limit`` at once; else ``miss(due_s, why)``.

    ``send`` must handle its own errors, and record what it was doing when it is cancelled.
    """
    under_way: set[asyncio.Future[None]] = set()
    try:
        while not await _stopped_by(stop, loop.next_due_s):
            for tick in loop.take(time.monotonic()):
                if tick.missed:
                    miss(tick.due_s, "not sent: the measuring process was held up")
                elif len(under_way) >= limit:
                    miss(tick.due_s, f"not sent: {len(under_way)} requests without an answer")
                else:
                    request = asyncio.ensure_future(send(tick.due_s))
                    under_way.add(request)
                    request.add_done_callback(under_way.discard)
        if under_way:
            await asyncio.wait(under_way, timeout=DRAIN_S)
    finally:
        left = list(under_way)
        for rest in left:
            rest.cancel()
        await asyncio.gather(*left, return_exceptions=True)


async def _stopped_by(stop: asyncio.Event, due_s: float) -> bool:
    """Wait for ``stop`` until ``due_s``; return whether it came."""
    try:
        async with asyncio.timeout_at(due_s):
            await stop.wait()
    except TimeoutError:
        return False
    return True
