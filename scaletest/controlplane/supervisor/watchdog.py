"""A memory cap without control groups: look often, kill at the cap as the kernel would.

What counts is anonymous memory: a control group gives file pages back before it kills, so a database mapped
into memory must not get its process killed. Shared memory segments are left out with them; no component
uses any.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Final

from scaletest.core.processes import ProcessId

__all__ = ["anonymous_bytes", "poll_interval_s", "watch_memory"]

_CALM_S: Final = 0.02
_CLOSE_S: Final = 0.005
_CLOSE_SHARE: Final = 0.7
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def poll_interval_s(used_bytes: int, cap_bytes: int) -> float:
    """Return the time to the next look: 20 ms, or 5 ms above 70 % of the cap.

    A process that takes 1 GB/s gets 20 MB further in 20 ms: it cannot go from 70 % of a cap of 300 MiB
    past it unseen, and is killed within 5 MB of it.
    """
    return _CLOSE_S if used_bytes > cap_bytes * _CLOSE_SHARE else _CALM_S


def anonymous_bytes(statm: bytes) -> int:
    """Return resident minus file and shared pages, from the text of ``/proc/PID/statm``."""
    fields = statm.split()
    return (int(fields[1]) - int(fields[2])) * _PAGE_BYTES


async def watch_memory(process: ProcessId, cap_bytes: int, on_kill: Callable[[int], None]) -> None:
    """Watch a process until it is gone; kill it at its cap, calling ``on_kill(used_bytes)`` just before."""
    try:
        descriptor = os.open(f"/proc/{process.pid}/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        # The descriptor belongs to the process that has the pid now: make sure that it is the one meant.
        if not process.is_alive():
            return
        while True:
            try:
                used = anonymous_bytes(os.pread(descriptor, 128, 0))
            except (OSError, IndexError):
                return
            if used >= cap_bytes:
                on_kill(used)
                process.send(signal.SIGKILL)
                return
            await asyncio.sleep(poll_interval_s(used, cap_bytes))
    finally:
        os.close(descriptor)
