"""An alarm clock of the event loop that is exact to tens of microseconds: Linux' timerfd.

The loop's own timers end an ``epoll_wait``, whose time-out is in whole milliseconds: in an open model every
arrival would be half a millisecond late, a third of what a small GET takes. Measured at 500 wake-ups a second on two busy
cores: 0.71 ms late at the median with ``gevent.sleep``, 0.06 ms with a timerfd.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Callable

import gevent

__all__ = ["Alarm"]

_CLOEXEC_NONBLOCK = os.O_CLOEXEC | os.O_NONBLOCK
_ABSOLUTE = 1
_READABLE = 1
_ITIMERSPEC = struct.Struct("@qqqq")
_libc = ctypes.CDLL(None, use_errno=True)


class Alarm:
    """Calls ``ring`` in the event loop at a time of ``time.monotonic()``; ``ring`` must not wait for anything."""

    def __init__(self, ring: Callable[[], None]) -> None:
        # os.timerfd_create comes with Python 3.13.
        self._descriptor = _libc.timerfd_create(time.CLOCK_MONOTONIC, _CLOEXEC_NONBLOCK)
        if self._descriptor < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"timerfd_create: {os.strerror(number)}")
        self._ring = ring
        self._value = ctypes.create_string_buffer(_ITIMERSPEC.size)
        self._watcher = gevent.get_hub().loop.io(self._descriptor, _READABLE)
        self._watcher.start(self._rang)

    def set(self, at_s: float) -> None:
        """Ring once at ``at_s``, at once when that has passed; replaces an earlier time."""
        whole_s = int(at_s)
        # 0 and 0 would switch it off.
        _ITIMERSPEC.pack_into(self._value, 0, 0, 0, whole_s, max(1, int((at_s - whole_s) * 1e9)))
        _libc.timerfd_settime(self._descriptor, _ABSOLUTE, self._value, None)

    def close(self) -> None:
        """Never ring again; a second call does nothing."""
        if self._descriptor >= 0:
            self._watcher.stop()
            self._watcher.close()
            os.close(self._descriptor)
            self._descriptor = -1

    def _rang(self) -> None:
        try:
            os.read(self._descriptor, 8)
        except BlockingIOError:
            # Set anew after it rang.
            return
        self._ring()
