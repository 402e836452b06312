"""gRPC over one HTTP/2 connection in asyncio: requests of one message each, answered as they come (RFC 9113; gRPC's PROTOCOL-HTTP2).

What makes it cheap: a request is one ``join`` of bytes that were put together before; the requests that are made in one turn of the event
loop leave in one write; a header block that came before is not decoded again. ``benchmarks/etcd.py`` compares it with gRPC's own client.

Plain TCP only, as etcd listens in a cluster of ``kwokctl``. A peer that breaks the protocol ends the connection.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any, Final, cast

from scaletest.load.etcd.hpack import DEFAULT_TABLE_BYTES, HeaderEncoder, decode_headers
from scaletest.load.http1 import MalformedAnswer
from scaletest.load.outcomes import PeerClosed

__all__ = ["OK", "Exchange", "GrpcConnection", "GrpcStatus"]

GrpcStatus = tuple[int, str]
"""A status code of gRPC and its message."""

OK: Final = 0

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
_TABLE_SIZE, _ENABLE_PUSH, _INITIAL_WINDOW, _MAX_FRAME = 1, 2, 4, 5
_CANCEL: Final = 8
_DEFAULT_WINDOW_BYTES: Final = 65_535
_DEFAULT_FRAME_BYTES: Final = 16_384
_OWN_FRAME_BYTES: Final = 1 << 20
_OWN_WINDOW_BYTES: Final = 2**31 - 1
"""Nothing holds the server back: answers are read as they come, and hardly kept."""

_HEAD: Final = struct.Struct(">HBBBI")
_SETTING: Final = struct.Struct(">HI")


class Exchange:
    """One request and its answer; a subclass may keep what comes."""

    __slots__ = ("received_bytes", "stream_id")

    def __init__(self) -> None:
        self.stream_id = 0
        """0 before it is sent, and from its end on."""
        self.received_bytes = 0
        """Of messages, with the five bytes before each."""

    def take(self, data: bytes) -> None:
        """Take bytes of the answer's messages, each with five bytes before it: 0, and its length."""


OnEnd = Callable[[Any, GrpcStatus | None, Exception | None], None]
"""Called with an exchange and its status, or with None and why there is none."""


class GrpcConnection(asyncio.Protocol):
    """A connection; ``ready`` is done when the server's settings are there, and requests may be made."""

    def __init__(self, authority: str, user_agent: str, on_end: OnEnd) -> None:
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.usable = False
        """Whether requests may be made."""
        self._loop = loop
        self._headers = (
            (b":authority", authority.encode()), (b"content-type", b"application/grpc"),
            (b"user-agent", user_agent.encode()), (b"te", b"trailers"),
        )  # fmt: skip
        self._on_end = on_end
        self._transport: asyncio.Transport | None = None
        self._exchanges: dict[int, Exchange] = {}
        self._next_id = 1
        self._encoder = HeaderEncoder()
        self._blocks: dict[bytes, tuple[int, bytes]] = {}
        self._statuses: dict[bytes, GrpcStatus] = {}
        self._buffer = b""
        self._out: list[bytes] = []
        self._flush_is_due = False
        self._received_bytes = 0
        self._says_goodbye = False
        # What the server lets us send.
        self._window_bytes = _DEFAULT_WINDOW_BYTES
        self._initial_window_bytes = _DEFAULT_WINDOW_BYTES
        self._frame_bytes = _DEFAULT_FRAME_BYTES
        self._stalled: dict[int, _Stalled] = {}
        """Messages that wait for the server's windows, in the order of their requests."""

    @property
    def in_flight(self) -> int:
        """Exchanges that have not ended."""
        return len(self._exchanges)

    def carries(self, exchange: Exchange) -> bool:
        """Whether an exchange is under way here."""
        return self._exchanges.get(exchange.stream_id) is exchange

    # Requests.

    def request(self, path: bytes, message: bytes, exchange: Exchange, *, half_close: bool = True) -> None:
        """Send a request of one message; ``half_close`` says that no more will follow. Only while ``usable``."""
        stream_id = exchange.stream_id = self._next_id
        self._next_id = stream_id + 2
        self._exchanges[stream_id] = exchange
        inserted, block = self._blocks.get(path, (-1, b""))
        if inserted != self._encoder.inserted:
            block = self._encoder.encode(
                ((b":method", b"POST"), (b":scheme", b"http"), (b":path", path), *self._headers)
            )
            again = self._encoder.encode(
                ((b":method", b"POST"), (b":scheme", b"http"), (b":path", path), *self._headers)
            )
            self._blocks[path] = self._encoder.inserted, again
        size = len(message) + 5
        out = self._out
        out.append(_HEAD.pack(len(block) >> 8, len(block) & 0xFF, _HEADERS, _END_HEADERS, stream_id))
        out.append(block)
        if self._stalled or size > self._window_bytes or size > self._initial_window_bytes or size > self._frame_bytes:
            payload = b"\x00" + len(message).to_bytes(4, "big") + message
            self._stalled[stream_id] = _Stalled(stream_id, payload, self._initial_window_bytes, half_close)
            self._send_stalled()
        else:
            self._window_bytes -= size
            out.append(_HEAD.pack(size >> 8, size & 0xFF, _DATA, _END_STREAM if half_close else 0, stream_id))
            out.append(b"\x00" + len(message).to_bytes(4, "big"))
            out.append(message)
        self._flush_soon()
        # Stream numbers have 31 bits: the next connection begins anew.
        if self._next_id > 2**31 - 3:
            self.usable = False

    def cancel(self, exchange: Exchange) -> None:
        """Give up an exchange: nothing more is heard of it."""
        stream_id, exchange.stream_id = exchange.stream_id, 0
        if self._exchanges.pop(stream_id, None) is not None:
            self._stalled.pop(stream_id, None)
            self._frame(_RST_STREAM, 0, stream_id, _CANCEL.to_bytes(4, "big"))

    def close(self) -> None:
        """Close at once; exchanges under way end with an error."""
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    # Sending.

    def _frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        self._out.append(_HEAD.pack(len(payload) >> 8, len(payload) & 0xFF, kind, flags, stream_id) + payload)
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write out what requests and acknowledgements have gathered."""
        self._flush_is_due = False
        if self._transport is not None and self._out:
            self._transport.write(b"".join(self._out))
        self._out.clear()

    def _send_stalled(self) -> None:
        """Send what the server's windows let through, in the order of the requests.

        An overloaded server leaves thousands waiting: those behind a closed window of the connection are not looked at.
        """
        done: list[int] = []
        for item in self._stalled.values():
            while (size := min(len(item.payload), item.window_bytes, self._window_bytes, self._frame_bytes)) > 0:
                part, item.payload = item.payload[:size], item.payload[size:]
                item.window_bytes -= size
                self._window_bytes -= size
                flags = _END_STREAM if item.half_close and not item.payload else 0
                self._frame(_DATA, flags, item.stream_id, part)
            if not item.payload:
                done.append(item.stream_id)
            elif not self._window_bytes:
                break
        for stream_id in done:
            del self._stalled[stream_id]

    # asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin: our settings, and a window that never closes."""
        self._transport = cast("asyncio.Transport", transport)
        settings = {_TABLE_SIZE: 0, _ENABLE_PUSH: 0, _INITIAL_WINDOW: _OWN_WINDOW_BYTES, _MAX_FRAME: _OWN_FRAME_BYTES}
        self._out.append(_PREFACE)
        self._frame(_SETTINGS, 0, 0, b"".join(_SETTING.pack(*item) for item in settings.items()))
        self._frame(_WINDOW_UPDATE, 0, 0, (_OWN_WINDOW_BYTES - _DEFAULT_WINDOW_BYTES).to_bytes(4, "big"))

    def data_received(self, data: bytes) -> None:
        """Take frames, and keep one that is not whole."""
        if self._buffer:
            data = self._buffer + data
        position, end = 0, len(data)
        try:
            while end - position >= 9:
                high, low, kind, flags, stream_id = _HEAD.unpack_from(data, position)
                after = position + 9 + (high << 8 | low)
                if after > end:
                    break
                self._take_frame(kind, flags, stream_id, data[position + 9 : after])
                position = after
        except (ValueError, IndexError, struct.error) as error:
            self._end(MalformedAnswer(f"HTTP/2: {error}"))
            return
        self._buffer = data[position:]

    def connection_lost(self, exc: Exception | None) -> None:
        """End what is under way."""
        self._end(exc or PeerClosed("etcd closed the connection"))
        if not self.closed.done():
            self.closed.set_result(None)

    def _end(self, why: Exception) -> None:
        self.close()
        exchanges, self._exchanges = self._exchanges, {}
        if not self.ready.done():
            self.ready.set_exception(why)
        for exchange in exchanges.values():
            exchange.stream_id = 0
            self._on_end(exchange, None, why)

    # Frames.

    def _take_frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        if kind == _DATA:
            self._take_data(flags, stream_id, payload)
        elif kind == _HEADERS:
            # The first of an answer says no more than that one is coming.
            if flags & _END_STREAM:
                self._take_trailers(flags, stream_id, payload)
            elif not flags & _END_HEADERS:
                msg = "a header block in several frames"
                raise ValueError(msg)
        elif kind in {_PING, _SETTINGS} and not flags & _ACK:
            if kind == _SETTINGS:
                self._take_settings(payload)
            self._frame(kind, _ACK, 0, payload if kind == _PING else b"")
        elif kind in {_WINDOW_UPDATE, _RST_STREAM, _GOAWAY}:
            self._take_number(kind, stream_id, int.from_bytes(payload[:4], "big"))

    def _take_number(self, kind: int, stream_id: int, number: int) -> None:
        if kind == _WINDOW_UPDATE:
            self._take_window(stream_id, number & 0x7FFFFFFF)
        elif kind == _RST_STREAM:
            self._ended(stream_id, None, ConnectionResetError(f"stream reset with code {number}"))
        else:
            self._take_goodbye(number & 0x7FFFFFFF)

    def _take_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._received_bytes += len(payload)
        if self._received_bytes > _OWN_WINDOW_BYTES // 2:
            self._frame(_WINDOW_UPDATE, 0, 0, self._received_bytes.to_bytes(4, "big"))
            self._received_bytes = 0
        exchange = self._exchanges.get(stream_id)
        if exchange is None:
            # Cancelled meanwhile.
            return
        if flags & _PADDED:
            payload = payload[1 : len(payload) - payload[0]]
        before, exchange.received_bytes = exchange.received_bytes, exchange.received_bytes + len(payload)
        half = _OWN_WINDOW_BYTES // 2
        if before // half != exchange.received_bytes // half:
            self._frame(_WINDOW_UPDATE, 0, stream_id, half.to_bytes(4, "big"))
        exchange.take(payload)
        if flags & _END_STREAM:
            # gRPC ends an answer with headers.
            self._ended(stream_id, None, MalformedAnswer("an answer without a status"))

    def _take_trailers(self, flags: int, stream_id: int, block: bytes) -> None:
        status = self._statuses.get(block)
        if status is None:
            if flags & _PADDED:
                block = block[1 : len(block) - block[0]]
            if flags & _PRIORITY:
                block = block[5:]
            status = _status_of(block)
            # Messages may differ from answer to answer: no more than a handful is worth keeping.
            if len(self._statuses) < 64:
                self._statuses[block] = status
        self._ended(stream_id, status, None)

    def _ended(self, stream_id: int, status: GrpcStatus | None, error: Exception | None) -> None:
        exchange = self._exchanges.pop(stream_id, None)
        if exchange is not None:
            exchange.stream_id = 0
            self._on_end(exchange, status, error)
            if self._says_goodbye and not self._exchanges:
                self.close()

    def _take_window(self, stream_id: int, more_bytes: int) -> None:
        if stream_id == 0:
            self._window_bytes += more_bytes
        elif (item := self._stalled.get(stream_id)) is not None:
            item.window_bytes += more_bytes
        self._send_stalled()

    def _take_settings(self, payload: bytes) -> None:
        settings = dict(_SETTING.iter_unpack(payload))
        self._frame_bytes = settings.get(_MAX_FRAME, self._frame_bytes)
        window_bytes = settings.get(_INITIAL_WINDOW, self._initial_window_bytes)
        for item in self._stalled.values():
            item.window_bytes += window_bytes - self._initial_window_bytes
        self._initial_window_bytes = window_bytes
        table_bytes = settings.get(_TABLE_SIZE)
        if not self.ready.done():
            self._encoder = HeaderEncoder(DEFAULT_TABLE_BYTES if table_bytes is None else table_bytes)
            self.usable = True
            self.ready.set_result(None)
        elif table_bytes is not None and table_bytes < DEFAULT_TABLE_BYTES:
            msg = "the server made its header table smaller while it was in use"
            raise ValueError(msg)
        self._send_stalled()

    def _take_goodbye(self, last_stream_id: int) -> None:
        self.usable, self._says_goodbye = False, True
        for stream_id in [item for item in self._exchanges if item > last_stream_id]:
            self._ended(stream_id, None, PeerClosed("etcd is closing the connection"))
        if not self._exchanges:
            self.close()


class _Stalled:
    """A message, or the rest of one, that the server's windows do not let through yet."""

    __slots__ = ("half_close", "payload", "stream_id", "window_bytes")

    def __init__(self, stream_id: int, payload: bytes, window_bytes: int, half_close: bool) -> None:
        self.stream_id = stream_id
        self.payload = payload
        self.window_bytes = window_bytes
        self.half_close = half_close


def _status_of(block: bytes) -> GrpcStatus:
    headers = decode_headers(block)
    code, http_status = headers.get(b"grpc-status"), headers.get(b":status", b"200")
    if code is None:
        msg = f"an answer of HTTP status {http_status.decode('latin-1')} without a gRPC status"
        raise ValueError(msg)
    return int(code), headers.get(b"grpc-message", b"").decode("utf-8", "replace")
