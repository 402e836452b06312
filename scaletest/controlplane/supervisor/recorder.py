"""Where the supervisor's records go: its own journal always, those of attached runs, and listeners."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from scaletest.controlplane.plan import JournalTarget
from scaletest.core.journal import JournalFile, Record
from scaletest.core.processes import ProcessId

__all__ = ["Recorder"]

_SRC: Final = "supervisor"
_QUEUE_RECORDS: Final = 10_000


@dataclass(slots=True)
class _Attached:
    journal: JournalFile
    holder: ProcessId | None


class Recorder:
    """Appends each record to every journal that wants it; times count from each journal's own origin."""

    def __init__(self, own_journal: Path) -> None:
        self._own = JournalFile(own_journal, src=_SRC, clock_origin_s=time.monotonic())
        self._attached: dict[Path, _Attached] = {}
        self._listeners: set[asyncio.Queue[Record | None]] = set()

    def append(self, kind: str, /, **fields: Any) -> None:
        """Append a record everywhere."""
        record = self._own.append(kind, **fields)
        self._drop_widowed()
        for attached in self._attached.values():
            attached.journal.append(kind, **fields)
        for listener in self._listeners:
            if not listener.full():
                listener.put_nowait(record)

    def attach(self, target: JournalTarget, holder: ProcessId | None) -> JournalFile:
        """Add a run's journal, replacing one with the same path; return it. Raises OSError when it cannot be opened."""
        journal = JournalFile(target.path, src=_SRC, clock_origin_s=target.clock_origin_s)
        self.detach(target.path)
        self._attached[target.path] = _Attached(journal, holder)
        return journal

    def detach(self, path: Path) -> None:
        """Let go of a run's journal."""
        attached = self._attached.pop(path, None)
        if attached is not None:
            attached.journal.close()

    def listen(self) -> asyncio.Queue[Record | None]:
        """Return a queue that gets every record from now on, and None at the end."""
        queue: asyncio.Queue[Record | None] = asyncio.Queue(_QUEUE_RECORDS)
        self._listeners.add(queue)
        return queue

    def unlisten(self, queue: asyncio.Queue[Record | None]) -> None:
        """Let go of a queue."""
        self._listeners.discard(queue)

    def close(self) -> None:
        """Close every journal and tell the listeners that nothing follows."""
        for path in list(self._attached):
            self.detach(path)
        for listener in self._listeners:
            if not listener.full():
                listener.put_nowait(None)
        self._own.close()

    def _drop_widowed(self) -> None:
        """Detach journals whose run died without detaching: what happens now is no part of it."""
        for path, attached in list(self._attached.items()):
            if attached.holder is not None and not attached.holder.is_alive():
                self.detach(path)
