"""The connection alone: frames in, frames out, and whatever a server may do to it."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.load.etcd.connection import Exchange, GrpcConnection, GrpcStatus, OnEnd
from scaletest.load.http1 import MalformedAnswer
from scaletest.load.outcomes import PeerClosed

DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
OK_TRAILERS = b"\x00\x0bgrpc-status\x010\x00\x0cgrpc-message\x00"
NO_SPACE_TRAILERS = b"\x88\x00\x0bgrpc-status\x018\x00\x0cgrpc-message\x0fno space at all"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def settings(**values: int) -> bytes:
    names = {"table": 1, "window": 4, "frame": 5}
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", names[name], value) for name, value in values.items()))


def answer(stream: int, message: bytes = b"\0\0\0\0\2ok") -> bytes:
    return (
        frame(HEADERS, END_HEADERS, stream, b"\x88")
        + frame(DATA, 0, stream, message)
        + frame(HEADERS, END_HEADERS | END_STREAM, stream, OK_TRAILERS)
    )


class Wire(asyncio.Transport):
    """The network as the connection sees it."""

    def __init__(self, on_end: OnEnd | None = None) -> None:
        super().__init__()
        self.sent = b""
        self.aborted = False
        self.ends: list[tuple[Exchange, GrpcStatus | None, Exception | None]] = []
        self.connection = GrpcConnection("host:1", "tests", on_end or (lambda *ended: self.ends.append(ended)))
        self.connection.connection_made(self)

    def write(self, data: Any) -> None:
        self.sent += bytes(data)

    def abort(self) -> None:
        self.aborted = True

    async def frames(self) -> list[tuple[int, int, int, bytes]]:
        """What was sent since the last time."""
        await asyncio.sleep(0)
        return self.taken()

    def taken(self) -> list[tuple[int, int, int, bytes]]:
        """What was sent since the last time, without waiting for what the event loop has still to do."""
        sent, self.sent = self.sent.removeprefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), b""
        found = []
        while sent:
            size = int.from_bytes(sent[:3], "big")
            found.append((sent[3], sent[4], int.from_bytes(sent[5:9], "big"), sent[9 : 9 + size]))
            sent = sent[9 + size :]
        return found

    def ask(self, message: bytes = b"hello") -> Exchange:
        exchange = Exchange()
        self.connection.request(b"/a.B/C", message, exchange)
        return exchange


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scene)


def test_no_request_before_the_servers_settings_and_they_are_acknowledged() -> None:
    async def scene() -> None:
        wire = Wire()
        assert [SETTINGS, WINDOW] == [item[0] for item in await wire.frames()]
        assert not wire.connection.usable
        wire.connection.data_received(settings(window=1_000_000))
        assert wire.connection.usable
        assert wire.connection.ready.done()
        assert [(SETTINGS, ACK, 0, b"")] == await wire.frames()

    run(scene())


def test_requests_of_one_turn_leave_together_and_carry_their_message() -> None:
    async def scene() -> None:
        wire = Wire()
        wire.connection.data_received(settings())
        await wire.frames()
        wire.ask(b"one")
        wire.ask(b"two")
        assert wire.sent == b""
        frames = await wire.frames()
        assert [(HEADERS, 1), (DATA, 1), (HEADERS, 3), (DATA, 3)] == [(item[0], item[2]) for item in frames]
        assert (b"\0\0\0\0\3one", END_STREAM) == (frames[1][3], frames[1][1])
        assert len(frames[2][3]) < 10 < len(frames[0][3])

    run(scene())


@given(st.data())
def test_answers_come_in_whatever_pieces_and_order(data: st.DataObject) -> None:
    async def scene() -> None:
        wire = Wire()
        wire.connection.data_received(settings())
        asked = [wire.ask() for _ in range(4)]
        order = data.draw(st.permutations([1, 3, 5, 7]))
        received = b"".join(answer(stream) + frame(PING, 0, 0, b"12345678") for stream in order)
        while received:
            size = data.draw(st.integers(1, 60))
            wire.connection.data_received(received[:size])
            received = received[size:]
        assert [(asked[(stream - 1) // 2], (0, ""), None) for stream in order] == wire.ends
        assert {7} == {exchange.received_bytes for exchange in asked}
        assert 4 == sum(item[:2] == (PING, ACK) and item[3] == b"12345678" for item in await wire.frames())

    run(scene())


def test_an_error_is_its_status_and_message() -> None:
    async def scene() -> None:
        wire = Wire()
        wire.connection.data_received(settings())
        exchange = wire.ask()
        wire.connection.data_received(frame(HEADERS, END_HEADERS | END_STREAM, 1, NO_SPACE_TRAILERS))
        assert [(exchange, (8, "no space at all"), None)] == wire.ends

    run(scene())


@given(st.integers(0, 40), st.integers(1, 30), st.lists(st.integers(1, 50), min_size=1, max_size=40))
def test_a_message_never_goes_beyond_the_servers_windows(stream_window: int, frame_bytes: int, more: list[int]) -> None:
    async def scene() -> None:
        wire = Wire()
        wire.connection.data_received(settings(window=stream_window, frame=frame_bytes))
        message = bytes(range(200))
        wire.ask(message)
        allowed, sent = stream_window, b""
        for size in [0, *more, 300]:
            if size:
                wire.connection.data_received(frame(WINDOW, 0, 1, size.to_bytes(4, "big")))
                allowed += size
            parts = [item for item in await wire.frames() if item[0] == DATA]
            assert all(len(item[3]) <= frame_bytes for item in parts)
            sent += b"".join(item[3] for item in parts)
            assert len(sent) == min(allowed, len(message) + 5)
        assert b"\0\0\0\0\xc8" + message == sent

    run(scene())


def test_the_window_of_the_connection_holds_for_all_requests_together() -> None:
    async def scene() -> None:
        wire = Wire()
        wire.connection.data_received(settings(window=10**6, frame=10**6))
        for _ in range(2):
            wire.ask(bytes(40_000))
        assert 65_535 == sum(len(item[3]) for item in await wire.frames() if item[0] == DATA)
        wire.connection.data_received(frame(WINDOW, 0, 0, (10**6).to_bytes(4, "big")))
        assert 2 * 40_005 - 65_535 == sum(len(item[3]) for item in await wire.frames() if item[0] == DATA)

    run(scene())


@pytest.mark.parametrize(
    ("received", "kind"),
    [
        (frame(RESET, 0, 1, (7).to_bytes(4, "big")), ConnectionResetError),
        (frame(GOAWAY, 0, 0, bytes(8)), PeerClosed),
        (frame(DATA, END_STREAM, 1, b"\0\0\0\0\0"), MalformedAnswer),
        (frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x88"), MalformedAnswer),
        (frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\xbe"), MalformedAnswer),
        (frame(HEADERS, 0, 1, b"\x88"), MalformedAnswer),
    ],
)
def test_what_a_server_does_wrong_ends_the_request(received: bytes, kind: type[Exception]) -> None:
    async def scene() -> None:
        wire = Wire()
        wire.connection.data_received(settings())
        exchange = wire.ask()
        wire.connection.data_received(received)
        ((ended, status, error),) = wire.ends
        assert (exchange, None) == (ended, status)
        assert isinstance(error, kind)

    run(scene())


def test_a_server_that_says_goodbye_answers_what_it_has_taken() -> None:
    async def scene() -> None:
        wire = Wire()
        wire.connection.data_received(settings())
        first, second = wire.ask(), wire.ask()
        wire.connection.data_received(frame(GOAWAY, 0, 0, (1).to_bytes(4, "big") + bytes(4)))
        assert not wire.connection.usable
        assert [second] == [ended[0] for ended in wire.ends]
        wire.connection.data_received(answer(1))
        assert (first, (0, ""), None) == wire.ends[1]
        assert wire.aborted

    run(scene())


def test_a_cancelled_request_is_heard_of_no_more() -> None:
    async def scene() -> None:
        wire = Wire()
        wire.connection.data_received(settings())
        exchange = wire.ask()
        await wire.frames()
        assert wire.connection.carries(exchange)
        wire.connection.cancel(exchange)
        assert [(RESET, 0, 1, (8).to_bytes(4, "big"))] == await wire.frames()
        wire.connection.data_received(answer(1))
        wire.connection.connection_lost(None)
        assert [] == wire.ends

    run(scene())


def test_a_lost_connection_ends_what_is_under_way_and_is_not_used_again() -> None:
    async def scene() -> None:
        wire = Wire()
        wire.connection.data_received(settings())
        exchange = wire.ask()
        wire.connection.connection_lost(None)
        ((ended, _, error),) = wire.ends
        assert exchange is ended
        assert isinstance(error, PeerClosed)
        assert not wire.connection.usable
        assert wire.connection.closed.done()

    run(scene())


def test_requests_behind_a_closed_window_leave_in_order_as_it_opens() -> None:
    async def scene() -> None:
        wire = Wire()
        wire.connection.data_received(settings())
        for _ in range(300):
            wire.ask(bytes(995))
        sent = [item for item in await wire.frames() if item[0] == DATA]
        assert 65_535 == sum(len(item[3]) for item in sent)
        for _ in range(60):
            wire.connection.data_received(frame(WINDOW, 0, 0, (5_000).to_bytes(4, "big")))
            sent += [item for item in await wire.frames() if item[0] == DATA]
        assert 300_000 == sum(len(item[3]) for item in sent)
        assert [2 * number + 1 for number in range(300)] == [item[2] for item in sent if item[1] & END_STREAM]

    run(scene())
