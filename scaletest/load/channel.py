"""A connection driven by the event loop itself: no greenlet, no switch, one request in flight.

An agent's connection (``connection``) is read by a greenlet that waits. At thousands of small requests a second those
switches, and the objects made for each answer, are most of what a request costs; here the loop calls ``_readable``, which in
the common case makes one TLS read, one match over the whole answer, and tells the owner. Everything that runs here runs
in the loop and must not wait.

Whatever is not the common case (a failure, a large or chunked body, a page, a watch) takes the way of the agents:
``HeadReader``, ``Body`` and sinks over the buffer that all connections share.
"""

from __future__ import annotations

import ssl as stdlib_ssl
import time
from typing import Any, Final, Protocol

import gevent
from gevent.ssl import SSLContext

from scaletest.load.connection import FAIR_BYTES, Answer, Endpoint, Sockets
from scaletest.load.http1 import Head, HeadReader, MalformedAnswer, Sink, plain_answer
from scaletest.load.memorytls import MemoryTls
from scaletest.load.metadata import BodyHead, EdgeKeeper
from scaletest.load.operations import Call
from scaletest.load.outcomes import AnswerCutShort, PeerClosed
from scaletest.load.watchstream import InitialEvents

__all__ = ["Channel", "ChannelOwner", "Ended"]

_READABLE: Final = 1
_WRITABLE: Final = 2
_NO_ANSWER: Final = Answer()

REST_S: Final = 0.001
RESTS_FROM_BYTES: Final = 256 * 1024
"""Rest of a channel within a large body, so that the socket fills: the API server writes an object a TLS record (3 to 4 KiB), and a
turn of the event loop for each costs as much as reading it. What comes meanwhile fits into the socket's buffer; the last
rest makes a body later by half a millisecond on average, where 256 KiB take five."""


class Ended:
    """How a call ended: status and body bytes, and, where it was no plain good answer, the answer and the error."""

    __slots__ = ("answer", "body_bytes", "error", "outcome")

    def __init__(
        self, outcome: str, body_bytes: int, answer: Answer = _NO_ANSWER, error: Exception | None = None
    ) -> None:
        self.outcome = outcome
        """Empty when ``error`` is what there is."""
        self.body_bytes = body_bytes
        self.answer = answer
        self.error = error


class ChannelOwner(Protocol):
    """Who hears of a channel. Called from the event loop: must not wait."""

    def answered(self, channel: Channel, call: Call, ended: Ended) -> None:
        """Learn that a call ended with an answer; the channel is free, or closed."""

    def lost(self, channel: Channel, call: Call | None, ended: Ended) -> None:
        """Learn that the channel was closed under a call, or while it was idle."""


class Channel:
    """A TLS connection to an API server; ``call`` is what it is asking at this moment."""

    __slots__ = (
        "_alarm", "_answer", "_owner", "_reader", "_rests", "_sockets", "_tls", "_unsent", "_watcher", "_writer", "call",
        "endpoint", "is_open", "reads", "used",
    )  # fmt: skip

    def __init__(self, sockets: Sockets, endpoint: Endpoint, tls: MemoryTls, owner: ChannelOwner) -> None:
        self._sockets = sockets
        self._tls = tls
        self._owner = owner
        self._answer: Answer | None = None
        self._reader = HeadReader()
        self._unsent = b""
        self._writer: Any = None
        self._alarm: Any = None
        self._rests = False
        self.endpoint = endpoint
        self.call: Call | None = None
        self.is_open = True
        self.reads = 0
        self.used = False
        """Whether an answer came on it."""
        sockets.open.add(self)
        self._watcher = gevent.get_hub().loop.io(tls.fileno(), _READABLE)
        self._watcher.start(self._readable)

    @classmethod
    def connect(
        cls, sockets: Sockets, endpoint: Endpoint, context: SSLContext, source: str | None, owner: ChannelOwner
    ) -> Channel:
        """Open a channel; waits, in the caller's greenlet. Raises OSError, SSLError among them."""
        return cls(sockets, endpoint, MemoryTls.connect(sockets, endpoint, context, source=source), owner)

    def fileno(self) -> int:
        """File descriptor of the socket."""
        return int(self._tls.fileno())

    def ask(self, call: Call, request: bytes) -> None:
        """Send a request; the owner hears how it ended, even if that is at once."""
        self.call = call
        call.sent_s = time.monotonic()
        self._sockets.reading.add(self)
        try:
            self._unsent = self._tls.send(request)
        except OSError as error:
            self._break(error)
            return
        if self._unsent:
            self._writer = gevent.get_hub().loop.io(self._tls.fileno(), _WRITABLE)
            self._writer.start(self._writable)

    def close(self) -> None:
        """Close the connection and tell nobody; a second call does nothing."""
        if self.is_open:
            self.is_open = False
            self._watcher.stop()
            self._watcher.close()
            self._end_writing()
            if self._alarm is not None:
                self._alarm.stop()
                self._alarm.close()
            self._sockets.open.discard(self)
            self._sockets.reading.discard(self)
            self._tls.close()

    def give_up(self, error: Exception) -> None:
        """Close the connection under the call that is in flight; the owner hears of it."""
        self._break(error)

    def _writable(self) -> None:
        try:
            self._unsent = self._tls.send_rest(self._unsent)
        except OSError as error:
            self._break(error)
            return
        if not self._unsent:
            self._end_writing()

    def _end_writing(self) -> None:
        self._unsent = b""
        if self._writer is not None:
            self._writer.stop()
            self._writer.close()
            self._writer = None

    def _readable(self) -> None:
        self.reads += 1
        if self._answer is not None and self._answer.body_bytes >= RESTS_FROM_BYTES:
            self._wait(self._answer)
            return
        try:
            count = self._tls.take_one()
        except stdlib_ssl.SSLWantReadError:
            return
        except OSError as error:
            self._break(error)
            return
        call = self.call
        if count and self._answer is None and call is not None and call.operation.is_plain:
            plain = plain_answer(self._sockets.buffer, count)
            if plain is not None:
                self._free(call, Ended(*plain))
                return
        self._take_safely(count)

    def _take_safely(self, filled: int) -> None:
        try:
            self._take(filled)
        except (OSError, AnswerCutShort, MalformedAnswer, PeerClosed) as error:
            self._break(error)

    def _take(self, filled: int) -> None:
        """Take what was read, and read on until the answer is whole or nothing is there. Raises what breaks it."""
        call, taken = self.call, 0
        if call is None:
            # An end, or bytes that nobody asked for.
            raise PeerClosed
        if self._answer is None:
            self._answer = Answer()
        while filled:
            if self._feed(call, self._answer, filled):
                return
            taken += filled
            if taken >= FAIR_BYTES:
                # What TLS has decrypted already does not make the socket readable again.
                gevent.get_hub().loop.run_callback(self._again)
                return
            try:
                filled = self._tls.take()
            except stdlib_ssl.SSLWantReadError:
                self._wait(self._answer)
                return
        self._at_end(call, self._answer)

    def _wait(self, answer: Answer) -> None:
        """Wait for more of an answer: of a large body for a moment, of others until there is some."""
        if answer.body_bytes < RESTS_FROM_BYTES:
            return
        if not self._rests:
            self._rests = True
            self._watcher.stop()
            # It does not wait for bytes now: those that come are not left unread.
            self._sockets.reading.discard(self)
        if self._alarm is not None:
            self._alarm.close()
        # Another one each time: libev's would go on with what is left of it, nothing. And not from when this turn of the loop
        # began: reading may have taken longer than the rest.
        self._alarm = gevent.get_hub().loop.timer(REST_S)
        self._alarm.start(self._rested, update=True)

    def _rested(self) -> None:
        self.reads += 1
        try:
            filled = self._tls.take()
        except stdlib_ssl.SSLWantReadError:
            # Nothing came: from now on as long as it takes.
            self._wake()
            self._sockets.reading.add(self)
            return
        except OSError as error:
            self._break(error)
            return
        self._take_safely(filled)

    def _wake(self) -> None:
        if self._rests:
            self._rests = False
            self._watcher.start(self._readable)

    def _again(self) -> None:
        if self.is_open and self.call is not None:
            self._rested()

    def _feed(self, call: Call, answer: Answer, end: int) -> bool:
        """Walk a span of the answer; whether that was its end."""
        position = 0
        if answer.head is None:
            answer.began = True
            head, position = self._reader.feed(self._sockets.buffer, 0, end)
            if head is None:
                return False
            answer.head, answer.body, answer.sink = head, head.body, _choose_sink(call, head)
        assert answer.body is not None
        assert answer.head is not None
        stop = answer.body.feed(self._sockets.buffer, position, end, answer.sink)
        if isinstance(answer.sink, InitialEvents) and answer.sink.done:
            # The state is there; only closing ends a watch.
            answer.head.keep_alive = False
        elif not answer.body.done:
            return False
        elif stop < end:
            # Bytes after the answer belong to nothing that was asked for.
            answer.head.keep_alive = False
        self._free(call, Ended(str(answer.head.status), answer.body_bytes, answer), keep=answer.head.keep_alive)
        return True

    def _at_end(self, call: Call, answer: Answer) -> None:
        if answer.head is None:
            raise AnswerCutShort if answer.began else PeerClosed
        assert answer.body is not None
        if not answer.body.at_eof() or isinstance(answer.sink, InitialEvents):
            raise AnswerCutShort
        self._free(call, Ended(str(answer.head.status), answer.body_bytes, answer), keep=False)

    def _free(self, call: Call, ended: Ended, *, keep: bool = True) -> None:
        self.call, self._answer = None, None
        self.used = True
        self._wake()
        self._sockets.reading.discard(self)
        if not keep or self._unsent:
            # An answer before the request was whole leaves the rest of it without a meaning.
            self.close()
        self._owner.answered(self, call, ended)

    def _break(self, error: Exception) -> None:
        call, answer = self.call, self._answer or _NO_ANSWER
        self.call, self._answer = None, None
        self.close()
        self._owner.lost(self, call, Ended("", answer.body_bytes, answer, error))


def _choose_sink(call: Call, head: Head) -> Sink | None:
    if not 200 <= head.status < 300:
        return BodyHead()
    if call.operation.is_watch_list:
        return InitialEvents()
    return EdgeKeeper(gzip=head.gzip) if call.operation.follows_pages else None
