"""A flow that several processes make, as the load driver sees it: one process has one core.

Each is a load driver like this one (``python -m scaletest.load``), with a share of the flow's rate, connections and objects, or of its clients and the
nodes that they stand on, and with nothing to write: its records come here ten times a second and become one flow's. All arrivals begin at one time, so that evenly spaced ones are taken in turn;
Poisson ones are as many processes of a part of the rate, which together are one of the whole. Their requests fire Locust's events in their own processes.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Final

import gevent
from gevent.event import AsyncResult

from scaletest.core.access import Credential
from scaletest.core.errors import EnvironmentProblem
from scaletest.core.journal import Record
from scaletest.load import protocol
from scaletest.load.children import ChildProcess
from scaletest.load.flow import Flow, Host
from scaletest.load.metadata import FailureText
from scaletest.load.selfcheck import SelfChecks
from scaletest.load.shares import Share, portions
from scaletest.load.statistics import ArrivalStatistics, StepStatistics
from scaletest.profile.schema import FlowSpec

__all__ = ["SharedFlow"]

_log = logging.getLogger(__name__)

REPORT_EVERY_S: Final = 0.1
"""A tenth of the driver's own interval: so much of a second's requests may count in the next one."""

ANSWER_WITHIN_S: Final = 50.0
"""Within the 60 s that the driver's owner waits for a flow."""
STOPPED_WITHIN_S: Final = 4.5
"""Within the time that the driver has to stop all its flows."""
END_WITHIN_S: Final = 1.0
BEGIN_IN_S: Final = 0.05
"""From the command to begin to the origin of all schedules: every process has it by then."""

_GAUGES: Final = ("target", "started", "connected", "blocked")
_STANDING: Final = ("behind", "in_flight", "waiting")


class SharedFlow(Flow):
    """A flow of arrivals, agents or watchers, made by ``processes`` load drivers."""

    def __init__(self, host: Host, start: protocol.FlowStart) -> None:
        super().__init__(host, start)
        of = start.spec.processes
        self._shares: list[Share] = [(index, of) for index in range(of)]
        self._start = start
        self._has_arrivals = start.spec.arrivals is not None
        self._rollout_per_s = start.spec.placed.rollout_per_s if start.spec.placed is not None else None
        self._nodes: list[set[str]] = [set() for _ in self._shares]
        """Those of each process: a node's clients are all in one, which alone can tell what each node has. Arrivals stand on none."""
        self._arrivals = ArrivalStatistics()
        self._checks = SelfChecks()
        self._children = [_Child(start.flow, self._take, self._lost) for _ in self._shares]

    # What the driver asks for.

    def start(self) -> None:
        """Start the processes, have them connect and make their objects, begin; see Flow. Raises EnvironmentProblem."""
        given = self._hand_out(self._start.nodes, self._start.node_credentials)
        starts = [
            replace(
                self._start, share=share, target=target, nodes=nodes, node_credentials=credentials,
                seed=self._start.seed + share[0], spec=self._spec_of(target),
            )
            for share, target, (nodes, credentials) in zip(self._shares, self._targets(), given, strict=True)
        ]  # fmt: skip
        try:
            for child in self._children:
                child.spawn(self.host.clock_origin_s)
            self._ask(starts)
            if self._has_arrivals:
                self._begin()
        except BaseException:
            self._end_children()
            raise

    def _begin(self, rate_per_s: float | None = None) -> None:
        begin = protocol.Begin(self.name, time.monotonic() + BEGIN_IN_S, rate_per_s)
        self._ask([begin] * len(self._children))

    def set_target(self, command: protocol.SetTarget) -> protocol.FlowChanged:
        """Change how many clients or connections there are, of which every process has its part. Raises EnvironmentProblem."""
        self.target = command.target
        self._rollout_per_s = command.rollout_per_s or self._rollout_per_s
        for nodes in self._nodes:
            nodes.difference_update(command.gone)
        given = self._hand_out(command.nodes, command.node_credentials)
        return self._sum(
            [
                replace(
                    command, target=target, nodes=nodes, node_credentials=credentials,
                    rollout_per_s=self._rollout_of(target),
                )
                for target, (nodes, credentials) in zip(self._targets(), given, strict=True)
            ]
        )  # fmt: skip

    def _hand_out(
        self, nodes: Sequence[str], credentials: Sequence[Credential]
    ) -> list[tuple[tuple[str, ...], tuple[Credential, ...]]]:
        """Give each new node, with its credential, to the process that has the fewest; return each process' new ones."""
        given: list[tuple[list[str], list[Credential]]] = [([], []) for _ in self._shares]
        if self._has_arrivals:
            nodes, credentials = (), ()
        for node, credential in zip_longest(nodes, credentials):
            index = min(range(len(given)), key=lambda each: len(self._nodes[each]))
            self._nodes[index].add(node)
            given[index][0].append(node)
            if credential is not None:
                given[index][1].append(credential)
        return [(tuple(names), tuple(theirs)) for names, theirs in given]

    def _targets(self) -> list[int]:
        """Return each process' part of the target: so many clients on every node are so many on each of its nodes."""
        return portions(self.target, [len(nodes) for nodes in self._nodes])

    def _rollout_of(self, target: int) -> float | None:
        """Return the rate at which a process with this part of the target is done when all others are."""
        if self._rollout_per_s is None:
            return None
        return self._rollout_per_s * (target / self.target if target else 1 / len(self._shares))

    def _spec_of(self, target: int) -> FlowSpec:
        spec, placed = self._start.spec, self._start.spec.placed
        if placed is None:
            return spec
        own = placed.model_copy(update={"rollout_per_s": self._rollout_of(target)})
        return spec.model_copy(update={spec.kind: own})

    def set_rate(self, rate_per_s: float) -> protocol.FlowChanged:
        """Go on at another rate, that of all processes together. Raises EnvironmentProblem where there is none to set."""
        if not self._has_arrivals:
            return super().set_rate(rate_per_s)
        self._begin(rate_per_s)
        self.host.emit("flow.rate", flow=self.name, rate_per_s=rate_per_s)
        return protocol.FlowChanged(self.name)

    def set_servers(self, servers: Sequence[str]) -> None:
        """Have new connections go to these API servers in turn."""
        self._ask([protocol.SetServers(self.name, tuple(servers))] * len(self._children))

    def block(self) -> protocol.FlowChanged:
        """Close all connections and refuse new ones; says how many, and what was under way on them."""
        self.blocked = True
        return self._sum([protocol.Block(self.name)] * len(self._children))

    def unblock(self) -> None:
        """Let arrivals connect again."""
        self.blocked = False
        self._ask([protocol.Unblock(self.name)] * len(self._children))

    def stop(self) -> None:
        """Have every process stop its share, take its last record, end it."""
        try:
            self._ask([protocol.StopFlow(self.name)] * len(self._children), STOPPED_WITHIN_S)
        except EnvironmentProblem as error:
            self.host.emit("note", level="warning", text=f"{error.message}; some of its objects may be left")
        finally:
            self._end_children()

    def workers(self) -> list[dict[str, Any]]:
        """Return what each process takes."""
        return [{"pid": child.pid, "cpu_s": child.cpu_s, "rss_bytes": child.rss_bytes} for child in self._children]

    def take_checks(self) -> SelfChecks:
        """Return what the processes measured of themselves since the last call."""
        taken, self._checks = self._checks, SelfChecks()
        return taken

    def user_counts(self) -> dict[str, int]:
        """Return living users by class: those of other processes are not the runner's."""
        return {}

    def gauges(self) -> dict[str, int]:
        """Return target, started, connected and blocked, in clients or connections."""
        return {key: sum(child.gauges.get(key, 0) for child in self._children) for key in _GAUGES}

    def take_record(self, interval_s: float, gauges: dict[str, int] | None = None) -> dict[str, Any]:
        """Return the fields of this interval's record; see Flow."""
        record = super().take_record(interval_s, gauges)
        if not self._has_arrivals:
            return record
        taken, self._arrivals = self._arrivals, ArrivalStatistics()
        rates = [child.standing["rate_per_s"] for child in self._children if child.standing.get("rate_per_s")]
        return record | {
            "arrivals": {
                # Each knows the rate of all together.
                "rate_per_s": rates[-1] if rates else None,
                **taken.to_json(),
                **{key: sum(child.standing.get(key, 0) for child in self._children) for key in _STANDING},
            }
        }

    # Records.

    def _take(self, child: _Child, record: Record) -> None:
        match record["kind"]:
            case "flow":
                child.gauges = {key: record[key] for key in _GAUGES}
                if self._has_arrivals:
                    child.standing = record["arrivals"]
                    self._arrivals.merge(ArrivalStatistics.from_json(record["arrivals"]))
                self.statistics.exceptions += record["exceptions"]
                for name, data in record["steps"].items():
                    self.statistics.step(name).merge(StepStatistics.from_json(data))
            case "driver":
                child.cpu_s, child.rss_bytes = record["cpu_s"], record["rss_bytes"]
                self._checks.add(child.pid, record)
            case "flow.sample":
                if self.statistics.wants_sample(record["step"], record["outcome"]):
                    text = FailureText(record["reason"], record["message"])
                    self.sample(record["step"], record["outcome"], record["status"], text, record["node"])
            case "note":
                self.host.emit("note", level=record["level"], text=record["text"])

    def _lost(self, why: str) -> None:
        said = f"a process of flow {self.name} {why}"
        # The end of its log is what the driver's owner tells of a driver that ended.
        _log.error(said)
        self.host.fail(said)

    # Children.

    def _ask(self, commands: Sequence[protocol.Command], within_s: float = ANSWER_WITHIN_S) -> list[protocol.Report]:
        """Send each process its command; return the answers. Raises EnvironmentProblem."""
        answers = [child.ask(command) for child, command in zip(self._children, commands, strict=True)]
        gevent.wait(answers, timeout=within_s)
        if not all(answer.ready() for answer in answers):
            msg = f"flow {self.name}: a process did not answer {commands[0].type} within {within_s:g} s"
            raise EnvironmentProblem(msg)
        return [answer.get() for answer in answers]

    def _sum(self, commands: Sequence[protocol.Command]) -> protocol.FlowChanged:
        changed = [item for item in self._ask(commands) if isinstance(item, protocol.FlowChanged)]
        return protocol.FlowChanged(
            self.name,
            sum(item.agents_stopped for item in changed),
            sum(item.connections_closed for item in changed),
            sum(item.requests_cut_short for item in changed),
        )

    def _end_children(self) -> None:
        for child in self._children:
            child.ask_to_end()
        for child in self._children:
            child.end()


class _Child:
    """One process, as the flow speaks to it."""

    def __init__(self, flow: str, take: Callable[[_Child, Record], None], lost: Callable[[str], None]) -> None:
        self.gauges: dict[str, int] = {}
        self.standing: dict[str, Any] = {}
        self.cpu_s = 0.0
        self.rss_bytes = 0
        self._flow = flow
        self._take = take
        self._lost = lost
        self._answers: deque[AsyncResult] = deque()
        """Who waits, in the order of the commands: an answer that came too late is not the next command's."""
        self._gone: str | None = None
        """How it ended."""
        self._process = ChildProcess("scaletest.load", self._hear, self._silent)
        self._ending = False

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def spawn(self, clock_origin_s: float) -> None:
        """Start it."""
        self._process.start()
        self._tell(protocol.Configure(None, clock_origin_s, REPORT_EVERY_S))

    def ask(self, command: protocol.Command) -> AsyncResult:
        """Send it a command; the result is its answer."""
        answer = AsyncResult()
        if self._gone is not None:
            answer.set_exception(self._ended(self._gone))
            return answer
        self._answers.append(answer)
        self._tell(command)
        return answer

    def ask_to_end(self) -> None:
        """Have it end."""
        self._ending = True
        self._tell(protocol.Quit())

    def end(self) -> None:
        """End the process, if it is there."""
        self._process.end(END_WITHIN_S)

    def _tell(self, command: protocol.Command) -> None:
        self._process.write(protocol.encode(command))

    def _hear(self, line: bytes) -> None:
        report = protocol.decode_report(line)
        match report:
            case protocol.RecordReport(record=record):
                self._take(self, record)
            case protocol.FlowStarted() | protocol.FlowChanged() | protocol.FlowStopped():
                self._next_waiting().set(report)
            case protocol.DriverError():
                self._next_waiting().set_exception(EnvironmentProblem(report.message, hint=report.hint))

    def _next_waiting(self) -> AsyncResult:
        return self._answers.popleft() if self._answers else AsyncResult()

    def _silent(self) -> None:
        if self._ending:
            return
        self._gone = self._process.how_ended()
        if not self._answers:
            self._lost(self._gone)
        while self._answers:
            self._answers.popleft().set_exception(self._ended(self._gone))

    def _ended(self, how: str) -> EnvironmentProblem:
        return EnvironmentProblem(f"flow {self._flow}: one of its processes {how}")
