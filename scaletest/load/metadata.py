r"""Version, continue token and reasons, read from answers without decoding them.

A LIST of built-in types has its metadata first, in JSON and in protobuf; a LIST of custom resources is written with
sorted keys and has it last. So the first and the last few kilobytes of a body are kept, and only they.

Protobuf is walked by field numbers (k8s.io/apimachinery ``generated.proto``): an object is the magic ``k8s\0``
and an ``Unknown`` whose field 2 holds it; a list's field 1 is ListMeta (2 resourceVersion, 3 continue); an object's
field 1 is ObjectMeta (6 resourceVersion); of a Status 3 is the message, 4 the reason, 6 the code; of a WatchEvent 1 is
the type, 2 the object within its own field 1.
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass

__all__ = [
    "BodyHead",
    "EdgeKeeper",
    "FailureText",
    "ListMetadata",
    "event_version",
    "failure_text",
    "is_error_event",
    "list_metadata",
    "protobuf_field",
]

KEPT_BYTES = 4 * 1024
_MOST_TEXT_CHARS = 200
_MAGIC = b"k8s\x00"
_VERSION = re.compile(rb'"resourceVersion"\s*:\s*"(\d+)"')
_CONTINUE = re.compile(rb'"continue"\s*:\s*"([^"]*)"')
_LIST_METADATA = re.compile(rb'"metadata"\s*:\s*\{[^{}]*\}')
_REASON = re.compile(rb'"reason"\s*:\s*"([^"]*)"')
_MESSAGE = re.compile(rb'"message"\s*:\s*("(?:[^"\\]|\\.)*)"?')
_CODE = re.compile(rb'"code"\s*:\s*(\d+)')


@dataclass(frozen=True, slots=True)
class ListMetadata:
    """``resourceVersion`` and ``continue`` of a list; empty when it has none."""

    version: str
    next_page: str


@dataclass(frozen=True, slots=True)
class FailureText:
    """Reason and message of a failed answer, as far as its beginning tells; ``code`` is a Status' own."""

    reason: str | None
    message: str | None
    code: int | None = None


class BodyHead:
    """A sink that keeps the first KiB of a failed answer."""

    __slots__ = ("data",)

    def __init__(self) -> None:
        self.data = b""

    def __call__(self, buffer: bytearray, start: int, end: int) -> None:
        """Take a span of body bytes."""
        room = 1024 - len(self.data)
        if room > 0:
            self.data += bytes(buffer[start : min(end, start + room)])


class EdgeKeeper:
    """A sink that finds a list's metadata in the first or the last 4 KiB of its body; gzip is inflated for it.

    Once the beginning has told it, the rest is neither looked at nor inflated.
    """

    __slots__ = ("_found", "_head", "_inflate", "_tail")

    def __init__(self, *, gzip: bool) -> None:
        self._head = b""
        self._tail = b""
        self._found: ListMetadata | None = None
        self._inflate = zlib.decompressobj(31) if gzip else None

    def __call__(self, buffer: bytearray, start: int, end: int) -> None:
        """Take a span of body bytes."""
        if self._found is not None:
            return
        if self._inflate is None:
            self._take(buffer, start, end)
            return
        try:
            inflated = self._inflate.decompress(bytes(buffer[start:end]))
        except zlib.error:
            return
        self._take(inflated, 0, len(inflated))

    def _take(self, data: bytes | bytearray, start: int, end: int) -> None:
        room = KEPT_BYTES - len(self._head)
        if room > 0:
            self._head += bytes(data[start : min(end, start + room)])
            if len(self._head) == KEPT_BYTES:
                self._found = list_metadata(self._head, b"")
        last = bytes(data[max(start, end - KEPT_BYTES) : end])
        self._tail = last if len(last) == KEPT_BYTES else (self._tail + last)[-KEPT_BYTES:]

    @property
    def metadata(self) -> ListMetadata | None:
        """The metadata, once the body is whole; None when it has none."""
        return self._found or list_metadata(self._head, self._tail)


def list_metadata(head: bytes, tail: bytes) -> ListMetadata | None:
    """Read a list's metadata from the first and last bytes of its body; None when it is in neither."""
    if head.startswith(_MAGIC):
        meta = protobuf_field(head[len(_MAGIC) :], 2, 1)
        if meta is None:
            return None
        return ListMetadata(_text(protobuf_field(meta, 2)), _text(protobuf_field(meta, 3)))
    items = head.find(b'"items"')
    if (items < 0 or items > head.find(b'"metadata"') >= 0) and (match := _LIST_METADATA.search(head)):
        return _json_metadata(match[0])
    found = _LIST_METADATA.findall(tail)
    return _json_metadata(found[-1]) if found else None


def _json_metadata(text: bytes) -> ListMetadata:
    version, next_page = _VERSION.search(text), _CONTINUE.search(text)
    return ListMetadata(_text(version[1] if version else None), _text(next_page[1] if next_page else None))


def event_version(event: bytes, *, protobuf: bool) -> str | None:
    """Read the resourceVersion of a watch event's object from the event's first bytes."""
    if not protobuf:
        match = _VERSION.search(event)
        return match[1].decode() if match else None
    wrapped = protobuf_field(event, 2, 1)
    if wrapped is None or not wrapped.startswith(_MAGIC):
        return None
    return _text(protobuf_field(wrapped[len(_MAGIC) :], 2, 1, 6)) or None


def is_error_event(event: bytes, *, protobuf: bool) -> bool:
    """Whether a watch event is an ERROR (its object is a Status)."""
    return (
        protobuf_field(event, 1) == b"ERROR"
        if protobuf
        else event[:40].replace(b" ", b"").startswith(b'{"type":"ERROR"')
    )


def failure_text(body: bytes, content_type: str = "application/json") -> FailureText:
    """Read reason and message from the first bytes of a failed answer, whatever it is."""
    if body.startswith(_MAGIC):
        return _protobuf_status(body[len(_MAGIC) :])
    if b"protobuf" in content_type.encode() and (wrapped := protobuf_field(body, 2, 1)):
        return _protobuf_status(wrapped.removeprefix(_MAGIC))
    reason, message, code = _REASON.search(body), _MESSAGE.search(body), _CODE.search(body)
    if reason is None and message is None:
        return FailureText(None, _head(body.decode("utf-8", "replace").strip()) or None)
    return FailureText(
        _head(reason[1].decode("utf-8", "replace")) if reason else None,
        _head(_unescape(message[1])) if message else None,
        int(code[1]) if code else None,
    )


def _protobuf_status(unknown: bytes) -> FailureText:
    status = protobuf_field(unknown, 2) or b""
    code = protobuf_field(status, 6)
    reason, message = _text(protobuf_field(status, 4)), _text(protobuf_field(status, 3))
    return FailureText(_head(reason) or None, _head(message) or None, int(code) if code else None)


def _unescape(quoted: bytes) -> str:
    try:
        return str(json.loads(quoted + b'"'))
    except ValueError:
        return quoted[1:].decode("utf-8", "replace")


def _head(text: str) -> str:
    return text[:_MOST_TEXT_CHARS]


def _text(raw: bytes | None) -> str:
    return raw.decode("utf-8", "replace") if raw else ""


def protobuf_field(data: bytes, *path: int) -> bytes | None:
    """Follow field numbers into a message and return the last field's bytes; None when it is not there.

    A varint is returned as its decimal digits. A field cut by the end of ``data`` is returned as far as it goes, so
    that the first bytes of a long message are enough.
    """
    for number in path:
        found = _field(data, number)
        if found is None:
            return None
        data = found
    return data


def _field(data: bytes, wanted: int) -> bytes | None:
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, position = _varint(data, position)
            content = str(value).encode()
        elif wire_type == 2:
            length, position = _varint(data, position)
            content = data[position : position + length]
            position += length
        elif wire_type in {1, 5}:
            width = 8 if wire_type == 1 else 4
            content = data[position : position + width]
            position += width
        else:
            return None
        if number == wanted:
            return content
    return None


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    return 0, len(data)
