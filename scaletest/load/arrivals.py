"""The ``arrivals`` flow: requests that come on their own schedule, answered or not.

A pacer, woken by an alarm of the event loop, begins each arrival when it is due; how earlier ones fare is no concern of
its own, up to ``maxInFlight``, from which on an arrival is dropped and counted. Three times are kept apart:

    start lag   from when an arrival was due until the pacer began it: the generator's own lateness
    latency     from when it was due until the last byte of its answer: what a client that came then would have seen
    service     from when it was sent until the last byte of its answer

Latency holds what a stalled server does to those who come meanwhile (coordinated omission: Tene, "How NOT to Measure Latency");
the difference to service time is start lag and waiting for a free connection.

A ``closed`` flow has no schedule: each connection asks again as soon as it was answered. Its arrivals are due when they are sent.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Sequence
from random import Random
from typing import Any, Final

import gevent
from gevent.event import AsyncResult
from locust import User

from scaletest.core.errors import EnvironmentProblem
from scaletest.load.alarm import Alarm
from scaletest.load.channel import Channel, ChannelOwner, Ended
from scaletest.load.connection import Endpoint, TlsContexts
from scaletest.load.flow import Flow, Host, TellingUser
from scaletest.load.metadata import BodyHead, EdgeKeeper, FailureText, failure_text
from scaletest.load.operations import Call, Mix, Operation
from scaletest.load.outcomes import REQUEST_ERRORS, is_success
from scaletest.load.pool import ChannelPool
from scaletest.load.protocol import FlowChanged, FlowStart, SetTarget
from scaletest.load.schedule import Pacer, RateCurve, Schedule, curve_of
from scaletest.load.statistics import ArrivalStatistics

__all__ = ["ArrivalsFlow"]

TELL_EVERY_S: Final = 0.05
SWEEP_EVERY_S: Final = 0.1
CONNECT_WITHIN_S: Final = 10.0
MAKE_WITHIN_S: Final = 5.0
MAKE_AGAIN_S: Final = 0.5
MADE_WITHIN_S: Final = 20.0
"""How long the flow's objects are tried to be made before the flow fails, the pause between two attempts, and the longest one."""

DRAIN_S: Final = 1.0
"""Time that calls on the wire have to end when the flow stops; the others are in its last record, as in flight."""

REMOVE_WITHIN_S: Final = 3.0


class ArrivalsFlow(Flow):
    """Arrivals of one flow; ``target`` is the number of connections."""

    def __init__(self, host: Host, start: FlowStart) -> None:
        super().__init__(host, start)
        spec = start.spec.arrivals
        assert spec is not None
        self._start = start
        self._spec = spec
        self._closed = spec.is_closed
        self._random = Random(start.seed)
        self._most_in_flight = spec.most_in_flight
        self._in_flight = 0
        self._endpoints: list[Endpoint] = []
        self._next_endpoint = 0
        self._contexts = TlsContexts(start.access.ca_file)
        self._pool = ChannelPool(self._connect, self._ended, size=start.target, keep=spec.keep_alive)
        self._pool.reconnects = self._count_reconnect
        self._mix: Mix | None = None
        self._pacer: Pacer | None = None
        self._alarm: Alarm | None = None
        self._arrivals = ArrivalStatistics()
        self._untold: list[tuple[Operation, str, float, float, int, Exception | None]] = []
        self._stopping = False
        self._sweeper: gevent.Greenlet | None = None
        self._user_class = type(f"arrivals-{self.name}", (TellingUser,), {"flow": self})
        self._users: list[User] = []

    # What the driver asks for.

    def start(self) -> None:
        """Open connections, make the flow's objects, begin; see Flow. Raises EnvironmentProblem."""
        access = self._start.access
        try:
            self._endpoints = [Endpoint.resolve(server) for server in access.servers]
            self._contexts.get(access.credential)
            token_file = access.credential.token_file
            token = token_file.read_text(encoding="ascii").strip() if token_file is not None else None
        except OSError as error:
            msg = f"flow {self.name}: no connection can be made: {error}"
            raise EnvironmentProblem(msg) from error
        authorization = f"Authorization: Bearer {token}\r\n" if token else ""
        self._mix = Mix(self._start.spec.mix, self.name, authorization, self._spec.objects)
        self._sweeper = gevent.spawn(self._sweep)
        try:
            self._open_connections()
            self._make_objects()
        except BaseException:
            self._close()
            raise
        self.host.environment.user_classes.append(self._user_class)
        self._users = self.host.runner.spawn_users({self._user_class.__name__: 1})
        if self._closed:
            for _ in range(self.target):
                self._begin_closed()
        else:
            self._alarm = Alarm(self._ring)
            self._follow(curve_of(self._spec))

    def set_target(self, command: SetTarget) -> FlowChanged:
        """Change the number of connections."""
        more, self.target = command.target - self.target, command.target
        self._pool.resize(command.target)
        if self._closed:
            for _ in range(more):
                self._begin_closed()
        return FlowChanged(self.name)

    def set_rate(self, rate_per_s: float) -> FlowChanged:
        """Go on at another rate, from now on and without end. Raises EnvironmentProblem for a closed loop."""
        if self._closed:
            msg = f"flow {self.name}: a closed loop has no rate"
            raise EnvironmentProblem(msg, hint="change its connections")
        self._follow(RateCurve((), rate_per_s))
        self.host.emit("flow.rate", flow=self.name, rate_per_s=rate_per_s)
        return FlowChanged(self.name)

    def set_servers(self, servers: Sequence[str]) -> None:
        """Have new connections go to these API servers in turn."""
        self._endpoints = [Endpoint.resolve(server) for server in servers]

    def stop(self) -> None:
        """Begin no more, wait a moment for what is in flight, remove the flow's objects, close."""
        self._stopping = True
        if self._alarm is not None:
            self._alarm.close()
        never_sent = self._pool.drop_waiting()
        deadline_s = time.monotonic() + DRAIN_S
        while self._in_flight > never_sent and time.monotonic() < deadline_s:
            gevent.sleep(0.01)
        with gevent.Timeout(REMOVE_WITHIN_S, False):
            self._remove_objects()
        self._close()
        gevent.killall([user.greenlet for user in self._users])
        self._users = []
        self._tell_now()
        self.host.environment.user_classes.remove(self._user_class)

    def block(self) -> FlowChanged:
        """Close all connections and refuse new ones; says how many, and what was under way on them."""
        self.blocked = True
        connections, requests = self._pool.block()
        return FlowChanged(self.name, 0, connections, requests)

    def unblock(self) -> None:
        """Let arrivals connect again."""
        self.blocked = self._pool.blocked = False

    def user_counts(self) -> dict[str, int]:
        """Return living users by class."""
        return {self._user_class.__name__: len(self._users)}

    def gauges(self) -> dict[str, int]:
        """Return target, started, connected and blocked, in connections."""
        connected = self._pool.connected
        return {
            "target": self.target,
            "started": connected,
            "connected": connected,
            "blocked": self.target if self.blocked else 0,
        }

    def take_record(self, interval_s: float, gauges: dict[str, int] | None = None) -> dict[str, Any]:
        """Return the fields of this interval's record; see Flow."""
        record = super().take_record(interval_s, gauges)
        taken, self._arrivals = self._arrivals, ArrivalStatistics()
        pacer = self._pacer
        return record | {
            "arrivals": {
                "rate_per_s": pacer.rate_per_s() if pacer is not None else None,
                **taken.to_json(),
                "behind": pacer.behind() if pacer is not None and not self._stopping else 0,
                "in_flight": self._in_flight,
                "waiting": len(self._pool.waiting),
            }
        }

    # Arrivals.

    def _follow(self, curve: RateCurve) -> None:
        assert self._alarm is not None
        poisson = self._spec.process == "poisson"
        schedule = Schedule(curve, time.monotonic(), self._random, poisson=poisson)
        self._pacer = Pacer(schedule, self._arrive)
        self._alarm.set(self._pacer.next_due_s)

    def _ring(self) -> None:
        pacer, alarm = self._pacer, self._alarm
        assert pacer is not None
        assert alarm is not None
        alarm.set(pacer.ring())

    def _arrive(self, due_s: float, now_s: float) -> None:
        arrivals = self._arrivals
        arrivals.due += 1
        arrivals.lag_us.record(int((now_s - due_s) * 1e6))
        if self._in_flight >= self._most_in_flight:
            arrivals.dropped += 1
            return
        self._in_flight += 1
        assert self._mix is not None
        self._pool.start(self._mix.draw(due_s, self._random))

    def _begin_closed(self) -> None:
        self._pool.start(self._next_closed())

    def _next_closed(self) -> Call:
        assert self._mix is not None
        self._in_flight += 1
        self._arrivals.due += 1
        return self._mix.draw(time.monotonic(), self._random)

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
            self._arrivals.sent += not call.page
            if good:
                step.service_us.record(int((now_s - call.sent_s) * 1e6))
        operation.ended(call, outcome)
        self._untold.append((operation, outcome, call.sent_s or now_s, latency_s, ended.body_bytes, ended.error))
        if not good:
            self._sample(call, ended)
        following = self._next_page(call, ended, now_s) if operation.follows_pages else None
        if following is not None:
            return following
        self._in_flight -= 1
        # A closed loop goes on until it is stopped, or has too many connections.
        if self._closed and not self._stopping and self._in_flight < self.target:
            return self._next_closed()
        return None

    def _next_page(self, call: Call, ended: Ended, now_s: float) -> Call | None:
        sink = ended.answer.sink
        if not is_success(ended.outcome) or not isinstance(sink, EdgeKeeper) or sink.metadata is None:
            return None
        if not sink.metadata.next_page:
            return None
        following = Call(call.operation, now_s, call.name, call.index)
        following.page = sink.metadata.next_page
        return following

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
            self._pool.sweep(time.monotonic())

    # Connections.

    def _connect(self, owner: ChannelOwner, call: Call | None) -> Channel:
        """Open a channel to the next server, for a call or in advance. Raises OSError, SSLError among them."""
        if self.blocked:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "the flow's network path is blocked")
        addresses = self._start.source_addresses
        turn, self._next_endpoint = self._next_endpoint, self._next_endpoint + 1
        began_s = time.monotonic()
        channel = Channel.connect(
            self.host.sockets,
            self._endpoints[turn % len(self._endpoints)],
            self._contexts.get(self._start.access.credential),
            addresses[turn % len(addresses)] if addresses else None,
            owner,
        )
        if self.blocked:
            channel.close()
            raise ConnectionRefusedError(errno.ECONNREFUSED, "the flow's network path is blocked")
        name = call.operation.name if call is not None else self._start.spec.mix[0].title
        self.statistics.step(name).connect_us.record(int((time.monotonic() - began_s) * 1e6))
        return channel

    def _open_connections(self) -> None:
        """Open the connections before the first arrival needs one; those that fail are opened when one does."""
        if not self._spec.keep_alive:
            return

        def open_one() -> None:
            try:
                with gevent.Timeout(CONNECT_WITHIN_S, TimeoutError):
                    self._pool.add(self._connect(self._pool, None))
            except REQUEST_ERRORS:
                # The arrival that needs it will say what is wrong.
                return

        gevent.joinall([gevent.spawn(open_one) for _ in range(self.target)])

    def _count_reconnect(self, call: Call) -> None:
        self.statistics.step(call.operation.name).reconnects += 1

    def _close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.kill()
        self._pool.close()

    # The flow's own objects.

    def _make_objects(self) -> None:
        """Make the flow's objects. Raises EnvironmentProblem with what the API server said."""
        assert self._mix is not None
        deadline_s = time.monotonic() + MAKE_WITHIN_S
        for create, count in self._mix.creations():
            missing = count
            while missing:
                failed = self._make(create, missing)
                missing = len(failed)
                if missing and time.monotonic() > deadline_s:
                    msg = f"flow {self.name}: its {create.spec.target} could not be made: {_why(failed[0])}"
                    raise EnvironmentProblem(msg, hint="may its identity create them, and is the namespace there?")
                if missing:
                    # A young cluster may lack a ServiceAccount for its pods yet, a busy one answers 429.
                    gevent.sleep(MAKE_AGAIN_S)

    def _make(self, create: Operation, count: int) -> list[Ended]:
        """Create objects, as many at once as there are connections; return how those ended that were not made."""
        results = [self._own(create.call(time.monotonic(), self._random)) for _ in range(count)]
        gevent.wait(results, timeout=MADE_WITHIN_S)
        ended: list[Ended] = [result.get() if result.ready() else Ended("timeout", 0) for result in results]
        return [item for item in ended if not is_success(item.outcome) and item.outcome != "409"]

    def _remove_objects(self) -> None:
        assert self._mix is not None
        for operation in self._mix.removals():
            ended = self._own(Call(operation, time.monotonic())).get()
            if not is_success(ended.outcome):
                text = f"flow {self.name}: its {operation.spec.target} could not be removed: {_why(ended)}"
                self.host.emit("note", level="warning", text=text)

    def _own(self, call: Call) -> AsyncResult:
        result = call.then = AsyncResult()
        self._pool.start(call)
        return result

    # Locust.

    def tell(self) -> None:
        """Fire Locust's request event for what was answered, in rows: listeners may wait, which the event loop must not."""
        while True:
            gevent.sleep(TELL_EVERY_S)
            self._tell_now()

    def _tell_now(self) -> None:
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


def _why(ended: Ended) -> str:
    if ended.error is not None:
        return f"{ended.outcome}: {ended.error}"
    sink, head = ended.answer.sink, ended.answer.head
    text = failure_text(sink.data if isinstance(sink, BodyHead) else b"", head.content_type if head else "")
    return f"{ended.outcome}: {text.message or text.reason}"
