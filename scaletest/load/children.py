"""A process that the load driver starts for a flow: commands on its standard input, reports in lines on its standard output."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Any

import gevent
from gevent import subprocess

from scaletest.load.pipes import read_lines

__all__ = ["ChildProcess"]


class ChildProcess:
    """One process, and the greenlet that hears it."""

    def __init__(self, module: str, hear: Callable[[bytes], None], silent: Callable[[], None]) -> None:
        """``hear`` takes each line that the process writes; ``silent`` is called once it will write no more."""
        self._module = module
        self._take = hear
        self._silent = silent
        self._process: Any = None
        self._reader: gevent.Greenlet | None = None

    @property
    def pid(self) -> int:
        """Its process, once started."""
        return int(self._process.pid)

    def start(self) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", self._module], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._reader = gevent.spawn(self._hear)

    def write(self, data: bytes) -> None:
        """Send it bytes. One that is not there hears nothing; that it is gone is noticed where it is read."""
        if self._process is None:
            return
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except OSError:
            return

    def how_ended(self) -> str:
        """Wait until it has ended, and say how."""
        code = self._process.wait()
        return f"ended by signal {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def end(self, grace_s: float) -> None:
        """Wait so long for its end, then kill it; nothing where it was never started."""
        if self._process is None:
            return
        if self._process.poll() is None:
            try:
                self._process.wait(timeout=grace_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._reader is not None:
            self._reader.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                pipe.close()
            except OSError:
                continue

    def _hear(self) -> None:
        for line in read_lines(self._process.stdout.fileno()):
            self._take(line)
        self._silent()
