"""Counting the events of a watch as its bytes pass, and remembering where to resume.

JSON events end with a newline (one that is not part of a string: JSON escapes those); protobuf events carry
their length in four bytes before them. Of the last complete event the first 4 KiB are kept: enough for its type
and its object's resourceVersion, which are read only when the watch must be opened again, and for the revision that
the writes of an ``arrivals`` flow carry: it is the time of the write.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from scaletest.load.metadata import KEPT_BYTES, event_version, failure_text, is_error_event

__all__ = ["REVISION_KEY", "REVISION_MODULUS", "Event", "EventCounter", "InitialEvents", "JsonEvents", "ProtobufEvents"]

_INITIAL_EVENTS_END = b"k8s.io/initial-events-end"

REVISION_KEY: Final = "scaletest.dev/revision"
"""Annotation of objects that arrivals write: when they were written, in microseconds of ``time.monotonic()``, 12 digits."""

REVISION_MODULUS: Final = 10**12

# In JSON a quoted string after a colon; in protobuf field 2 (tag 0x12) of a map's entry, 12 (0x0c) bytes long.
_KEY: Final = REVISION_KEY.encode()
_REVISION = re.compile(re.escape(_KEY) + rb'(?:"\s*:\s*"|\x12\x0c)([0-9]{12})')
_DELETED = re.compile(rb'\s*\{\s*"type"\s*:\s*"DELETED"|\x0a\x07DELETED')


class Event:
    """The beginning of an event, and when its object was written; one for all watches to which it comes in the same bytes."""

    __slots__ = ("head", "written")

    def __init__(self, head: bytes) -> None:
        self.head = head
        self.written = _revision_of(head)
        """Microseconds, modulo ``REVISION_MODULUS``; None where the event does not say."""


def _revision_of(head: bytes) -> int | None:
    at = head.find(_KEY)
    match = _REVISION.search(head, at) if at >= 0 else None
    # An event of a deletion shows the object as it was written last, long before: it says nothing.
    if match is None or _DELETED.match(head):
        return None
    return int(match[1])


class EventCounter:
    """A sink that counts events; ``fresh`` are those not yet taken."""

    __slots__ = ("_written", "count", "fresh", "last")
    protobuf = False

    latest: ClassVar[Event] = Event(b"")
    """The last event that came to any watch. A change goes to all watches in the same bytes: those are kept, and looked at, once."""

    def __init__(self) -> None:
        self.count = 0
        self.fresh = 0
        self.last: Event | None = None
        self._written: tuple[int, ...] = ()

    def __call__(self, buffer: bytearray, start: int, end: int) -> None:
        """Take a span of body bytes."""
        raise NotImplementedError

    def take_fresh(self) -> int:
        """Return the events since the last call."""
        fresh, self.fresh = self.fresh, 0
        return fresh

    def take_ages_us(self, now_s: float) -> list[int]:
        """Return how long ago, in microseconds, the objects of the events since the last call were written; only of those that say so."""
        if not self._written:
            return []
        written, self._written = self._written, ()
        now_us = int(now_s * 1e6)
        return [(now_us - at) % REVISION_MODULUS for at in written]

    @property
    def version(self) -> str | None:
        """ResourceVersion of the last complete event's object, None when there is none."""
        return event_version(self.last.head, protobuf=self.protobuf) if self.last else None

    @property
    def error(self) -> tuple[int, str | None, str | None] | None:
        """Code, reason and message when the last complete event is an ERROR."""
        if self.last is None or not is_error_event(self.last.head, protobuf=self.protobuf):
            return None
        text = failure_text(self.last.head, "protobuf" if self.protobuf else "application/json")
        return text.code or 500, text.reason, text.message

    def _complete(self, head: bytes) -> None:
        """Take note of an event of which these are the first bytes."""
        self.count += 1
        self.fresh += 1
        event = EventCounter.latest
        if event.head != head:
            event = EventCounter.latest = Event(head)
        self.last = event
        if event.written is not None:
            self._written += (event.written,)


class JsonEvents(EventCounter):
    """Events by newline."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        super().__init__()
        self._open = b""

    def __call__(self, buffer: bytearray, start: int, end: int) -> None:
        """Take a span of body bytes."""
        while (newline := buffer.find(b"\n", start, end)) >= 0:
            self._keep_open(buffer, start, newline)
            head, self._open = self._open, b""
            self._complete(head)
            start = newline + 1
        self._keep_open(buffer, start, end)

    def _keep_open(self, buffer: bytearray, start: int, end: int) -> None:
        room = KEPT_BYTES - len(self._open)
        if room > 0 and end > start:
            self._open += bytes(buffer[start : min(end, start + room)])


class ProtobufEvents(EventCounter):
    """Events by length prefix (four bytes, big-endian)."""

    __slots__ = ("_open", "_prefix", "_remaining")
    protobuf = True

    def __init__(self) -> None:
        super().__init__()
        self._prefix = b""
        self._remaining = 0
        self._open = b""

    def __call__(self, buffer: bytearray, start: int, end: int) -> None:
        """Take a span of body bytes."""
        position = start
        while position < end:
            if not self._remaining:
                take = min(4 - len(self._prefix), end - position)
                self._prefix += bytes(buffer[position : position + take])
                position += take
                if len(self._prefix) < 4:
                    return
                self._remaining = int.from_bytes(self._prefix, "big")
                self._prefix = self._open = b""
            take = min(self._remaining, end - position)
            room = KEPT_BYTES - len(self._open)
            if room > 0:
                self._open += bytes(buffer[position : position + min(take, room)])
            position += take
            self._remaining -= take
            if not self._remaining:
                head, self._open = self._open, b""
                self._complete(head)


class InitialEvents:
    """A sink that looks for the end of a watch's initial events: the bookmark with this annotation (KEP-3157).

    The annotation's name is written the same in JSON, protobuf and CBOR.
    """

    __slots__ = ("_tail", "done")

    def __init__(self) -> None:
        self.done = False
        self._tail = b""

    def __call__(self, buffer: bytearray, start: int, end: int) -> None:
        """Take a span of body bytes."""
        kept = len(_INITIAL_EVENTS_END) - 1
        # The mark may be cut by the end of a span.
        seam = self._tail + bytes(buffer[start : min(end, start + kept)])
        if _INITIAL_EVENTS_END in seam or buffer.find(_INITIAL_EVENTS_END, start, end) >= 0:
            self.done = True
        self._tail = bytes(buffer[max(start, end - kept) : end]) if end - start >= kept else seam[-kept:]
