"""A watch: opened, followed, opened again, as a client-go reflector does it.

It counts as one request when the answer's head has come (its latency is that of the head), and once more, as a
failure, if it breaks later. Events and bytes count as they come; of those that say when their object was written after
the watch was opened (``watchstream``), the time until they came is kept, of the last of several that come at once.

    ended by the server     opened again at once from the last event's version; after less than a second without any
                            event, after the back-off (client-go: "very short watch")
    410, or an ERROR event  opened again at resourceVersion=0 after the back-off: the server sends everything again
    anything else           opened again from the last version after Retry-After or the back-off
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import gevent

from scaletest.load.backoff import Retries
from scaletest.load.connection import Answer, Connection
from scaletest.load.http1 import Head, Sink
from scaletest.load.metadata import BodyHead, FailureText
from scaletest.load.outcomes import REQUEST_ERRORS, RequestTimedOut, is_success, outcome_of_error
from scaletest.load.requests import Step
from scaletest.load.watchstream import EventCounter, JsonEvents, ProtobufEvents

if TYPE_CHECKING:
    from scaletest.load.agent import Agent

__all__ = ["Watch"]

LEAST_WATCH_S = 300
"""A watch lasts 5 to 10 minutes before its server ends it: a reflector's ``minWatchTimeout``."""

VERY_SHORT_S = 1.0
_GONE = 410


class Watch:
    """One standing watch of one agent, in a greenlet of its own."""

    __slots__ = ("_agent", "_connection", "_greenlet", "_retries", "_step", "_version")

    def __init__(self, agent: Agent, step: Step) -> None:
        self._agent = agent
        self._step = step
        self._version = agent.version_for(step)
        self._connection: Connection | None = None
        self._retries = Retries(agent.flow.backoff)
        self._greenlet = gevent.spawn(self._run)

    def stop(self) -> None:
        """End the watch; does not wait for it."""
        self._greenlet.kill(block=False)

    @property
    def connection(self) -> Connection | None:
        """The connection that it has at this moment."""
        return self._connection

    def disconnect(self) -> None:
        """Close the connection under the watch, which will open another after its back-off."""
        if self._connection is not None:
            self._connection.close()

    def _run(self) -> None:
        try:
            while True:
                wait_s = self._watch()
                if wait_s > 0:
                    gevent.sleep(wait_s)
        finally:
            self._close()

    def _watch(self) -> float:
        """Open and follow a watch; return the seconds after which to open it again."""
        answer, outcome = self._open()
        if not is_success(outcome):
            if answer.status == _GONE:
                self._version = "0"
            return self._agent.wait_after(self._retries, answer, outcome)
        self._retries.succeeded()
        opened_s = time.monotonic()
        error = self._follow(answer, opened_s)
        events = answer.sink
        assert isinstance(events, EventCounter)
        self._version = events.version or self._version
        if events.error is not None:
            return self._ended_by_error(*events.error)
        if error is not None:
            self._agent.flow.statistics.step(self._step.name).record(outcome_of_error(error), None, 0)
            self._agent.sample(self._step, outcome_of_error(error), answer, error)
            return self._backed_off_s()
        very_short = time.monotonic() - opened_s < VERY_SHORT_S and not events.count
        return self._backed_off_s() if very_short else 0.0

    def _open(self) -> tuple[Answer, str]:
        agent, step = self._agent, self._step
        agent.wait_for_token()
        watch_s = int(LEAST_WATCH_S * (1.0 + agent.flow.random.random()))
        path = step.path(agent.node, self._version, watch_s=watch_s)
        answer, error = Answer(), None
        started_s = time.perf_counter()
        timer = gevent.Timeout.start_new(step.spec.timeout_s, RequestTimedOut)
        try:
            if self._connection is None or not self._connection.is_open:
                self._connection = agent.connect(step)
            self._connection.begin(agent.request_for(step, path, self._connection), answer, _choose_sink)
            outcome = str(answer.status)
            if not is_success(outcome):
                self._connection.finish(answer)
        except REQUEST_ERRORS as caught:
            error, outcome = caught, outcome_of_error(caught)
            self._close()
        finally:
            timer.close()
        agent.report(step, outcome, started_s, answer, error)
        return answer, outcome

    def _follow(self, answer: Answer, opened_s: float) -> Exception | None:
        """Read events until the watch ends; return what broke it, if something did."""
        events, connection = answer.sink, self._connection
        assert isinstance(events, EventCounter)
        assert connection is not None
        name, statistics = self._step.name, self._agent.flow.statistics
        statistics.step(name).events += events.take_fresh()
        seen_bytes = answer.body_bytes
        try:
            while connection.advance(answer):
                step = statistics.step(name)
                if fresh := events.take_fresh():
                    step.events += fresh
                    now_s = time.monotonic()
                    age_us = events.age_us(now_s)
                    if age_us is not None and age_us <= (now_s - opened_s) * 1e6:
                        step.event_us.record(age_us)
                step.bytes += answer.body_bytes - seen_bytes
                seen_bytes = answer.body_bytes
            connection.finish(answer)
        except REQUEST_ERRORS as error:
            self._close()
            return error
        return None

    def _ended_by_error(self, code: int, reason: str | None, message: str | None) -> float:
        flow, outcome = self._agent.flow, str(code)
        flow.statistics.step(self._step.name).record(outcome, None, 0)
        if flow.statistics.wants_sample(self._step.name, outcome):
            flow.sample(self._step.name, outcome, code, FailureText(reason, message), self._agent.node)
        if code == _GONE:
            self._version = "0"
        return self._backed_off_s()

    def _backed_off_s(self) -> float:
        return self._retries.back_off_s(time.monotonic(), self._agent.flow.random.random())

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _choose_sink(head: Head) -> Sink | None:
    if not 200 <= head.status < 300:
        return BodyHead()
    return ProtobufEvents() if "protobuf" in head.content_type else JsonEvents()
