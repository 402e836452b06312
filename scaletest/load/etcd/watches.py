"""Standing watches, each on one key. What they see are the flow's own writes, whose values say when they were written."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

from scaletest.load.etcd import requests
from scaletest.load.etcd.connection import GrpcStatus
from scaletest.load.etcd.slots import Outgoing, Slots

__all__ = ["Watch", "WatchStream"]

OPEN_AGAIN_S: Final = 1.0
_PREFIX_BYTES: Final = 5

OnEnd = Callable[[bool, int, GrpcStatus | None, Exception | None], None]
"""Called when a watch is open (True and the microseconds that it took), could not be opened (False and the time), or broke (False and -1)."""


class Watch:
    """A watch that is opened again whenever it breaks, until it is closed."""

    def __init__(self, key: bytes, slots: Slots, on_end: OnEnd, on_events: Callable[[Sequence[int]], None]) -> None:
        """``on_events`` is called with the ages in microseconds of the writes that a message tells of."""
        self._key = key
        self._slots = slots
        self.on_end = on_end
        self.on_events = on_events
        self._stream: WatchStream | None = None
        self._closed = False

    def open(self) -> None:
        """Begin to watch."""
        if not self._closed:
            self._stream = WatchStream(self, requests.watch_create(self._key))
            self._slots.send(self._stream)

    def again(self) -> None:
        """Begin to watch again, a little later."""
        self._stream = None
        asyncio.get_running_loop().call_later(OPEN_AGAIN_S, self.open)

    def close(self) -> None:
        """Stop watching."""
        self._closed = True
        if self._stream is not None:
            self._slots.cancel(self._stream)


class WatchStream(Outgoing):
    """One attempt to watch: a stream whose messages are put together here."""

    __slots__ = ("_began_s", "_is_open", "_part", "_watch")

    def __init__(self, watch: Watch, message: bytes) -> None:
        # etcd takes requests for as long as a watch stands.
        super().__init__(requests.WATCH, message, half_close=False)
        self._watch = watch
        self._began_s = time.monotonic()
        self._is_open = False
        self._part = b""

    def take(self, data: bytes) -> None:
        """Take bytes of messages."""
        data = self._part + data
        position, now_s = 0, time.monotonic()
        while len(data) - position >= _PREFIX_BYTES:
            end = position + _PREFIX_BYTES + int.from_bytes(data[position + 1 : position + _PREFIX_BYTES], "big")
            if end > len(data):
                break
            if self._is_open:
                self._watch.on_events(requests.ages_us(data[position:end], now_s))
            else:
                # The first message says that the watch was created.
                self._is_open = True
                self._watch.on_end(True, int((now_s - self._began_s) * 1e6), None, None)
            position = end
        self._part = data[position:]

    def ended(self, status: GrpcStatus | None, error: Exception | None) -> None:
        """Take note that the stream has ended."""
        latency_us = -1 if self._is_open else int((time.monotonic() - self._began_s) * 1e6)
        self._watch.on_end(False, latency_us, status, error)
        self._watch.again()
