"""A timer that is exact to tens of microseconds and rings at a file descriptor: Linux' timerfd.

An event loop's own timers end an ``epoll_wait``, whose time-out is in whole milliseconds: in an open model every
arrival would be half a millisecond late, a third of what a small GET takes. Measured at 500 wake-ups a second on two busy
cores: 0.71 ms late at the median with ``gevent.sleep``, 0.06 ms with a timerfd.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time

__all__ = ["TimerFd"]

_CLOEXEC_NONBLOCK = os.O_CLOEXEC | os.O_NONBLOCK
_ABSOLUTE = 1
_ITIMERSPEC = struct.Struct("@qqqq")
_libc = ctypes.CDLL(None, use_errno=True)


class TimerFd:
    """A descriptor that is readable once a time of ``time.monotonic()`` has come."""

    def __init__(self) -> None:
        # os.timerfd_create comes with Python 3.13.
        self.descriptor = _libc.timerfd_create(time.CLOCK_MONOTONIC, _CLOEXEC_NONBLOCK)
        if self.descriptor < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"timerfd_create: {os.strerror(number)}")
        self._value = ctypes.create_string_buffer(_ITIMERSPEC.size)

    def set(self, at_s: float) -> None:
        """Ring once at ``at_s``, at once when that has passed; replaces an earlier time."""
        whole_s = int(at_s)
        # 0 and 0 would switch it off.
        _ITIMERSPEC.pack_into(self._value, 0, 0, 0, whole_s, max(1, int((at_s - whole_s) * 1e9)))
        _libc.timerfd_settime(self.descriptor, _ABSOLUTE, self._value, None)

    def has_rung(self) -> bool:
        """Whether it rang, and was not set anew since; to be asked once for each time that the descriptor is readable."""
        try:
            os.read(self.descriptor, 8)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Close the descriptor; a second call does nothing."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
