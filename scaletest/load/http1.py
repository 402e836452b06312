"""HTTP/1.1 answers, read in place: a head is parsed, a body is walked, nothing is copied or decoded.

Sans-io: the functions take a buffer and the span [start, end) of it that the network filled, and say how far they
came. Several readers share one buffer (nothing may be left in it when a reader waits), so whatever of a
head or of a chunk's size line is cut by the end of a span is kept here.

A *sink* sees each span of body bytes; it is passed only by those who want to look (metadata of a list, events
of a watch, the beginning of a failed answer).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

__all__ = [
    "Body",
    "ChunkedBody",
    "Head",
    "HeadReader",
    "LengthBody",
    "MalformedAnswer",
    "Sink",
    "UntilCloseBody",
    "plain_answer",
]

Sink = Callable[[bytearray, int, int], None]

_MOST_HEAD_BYTES = 64 * 1024
_MOST_LINE_BYTES = 4 * 1024
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [^\r\n]*)?\r?\n")
_HEADERS = re.compile(
    rb"^(content-length|transfer-encoding|connection|retry-after|content-type|content-encoding):[ \t]*([^\r\n]*?)[ \t]*\r?$",
    re.IGNORECASE | re.MULTILINE,
)
_PLAIN_ANSWER = re.compile(
    rb"HTTP/1\.1 (2[0-9]{2}) [^\r\n]*\r\n"
    rb"(?:(?!(?i:connection|transfer-encoding|content-length):)[^\r\n]+\r\n)*"
    rb"Content-Length: ([0-9]{1,15})\r\n"
    rb"(?:(?!(?i:connection|transfer-encoding|content-length):)[^\r\n]+\r\n)*"
    rb"\r\n"
)
_SIZE_LINE = re.compile(rb"([0-9a-fA-F]{1,16})[ \t]*(?:;.*)?")


class MalformedAnswer(Exception):
    """The peer sent something that is not HTTP/1.1."""


class Body:
    """A body being walked. ``received_bytes`` counts body bytes, without chunk framing."""

    __slots__ = ("done", "received_bytes")

    def __init__(self) -> None:
        self.received_bytes = 0
        self.done = False

    def feed(self, buffer: bytearray, start: int, end: int, sink: Sink | None) -> int:
        """Walk the span and return where the body ended in it, or ``end``. Raises MalformedAnswer."""
        raise NotImplementedError

    def at_eof(self) -> bool:
        """Whether the body is whole when the peer closes now."""
        return self.done


class LengthBody(Body):
    """A body of known length; 0 for an answer that has none."""

    __slots__ = ("_remaining",)

    def __init__(self, length: int) -> None:
        super().__init__()
        self._remaining = length
        self.done = length == 0

    def feed(self, buffer: bytearray, start: int, end: int, sink: Sink | None) -> int:
        """Walk the span; see Body."""
        stop = min(end, start + self._remaining)
        if sink is not None and stop > start:
            sink(buffer, start, stop)
        self._remaining -= stop - start
        self.received_bytes += stop - start
        self.done = self._remaining == 0
        return stop


class UntilCloseBody(Body):
    """A body that ends when the peer closes."""

    __slots__ = ()

    def feed(self, buffer: bytearray, start: int, end: int, sink: Sink | None) -> int:
        """Walk the span; see Body."""
        if sink is not None and end > start:
            sink(buffer, start, end)
        self.received_bytes += end - start
        return end

    def at_eof(self) -> bool:
        """Return True: closing is the end."""
        return True


class ChunkedBody(Body):
    """A chunked body (RFC 9112, 7.1): size line, data, empty line; after the chunk of size 0, trailers.

    The API server writes an object a chunk, so the loop runs 240 times per MB of pods.
    """

    __slots__ = ("_in_trailers", "_line", "_remaining", "_size_due")

    def __init__(self) -> None:
        super().__init__()
        self._remaining = 0
        self._size_due = True  # else the empty line after a chunk's data
        self._in_trailers = False
        self._line = b""

    def feed(self, buffer: bytearray, start: int, end: int, sink: Sink | None) -> int:
        """Walk the span; see Body."""
        position, remaining = start, self._remaining
        while position < end:
            if remaining:
                stop = position + remaining
                stop = min(stop, end)
                if sink is not None:
                    sink(buffer, position, stop)
                self.received_bytes += stop - position
                remaining -= stop - position
                position = stop
                if remaining:
                    break
                # A chunk's end and the next size mostly lie in the same span.
                if not buffer.startswith(b"\r\n", position, end):
                    self._size_due = False
                    continue
                position += 2
            newline = buffer.find(b"\r\n", position, end)
            if newline < 0 or self._line or self._in_trailers or not self._size_due:
                position = self._take_line(buffer, position, end)
                remaining = self._remaining
                if self.done:
                    break
                continue
            remaining = _chunk_size(bytes(buffer[position:newline]))
            self._in_trailers = not remaining
            position = newline + 2
        self._remaining = remaining
        return position

    def _take_line(self, buffer: bytearray, start: int, end: int) -> int:
        """Take a line that is cut, or that is not a chunk's size; return where it ended."""
        newline = buffer.find(b"\n", start, end)
        stop = end if newline < 0 else newline + 1
        self._line += bytes(buffer[start:stop])
        self._remaining = 0
        if newline < 0:
            if len(self._line) > _MOST_LINE_BYTES:
                msg = "the line of a chunk's size is too long"
                raise MalformedAnswer(msg)
            return stop
        line, self._line = self._line.removesuffix(b"\n").removesuffix(b"\r"), b""
        if self._in_trailers:
            self.done = not line
        elif self._size_due:
            self._remaining = _chunk_size(line)
            self._in_trailers = not self._remaining
        elif line:
            msg = f"no end of line after a chunk: {line[:40]!r}"
            raise MalformedAnswer(msg)
        else:
            self._size_due = True
        return stop


@functools.lru_cache(maxsize=4096)
def _chunk_size(line: bytes) -> int:
    """Return the size that a line tells. Raises MalformedAnswer. Equal objects make equal lines, hence the cache."""
    match = _SIZE_LINE.fullmatch(line)
    if match is None:
        msg = f"not the size of a chunk: {line[:40]!r}"
        raise MalformedAnswer(msg)
    return int(match[1], 16)


@dataclass(slots=True)
class Head:
    """What a client must know of an answer's head, and the body that follows it."""

    status: int
    body: Body
    keep_alive: bool
    retry_after_s: int | None
    content_type: str
    gzip: bool


class HeadReader:
    """Collects and parses the head of the final answer to a GET; 1xx answers before it are skipped."""

    __slots__ = ("_pending",)

    def __init__(self) -> None:
        self._pending = b""

    @property
    def began(self) -> bool:
        """Whether a part of a head waits for the rest."""
        return bool(self._pending)

    def feed(self, buffer: bytearray, start: int, end: int) -> tuple[Head | None, int]:
        """Take a span; return the head once whole, and where it ended. Raises MalformedAnswer."""
        while True:
            stop = _head_end(buffer, start, end) if not self._pending else -1
            if stop >= 0:
                raw = bytes(buffer[start:stop])
            else:
                # Cut by the end of a span: rare, so the whole is copied.
                self._pending += bytes(buffer[start:end])
                kept = bytearray(self._pending)
                whole = _head_end(kept, 0, len(kept))
                if whole < 0:
                    _check_beginning(self._pending)
                    return None, end
                raw, stop = self._pending[:whole], end - (len(kept) - whole)
                self._pending = b""
            head = parse_head(raw)
            if head is not None:
                return head, stop
            start = stop


def _head_end(buffer: bytearray, start: int, end: int) -> int:
    stop = buffer.find(b"\r\n\r\n", start, end)
    if stop >= 0:
        return stop + 4
    stop = buffer.find(b"\n\n", start, end)
    return stop + 2 if stop >= 0 else -1


def _check_beginning(pending: bytes) -> None:
    if len(pending) > _MOST_HEAD_BYTES:
        msg = "the head of the answer is too long"
        raise MalformedAnswer(msg)
    expected = b"HTTP/1."
    if not pending.startswith(expected[: len(pending)]):
        msg = f"not HTTP/1.1: {pending[:40]!r}"
        raise MalformedAnswer(msg)


def plain_answer(buffer: bytearray, end: int) -> tuple[str, int] | None:
    """Return status and body length when the buffer holds exactly one good answer of known length, else None.

    The common case of small requests, at a fifth of the cost of a head and a body that are kept apart.
    """
    match = _PLAIN_ANSWER.match(buffer, 0, end)
    if match is None:
        return None
    body_bytes = int(match[2])
    return (str(match[1], "ascii"), body_bytes) if match.end() + body_bytes == end else None


def parse_head(raw: bytes) -> Head | None:
    """Parse a head with its empty line; None for a 1xx. Raises MalformedAnswer."""
    match = _STATUS_LINE.match(raw)
    if match is None:
        msg = f"not HTTP/1.1: {raw[:40]!r}"
        raise MalformedAnswer(msg)
    status = int(match[2])
    if status < 200:
        if status == 101:
            msg = "the server switched protocols, which nobody asked for"
            raise MalformedAnswer(msg)
        return None
    headers: dict[bytes, bytes] = {}
    for name, value in _HEADERS.findall(raw, match.end()):
        key = name.lower()
        if key == b"content-length" and headers.get(key, value) != value:
            msg = f"two lengths: {headers[key]!r} and {value!r}"
            raise MalformedAnswer(msg)
        headers[key] = value
    body = _body_of(status, headers)
    retry_after = headers.get(b"retry-after", b"")
    return Head(
        status=status,
        body=body,
        keep_alive=_keep_alive(headers, minor=match[1]) and not isinstance(body, UntilCloseBody),
        # client-go reads whole seconds only; a date is not honoured.
        retry_after_s=int(retry_after) if retry_after.isdigit() and len(retry_after) < 10 else None,
        content_type=headers.get(b"content-type", b"").decode("latin-1").lower(),
        gzip=headers.get(b"content-encoding", b"").lower() == b"gzip",
    )


def _keep_alive(headers: dict[bytes, bytes], *, minor: bytes) -> bool:
    options = {option.strip() for option in headers.get(b"connection", b"").lower().split(b",")}
    return b"close" not in options and (minor == b"1" or b"keep-alive" in options)


def _body_of(status: int, headers: dict[bytes, bytes]) -> Body:
    if status in {204, 304}:
        return LengthBody(0)
    codings = headers.get(b"transfer-encoding")
    if codings is not None:
        # Any other last coding is delimited by the close (RFC 9112, 6.3).
        return ChunkedBody() if codings.lower().split(b",")[-1].strip() == b"chunked" else UntilCloseBody()
    length = headers.get(b"content-length")
    if length is None:
        return UntilCloseBody()
    if not length.isdigit() or len(length) > 18:
        msg = f"not a length: {length[:40]!r}"
        raise MalformedAnswer(msg)
    return LengthBody(int(length))
