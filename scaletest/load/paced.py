"""What flows have in common whose requests come on a schedule: a pacer, a pool of channels, three times for each request.

A pacer, woken by an alarm of the event loop, begins each arrival when it is due; how earlier ones fare is no concern of
its own. Three times are kept apart:

    start lag   from when an arrival was due until the pacer began it: the generator's own lateness
    latency     from when it was due until the last byte of its answer: what a client that came then would have seen
    service     from when it was sent until the last byte of its answer

Latency holds what a stalled server does to those who come meanwhile (coordinated omission: Tene, "How NOT to Measure Latency");
the difference to service time is start lag and waiting for a free connection.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Sequence
from random import Random
from typing import Any, Final

import gevent
from gevent.event import AsyncResult

from scaletest.core.errors import EnvironmentProblem
from scaletest.load.alarm import Alarm
from scaletest.load.channel import Channel, ChannelOwner, Ended
from scaletest.load.connection import Endpoint, TlsContexts
from scaletest.load.flow import Host, TellingFlow
from scaletest.load.metadata import BodyHead, FailureText, failure_text
from scaletest.load.operations import Call, Operation
from scaletest.load.outcomes import REQUEST_ERRORS, is_success
from scaletest.load.pool import ChannelPool
from scaletest.load.protocol import FlowChanged, FlowStart
from scaletest.load.schedule import Pacer, RateCurve, Schedule
from scaletest.load.shares import WHOLE
from scaletest.load.statistics import ArrivalStatistics

__all__ = ["PacedFlow", "why"]

SWEEP_EVERY_S: Final = 0.1
CONNECT_WITHIN_S: Final = 10.0

DRAIN_S: Final = 1.0
"""Time that calls on the wire have to end when the flow stops; the others are in its last record, as in flight."""

REMOVE_WITHIN_S: Final = 3.0
"""Time for removing the flow's objects: with ``DRAIN_S`` less than a driver has to stop all its flows."""


class PacedFlow(TellingFlow):
    """Arrivals of one flow on at most ``connections`` channels, of which ``most_in_flight`` may be under way.

    ``first_step`` is where connections count that are opened in advance.
    """

    kind = "paced"

    def __init__(
        self, host: Host, start: FlowStart, *, connections: int, keep_alive: bool, most_in_flight: int, first_step: str
    ) -> None:
        super().__init__(host, start)
        self.random = Random(start.seed)
        self.endpoints: list[Endpoint] = []
        self.pool = ChannelPool(self._connect, self._ended, size=connections, keep=keep_alive)
        self.pool.reconnects = self._count_reconnect
        self.in_flight = 0
        self.share = start.share
        self.origin_s: float | None = None
        """Of the schedule, where other processes have one of the same origin."""
        self.is_stopping = False
        self.is_paused = False
        self.arrivals = ArrivalStatistics()
        self.contexts = TlsContexts(start.access.ca_file)
        self._start = start
        self._keep_alive = keep_alive
        self._most_in_flight = most_in_flight
        self._first_step = first_step
        self._next_endpoint = 0
        self.source_addresses = start.source_addresses
        self._pacer: Pacer | None = None
        self._alarm: Alarm | None = None
        self._untold: list[tuple[Operation, str, float, float, int, Exception | None]] = []
        self._sweeper: gevent.Greenlet | None = None

    # What each kind of flow adds.

    def prepare(self, authorization: str) -> None:
        """Compile the flow's requests; ``authorization`` is a whole header line with its end, or empty."""
        raise NotImplementedError

    def make_objects(self) -> None:
        """Make what the requests are about. Raises EnvironmentProblem with what the API server said."""
        raise NotImplementedError

    def begin(self) -> None:
        """Begin the first arrival, or ``follow`` a rate."""
        raise NotImplementedError

    def next_call(self, due_s: float) -> Call | None:
        """Return the call of an arrival; None where there is nothing to ask at this moment: it is dropped."""
        raise NotImplementedError

    def weight(self) -> float:
        """Return how many arrivals of the rate the one that has just begun stands for."""
        return 1.0

    @property
    def mean_weight(self) -> float:
        """What ``weight`` comes to on average."""
        return 1.0

    def following(self, call: Call, ended: Ended, now_s: float) -> Call | None:  # noqa: ARG002 - for those that have one
        """Return the call that belongs to the same arrival and follows on its channel, None when the arrival has ended."""
        return None

    def after(self, call: Call, outcome: str) -> Call | None:  # noqa: ARG002 - for those that have one
        """Learn how an arrival ended; return the call with which its channel goes on by itself, if it does."""
        return None

    def remove_objects(self) -> None:
        """Remove what ``make_objects`` and the requests have made; what could not be removed is noted."""
        raise NotImplementedError

    # What the driver asks for.

    def start(self) -> None:
        """Open connections, make the flow's objects, begin; see Flow. Raises EnvironmentProblem."""
        access = self._start.access
        try:
            self.endpoints = [Endpoint.resolve(server) for server in access.servers]
            self.contexts.get(access.credential)
            token_file = access.credential.token_file
            token = token_file.read_text(encoding="ascii").strip() if token_file is not None else None
        except OSError as error:
            msg = f"flow {self.name}: no connection can be made: {error}"
            raise EnvironmentProblem(msg) from error
        self.prepare(f"Authorization: Bearer {token}\r\n" if token else "")
        self._sweeper = gevent.spawn(self._sweep)
        try:
            self._open_connections()
            self.make_objects()
        except BaseException:
            self.close()
            raise
        self.begin_telling()
        if self.share == WHOLE:
            self.begin()

    def set_servers(self, servers: Sequence[str]) -> None:
        """Have new connections go to these API servers in turn."""
        self.endpoints = [Endpoint.resolve(server) for server in servers]

    def stop(self) -> None:
        """Begin no more, wait a moment for what is in flight, remove the flow's objects, close."""
        self.is_stopping = True
        if self._alarm is not None:
            self._alarm.close()
        never_sent = self.pool.drop_waiting()
        deadline_s = time.monotonic() + DRAIN_S
        while self.in_flight > never_sent and time.monotonic() < deadline_s:
            gevent.sleep(0.01)
        if self.share[0] == 0:
            # One process removes the objects of all, when none of them can have a request about one any more.
            gevent.sleep(max(0.0, deadline_s - time.monotonic()) if self.share != WHOLE else 0.0)
            with gevent.Timeout(REMOVE_WITHIN_S, False):
                self.remove_objects()
        self.close()
        self.end_telling()

    def close(self) -> None:
        """Close all connections."""
        if self._sweeper is not None:
            self._sweeper.kill()
        self.pool.close()

    def block(self) -> FlowChanged:
        """Close all connections and refuse new ones; says how many, and what was under way on them."""
        self.blocked = True
        connections, requests = self.pool.block()
        return FlowChanged(self.name, 0, connections, requests)

    def unblock(self) -> None:
        """Let arrivals connect again."""
        self.blocked = self.pool.blocked = False

    def take_record(self, interval_s: float, gauges: dict[str, int] | None = None) -> dict[str, Any]:
        """Return the fields of this interval's record; see Flow."""
        record = super().take_record(interval_s, gauges)
        taken, self.arrivals = self.arrivals, ArrivalStatistics()
        pacer, weight = self._pacer, self.mean_weight
        behind = pacer.behind() if pacer is not None and not self.is_stopping and not self.is_paused else 0
        return record | {
            "arrivals": {
                "rate_per_s": pacer.rate_per_s() / weight if pacer is not None else None,
                **taken.to_json(),
                # The next one is due for certain.
                "behind": min(behind, 1 + int(behind / weight)),
                "in_flight": self.in_flight,
                "waiting": len(self.pool.waiting),
            }
        }

    # Arrivals.

    def follow(self, curve: RateCurve, *, poisson: bool) -> None:
        """Have arrivals come at a rate from now on."""
        self.is_paused = False
        if self._alarm is None:
            self._alarm = Alarm(self._ring)
        origin_s = time.monotonic() if self.origin_s is None else self.origin_s
        schedule = Schedule(curve, origin_s, self.random, poisson=poisson, share=self.share)
        self._pacer = Pacer(schedule, self._arrive)
        self._alarm.set(self._pacer.next_due_s)

    def pause(self) -> None:
        """Begin no more arrivals until ``follow`` is called."""
        self.is_paused = True

    def _ring(self) -> None:
        assert self._alarm is not None
        assert self._pacer is not None
        if not self.is_paused:
            self._pacer.ring()
            # A call that ended at once may have brought another pacer.
            self._alarm.set(self._pacer.next_due_s)

    def _arrive(self, due_s: float, now_s: float) -> float | None:
        if self.is_paused:
            return None
        arrivals = self.arrivals
        arrivals.due += 1
        arrivals.lag_us.record(int((now_s - due_s) * 1e6))
        call = self.next_call(due_s) if self.in_flight < self._most_in_flight else None
        if call is None:
            arrivals.dropped += 1
            return None
        self.in_flight += 1
        self.pool.start(call)
        return self.weight()

    def _ended(self, call: Call, ended: Ended) -> Call | None:
        """Count a call that ended; returns the one that follows on its channel, if one does."""
        if isinstance(call.then, AsyncResult):
            call.operation.ended(call, ended.outcome)
            call.then.set(ended)
            return None
        now_s = time.monotonic()
        operation, outcome = call.operation, ended.outcome
        latency_s = now_s - call.due_s
        step = self.statistics.step(operation.name)
        step.record(outcome, int(latency_s * 1e6), ended.body_bytes)
        good = is_success(outcome)
        if call.sent_s:
            self.arrivals.sent += not call.page
            if good:
                step.service_us.record(int((now_s - call.sent_s) * 1e6))
        operation.ended(call, outcome)
        self._untold.append((operation, outcome, call.sent_s or now_s, latency_s, ended.body_bytes, ended.error))
        if not good:
            self._sample(call, ended)
        following = self.following(call, ended, now_s) if operation.follows_pages else None
        if following is not None:
            return following
        self.in_flight -= 1
        return self.after(call, outcome)

    def _sample(self, call: Call, ended: Ended) -> None:
        step, outcome = call.operation.name, ended.outcome
        if not self.statistics.wants_sample(step, outcome):
            return
        answer = ended.answer
        if ended.error is not None:
            text = FailureText(type(ended.error).__name__, str(ended.error) or None)
        else:
            body = answer.sink.data if isinstance(answer.sink, BodyHead) else b""
            text = failure_text(body, answer.head.content_type if answer.head else "")
        self.sample(step, outcome, answer.status, text, None)

    def _sweep(self) -> None:
        while True:
            gevent.sleep(SWEEP_EVERY_S)
            self.pool.sweep(time.monotonic())

    # Connections.

    def _connect(self, owner: ChannelOwner, call: Call | None) -> Channel:
        """Open a channel to the next server, for a call or in advance. Raises OSError, SSLError among them."""
        if self.blocked:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "the flow's network path is blocked")
        addresses = self.source_addresses
        turn, self._next_endpoint = self._next_endpoint, self._next_endpoint + 1
        began_s = time.monotonic()
        channel = Channel.connect(
            self.host.sockets,
            self.endpoints[turn % len(self.endpoints)],
            self.contexts.get(self._start.access.credential),
            addresses[turn % len(addresses)] if addresses else None,
            owner,
        )
        if self.blocked:
            channel.close()
            raise ConnectionRefusedError(errno.ECONNREFUSED, "the flow's network path is blocked")
        name = call.operation.name if call is not None else self._first_step
        self.statistics.step(name).connect_us.record(int((time.monotonic() - began_s) * 1e6))
        return channel

    def _open_connections(self) -> None:
        """Open the connections before the first arrival needs one; those that fail are opened when one does."""
        if not self._keep_alive:
            return

        def open_one() -> None:
            try:
                with gevent.Timeout(CONNECT_WITHIN_S, TimeoutError):
                    self.pool.add(self._connect(self.pool, None))
            except REQUEST_ERRORS:
                # The arrival that needs it will say what is wrong.
                return

        gevent.joinall([gevent.spawn(open_one) for _ in range(self.pool.size)])

    def _count_reconnect(self, call: Call) -> None:
        self.statistics.step(call.operation.name).reconnects += 1

    # The flow's own objects.

    def ask(self, call: Call) -> AsyncResult:
        """Make a request that is no arrival and is not counted; the result is an ``Ended``."""
        result = call.then = AsyncResult()
        self.pool.start(call)
        return result

    # Locust.

    def tell_now(self) -> None:
        """Fire Locust's request event for what has ended, in rows."""
        untold, self._untold = self._untold, []
        fire, wall_s = self.host.events.request.fire, time.time() - time.monotonic()
        for operation, outcome, sent_s, latency_s, body_bytes, error in untold:
            fire(
                request_type=operation.method,
                name=f"{self.name}/{operation.name}",
                response_time=latency_s * 1000.0,
                response_length=body_bytes,
                exception=None if is_success(outcome) else error or RuntimeError(outcome),
                context={},
                start_time=wall_s + sent_s,
            )


def why(ended: Ended) -> str:
    """Say how a call ended, for a message."""
    if ended.error is not None:
        return f"{ended.outcome}: {ended.error}"
    sink, head = ended.answer.sink, ended.answer.head
    text = failure_text(sink.data if isinstance(sink, BodyHead) else b"", head.content_type if head else "")
    return f"{ended.outcome}: {text.message or text.reason}"
