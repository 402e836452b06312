"""The connections of an etcd process: requests go over them in turn, and wait where one is being opened."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from scaletest.load.etcd.connection import Exchange, GrpcConnection, OnEnd
from scaletest.load.outcomes import REQUEST_ERRORS

__all__ = ["Outgoing", "Slots"]

CONNECT_WITHIN_S: Final = 5.0
CONNECT_EVERY_S: Final = 0.1
"""A connection that could not be opened is not tried again sooner: requests wait, and do not spin."""


class Outgoing(Exchange):
    """A request that is to be sent when there is a connection for it."""

    __slots__ = ("half_close", "message", "path", "sent_s")

    def __init__(self, path: bytes, message: bytes, *, half_close: bool = True) -> None:
        super().__init__()
        self.path = path
        self.message = message
        self.half_close = half_close
        self.sent_s = 0.0
        """When it was sent (``time.monotonic()``); 0 before."""


class _Slot:
    __slots__ = ("connection", "next_try_s", "opening", "waiting")

    def __init__(self) -> None:
        self.connection: GrpcConnection | None = None
        self.opening: asyncio.Task[None] | None = None
        self.next_try_s = 0.0
        self.waiting: deque[Outgoing] = deque()


class Slots:
    """A fixed number of connections to one etcd."""

    def __init__(
        self, endpoint: str, user_agent: str, count: int, on_end: OnEnd, connected: Callable[[int], None]
    ) -> None:
        """``on_end`` is called for every exchange, ``connected`` with the microseconds that a connection took."""
        parts = urlsplit(endpoint)
        if parts.scheme != "http" or parts.hostname is None or parts.port is None:
            msg = f"etcd is reached at http://HOST:PORT, not {endpoint}"
            raise ValueError(msg)
        self._host, self._port = parts.hostname, parts.port
        self._user_agent = user_agent
        self._on_end = on_end
        self._connected = connected
        self._slots = [_Slot() for _ in range(count)]
        self._turn = 0
        self._blocked = False

    @property
    def connected(self) -> int:
        """Connections that are open."""
        return sum(slot.connection is not None and slot.connection.usable for slot in self._slots)

    @property
    def waiting(self) -> int:
        """Requests that wait for a connection."""
        return sum(len(slot.waiting) for slot in self._slots)

    async def open_all(self) -> None:
        """Open every connection. Raises the first error."""
        await asyncio.gather(*(self._connect(slot) for slot in self._slots))

    def send(self, exchange: Outgoing) -> None:
        """Send a request over the next connection, now or once it is open."""
        self._turn = turn = (self._turn + 1) % len(self._slots)
        slot = self._slots[turn]
        connection = slot.connection
        if connection is not None and connection.usable:
            exchange.sent_s = time.monotonic()
            connection.request(exchange.path, exchange.message, exchange, half_close=exchange.half_close)
            return
        slot.waiting.append(exchange)
        if slot.opening is None:
            slot.opening = asyncio.create_task(self._open(slot))

    def flush(self) -> None:
        """Write out now what was sent; without this it is written once the event loop comes round."""
        for slot in self._slots:
            if slot.connection is not None:
                slot.connection.flush()

    def cancel(self, exchange: Outgoing) -> None:
        """Give up a request: nothing more is heard of it."""
        for slot in self._slots:
            if exchange.stream_id and slot.connection is not None and slot.connection.carries(exchange):
                slot.connection.cancel(exchange)
                return
            if not exchange.stream_id and exchange in slot.waiting:
                slot.waiting.remove(exchange)
                return

    def drop_waiting(self) -> int:
        """Forget the requests that wait for a connection; returns how many there were."""
        dropped = self.waiting
        for slot in self._slots:
            slot.waiting.clear()
        return dropped

    def block(self) -> tuple[int, int]:
        """Close all connections and refuse new ones; returns how many there were, and the requests on them."""
        self._blocked = True
        open_ones = [slot.connection for slot in self._slots if slot.connection is not None and slot.connection.usable]
        requests = sum(connection.in_flight for connection in open_ones)
        for connection in open_ones:
            connection.close()
        return len(open_ones), requests

    def unblock(self) -> None:
        """Let connections be opened again."""
        self._blocked = False

    async def close(self) -> None:
        """Close everything."""
        for slot in self._slots:
            if slot.opening is not None:
                slot.opening.cancel()
            if slot.connection is not None:
                slot.connection.close()
                await slot.connection.closed

    async def _open(self, slot: _Slot) -> None:
        await asyncio.sleep(max(0.0, slot.next_try_s - time.monotonic()))
        slot.next_try_s = time.monotonic() + CONNECT_EVERY_S
        try:
            await self._connect(slot)
        except REQUEST_ERRORS as error:
            failed, slot.waiting = slot.waiting, deque()
            slot.opening = None
            for exchange in failed:
                self._on_end(exchange, None, error)
            return
        slot.opening = None
        waiting, slot.waiting = slot.waiting, deque()
        for exchange in waiting:
            self.send(exchange)

    async def _connect(self, slot: _Slot) -> None:
        """Open a connection. Raises one of REQUEST_ERRORS."""
        if self._blocked:
            msg = "the flow's network path is blocked"
            raise ConnectionRefusedError(msg)
        began_s = time.monotonic()
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_WITHIN_S):
            _, connection = await loop.create_connection(
                lambda: GrpcConnection(f"{self._host}:{self._port}", self._user_agent, self._on_end),
                self._host, self._port,
            )  # fmt: skip
            try:
                await connection.ready
            except BaseException:
                connection.close()
                raise
        if self._blocked:
            connection.close()
            msg = "the flow's network path is blocked"
            raise ConnectionRefusedError(msg)
        slot.connection = connection
        self._connected(int((time.monotonic() - began_s) * 1e6))
