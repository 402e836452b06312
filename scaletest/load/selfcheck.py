"""The driver's measurement of itself: is the generator the bottleneck?

``lag`` is how much later than asked a greenlet woke that slept 20 ms: how long anything ready has to wait for its
turn. ``unread_share`` is the share of sockets waiting in a read whose bytes lie unread for 50 ms: a slow reader, which
holds the server's seats and memory. That there are some at a moment says nothing: in a closed loop of four connections that asks 1,300 times
a second, one in four has an answer that came just now. CPU and memory are those of this process.
"""

from __future__ import annotations

import array
import fcntl
import os
import random
import resource
import termios
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gevent

from scaletest.core.histogram import Histogram
from scaletest.load.connection import Socket, Sockets

__all__ = ["SelfCheck", "SelfChecks"]

SLEEP_S = 0.020
LOOK_EVERY_S = 0.45
UNREAD_FOR_S = 0.05
MOST_SOCKETS = 500
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class SelfChecks:
    """What several processes measured of themselves in one interval: every one of them makes load, and the worst counts."""

    lag_us: Histogram = field(default_factory=Histogram)
    sockets: dict[int, int] = field(default_factory=dict)
    """Latest, by process."""
    unread_share: float | None = None
    """Largest."""

    def add(self, pid: int, record: Mapping[str, Any]) -> None:
        """Take in the ``driver`` record of a process."""
        self.lag_us.merge(Histogram.from_json(record["lag_us"]))
        self.sockets[pid] = int(record["sockets"])
        shares = [share for share in (self.unread_share, record["unread_share"]) if share is not None]
        self.unread_share = max(shares, default=None)

    def with_others(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a process' own ``driver`` record with these; its CPU and memory stay its own."""
        whole = SelfChecks(self.lag_us, dict(self.sockets), self.unread_share)
        whole.add(0, record)
        return record | {
            "lag_us": whole.lag_us.to_json(),
            "sockets": sum(whole.sockets.values()),
            "unread_share": whole.unread_share,
        }


class SelfCheck:
    """Measures until the process ends."""

    def __init__(self, sockets: Sockets) -> None:
        self._sockets = sockets
        self._lag_us = Histogram()
        self._random = random.Random(0)
        self._unread_share: float | None = None
        """Largest of this interval; of the last look where there was none in it."""
        self._is_taken = False
        self._greenlets = [gevent.spawn(self._measure_lag), gevent.spawn(self._look_for_unread)]

    def _measure_lag(self) -> None:
        while True:
            asked_s = time.monotonic() + SLEEP_S
            gevent.sleep(SLEEP_S)
            self._lag_us.record(max(0, int((time.monotonic() - asked_s) * 1e6)))

    def take_record(self, interval_s: float) -> dict[str, Any]:
        """Return the fields of this interval's ``driver`` record, and start the next interval."""
        lag_us, self._lag_us = self._lag_us, Histogram()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self._is_taken = True
        return {
            "interval_s": interval_s,
            "lag_us": lag_us.to_json(),
            "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
            "rss_bytes": _resident_bytes(),
            "sockets": len(self._sockets.open),
            "unread_share": self._unread_share,
        }

    def _look_for_unread(self) -> None:
        while True:
            gevent.sleep(LOOK_EVERY_S)
            waiting = list(self._sockets.reading)
            if len(waiting) > MOST_SOCKETS:
                waiting = self._random.sample(waiting, MOST_SOCKETS)
            unread = [(connection, connection.reads) for connection in waiting if _has_unread(connection)]
            gevent.sleep(UNREAD_FOR_S)
            lying = sum(
                connection.reads == reads and connection in self._sockets.reading for connection, reads in unread
            )
            share = round(lying / len(waiting), 4) if waiting else None
            shares = [each for each in (share, None if self._is_taken else self._unread_share) if each is not None]
            self._unread_share, self._is_taken = max(shares, default=None), False


def _has_unread(connection: Socket) -> bool:
    count = array.array("i", [0])
    try:
        fcntl.ioctl(connection.fileno(), termios.FIONREAD, count)
    except OSError:
        return False
    return count[0] > 0


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
