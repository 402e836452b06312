"""Exit codes of processes that others started: the supervisor as a child subreaper.

``kwokctl`` starts components detached and exits. Orphans of a subreaper's descendants become its children (instead of those of
process 1), so that their exit status can be waited for.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

__all__ = ["Exit", "Reaper", "become_subreaper"]

_PR_SET_CHILD_SUBREAPER: Final = 36


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended; ``peak_rss_bytes`` is the kernel's own record of its largest resident memory."""

    code: int | None
    signal: int | None
    peak_rss_bytes: int | None


UNKNOWN_EXIT: Final = Exit(None, None, None)
"""Of a process whose parent reaped it before it became ours."""


def become_subreaper() -> None:
    """Make orphaned descendants children of this process. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Reaper:
    """Waits for every child of this process. Nothing else in the process may (``subprocess.run``, asyncio's)."""

    def __init__(self) -> None:
        self._waiting: dict[int, Callable[[Exit], None]] = {}
        self._unclaimed: dict[int, Exit] = {}

    def start(self) -> None:
        """Begin to wait; needs the running event loop."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self.collect)

    def watch(self, pid: int, on_exit: Callable[[Exit], None]) -> None:
        """Call ``on_exit`` once when a process has ended, at once if it already has."""
        if pid in self._unclaimed:
            on_exit(self._unclaimed.pop(pid))
        else:
            self._waiting[pid] = on_exit

    def forget(self, pid: int) -> None:
        """Drop a process that was reaped by somebody else."""
        self._waiting.pop(pid, None)

    def collect(self) -> None:
        """Reap every child that has ended."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            code = os.waitstatus_to_exitcode(status)
            end = Exit(code if code >= 0 else None, -code if code < 0 else None, usage.ru_maxrss * 1024)
            on_exit = self._waiting.pop(pid, None)
            if on_exit is not None:
                on_exit(end)
            else:
                self._unclaimed[pid] = end
