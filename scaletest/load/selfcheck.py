"""The driver's measurement of itself: is the generator the bottleneck?

``lag`` is how much later than asked a greenlet woke that slept 20 ms: how long anything ready has to wait for its
turn. ``unread_share`` is the share of sockets waiting in a read that have bytes to be read: a slow reader, which
holds the server's seats and memory. CPU and memory are those of this process.
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
        self._greenlet = gevent.spawn(self._measure_lag)

    def _measure_lag(self) -> None:
        while True:
            asked_s = time.monotonic() + SLEEP_S
            gevent.sleep(SLEEP_S)
            self._lag_us.record(max(0, int((time.monotonic() - asked_s) * 1e6)))

    def take_record(self, interval_s: float) -> dict[str, Any]:
        """Return the fields of this interval's ``driver`` record, and start the next interval."""
        lag_us, self._lag_us = self._lag_us, Histogram()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "interval_s": interval_s,
            "lag_us": lag_us.to_json(),
            "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
            "rss_bytes": _resident_bytes(),
            "sockets": len(self._sockets.open),
            "unread_share": self._unread_share(),
        }

    def _unread_share(self) -> float | None:
        waiting = list(self._sockets.reading)
        if len(waiting) > MOST_SOCKETS:
            waiting = self._random.sample(waiting, MOST_SOCKETS)
        if not waiting:
            return None
        return round(sum(_has_unread(connection) for connection in waiting) / len(waiting), 4)


def _has_unread(connection: Socket) -> bool:
    count = array.array("i", [0])
    try:
        fcntl.ioctl(connection.fileno(), termios.FIONREAD, count)
    except OSError:
        return False
    return count[0] > 0


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
