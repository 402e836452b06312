"""Waiting: for the end of a process that is not ours (the owner of a cluster), and for anything that can only be polled."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Final

from scaletest.core.processes import ProcessId

__all__ = ["poll_until", "wait_gone"]

_POLL_S: Final = 0.02
_OWNER_POLL_S: Final = 0.2


async def poll_until(
    condition: Callable[[], bool], *, timeout_s: float | None = None, period_s: float = _POLL_S
) -> bool:
    """Wait until a condition holds; says whether it does. For what tells nobody of its changes (``/proc``)."""
    deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        if condition():
            return True
        if deadline_s is not None and time.monotonic() >= deadline_s:
            return False
        await asyncio.sleep(period_s)


async def wait_gone(process: ProcessId) -> None:
    """Return when a process has ended (at once when it already has)."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    except OSError:  # a kernel before 5.3, or a sandbox without the call
        await poll_until(lambda: not process.is_alive(), period_s=_OWNER_POLL_S)
        return
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    try:
        # The descriptor is of the process that has the pid now; only its start time says whether it is the one meant.
        if process.is_alive():
            loop.add_reader(descriptor, gone.set)
            await gone.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
