"""The driver's ends of its two pipes.

Reports never make the driver wait: when the owner does not read (it is frozen), records are dropped from the pipe
once 8 MiB lie there. They are in the journal anyhow; answers to commands are kept.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator

import gevent
from gevent import os as gevent_os
from gevent.event import Event

from scaletest.load.protocol import RecordReport, Report, encode

__all__ = ["ReportPipe", "claim_stdin", "claim_stdout", "read_lines"]

MOST_WAITING_BYTES = 8 * 2**20


def claim_stdin() -> int:
    """Take standard input for the protocol; a locustfile reads nothing there. Return the descriptor.

    The pipe must be no child's standard input: gevent's Popen makes that one blocking, and with it the driver's own end,
    which then held up the whole driver from one command to the next.
    """
    descriptor = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return descriptor


def claim_stdout() -> int:
    """Take standard output for the protocol; what a locustfile prints goes to standard error. Return the descriptor."""
    descriptor = os.dup(1)
    os.dup2(2, 1)
    return descriptor


def read_lines(descriptor: int) -> Iterator[bytes]:
    """Yield lines as they come, until the end; a last line without its newline is dropped."""
    gevent_os.make_nonblocking(descriptor)
    pending: list[bytes] = []
    while block := gevent_os.nb_read(descriptor, 1 << 16):
        *lines, rest = block.split(b"\n")
        if lines:
            lines[0] = b"".join(pending) + lines[0]
            pending = []
        pending.append(rest)
        yield from lines


class ReportPipe:
    """Writes reports to the owner in a greenlet of its own."""

    def __init__(self, descriptor: int) -> None:
        gevent_os.make_nonblocking(descriptor)
        self._descriptor = descriptor
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._more = Event()
        self.dropped_records = 0
        self._greenlet = gevent.spawn(self._write)

    def send(self, report: Report) -> None:
        """Hand a report over; returns at once."""
        line = encode(report)
        if isinstance(report, RecordReport) and self._waiting_bytes + len(line) > MOST_WAITING_BYTES:
            self.dropped_records += 1
            return
        self._waiting.append(line)
        self._waiting_bytes += len(line)
        self._more.set()

    def drain(self, timeout_s: float) -> None:
        """Wait until all is written, at most ``timeout_s``."""
        with gevent.Timeout(timeout_s, False):
            while self._waiting and not self._greenlet.dead:
                gevent.sleep(0.005)

    def _write(self) -> None:
        while True:
            self._more.wait()
            self._more.clear()
            while self._waiting:
                line = self._waiting[0]
                try:
                    while line:
                        line = line[gevent_os.nb_write(self._descriptor, line) :]
                except OSError:
                    # The owner is gone; its end is noticed at standard input.
                    self._waiting.clear()
                    return
                self._waiting_bytes -= len(self._waiting.popleft())
