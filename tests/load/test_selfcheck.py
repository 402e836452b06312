"""What the driver measures of itself."""

from __future__ import annotations

import socket
from dataclasses import dataclass

import gevent

from scaletest.load.connection import Sockets
from scaletest.load.selfcheck import LOOK_EVERY_S, UNREAD_FOR_S, SelfCheck


@dataclass(eq=False)
class Waiting:
    """A connection that waits for bytes."""

    ends: tuple[socket.socket, socket.socket]
    reads: int = 0

    def fileno(self) -> int:
        return self.ends[0].fileno()


def test_bytes_are_unread_when_nobody_takes_them_for_a_while() -> None:
    sockets = Sockets()
    left, taken, empty = (Waiting(socket.socketpair()) for _ in range(3))
    sockets.reading.update((left, taken, empty))
    for waiting in (left, taken):
        waiting.ends[1].send(b"x")

    def take() -> None:
        while True:
            gevent.sleep(UNREAD_FOR_S / 5)
            # Of a closed loop: the next answer is there at once.
            taken.reads += 1

    check = SelfCheck(sockets)
    before = check.take_record(1.0)["unread_share"]
    taker = gevent.spawn(take)
    gevent.sleep(LOOK_EVERY_S + 2 * UNREAD_FOR_S)
    found = check.take_record(1.0)["unread_share"]
    taker.kill()
    sockets.reading.clear()
    for waiting in (left, taken, empty):
        for end in waiting.ends:
            end.close()

    assert before is None
    assert 0.3333 == found
