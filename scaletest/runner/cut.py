"""What ends a run before its last phase: the first reason wins."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Cut", "CutReason", "on_signals"]


@dataclass(frozen=True, slots=True)
class CutReason:
    """Why a run was cut short; ``status`` is that of the journal's ``run.end``."""

    status: str
    reason: str


class Cut:
    """Cancels a run's body once, and remembers why."""

    def __init__(self) -> None:
        self.why: CutReason | None = None
        self._body: asyncio.Task[None] | None = None

    async def guard(self, body: asyncio.Task[None]) -> None:
        """Wait for the body; a cut ends the wait, any other failure of the body is raised."""
        self._body = body
        if self.why is not None:
            body.cancel()
        try:
            await body
        except asyncio.CancelledError:
            if self.why is None:
                raise
        finally:
            self._body = None

    def __call__(self, status: str, reason: str) -> None:
        """Cut the run short for a reason; later calls change nothing."""
        if self.why is not None:
            return
        self.why = CutReason(status, reason)
        if self._body is not None:
            self._body.cancel()


def on_signals(handler: Callable[[signal.Signals], None]) -> Callable[[], None]:
    """Call ``handler`` for SIGINT, SIGTERM and SIGHUP in the running loop; returns what undoes it."""
    loop = asyncio.get_running_loop()
    watched = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for signum in watched:
        loop.add_signal_handler(signum, handler, signum)

    def undo() -> None:
        for signum in watched:
            loop.remove_signal_handler(signum)

    return undo
