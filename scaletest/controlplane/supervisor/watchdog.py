"""A memory cap without control groups: look often, kill at the cap as the kernel would.

What counts is anonymous and shared memory, not file pages: a control group gives those back before it kills, so a database
mapped into memory must not get its process killed.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Callable
from typing import Final

from scaletest.core.processes import ProcessId

__all__ = ["poll_interval_s", "resident_bytes", "unreclaimable_bytes", "watch_memory"]

_CALM_S: Final = 0.02
_CLOSE_S: Final = 0.005
_CLOSE_SHARE: Final = 0.7
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_UNRECLAIMABLE: Final = re.compile(rb"^Rss(?:Anon|Shmem):\s*(\d+) kB$", re.MULTILINE)


def poll_interval_s(used_bytes: int, cap_bytes: int) -> float:
    """Return the time to the next look: 20 ms, or 5 ms above 70 % of the cap.

    A process that takes 1 GB/s gets 20 MB further in 20 ms: it cannot go from 70 % of a cap of 300 MiB
    past it unseen, and is killed within 5 MB of it.
    """
    return _CLOSE_S if used_bytes > cap_bytes * _CLOSE_SHARE else _CALM_S


def resident_bytes(statm: bytes) -> int:
    """Return all resident memory, from the text of ``/proc/PID/statm``: cheap to read, never too little."""
    return int(statm.split()[1]) * _PAGE_BYTES


def unreclaimable_bytes(status: bytes) -> int:
    """Return anonymous and shared resident memory, from the text of ``/proc/PID/status``."""
    return sum(int(kilobytes) for kilobytes in _UNRECLAIMABLE.findall(status)) * 1024


async def watch_memory(process: ProcessId, cap_bytes: int, on_kill: Callable[[int], None]) -> None:
    """Watch a process until it is gone; kill it at its cap, calling ``on_kill(used_bytes)`` just before."""
    try:
        statm = os.open(f"/proc/{process.pid}/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        status = os.open(f"/proc/{process.pid}/status", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        os.close(statm)
        return
    try:
        # The descriptors belong to the process that has the pid now: make sure that it is the one meant.
        if not process.is_alive():
            return
        while True:
            used = _used_bytes(statm, status, cap_bytes)
            if used >= cap_bytes:
                on_kill(used)
                process.send(signal.SIGKILL)
                return
            await asyncio.sleep(poll_interval_s(used, cap_bytes))
    except (OSError, IndexError):
        return  # it has ended
    finally:
        os.close(statm)
        os.close(status)


def _used_bytes(statm: int, status: int, cap_bytes: int) -> int:
    used = resident_bytes(os.pread(statm, 128, 0))
    return unreclaimable_bytes(os.pread(status, 8192, 0)) if used > cap_bytes * _CLOSE_SHARE else used
