"""An alarm clock of gevent's event loop that is exact to tens of microseconds."""

from __future__ import annotations

from collections.abc import Callable

import gevent

from scaletest.load.timerfd import TimerFd

__all__ = ["Alarm"]

_READABLE = 1


class Alarm:
    """Calls ``ring`` in the event loop at a time of ``time.monotonic()``; ``ring`` must not wait for anything."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._timer = TimerFd()
        self._watcher = gevent.get_hub().loop.io(self._timer.descriptor, _READABLE)
        self._watcher.start(self._rang)

    def set(self, at_s: float) -> None:
        """Ring once at ``at_s``, at once when that has passed; replaces an earlier time."""
        self._timer.set(at_s)

    def close(self) -> None:
        """Never ring again; a second call does nothing."""
        if self._timer.descriptor >= 0:
            self._watcher.stop()
            self._watcher.close()
            self._timer.close()

    def _rang(self) -> None:
        if self._timer.has_rung():
            self._ring()
