"""Counting the events of a watch as its bytes pass, and remembering where to resume.

JSON events end with a newline (one that is not part of a string: JSON escapes those); protobuf events carry
their length in four bytes before them. Of the last complete event the first 4 KiB are kept: enough for its type
and its object's resourceVersion, which are read only when the watch must be opened again, and for the revision that
the writes of an ``arrivals`` flow carry: it is the time of the write.
"""

from __future__ import annotations

import re
from typing import Final

from scaletest.load.metadata import KEPT_BYTES, event_version, failure_text, is_error_event

__all__ = ["EventCounter", "InitialEvents", "JsonEvents", "ProtobufEvents"]

_INITIAL_EVENTS_END = b"k8s.io/initial-events-end"

REVISION_KEY: Final = "scaletest.dev/revision"
"""Annotation of objects that arrivals write: when they were written, in microseconds of ``time.monotonic()``, 12 digits."""

REVISION_MODULUS: Final = 10**12

# In JSON a quoted string after a colon; in protobuf field 2 (tag 0x12) of a map's entry, 12 (0x0c) bytes long.
_REVISION = re.compile(re.escape(REVISION_KEY.encode()) + rb'(?:"\s*:\s*"|\x12\x0c)([0-9]{12})')
_DELETED = re.compile(rb'\s*\{\s*"type"\s*:\s*"DELETED"|\x0a\x07DELETED')


class EventCounter:
    """A sink that counts events; ``fresh`` are those not yet taken."""

    __slots__ = ("count", "fresh", "last")
    protobuf = False

    def __init__(self) -> None:
        self.count = 0
        self.fresh = 0
        self.last = b""

    def __call__(self, buffer: bytearray, start: int, end: int) -> None:
        """Take a span of body bytes."""
        raise NotImplementedError

    def take_fresh(self) -> int:
        """Return the events since the last call."""
        fresh, self.fresh = self.fresh, 0
        return fresh

    @property
    def version(self) -> str | None:
        """ResourceVersion of the last complete event's object, None when there is none."""
        return event_version(self.last, protobuf=self.protobuf) if self.last else None

    def age_us(self, now_s: float) -> int | None:
        """Return how long ago, in microseconds, the last complete event's object was written, None when it does not say.

        An event of a deletion shows the object as it was written last, long before: it says nothing.
        """
        match = _REVISION.search(self.last)
        if match is None or _DELETED.match(self.last):
            return None
        return (int(now_s * 1e6) - int(match[1])) % REVISION_MODULUS

    @property
    def error(self) -> tuple[int, str | None, str | None] | None:
        """Code, reason and message when the last complete event is an ERROR."""
        if not self.last or not is_error_event(self.last, protobuf=self.protobuf):
            return None
        text = failure_text(self.last, "protobuf" if self.protobuf else "application/json")
        return text.code or 500, text.reason, text.message


class JsonEvents(EventCounter):
    """Events by newline."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        super().__init__()
        self._open = b""

    def __call__(self, buffer: bytearray, start: int, end: int) -> None:
        """Take a span of body bytes."""
        events = buffer.count(b"\n", start, end)
        if not events:
            self._keep_open(buffer, start, end)
            return
        self.count += events
        self.fresh += events
        last_end = buffer.rfind(b"\n", start, end)
        previous_end = buffer.rfind(b"\n", start, last_end)
        if previous_end < 0:
            self._keep_open(buffer, start, last_end)
            self.last = self._open
        else:
            self.last = bytes(buffer[previous_end + 1 : min(last_end, previous_end + 1 + KEPT_BYTES)])
        self._open = b""
        self._keep_open(buffer, last_end + 1, end)

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
                self.count += 1
                self.fresh += 1
                self.last = self._open


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
