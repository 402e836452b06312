"""A watch: opened, followed, opened again, as a client-go reflector does it.

It counts as one request when the answer's head has come (its latency is that of the head), and once more, as a
failure, if it breaks later. Events and bytes count as they come; of those that say when their object was written
(``watchstream``), the time until they came is kept, of every change since the watch began.

    ended by the server     opened again at once from the last event's version; after less than a second without any
                            event, after the back-off (client-go: "very short watch")
    410, or an ERROR event  opened again at resourceVersion=0 after the back-off: the server sends everything again
    anything else           opened again from the last version after Retry-After or the back-off

A watch waits in a greenlet while it opens. From then on its bytes are read in callbacks of the event loop: thousands of greenlets that
stand and wait for an event now and then would take a third of the memory of all.
"""

from __future__ import annotations

import ssl
import time
from typing import TYPE_CHECKING, Any, Final

import gevent

from scaletest.load.backoff import Retries
from scaletest.load.connection import Answer, Connection
from scaletest.load.http1 import Head, Sink
from scaletest.load.metadata import BodyHead, FailureText
from scaletest.load.outcomes import REQUEST_ERRORS, RequestTimedOut, is_success, outcome_of_error
from scaletest.load.requests import Step
from scaletest.load.watchstream import EventCounter, JsonEvents, ProtobufEvents

if TYPE_CHECKING:
    from scaletest.load.nodeclient import NodeClient

__all__ = ["Watch"]

VERY_SHORT_S: Final = 1.0
EARLY_S: Final = 1.0
"""A watch that ends this much before the time that it asked for was ended early; the server's clock rounds to seconds."""

_GONE: Final = 410
_READABLE: Final = 1


class Watch:
    """One standing watch of one client."""

    __slots__ = (
        "_answer", "_asked_s", "_client", "_connection", "_io", "_opened_s", "_opening", "_retries", "_seen_bytes", "_since_s", "_step",
        "_stopped", "_version",
    )  # fmt: skip

    def __init__(self, client: NodeClient, step: Step) -> None:
        self._client = client
        self._step = step
        self._version = client.version_for(step)
        self._connection: Connection | None = None
        self._retries = Retries(client.flow.backoff)
        self._answer: Answer | None = None
        """That of the watch which stands; None while it opens or waits."""
        self._io: Any = None
        self._opening: gevent.Greenlet | None = None
        self._stopped = False
        self._asked_s = 0
        self._opened_s: float | None = None
        self._since_s: float | None = None
        """From when on every change comes: a watch that goes on from a version misses none, one that starts afresh sends old ones too."""
        self._seen_bytes = 0

    def start(self) -> None:
        """Open the watch; returns at once."""
        self._open_after(0.0)

    def stop(self) -> None:
        """End the watch and close its connection; does not wait."""
        self._stopped, self._answer = True, None
        self._stop_listening()
        if self._opening is not None:
            self._opening.kill(block=False)
        self._close()

    @property
    def connection(self) -> Connection | None:
        """The connection that it has at this moment."""
        return self._connection

    @property
    def stands(self) -> bool:
        """Whether it is open."""
        return self._answer is not None

    @property
    def is_from_the_beginning(self) -> bool:
        """Whether it asks for the whole state before the changes."""
        return self._version in {None, "0"}

    def events_of(self, head: Head) -> EventCounter:
        """Return what takes the events of a watch that was opened."""
        return ProtobufEvents() if "protobuf" in head.content_type else JsonEvents()

    def disconnect(self) -> None:
        """Close the connection under the watch, which will open another after its back-off."""
        if self._answer is not None:
            self._ended(ConnectionResetError("the flow's network path is blocked"))
        else:
            self._close()

    def open(self) -> None:
        """Open the watch; waits until it stands, or until it failed and the next attempt has its time."""
        answer, outcome = self._request()
        if self._stopped:
            self._close()
            return
        if is_success(outcome):
            self._retries.succeeded()
            self._stand(answer)
            return
        if answer.status == _GONE:
            self._start_afresh()
        self._open_after(self._client.wait_after(self._retries, answer, outcome))

    def _open_after(self, wait_s: float) -> None:
        self._opening = gevent.spawn_later(wait_s, self._open_in_greenlet)

    def _open_in_greenlet(self) -> None:
        opening = self._opening
        self.open()
        if self._opening is opening:
            self._opening = None

    def _request(self) -> tuple[Answer, str]:
        client, step = self._client, self._step
        client.wait_for_token()
        self._asked_s = int(step.spec.lasts_s * (1.0 + client.flow.random.random()))
        path = step.path(client.node, self._version, watch_s=self._asked_s)
        answer, error = Answer(), None
        started_s = time.perf_counter()
        timer = gevent.Timeout.start_new(step.spec.timeout_s, RequestTimedOut)
        try:
            if self._connection is None or not self._connection.is_open:
                self._connection = client.connect(step)
            self._connection.begin(client.request_for(step, path, self._connection), answer, self._choose_sink)
            outcome = str(answer.status)
            if not is_success(outcome):
                self._connection.finish(answer)
        except REQUEST_ERRORS as caught:
            error, outcome = caught, outcome_of_error(caught)
            self._close()
        finally:
            timer.close()
        if not self._stopped:
            client.report(step, outcome, started_s, answer, error)
        return answer, outcome

    def _stand(self, answer: Answer) -> None:
        """Go on in callbacks of the event loop."""
        assert self._connection is not None
        now_s = time.monotonic()
        if self._opened_s is not None:
            self._client.flow.statistics.step(self._step.name).reconnects += 1
        self._opened_s = now_s
        if self._since_s is None:
            self._since_s = now_s
        self._answer = answer
        self._seen_bytes = answer.body_bytes
        self._heard(answer)
        self._io = gevent.get_hub().loop.io(self._connection.fileno(), _READABLE)
        self._io.start(self._readable)
        # What came with the head does not make the socket readable again.
        self._readable()

    def _readable(self) -> None:
        connection, answer = self._connection, self._answer
        if connection is None or answer is None:
            # A callback that was due when the watch ended.
            return
        assert answer.body is not None
        try:
            more = connection.take(answer)
        except ssl.SSLWantReadError:
            return
        except REQUEST_ERRORS as error:
            self._ended(error)
            return
        self._heard(answer)
        if not more or answer.body.done:
            # Nothing is left to read: this does not wait.
            connection.finish(answer)
            self._ended(None)
        elif connection.holds_bytes:
            gevent.get_hub().loop.run_callback(self._readable)

    def _heard(self, answer: Answer) -> None:
        """Count what came."""
        events, step = answer.sink, self._client.flow.statistics.step(self._step.name)
        assert isinstance(events, EventCounter)
        if fresh := events.take_fresh():
            step.events += fresh
            now_s = time.monotonic()
            assert self._since_s is not None
            longest_us = (now_s - self._since_s) * 1e6
            for age_us in events.take_ages_us(now_s):
                if age_us <= longest_us:
                    step.event_us.record(age_us)
        step.bytes += answer.body_bytes - self._seen_bytes
        self._seen_bytes = answer.body_bytes

    def _ended(self, error: Exception | None) -> None:
        """Take note of how a standing watch ended, and open it again when it is time."""
        answer, self._answer = self._answer, None
        assert answer is not None
        assert self._opened_s is not None
        events, stood_s = answer.sink, time.monotonic() - self._opened_s
        assert isinstance(events, EventCounter)
        self._stop_listening()
        if error is not None:
            self._close()
        self._version = events.version or self._version
        flow, name = self._client.flow, self._step.name
        if stood_s < self._asked_s - EARLY_S and not flow.blocked:
            flow.statistics.step(name).early_us.record(int(stood_s * 1e6))
        if events.error is not None:
            wait_s = self._ended_by_error(*events.error)
        elif error is not None:
            flow.statistics.step(name).record(outcome_of_error(error), None, 0)
            self._client.sample(self._step, outcome_of_error(error), answer, error)
            wait_s = self._backed_off_s()
        else:
            wait_s = self._backed_off_s() if stood_s < VERY_SHORT_S and not events.count else 0.0
        self._open_after(wait_s)

    def _ended_by_error(self, code: int, reason: str | None, message: str | None) -> float:
        flow, outcome = self._client.flow, str(code)
        flow.statistics.step(self._step.name).record(outcome, None, 0)
        if flow.statistics.wants_sample(self._step.name, outcome):
            flow.sample(self._step.name, outcome, code, FailureText(reason, message), self._client.node)
        if code == _GONE:
            self._start_afresh()
        return self._backed_off_s()

    def _start_afresh(self) -> None:
        self._version, self._since_s = "0", None

    def _backed_off_s(self) -> float:
        return self._retries.back_off_s(time.monotonic(), self._client.flow.random.random())

    def _stop_listening(self) -> None:
        if self._io is not None:
            self._io.stop()
            self._io.close()
            self._io = None

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _choose_sink(self, head: Head) -> Sink:
        return self.events_of(head) if 200 <= head.status < 300 else BodyHead()
