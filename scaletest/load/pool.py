"""The connections of an arrivals flow, and the calls that wait for one.

A call gets a connection that is free, else opens one while there are fewer than ``size``, else waits its turn. Connections
are used in turn, so that several API servers get the same share. One that turns out to be closed by the server is replaced
once without counting a failure, as Go's transport does for requests that may be repeated.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

import gevent

from scaletest.load.channel import Channel, ChannelOwner, Ended
from scaletest.load.operations import Call
from scaletest.load.outcomes import LOST_CONNECTION, REQUEST_ERRORS, RequestTimedOut, outcome_of_error

__all__ = ["ChannelPool"]

CLOSED_RETRY_S: Final = 1.0
"""Rest of a closed loop's connection after it could not be opened or broke: nothing else would slow its next attempt."""

Connector = Callable[[ChannelOwner, Call], Channel]
OnEnd = Callable[[Call, Ended], Call | None]


class ChannelPool:
    """At most ``size`` channels. ``on_end`` hears how each call ended, and may return one that follows on its channel."""

    def __init__(
        self, connect: Connector, on_end: OnEnd, *, size: int, keep: bool, rest_s: float = CLOSED_RETRY_S
    ) -> None:
        self.size = size
        self.waiting: deque[Call] = deque()
        self.reconnects: Callable[[Call], None] = _ignore
        self.blocked = False
        self._connect = connect
        self._on_end = on_end
        self._keep = keep
        self._rest_s = rest_s
        self._idle: deque[Channel] = deque()
        self._busy: set[Channel] = set()
        self._opening: dict[Call, gevent.Greenlet] = {}

    @property
    def connected(self) -> int:
        """Channels that are open."""
        return len(self._idle) + len(self._busy)

    @property
    def in_use(self) -> int:
        """Calls that have a channel, or are opening one."""
        return len(self._busy) + len(self._opening)

    def start(self, call: Call) -> None:
        """Begin a call, now or when a channel is free."""
        if self._idle:
            self._ask(self._idle.popleft(), call)
        elif self.connected + len(self._opening) < self.size:
            self._open(call)
        else:
            self.waiting.append(call)

    def add(self, channel: Channel) -> None:
        """Take a channel that was opened before there was a call for it."""
        self._idle.append(channel)

    def sweep(self, now_s: float) -> None:
        """End calls whose time-out has passed."""
        # First those who wait: a channel that is given up is replaced for the next of them.
        if any(_overdue(call, now_s) for call in self.waiting):
            overdue = [call for call in self.waiting if _overdue(call, now_s)]
            self.waiting = deque(call for call in self.waiting if not _overdue(call, now_s))
            for call in overdue:
                self._end(call, Ended("timeout", 0, error=RequestTimedOut("no connection was free in time")))
        for channel in [item for item in self._busy if item.call is not None and _overdue(item.call, now_s)]:
            channel.give_up(RequestTimedOut())

    def resize(self, size: int) -> None:
        """Allow more channels, or close those that are too many: free ones now, others when their call has ended."""
        self.size = size
        while self._idle and self.connected + len(self._opening) > size:
            self._idle.pop().close()
        self._serve_waiting()

    def drop_waiting(self) -> int:
        """Forget the calls that wait, and return how many they were."""
        dropped, self.waiting = len(self.waiting), deque()
        return dropped

    def close(self) -> None:
        """Close all channels; calls in flight are forgotten."""
        gevent.killall(list(self._opening.values()))
        self._opening.clear()
        for channel in [*self._idle, *self._busy]:
            channel.close()
        self._idle.clear()
        self._busy.clear()

    def block(self) -> tuple[int, int]:
        """Cut all channels and refuse new ones; returns how many there were, and the calls in flight on them."""
        self.blocked = True
        connections, calls = self.connected, len(self._busy)
        while self._idle:
            self._idle.pop().close()
        for channel in list(self._busy):
            channel.give_up(ConnectionResetError("the flow's network path is blocked"))
        return connections, calls

    # What channels say.

    def answered(self, channel: Channel, call: Call, ended: Ended) -> None:
        """Go on with the channel: the call that follows, or one that waits; see ChannelOwner."""
        following = self._on_end(call, ended)
        if channel.is_open and self._keep and self.connected + len(self._opening) <= self.size:
            if following is None and self.waiting:
                following = self.waiting.popleft()
            if following is not None:
                channel.ask(following, following.operation.encode(following, channel.endpoint.header))
            else:
                self._busy.discard(channel)
                self._idle.append(channel)
            return
        self._busy.discard(channel)
        channel.close()
        if following is not None:
            self.start(following)
        self._serve_waiting()

    def lost(self, channel: Channel, call: Call | None, ended: Ended) -> None:
        """Replace a channel that the server had closed, or count the failure; see ChannelOwner."""
        self._busy.discard(channel)
        if call is None:
            if channel in self._idle:
                self._idle.remove(channel)
            return
        server_had_closed = channel.used and isinstance(ended.error, LOST_CONNECTION) and not ended.answer.began
        if server_had_closed and call.operation.may_repeat and not call.retried and not self.blocked:
            call.retried = True
            self.reconnects(call)
            self._open(call)
            return
        self._end(call, ended)
        self._serve_waiting()

    def _ask(self, channel: Channel, call: Call) -> None:
        self._busy.add(channel)
        channel.ask(call, call.operation.encode(call, channel.endpoint.header))

    def _end(self, call: Call, ended: Ended) -> None:
        if not ended.outcome and ended.error is not None:
            ended.outcome = outcome_of_error(ended.error)
        following = self._on_end(call, ended)
        if following is not None:
            gevent.spawn_later(self._rest_s, self._start_late, following)

    def _start_late(self, call: Call) -> None:
        # The rest before it is no part of its latency.
        call.due_s = time.monotonic()
        self.start(call)

    def _serve_waiting(self) -> None:
        while self.waiting and (self._idle or self.connected + len(self._opening) < self.size):
            self.start(self.waiting.popleft())

    def _open(self, call: Call) -> None:
        self._opening[call] = gevent.spawn(self._opened, call)

    def _opened(self, call: Call) -> None:
        error: Exception | None = None
        timer = gevent.Timeout.start_new(
            max(0.0, call.due_s + call.operation.timeout_s - time.monotonic()), RequestTimedOut
        )
        try:
            channel = self._connect(self, call)
        except REQUEST_ERRORS as caught:
            error = caught
        finally:
            timer.close()
        self._opening.pop(call, None)
        if error is None:
            self._ask(channel, call)
        else:
            self._end(call, Ended("", 0, error=error))
            self._serve_waiting()


def _overdue(call: Call, now_s: float) -> bool:
    return now_s > call.due_s + call.operation.timeout_s


def _ignore(_call: Call) -> None:
    """Count nothing."""
