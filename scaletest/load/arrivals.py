"""The ``arrivals`` flow: requests that come on their own schedule, answered or not (``paced``).

Up to ``maxInFlight`` may be under way, from which on an arrival is dropped and counted. A ``closed`` flow has no schedule: each
connection asks again as soon as it was answered. Its arrivals are due when they are sent.
"""

from __future__ import annotations

import time
from typing import Final

import gevent

from scaletest.core.errors import EnvironmentProblem
from scaletest.load.channel import Ended
from scaletest.load.flow import Host
from scaletest.load.metadata import EdgeKeeper
from scaletest.load.operations import Call, Mix, Operation
from scaletest.load.outcomes import is_success
from scaletest.load.paced import PacedFlow, why
from scaletest.load.protocol import Begin, FlowChanged, FlowStart, SetTarget
from scaletest.load.schedule import RateCurve, curve_of
from scaletest.load.shares import first, part

__all__ = ["ArrivalsFlow"]

MAKE_WITHIN_S: Final = 5.0
MAKE_AGAIN_S: Final = 0.5
MADE_WITHIN_S: Final = 20.0
"""How long the flow's objects are tried to be made before the flow fails, the pause between two attempts, and the longest one."""


class ArrivalsFlow(PacedFlow):
    """Arrivals of one flow; ``target`` is the number of connections."""

    def __init__(self, host: Host, start: FlowStart) -> None:
        spec = start.spec.arrivals
        assert spec is not None
        super().__init__(
            host,
            start,
            connections=start.target,
            keep_alive=spec.keep_alive,
            most_in_flight=part(spec.most_in_flight, start.share),
            first_step=start.spec.mix[0].title,
        )
        self._spec = spec
        self._requests = start.spec.mix
        self._closed = spec.is_closed
        self._mix: Mix | None = None

    def prepare(self, authorization: str) -> None:
        """Compile the mix."""
        objects, share = self._spec.objects, self.share
        self._mix = Mix(self._requests, self.name, authorization, part(objects, share), first(objects, share))

    def begin(self) -> None:
        """Begin to follow the rate, or to ask on each connection."""
        if self._closed:
            for _ in range(self.target):
                self._begin_closed()
        else:
            self.follow(curve_of(self._spec), poisson=self._spec.process == "poisson")

    def set_target(self, command: SetTarget) -> FlowChanged:
        """Change the number of connections."""
        more, self.target = command.target - self.target, command.target
        self.source_addresses = command.source_addresses or self.source_addresses
        self.pool.resize(command.target)
        if self._closed:
            for _ in range(more):
                self._begin_closed()
        return FlowChanged(self.name)

    def begin_at(self, begin: Begin) -> None:
        """Begin a share's arrivals; see Flow."""
        self.origin_s = begin.origin_s
        if begin.rate_per_s is None:
            self.begin()
        else:
            self.set_rate(begin.rate_per_s)

    def set_rate(self, rate_per_s: float) -> FlowChanged:
        """Go on at another rate, from now on and without end. Raises EnvironmentProblem for a closed loop."""
        if self._closed:
            msg = f"flow {self.name}: a closed loop has no rate"
            raise EnvironmentProblem(msg, hint="change its connections")
        self.follow(RateCurve((), rate_per_s), poisson=self._spec.process == "poisson")
        self.host.emit("flow.rate", flow=self.name, rate_per_s=rate_per_s)
        return FlowChanged(self.name)

    def gauges(self) -> dict[str, int]:
        """Return target, started, connected and blocked, in connections."""
        connected = self.pool.connected
        return {
            "target": self.target,
            "started": connected,
            "connected": connected,
            "blocked": self.target if self.blocked else 0,
        }

    # Arrivals.

    def next_call(self, due_s: float) -> Call:
        """Draw a request of the mix."""
        assert self._mix is not None
        return self._mix.draw(due_s, self.random)

    def following(self, call: Call, ended: Ended, now_s: float) -> Call | None:
        """Return the request of a list's next page."""
        sink = ended.answer.sink
        if not is_success(ended.outcome) or not isinstance(sink, EdgeKeeper) or sink.metadata is None:
            return None
        if not sink.metadata.next_page:
            return None
        following = Call(call.operation, now_s, call.name, call.index)
        following.page = sink.metadata.next_page
        return following

    def after(self, call: Call, outcome: str) -> Call | None:  # noqa: ARG002 - which one ended makes no difference
        """Go on in a closed loop, until it is stopped or has too many connections."""
        if self._closed and not self.is_stopping and self.in_flight < self.target:
            return self._next_closed()
        return None

    def _begin_closed(self) -> None:
        self.pool.start(self._next_closed())

    def _next_closed(self) -> Call:
        self.in_flight += 1
        self.arrivals.due += 1
        return self.next_call(time.monotonic())

    # The flow's own objects.

    def make_objects(self) -> None:
        """Make the flow's objects. Raises EnvironmentProblem with what the API server said."""
        assert self._mix is not None
        deadline_s = time.monotonic() + MAKE_WITHIN_S
        for create, count in self._mix.creations():
            missing = count
            while missing:
                failed = self._make(create, missing)
                missing = len(failed)
                if missing and time.monotonic() > deadline_s:
                    msg = f"flow {self.name}: its {create.spec.target} could not be made: {why(failed[0])}"
                    raise EnvironmentProblem(msg, hint="may its identity create them, and is the namespace there?")
                if missing:
                    # A young cluster may lack a ServiceAccount for its pods yet, a busy one answers 429.
                    gevent.sleep(MAKE_AGAIN_S)

    def _make(self, create: Operation, count: int) -> list[Ended]:
        """Create objects, as many at once as there are connections; return how those ended that were not made."""
        results = [self.ask(create.call(time.monotonic(), self.random)) for _ in range(count)]
        gevent.wait(results, timeout=MADE_WITHIN_S)
        ended: list[Ended] = [result.get() if result.ready() else Ended("timeout", 0) for result in results]
        return [item for item in ended if not is_success(item.outcome) and item.outcome != "409"]

    def remove_objects(self) -> None:
        """Remove the flow's objects, by their label."""
        assert self._mix is not None
        for operation in self._mix.removals():
            ended = self.ask(Call(operation, time.monotonic())).get()
            if not is_success(ended.outcome):
                text = f"flow {self.name}: its {operation.spec.target} could not be removed: {why(ended)}"
                self.host.emit("note", level="warning", text=text)
