"""One agent: what runs on one node. It connects, makes its requests, backs off, starts over.

An agent is one greenlet with one connection, on which its LISTs and GETs follow each other, and one more connection for each
watch (``watching``). A watch-list takes the first connection, and closes it when its initial events have ended: over
HTTP/1.1 nothing else ends it. Steps without a period are made once, in order, each until it
succeeds; a step with a period starts when the steps before it are done, and keeps to its own schedule while others wait
or back off. A step that failed is due again after the wait that ``backoff`` gives.
"""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING

import gevent

from scaletest.load.backoff import Retries
from scaletest.load.connection import Answer, ChooseSink, Connection
from scaletest.load.http1 import Head, Sink
from scaletest.load.metadata import BodyHead, EdgeKeeper
from scaletest.load.nodeclient import NodeClient
from scaletest.load.outcomes import (
    LOST_CONNECTION,
    REQUEST_ERRORS,
    AnswerCutShort,
    RequestTimedOut,
    is_success,
    outcome_of_error,
)
from scaletest.load.pacing import next_due_s
from scaletest.load.requests import Step
from scaletest.load.watching import Watch
from scaletest.load.watchstream import InitialEvents

if TYPE_CHECKING:
    from scaletest.load.agents import AgentsFlow

__all__ = ["Agent"]

_FOREVER_S = 1e6
_GONE = 410


class _Progress:
    """How far an agent is with one step."""

    __slots__ = ("next_page", "retries", "whole")

    def __init__(self, retries: Retries) -> None:
        self.retries = retries
        self.next_page = ""
        self.whole = False

    def start_over(self) -> None:
        """Forget the pages."""
        self.next_page, self.whole = "", False


class Agent(NodeClient):
    """The client on one node."""

    __slots__ = ("_connection", "_due", "_opening", "_progress", "_watches", "greenlet")

    def __init__(self, flow: AgentsFlow, node: str, source: str | None) -> None:
        super().__init__(flow, node, source)
        self.greenlet: gevent.Greenlet | None = None
        """That of its Locust User."""
        self._connection: Connection | None = None
        self._watches: list[Watch] = []
        self._progress: list[_Progress] = []
        self._due: list[tuple[float, int]] = []
        self._opening = 0

    def run(self) -> None:
        """Live until killed."""
        flow = self.flow
        self._progress = [_Progress(Retries(flow.backoff)) for _ in flow.steps]
        self._opening = 0
        # Beside the periodic steps, the queue holds the row of steps still to be opened, last at equal times.
        opening = len(flow.steps)
        self._due = [(time.monotonic(), opening)]
        while self._due:
            due_s, index = self._due[0]
            wait_s = due_s - time.monotonic()
            if wait_s > 0:
                gevent.sleep(wait_s)
            heapq.heappop(self._due)
            if index == opening:
                self._open_next(opening)
            else:
                self._repeat(index, due_s)
        while True:
            gevent.sleep(_FOREVER_S)

    def close(self) -> None:
        """Close all connections; the agent is gone."""
        for watch in self._watches:
            watch.stop()
        self.disconnect()

    def connections(self) -> list[Connection]:
        """Return the connections that are open at this moment."""
        held = [self._connection, *(watch.connection for watch in self._watches)]
        return [connection for connection in held if connection is not None and connection.is_open]

    def disconnect(self) -> None:
        """Close all connections under whoever uses them."""
        for watch in self._watches:
            watch.disconnect()
        self._drop_connection()

    def _open_next(self, opening: int) -> None:
        index = self._opening
        step = self.flow.steps[index]
        wait_s: float | None = None
        if step.spec.verb == "watch":
            watch = Watch(self, step)
            watch.start()
            self._watches.append(watch)
        elif step.spec.every_s is not None:
            heapq.heappush(self._due, (time.monotonic(), index))
        else:
            wait_s = self._make(index)
        if wait_s is None:
            self._opening += 1
        if self._opening < len(self.flow.steps):
            heapq.heappush(self._due, (time.monotonic() + (wait_s or 0.0), opening))

    def _repeat(self, index: int, due_s: float) -> None:
        wait_s = self._make(index)
        now_s = time.monotonic()
        if wait_s is not None:
            heapq.heappush(self._due, (now_s + wait_s, index))
            return
        spec = self.flow.steps[index].spec
        assert spec.every_s is not None
        following_s = next_due_s(due_s, spec.every_s, spec.jitter, now_s, self.flow.random.random())
        heapq.heappush(self._due, (following_s, index))

    def _make(self, index: int) -> float | None:
        """Make a step's requests, page by page; None when done, else the seconds after which to go on."""
        step, progress = self.flow.steps[index], self._progress[index]
        while True:
            answer, outcome = self._request(step, progress)
            if is_success(outcome):
                progress.retries.succeeded()
                if not self._took_page(step, progress, answer):
                    progress.start_over()
                    return None
                continue
            if answer.status == _GONE:
                self._versions = None
                if progress.next_page:
                    # The pages' snapshot is gone: the whole list at once, as client-go's pager does.
                    progress.next_page, progress.whole = "", True
                    continue
            wait_s = self.wait_after(progress.retries, answer, outcome)
            if not progress.retries.is_retrying:
                progress.start_over()
            return wait_s

    def _took_page(self, step: Step, progress: _Progress, answer: Answer) -> bool:
        """Remember version and continue token of a list; whether another page follows."""
        if not isinstance(answer.sink, EdgeKeeper) or (metadata := answer.sink.metadata) is None:
            return False
        if step.keeps_version and metadata.version:
            self._versions = self._versions or {}
            self._versions[step.collection] = self._versions[""] = metadata.version
        progress.next_page = metadata.next_page
        return bool(metadata.next_page)

    def _request(self, step: Step, progress: _Progress) -> tuple[Answer, str]:
        """Make one request under its deadline, count it, and return what came."""
        self.wait_for_token()
        path = step.path(self.node, self.version_for(step), next_page=progress.next_page, whole=progress.whole)
        wants_metadata = step.keeps_version or step.spec.limit is not None

        def choose_sink(head: Head) -> Sink | None:
            if not 200 <= head.status < 300:
                return BodyHead()
            if step.spec.verb == "watchList":
                return InitialEvents()
            return EdgeKeeper(gzip=head.gzip) if wants_metadata else None

        answer, error = Answer(), None
        started_s = time.perf_counter()
        timer = gevent.Timeout.start_new(step.spec.timeout_s, RequestTimedOut)
        try:
            self._exchange(step, path, answer, choose_sink)
            outcome = str(answer.status)
        except REQUEST_ERRORS as caught:
            error, outcome = caught, outcome_of_error(caught)
            self._drop_connection()
        finally:
            timer.close()
        self.report(step, outcome, started_s, answer, error)
        return answer, outcome

    def _exchange(self, step: Step, path: str, answer: Answer, choose_sink: ChooseSink) -> None:
        connection = self._connection
        if connection is not None and connection.is_open:
            try:
                connection.begin(self.request_for(step, path, connection), answer, choose_sink)
            except LOST_CONNECTION:
                # The server closed a kept connection before it saw the request: Go asks again on a new one, silently.
                connection.close()
                if answer.began or self.flow.blocked:
                    raise
                self.flow.statistics.step(step.name).reconnects += 1
            else:
                _finish(connection, answer)
                return
        connection = self._connection = self.connect(step)
        connection.begin(self.request_for(step, path, connection), answer, choose_sink)
        _finish(connection, answer)

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _finish(connection: Connection, answer: Answer) -> None:
    """Read the rest of an answer; of a watch-list, its initial events. Raises as ``Connection.finish``."""
    events = answer.sink
    if not isinstance(events, InitialEvents):
        connection.finish(answer)
        return
    while not events.done and connection.advance(answer):
        pass
    connection.close()
    if not events.done:
        raise AnswerCutShort
