"""Processes known by pid *and* start time, so that a recycled pid is never signalled."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ProcessId", "children_of", "end_processes", "start_time_ticks"]


def start_time_ticks(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since boot, or None when it is gone or a zombie."""
    fields = _stat_fields(pid)
    return None if fields is None or fields[0] in {"Z", "X"} else int(fields[19])


def _stat_fields(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command name stands in parentheses and may hold spaces and parentheses itself.
    return text[text.rindex(")") + 2 :].split()


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A pid with the start time of the process that had it when it was recorded."""

    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """Identify a running process; None when there is none."""
        ticks = start_time_ticks(pid)
        return None if ticks is None else cls(pid, ticks)

    @classmethod
    def current(cls) -> ProcessId:
        """Identify the calling process."""
        pid = os.getpid()
        ticks = start_time_ticks(pid)
        assert ticks is not None
        return cls(pid, ticks)

    def is_alive(self) -> bool:
        """Whether this very process (not a later one with its pid) still runs."""
        return start_time_ticks(self.pid) == self.start_ticks

    def send(self, signum: int) -> bool:
        """Signal the process if it is still this one; says whether it was there."""
        if not self.is_alive():
            return False
        try:
            os.kill(self.pid, signum)
        except ProcessLookupError:
            return False
        return True

    def to_json(self) -> dict[str, int]:
        """Return a JSON value."""
        return {"pid": self.pid, "start_ticks": self.start_ticks}

    @classmethod
    def from_json(cls, data: dict[str, int]) -> ProcessId:
        """Read what ``to_json`` gave."""
        return cls(int(data["pid"]), int(data["start_ticks"]))


def children_of(pid: int) -> list[int]:
    """Return the pids of all living descendants of a process."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat_fields(int(entry.name))
            if fields is not None and fields[0] not in {"Z", "X"}:
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = []
    frontier = [pid]
    while frontier:
        kids = parents.get(frontier.pop(), [])
        found.extend(kids)
        frontier.extend(kids)
    return found


def end_processes(processes: Iterable[ProcessId], *, grace_s: float = 3.0) -> list[ProcessId]:
    """End processes: SIGTERM, then SIGKILL after ``grace_s``. Return those that still run (none, normally)."""
    waiting = [process for process in processes if process.send(signal.SIGTERM)]
    # A frozen process handles SIGTERM only once it goes on.
    for process in waiting:
        process.send(signal.SIGCONT)
    waiting = _wait_gone(waiting, grace_s)
    for process in waiting:
        process.send(signal.SIGKILL)
    return _wait_gone(waiting, 5.0)


def _wait_gone(processes: list[ProcessId], timeout_s: float) -> list[ProcessId]:
    deadline_s = time.monotonic() + timeout_s
    while (alive := [process for process in processes if process.is_alive()]) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    return alive
