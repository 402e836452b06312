"""The ``churn`` flow: a population of Deployments, Jobs and pods that changes at a rate, and a watch that sees its pods start.

    1. namespaces of the flow's own are made, and a watch on the pods in them is opened
    2. the population is created, at ``rollout`` pods a second
    3. nothing is asked until all pods are Ready and the journal says so, or for ``startWithin``
    4. operations follow each other, at ``rate`` pods a second (``churnplan``), until the flow is stopped
    5. the namespaces are deleted, and with them all that is left

Operations take the way of arrivals (``paced``). They are counted by what they are (``scale-deployment``), how long pods take to start apart from
them (``churnpods``).
"""

from __future__ import annotations

import time
from typing import Any, ClassVar, Final

import gevent
from gevent.event import Event
from gevent.ssl import SSLContext

from scaletest.core.errors import EnvironmentProblem
from scaletest.load.channel import Ended
from scaletest.load.churnplan import Act, Move, Population
from scaletest.load.churnpods import PodEvents, PodStartups
from scaletest.load.churnrequests import ChurnCall, ChurnRequests
from scaletest.load.connection import Connection
from scaletest.load.flow import Host
from scaletest.load.http1 import Head
from scaletest.load.nodeclient import NodeClient
from scaletest.load.operations import GONE_OUTCOMES, Call
from scaletest.load.outcomes import is_success
from scaletest.load.paced import PacedFlow, why
from scaletest.load.protocol import FlowChanged, FlowStart, SetTarget
from scaletest.load.requests import Step, compile_steps
from scaletest.load.schedule import RateCurve
from scaletest.load.watching import Watch
from scaletest.profile.churn import CHURN_STEPS, WATCH_STEP
from scaletest.profile.schema import StepSpec

__all__ = ["ChurnFlow"]

MOST_IN_FLIGHT: Final = 1_000
GONE_WITHIN_S: Final = 30.0
MADE_WITHIN_S: Final = 20.0
"""How long a start waits for what the same flow has left behind to be gone, and for its own namespaces to be ready."""

_LOOK_EVERY_S: Final = 0.2


class PodWatch(Watch):
    """The watch on the flow's pods; ``opened`` once it has been open."""

    __slots__ = ("_startups", "opened")

    def __init__(self, client: NodeClient, step: Step, startups: PodStartups) -> None:
        super().__init__(client, step)
        self._startups = startups
        self.opened = Event()

    def events_of(self, head: Head) -> PodEvents:  # noqa: ARG002 - JSON was asked for
        """Return what takes the events of a watch that was opened."""
        if self.is_from_the_beginning:
            self._startups.forget()
        self.opened.set()
        return PodEvents(self._startups)


class PodWatcher(NodeClient):
    """Who watches."""

    __slots__ = ("watch",)

    def __init__(self, flow: ChurnFlow, step: Step, startups: PodStartups) -> None:
        super().__init__(flow, "", None)
        self.watch = PodWatch(self, step, startups)

    def connections(self) -> list[Connection]:
        """Return its connection, if it has one at this moment."""
        connection = self.watch.connection
        return [connection] if connection is not None and connection.is_open else []

    def disconnect(self) -> None:
        """Close its connection under the watch."""
        self.watch.disconnect()


class ChurnFlow(PacedFlow):
    """Churn of one flow; ``target`` is the number of pods of its population, ``started`` those that are Ready."""

    _left: ClassVar[dict[str, list[str]]] = {}
    """Namespaces that earlier flows of this process have left to the controller-manager to remove, by the name of the flow."""

    def __init__(self, host: Host, start: FlowStart) -> None:
        spec = start.spec.churn
        assert spec is not None
        super().__init__(
            host,
            start,
            connections=spec.connections,
            keep_alive=True,
            most_in_flight=MOST_IN_FLIGHT,
            first_step=CHURN_STEPS[0],
        )
        self._spec = spec
        self._rate_per_s = spec.rate_per_s
        self._rollout_per_s = spec.rollout_per_s
        self._namespaces = spec.namespaces_for(start.target)
        self._population = Population(spec, self._namespaces, self.random)
        self._population.resize(start.target)
        self._startups = PodStartups(spec.start_within_s)
        self._requests: ChurnRequests | None = None
        self._move: Move | None = None
        self._is_building = True
        self._moves = self._costs = 0
        self._moved_pods = 0
        """Cost of the operations that ended well in this interval."""
        self._told_ready = 0
        """Ready pods by the latest record."""
        self._settling: gevent.Greenlet | None = None
        self._watcher: PodWatcher | None = None
        # What the watcher wants of its flow.
        self.steps: tuple[Step, ...] = ()
        self.backoff = start.spec.on_error
        self.limit = start.spec.limit
        self.sockets = host.sockets
        self.connected = 0
        self._authorization = ""

    def context_of(self, node: str) -> SSLContext:  # noqa: ARG002 - one credential for all
        """Return the TLS context of the flow. Raises OSError when a certificate cannot be read."""
        return self.contexts.get(self._start.access.credential)

    def authorization_of(self, node: str) -> str:  # noqa: ARG002 - one credential for all
        """Return the Authorization header line of the flow; empty when it has a certificate."""
        return self._authorization

    # What the driver asks for.

    def set_target(self, command: SetTarget) -> FlowChanged:
        """Grow or shrink the population."""
        self.target = command.target
        self._rollout_per_s = command.rollout_per_s or self._rollout_per_s
        self._population.resize(command.target)
        if self._population.has_new:
            self._build()
        return FlowChanged(self.name)

    def set_rate(self, rate_per_s: float) -> FlowChanged:
        """Go on at another rate, in pods per second."""
        self._rate_per_s = rate_per_s
        if self._is_building:
            self._build()
        elif self._settling is None:
            self.follow(RateCurve((), rate_per_s), poisson=False)
        self.host.emit("flow.rate", flow=self.name, rate_per_s=rate_per_s)
        return FlowChanged(self.name)

    def gauges(self) -> dict[str, int]:
        """Return target and started in pods, connected in connections; blocked is the target or 0."""
        return {
            "target": self.target,
            "started": self._startups.ready,
            "connected": self.pool.connected,
            "blocked": self.target if self.blocked else 0,
        }

    def take_record(self, interval_s: float, gauges: dict[str, int] | None = None) -> dict[str, Any]:
        """Return the fields of this interval's record; see Flow."""
        self._startups.sweep(time.monotonic())
        record = super().take_record(interval_s, gauges)
        self._told_ready = record["started"]
        moved, self._moved_pods = self._moved_pods, 0
        return record | {"churn": {"moved": moved, **self._startups.take()}}

    def block(self) -> FlowChanged:
        """Close all connections and refuse new ones; the watch's, too."""
        changed = super().block()
        watching = len(self._watcher.connections()) if self._watcher is not None else 0
        if self._watcher is not None:
            self._watcher.disconnect()
        return FlowChanged(self.name, 0, changed.connections_closed + watching, changed.requests_cut_short + watching)

    def close(self) -> None:
        """Close all connections; the watch's, too."""
        if self._settling is not None:
            self._settling.kill(block=False)
        if self._watcher is not None:
            self._watcher.watch.stop()
        super().close()

    # Operations.

    def prepare(self, authorization: str) -> None:
        """Compile the requests, under a mark that no earlier start had."""
        self._authorization = authorization
        mark = f"{int(time.time() * 1000):x}"
        self._requests = ChurnRequests(self.name, mark, self._namespaces, authorization, self._spec.timeout_s)
        watch = StepSpec.model_validate(
            {"watch": "pods", "label": WATCH_STEP, "labelSelector": self._requests.selector}
        )
        self.steps = compile_steps([watch], flow=self.name)

    def begin(self) -> None:
        """Begin to create the population."""
        self._build()

    def next_call(self, due_s: float) -> Call | None:
        """Return the request of the population's next operation."""
        move = self._move = self._population.next_move()
        if move is None:
            return None
        self._moves += 1
        self._costs += move.cost
        if self._is_building and self._population.is_being_made:
            # Nothing is changed before everything stands.
            self.pause()
        assert self._requests is not None
        return self._requests.call(move, due_s)

    def weight(self) -> float:
        """Return the pods that the latest operation creates or deletes."""
        return 1.0 if self._move is None else float(self._move.cost)

    @property
    def mean_weight(self) -> float:
        """Pods that an operation creates or deletes on average, of those begun."""
        return self._costs / self._moves if self._moves else 1.0

    def after(self, call: Call, outcome: str) -> Call | None:
        """Tell the population what came of an operation."""
        assert isinstance(call, ChurnCall)
        move = call.move
        assert move is not None
        # A create whose first answer was lost has made its object.
        done = is_success(outcome) or (move.act is Act.CREATE and outcome == "409")
        missing = move.act is not Act.CREATE and outcome in GONE_OUTCOMES
        self._population.ended(move, done=done, missing=missing)
        if done:
            self._moved_pods += move.cost
        # The last of the population was made, or it has to be tried again.
        if self._is_building and not self.is_stopping and (self.is_paused or self._population.is_standing):
            self._build()
        return None

    def _build(self) -> None:
        """Create what is missing, wait for what is being created, or go on when everything stands."""
        if self._settling is not None:
            self._settling.kill(block=False)
            self._settling = None
        self._is_building = not self._population.is_standing
        if not self._is_building:
            self.pause()
            self._settling = gevent.spawn(self._settle)
        elif self._population.is_being_made:
            self.pause()
        else:
            self.follow(RateCurve((), self._rollout_per_s or self._rate_per_s), poisson=False)

    def _settle(self) -> None:
        """Wait until all pods are Ready and a record has said so, for a while, and then begin to change them."""
        deadline_s = time.monotonic() + self._spec.start_within_s
        self._told_ready = 0
        while self._told_ready < self._population.replicas and time.monotonic() < deadline_s:
            gevent.sleep(_LOOK_EVERY_S)
        self._settling = None
        self.follow(RateCurve((), self._rate_per_s), poisson=False)

    # The flow's own objects.

    def make_objects(self) -> None:
        """Make the namespaces and open the watch. Raises EnvironmentProblem with what the API server said."""
        self._wait_for_removal()
        try:
            self._make_namespaces()
            self._wait_for_accounts()
            self._open_watch()
        except EnvironmentProblem:
            self.remove_objects()
            raise

    def _make_namespaces(self) -> None:
        assert self._requests is not None
        for name in self._requests.namespaces:
            ended: Ended = self.ask(self._requests.create_namespace(name, time.monotonic())).get()
            if not is_success(ended.outcome):
                msg = f"flow {self.name}: namespace {name} could not be made: {why(ended)}"
                raise EnvironmentProblem(msg, hint="may its identity create namespaces?")

    def _open_watch(self) -> None:
        watcher = self._watcher = PodWatcher(self, self.steps[0], self._startups)
        watcher.watch.start()
        if not watcher.watch.opened.wait(timeout=MADE_WITHIN_S):
            msg = f"flow {self.name}: the watch on its pods did not open within {MADE_WITHIN_S:g} s"
            raise EnvironmentProblem(msg, hint="may its identity watch pods in all namespaces?")

    def _wait_for_removal(self) -> None:
        """Wait until what an earlier start of this flow has left is gone, so that it is not measured in this one."""
        assert self._requests is not None
        deadline_s = time.monotonic() + GONE_WITHIN_S
        for name in self._left.pop(self.name, []):
            while time.monotonic() < deadline_s:
                ended = self.ask(self._requests.get_namespace(name, time.monotonic())).get()
                if ended.outcome == "404":
                    break
                gevent.sleep(_LOOK_EVERY_S)
            else:
                text = f"flow {self.name} starts while namespace {name} of its last start is still being removed"
                self.host.emit("note", level="warning", text=text)

    def _wait_for_accounts(self) -> None:
        """Wait for the ServiceAccounts of the namespaces: without them pods are refused."""
        assert self._requests is not None
        deadline_s = time.monotonic() + MADE_WITHIN_S
        for name in self._requests.namespaces:
            while True:
                ended = self.ask(self._requests.look_for_account(name, time.monotonic())).get()
                if is_success(ended.outcome):
                    break
                if time.monotonic() > deadline_s:
                    msg = f"flow {self.name}: namespace {name} got no ServiceAccount within {MADE_WITHIN_S:g} s: {why(ended)}"
                    raise EnvironmentProblem(msg, hint="does the kube-controller-manager run?")
                gevent.sleep(_LOOK_EVERY_S)

    def remove_objects(self) -> None:
        """Delete the namespaces; what is in them goes within seconds, by the controller-manager."""
        assert self._requests is not None
        self._left[self.name] = self._requests.namespaces
        for name in self._requests.namespaces:
            ended = self.ask(self._requests.delete_namespace(name, time.monotonic())).get()
            if not is_success(ended.outcome) and ended.outcome not in GONE_OUTCOMES:
                text = f"flow {self.name}: namespace {name} could not be removed: {why(ended)}"
                self.host.emit("note", level="warning", text=text)
