"""The ``watchers`` flow: standing watches, each a client with a TLS connection of its own.

A watcher is no Locust User: a User is a greenlet, and here it would have nothing to do but stand. Locust hears of every watch that opens.
"""

from __future__ import annotations

import gevent

from scaletest.load.connection import Connection
from scaletest.load.flow import Host
from scaletest.load.nodeclient import NodeClient
from scaletest.load.nodeflow import NodeFlow
from scaletest.load.protocol import FlowStart
from scaletest.load.requests import Step
from scaletest.load.watching import Watch

__all__ = ["WatchersFlow"]

OPENED_AT_ONCE = 16
"""Watches that are being opened at one time, when there is no rate: as fast as 32 on two cores, with half of the event-loop lag (46 ms p99)."""


class Watcher(NodeClient):
    """One standing watch."""

    __slots__ = ("watch",)

    def __init__(self, flow: WatchersFlow, node: str, source: str | None, step: Step) -> None:
        super().__init__(flow, node, source)
        self.watch = Watch(self, step)

    def connections(self) -> list[Connection]:
        """Return its connection, if it has one at this moment."""
        connection = self.watch.connection
        return [connection] if connection is not None and connection.is_open else []

    def disconnect(self) -> None:
        """Close its connection under the watch."""
        self.watch.disconnect()


class WatchersFlow(NodeFlow[Watcher]):
    """Watchers of one flow; each has one of the flow's steps, in turn."""

    def __init__(self, host: Host, start: FlowStart) -> None:
        assert start.spec.watchers is not None
        super().__init__(host, start, start.spec.watchers.rollout_per_s)
        self._openers: list[gevent.Greenlet] = []

    def start(self) -> None:
        """Begin the rollout; see Flow."""
        self._prepare()
        self._go_on()

    def stop(self) -> None:
        """Stop all watchers at once."""
        super().stop()
        gevent.killall(self._openers)

    def user_counts(self) -> dict[str, int]:
        """Return nothing: watchers are no Locust Users."""
        return {}

    def gauges(self) -> dict[str, int]:
        """Return target, started, connected (the watches that are open) and blocked, in watches."""
        return super().gauges() | {"connected": sum(client.watch.stands for client in self._clients)}

    def _go_on(self) -> None:
        if self._rollout_per_s is not None:
            super()._go_on()
            return
        self._openers = [opener for opener in self._openers if not opener.dead]
        while len(self._openers) < OPENED_AT_ONCE:
            self._openers.append(gevent.spawn(self._open_one_by_one))

    def _open_one_by_one(self) -> None:
        while len(self._clients) < self.target:
            watcher = self._next()
            self._clients.append(watcher)
            watcher.watch.open()

    def _begin_client(self) -> Watcher:
        watcher = self._next()
        watcher.watch.start()
        return watcher

    def _next(self) -> Watcher:
        node, source = self.next_place()
        index, of = self._start.share
        # Shares take turns at the steps, as they do in one process.
        return Watcher(self, node, source, self.steps[(len(self._clients) * of + index) % len(self.steps)])

    def _end_clients(self, clients: list[Watcher]) -> None:
        for watcher in clients:
            watcher.watch.stop()
