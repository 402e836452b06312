"""The ``etcd`` flow, as the load driver sees it: processes that ask etcd, what they report, and Locust's events.

gRPC's asyncio client and gevent do not go together in one process, and one process has one core: the traffic itself is made by ``processes`` children
(``python -m scaletest.load.etcd``), each with its share of rate, clients, connections and keys. They report every request that ended; here
these become the flow's statistics, and Locust's ``events.request``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final

import gevent
from gevent.event import AsyncResult

from scaletest.core.errors import EnvironmentProblem
from scaletest.load.children import ChildProcess
from scaletest.load.etcd.pipe import Report, WorkerConfig, decode, encode
from scaletest.load.flow import Host, TellingFlow
from scaletest.load.metadata import FailureText
from scaletest.load.outcomes import is_success
from scaletest.load.protocol import FlowChanged, FlowStart, SetTarget
from scaletest.load.schedule import RateCurve, curve_of
from scaletest.load.statistics import ArrivalStatistics
from scaletest.profile.etcd import WATCH_TITLE

__all__ = ["EtcdFlow"]

_log = logging.getLogger(__name__)

FILLED_WITHIN_S: Final = 50.0
"""Time for a child to start, and to make its keys; within the 60 s that the driver's owner waits for a flow."""

ANSWER_WITHIN_S: Final = 5.0
STOPPED_WITHIN_S: Final = 4.5
BEGIN_IN_S: Final = 0.02
"""From the command to begin to the first arrival: every child has it by then."""


class EtcdFlow(TellingFlow):
    """Key-value traffic of one flow; ``target`` is the number of connections."""

    kind = "etcd"

    def __init__(self, host: Host, start: FlowStart) -> None:
        super().__init__(host, start)
        spec = start.spec.etcd
        assert spec is not None
        if start.etcd_endpoint is None:
            msg = f"flow {self.name}: it is not known where etcd is"
            raise EnvironmentProblem(msg)
        self._spec = spec
        configs = [
            WorkerConfig(self.name, start.etcd_endpoint, spec, (index, spec.processes), start.seed)
            for index in range(spec.processes)
        ]
        self._children = [_Child(config, self._take, self._lost) for config in configs]
        self._arrivals = ArrivalStatistics()
        self._untold: list[tuple[Report, float]] = []
        self._origin_s = 0.0
        self._curve: RateCurve | None = None
        self._curve_since_s = 0.0

    # What the driver asks for.

    def start(self) -> None:
        """Start the processes, have them make their keys, begin; see Flow. Raises EnvironmentProblem."""
        try:
            for child in self._children:
                child.start()
            for child in self._children:
                child.wait_filled()
        except BaseException:
            self._end_children()
            raise
        self.begin_telling()
        self._origin_s = self._curve_since_s = time.monotonic() + BEGIN_IN_S
        self._curve = None if self._spec.is_closed else curve_of(self._spec)
        self._tell_children("begin", origin_s=self._origin_s)

    def set_target(self, command: SetTarget) -> FlowChanged:
        """Refuse another number of connections: they are those of the profile."""
        if command.target != self.target:
            msg = f"flow {self.name}: its connections stay those that the profile says"
            raise EnvironmentProblem(msg)
        return FlowChanged(self.name)

    def set_rate(self, rate_per_s: float) -> FlowChanged:
        """Go on at another rate, from now on and without end. Raises EnvironmentProblem for a closed loop."""
        if self._spec.is_closed:
            msg = f"flow {self.name}: a closed loop has no rate"
            raise EnvironmentProblem(msg, hint="change its clients")
        self._curve, self._curve_since_s = RateCurve((), rate_per_s), time.monotonic() + BEGIN_IN_S
        self._tell_children("rate", rate_per_s=rate_per_s, origin_s=self._curve_since_s)
        self.host.emit("flow.rate", flow=self.name, rate_per_s=rate_per_s)
        return FlowChanged(self.name)

    def stop(self) -> None:
        """Begin no more, wait a moment for what is under way, remove the flow's keys, end the processes."""
        for child in self._children:
            child.ask_to_stop()
        for child in self._children:
            if not child.wait_stopped():
                text = f"flow {self.name}: an etcd process did not stop in time; some of its keys may be left"
                self.host.emit("note", level="warning", text=text)
        self._end_children()
        self.end_telling()

    def block(self) -> FlowChanged:
        """Close all connections and refuse new ones; says how many, and what was under way on them."""
        self.blocked = True
        closed = [child.block() for child in self._children]
        return FlowChanged(self.name, 0, sum(item[0] for item in closed), sum(item[1] for item in closed))

    def unblock(self) -> None:
        """Let connections be opened again."""
        self.blocked = False
        self._tell_children("unblock")

    def workers(self) -> list[dict[str, Any]]:
        """Return what each process takes."""
        return [
            {"pid": child.pid, "cpu_s": child.latest.cpu_s, "rss_bytes": child.latest.rss_bytes}
            for child in self._children
        ]

    def gauges(self) -> dict[str, int]:
        """Return target, started, connected and blocked, in connections."""
        connected = sum(child.latest.connected for child in self._children)
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
        latest = [child.latest for child in self._children]
        return record | {
            "arrivals": {
                "rate_per_s": self._rate_per_s(),
                **taken.to_json(),
                "behind": sum(report.behind for report in latest),
                "in_flight": sum(report.in_flight for report in latest),
                "waiting": sum(report.waiting for report in latest),
            }
        }

    def _rate_per_s(self) -> float | None:
        return None if self._curve is None else self._curve.rate_at(time.monotonic() - self._curve_since_s)

    # Reports.

    def _take(self, report: Report) -> None:
        statistics, outcomes, titles = self.statistics, report.outcomes, self._spec.titles
        self._arrivals.merge(report.arrivals)
        for step_index, outcome_index, _, latency_us, service_us, body_bytes in report.ended:
            outcome = outcomes[outcome_index]
            step = statistics.step(titles[step_index])
            step.record(outcome, latency_us if latency_us >= 0 else None, body_bytes)
            if service_us >= 0 and is_success(outcome):
                step.service_us.record(service_us)
        if report.events_us.count:
            watch = statistics.step(WATCH_TITLE)
            watch.events += report.events_us.count
            watch.event_us.merge(report.events_us)
        for took_us in report.connect_us:
            statistics.step(titles[0]).connect_us.record(took_us)
        for item in report.failures:
            if statistics.wants_sample(item.step, item.outcome):
                self.sample(item.step, item.outcome, None, FailureText(item.reason, item.message), None)
        if report.ended:
            self._untold.append((report, self._origin_s))

    def _lost(self, why: str) -> None:
        said = f"an etcd process of flow {self.name} {why}"
        _log.error(said)
        self.host.fail(said)

    # Children.

    def _tell_children(self, kind: str, **fields: Any) -> None:
        for child in self._children:
            child.tell(kind, **fields)

    def _end_children(self) -> None:
        for child in self._children:
            child.end()

    # Locust.

    def tell_now(self) -> None:
        """Fire Locust's request event for what has ended, in rows."""
        untold, self._untold = self._untold, []
        fire, wall_s, titles = self.host.events.request.fire, time.time() - time.monotonic(), self._spec.titles
        names = [f"{self.name}/{title}" for title in titles]
        for report, origin_s in untold:
            failures = [None if is_success(outcome) else RuntimeError(outcome) for outcome in report.outcomes]
            for step, outcome, sent_us, latency_us, _, body_bytes in report.ended:
                fire(
                    request_type="etcd",
                    name=names[step],
                    response_time=max(0, latency_us) / 1000.0,
                    response_length=body_bytes,
                    exception=failures[outcome],
                    context={},
                    start_time=wall_s + origin_s + sent_us / 1e6,
                )


class _Child:
    """One process, as the flow speaks to it."""

    def __init__(self, config: WorkerConfig, take: Callable[[Report], None], lost: Callable[[str], None]) -> None:
        self.latest = Report()
        self._config = config
        self._take = take
        self._lost = lost
        self._filled = AsyncResult()
        self._stopped = AsyncResult()
        self._blocked = AsyncResult()
        self._process = ChildProcess("scaletest.load.etcd", self._hear, self._silent)
        self._stopping = False

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def start(self) -> None:
        """Start it."""
        self._process.start()
        self.tell("configure", config=self._config.to_json())

    def wait_filled(self) -> None:
        """Wait until its keys are there. Raises EnvironmentProblem."""
        try:
            self._filled.get(timeout=FILLED_WITHIN_S)
        except gevent.Timeout:
            msg = f"flow {self._config.flow}: an etcd process did not begin within {FILLED_WITHIN_S:g} s"
            raise EnvironmentProblem(msg) from None

    def tell(self, kind: str, **fields: Any) -> None:
        """Send it a command; one that is gone hears nothing."""
        self._process.write(encode(kind, **fields))

    def block(self) -> tuple[int, int]:
        """Have it cut its network path; returns the connections closed and the requests on them."""
        self._blocked = AsyncResult()
        self.tell("block")
        closed: tuple[int, int] | None = self._blocked.wait(ANSWER_WITHIN_S)
        return closed or (0, 0)

    def ask_to_stop(self) -> None:
        """Have it stop."""
        self._stopping = True
        self.tell("stop")

    def wait_stopped(self) -> bool:
        """Wait until it has stopped; says whether it has."""
        return bool(self._stopped.wait(STOPPED_WITHIN_S) is True)

    def end(self) -> None:
        """End the process, if it is there."""
        self._stopping = True
        self._process.end(0.5 if self._stopped.ready() else 0.0)

    def _hear(self, line: bytes) -> None:
        message = decode(line)
        match message.pop("type"):
            case "report":
                self.latest = Report.from_json(message)
                self._take(self.latest)
            case "filled":
                self._filled.set(True)
            case "failed":
                self._stopping = True
                self._filled.set_exception(EnvironmentProblem(message["message"], hint=message["hint"]))
            case "blocked":
                self._blocked.set((message["connections"], message["requests"]))
            case "stopped":
                self._stopped.set(True)

    def _silent(self) -> None:
        self._stopped.set(self._stopped.ready())
        if self._stopping:
            return
        how = self._process.how_ended()
        if self._filled.ready():
            self._lost(how)
        else:
            self._filled.set_exception(EnvironmentProblem(f"flow {self._config.flow}: an etcd process {how}"))
