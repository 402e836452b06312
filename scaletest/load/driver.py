"""The driver process: a Locust environment, its flows, one record a second, commands from standard input.

It ends when it is asked to, when its owner is gone (standard input ends), or by SIGTERM; each time it stops
its flows, appends what the last interval brought, and exits 0. What a killed driver loses is the last interval.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import gevent
import locust
from gevent.event import Event
from locust.env import Environment

from scaletest.core.errors import ScaletestError, UsageError
from scaletest.core.journal import Journal, JournalFile, Record, UnwrittenJournal
from scaletest.load import protocol
from scaletest.load.agents import AgentsFlow
from scaletest.load.arrivals import ArrivalsFlow
from scaletest.load.capacity import raise_descriptor_limit
from scaletest.load.churn import ChurnFlow
from scaletest.load.connection import Sockets
from scaletest.load.etcdflow import EtcdFlow
from scaletest.load.flow import Flow, FlowRunner, Host
from scaletest.load.locustfile import LocustfileFlow
from scaletest.load.pipes import ReportPipe, claim_stdin, claim_stdout, read_lines
from scaletest.load.selfcheck import SelfCheck
from scaletest.load.sharedflow import SharedFlow
from scaletest.load.shares import WHOLE
from scaletest.load.watchers import WatchersFlow

__all__ = ["main"]

_log = logging.getLogger(__name__)

STOP_WITHIN_S = 5.0
"""Time that flows have to stop when the driver ends; a locustfile's ``on_stop`` may hang."""

_PR_SET_PDEATHSIG = 1


class Driver:
    """The flows of one process."""

    def __init__(self, journal: Journal, reports: ReportPipe, interval_s: float, fail: Callable[[str], None]) -> None:
        self.interval_s = interval_s
        self._journal = journal
        self._reports = reports
        # The module's own hooks are those that a locustfile registers its listeners with.
        events: Any = locust.events
        environment = Environment(events=events)
        runner = FlowRunner(environment)
        environment.runner = runner
        runner.counts = self._user_counts
        self._sockets = Sockets()
        self._host = Host(environment, events, runner, self._sockets, journal.clock_origin_s, self._emit, fail)
        self._flows: dict[str, Flow] = {}
        self._self_check = SelfCheck(self._sockets)
        self._interval_began_s = time.monotonic()
        events.init.fire(environment=environment, runner=runner, web_ui=None)

    def _user_counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for flow in self._flows.values():
            counts |= flow.user_counts()
        return counts

    def _emit(self, kind: str, **fields: Any) -> Record:
        record = self._journal.append(kind, **fields)
        self._reports.send(protocol.RecordReport(record))
        return record

    def obey(self, command: protocol.Command) -> None:
        """Do a command; what goes wrong is reported, never raised."""
        name = getattr(command, "flow", None)
        try:
            self._obey(command)
        except ScaletestError as error:
            usage = isinstance(error, UsageError)
            self._reports.send(protocol.DriverError(error.message, error.hint, name, usage))
        except Exception as error:  # noqa: BLE001 - a bug of ours; nobody waits for an answer, the other flows go on
            _log.exception("command %s", command.type)
            self._reports.send(protocol.DriverError(f"{type(error).__name__}: {error}", None, name))

    def _obey(self, command: protocol.Command) -> None:
        match command:
            case protocol.FlowStart():
                self._start_flow(command)
            case protocol.SetTarget(flow=name):
                self._reports.send(self._flow(name).set_target(command))
            case protocol.Begin(flow=name):
                self._flow(name).begin_at(command)
                self._reports.send(protocol.FlowChanged(name))
            case protocol.SetRate(flow=name, rate_per_s=rate_per_s):
                self._reports.send(self._flow(name).set_rate(rate_per_s))
            case protocol.SetServers(flow=name, servers=servers):
                self._flow(name).set_servers(servers)
                self._reports.send(protocol.FlowChanged(name))
            case protocol.StopFlow(flow=name):
                self._stop_flow(name)
            case protocol.Block(flow=name):
                self._reports.send(self._flow(name).block())
            case protocol.Unblock(flow=name):
                self._flow(name).unblock()
                self._reports.send(protocol.FlowChanged(name))
            case _:
                msg = f"the driver does not expect {command.type!r} here"
                raise ScaletestError(msg)

    def _flow(self, name: str) -> Flow:
        flow = self._flows.get(name)
        if flow is None:
            msg = f"no flow {name!r} is running"
            raise ScaletestError(msg)
        return flow

    def _start_flow(self, start: protocol.FlowStart) -> None:
        if start.flow in self._flows:
            msg = f"flow {start.flow!r} is already running"
            raise ScaletestError(msg)
        flow = _kind_of(start)(self._host, start)
        flow.start()
        self._flows[start.flow] = flow
        self._reports.send(protocol.FlowStarted(start.flow))

    def _stop_flow(self, name: str) -> None:
        flow = self._flow(name)
        # The last record keeps the gauges of a running flow: its agents did not fail, they were stopped.
        gauges = flow.gauges()
        flow.stop()
        del self._flows[name]
        self._emit("flow", **flow.take_record(self._interval_s(), gauges))
        self._reports.send(protocol.FlowStopped(name))

    def _interval_s(self) -> float:
        return round(time.monotonic() - self._interval_began_s, 4)

    def snapshot(self) -> None:
        """Append the records of the interval that ends now."""
        interval_s = self._interval_s()
        self._interval_began_s = time.monotonic()
        for flow in list(self._flows.values()):
            self._emit("flow", **flow.take_record(interval_s))
        workers = [worker for flow in self._flows.values() for worker in flow.workers()]
        record = self._self_check.take_record(interval_s)
        for flow in self._flows.values():
            record = flow.take_checks().with_others(record)
        self._emit("driver", **record, workers=workers)

    def stop(self, reason: str) -> None:
        """Stop all flows and append what is left."""
        with gevent.Timeout(STOP_WITHIN_S, False):
            for name in list(self._flows):
                self._stop_flow(name)
        self.snapshot()
        self._emit("driver.end", reason=reason)


def _kind_of(start: protocol.FlowStart) -> Callable[[Host, protocol.FlowStart], Flow]:
    spec = start.spec
    if spec.etcd is None and spec.processes > 1 and start.share == WHOLE:
        return SharedFlow
    return _KINDS[spec.kind]


_KINDS: Final[dict[str, Callable[[Host, protocol.FlowStart], Flow]]] = {
    "agents": AgentsFlow,
    "watchers": WatchersFlow,
    "arrivals": ArrivalsFlow,
    "churn": ChurnFlow,
    "etcd": EtcdFlow,
    "locustfile": LocustfileFlow,
}


class _End:
    """Why and when the process ends; the first reason stays."""

    def __init__(self) -> None:
        self.reason = ""
        self.asked = Event()

    def ask(self, reason: str) -> None:
        self.reason = self.reason or reason
        self.asked.set()


def main() -> int:
    """Run the driver process until it is asked to end, or its owner is gone."""
    reports = ReportPipe(claim_stdout())
    logging.basicConfig(level=logging.WARNING)
    # Exceptions of a locustfile are counted and sampled; Locust would print a traceback for each.
    logging.getLogger("locust.user").setLevel(logging.CRITICAL)
    raise_descriptor_limit()
    end = _End()
    _end_by_signal(end)
    lines = read_lines(claim_stdin())
    driver = _configure(lines, reports, end)
    if driver is None:
        reports.drain(1.0)
        return 2
    reader = gevent.spawn(_obey_all, lines, driver, reports, end)
    _snapshots_until(end, driver)
    reader.kill(block=False)
    driver.stop(end.reason)
    reports.drain(1.0)
    return 0


def _configure(lines: Any, reports: ReportPipe, end: _End) -> Driver | None:
    try:
        command = protocol.decode_command(next(lines, b""))
        if not isinstance(command, protocol.Configure):
            reports.send(protocol.DriverError(f"the first command must be configure, not {command.type}"))
            return None
        journal = _journal(command)
    except (OSError, ValueError) as error:
        reports.send(protocol.DriverError(str(error)))
        return None
    journal.append("driver.ready", pid=os.getpid())
    driver = Driver(journal, reports, command.interval_s, end.ask)
    reports.send(protocol.Ready(os.getpid()))
    return driver


def _journal(command: protocol.Configure) -> Journal:
    if command.journal is None:
        return UnwrittenJournal(src="driver", clock_origin_s=command.clock_origin_s)
    return JournalFile(command.journal, src="driver", clock_origin_s=command.clock_origin_s)


def _obey_all(lines: Any, driver: Driver, reports: ReportPipe, end: _End) -> None:
    for line in lines:
        try:
            command = protocol.decode_command(line)
        except ValueError as error:
            reports.send(protocol.DriverError(str(error)))
            continue
        if isinstance(command, protocol.Quit):
            end.ask("asked")
            return
        driver.obey(command)
    end.ask("owner_gone")


def _snapshots_until(end: _End, driver: Driver) -> None:
    due_s = time.monotonic() + driver.interval_s
    while not end.asked.wait(timeout=max(0.0, due_s - time.monotonic())):
        driver.snapshot()
        due_s = max(due_s + driver.interval_s, time.monotonic())


def _end_by_signal(end: _End) -> None:
    def handle(_signum: int, _frame: FrameType | None) -> None:
        # Should a locustfile hold up the event loop, the process still ends.
        signal.signal(signal.SIGALRM, lambda *_: os._exit(1))
        signal.setitimer(signal.ITIMER_REAL, STOP_WITHIN_S + 3.0)
        gevent.get_hub().loop.run_callback_threadsafe(end.ask, "signal")

    signal.signal(signal.SIGTERM, handle)
    # Ctrl-C is the owner's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The end of the owner is noticed by the end of standard input; by this signal, when nobody reads that.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
