"""The owner's side of a load driver: spawn the process, command it, hear its records, end it.

``LoadDriver`` is the interface; ``LocustDriver`` runs ``python -m scaletest.load``; ``FakeDriver`` (in ``fake``) only
remembers. This module imports neither gevent nor locust.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from scaletest.core.errors import EnvironmentProblem, Problem, ProfileError, ScaletestError
from scaletest.core.journal import Record
from scaletest.core.processes import ProcessId
from scaletest.load import protocol
from scaletest.load.capacity import check_descriptors, connections_of, source_addresses
from scaletest.load.lines import whole_lines
from scaletest.load.protocol import FlowChanged, FlowStart
from scaletest.profile.schema import FlowSpec

__all__ = ["DriverExit", "LoadDriver", "LocustDriver"]

OnRecord = Callable[[Record], None]

READY_WITHIN_S = 60.0
"""Importing Locust takes 0.7 s on an idle machine, much more beside a control plane that is starting."""

ANSWER_WITHIN_S = 60.0
"""Longest wait for a flow to start or stop; a locustfile may take 20 s to import."""

QUIT_WITHIN_S = 10.0
TERM_WITHIN_S = 5.0

_STDERR_LINES = 20
_STDERR_BYTES = 8 * 2**10
_LOOK_EVERY_S = 0.25
"""How often the end of the process is looked for while its pipes are open; their end is noticed at once."""
_REAPED_WITHIN_S = 0.01
_DRAINED_WITHIN_S = 1.0
"""Time to read what a dead driver has left in its pipes."""
_MOST_LINE_BYTES = 64 * 2**20
_TOO_LONG = (
    f"the load driver sent a line of more than {_MOST_LINE_BYTES // 2**20} MiB, which was passed over: what was measured is in the journal all the "
    "same, but the answer to a command may be lost"
)


@dataclass(frozen=True, slots=True)
class DriverExit:
    """How the driver process ended; ``expected`` after ``stop``."""

    code: int
    expected: bool
    stderr_tail: str

    def __str__(self) -> str:
        how = f"by signal {-self.code}" if self.code < 0 else f"with exit code {self.code}"
        tail = f":\n{self.stderr_tail}" if self.stderr_tail else ""
        return f"the load driver ended {how}{tail}"


class LoadDriver(Protocol):
    """What runs flows."""

    process_id: ProcessId
    exited: asyncio.Future[DriverExit]
    """Done when the process is gone, expected or not."""

    async def start_flow(self, start: FlowStart) -> None:
        """Start a flow. Raises ProfileError (a locustfile), ResourceShortage, EnvironmentProblem."""

    async def set_target(self, command: protocol.SetTarget) -> FlowChanged:
        """Grow or shrink a flow; returns what was ended."""

    async def set_rate(self, command: protocol.SetRate) -> None:
        """Have a flow of arrivals, etcd or churn go on at another rate. Raises EnvironmentProblem for any other flow."""

    async def set_servers(self, command: protocol.SetServers) -> None:
        """Name the API servers for a flow's new connections."""

    async def stop_flow(self, flow: str) -> None:
        """Stop a flow; returns when its agents are gone and its last record is written."""

    async def block(self, flow: str) -> FlowChanged:
        """Cut a flow's network path; returns what was ended. Raises ProfileError for a locustfile's."""

    async def unblock(self, flow: str) -> None:
        """Open a flow's network path again."""

    async def stop(self) -> None:
        """End the process; a second call does nothing."""


class LocustDriver:
    """The real driver process."""

    def __init__(
        self, process: asyncio.subprocess.Process, on_record: OnRecord, on_error: Callable[[str], None]
    ) -> None:
        identity = ProcessId.of(process.pid)
        self.process_id = identity or ProcessId(process.pid, 0)
        self.exited: asyncio.Future[DriverExit] = asyncio.get_running_loop().create_future()
        self._process = process
        self._on_record = on_record
        self._on_error = on_error
        self._stderr = b""
        self._stopping = False
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answers: dict[str, deque[asyncio.Future[Any]]] = {}
        """For each flow, who waits for the answers to its commands, in their order."""
        self._targets: dict[str, tuple[FlowSpec, int]] = {}
        self._servers: dict[str, tuple[str, ...]] = {}
        """Of each flow, those that it was started with."""
        self._tasks = [asyncio.create_task(self._supervise())]

    @classmethod
    async def spawn(
        cls,
        journal: Path,
        clock_origin_s: float,
        on_record: OnRecord,
        *,
        on_error: Callable[[str], None] = lambda _message: None,
        interval_s: float = 1.0,
    ) -> LocustDriver:
        """Start the process and wait until it is ready.

        ``on_record`` is called with each journal record of the driver (flows and the driver itself write one every
        ``interval_s``), ``on_error`` with errors that answer no command.
        Raises EnvironmentProblem when it does not start.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "scaletest.load",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            limit=_MOST_LINE_BYTES,
            # A Ctrl-C in the terminal is for us; the driver is asked to end.
            start_new_session=True,
        )  # fmt: skip
        driver = cls(process, on_record, on_error)
        try:
            await driver._send(protocol.Configure(journal, clock_origin_s, interval_s))
            await driver._within(driver._ready, READY_WITHIN_S, "did not become ready")
        except BaseException:
            await driver.stop()
            raise
        return driver

    async def start_flow(self, start: FlowStart) -> None:
        """Start a flow; see LoadDriver."""
        connections = self._check_fits(start.flow, start.spec, start.target)
        if not start.source_addresses:
            addresses = source_addresses(start.access.servers, connections)
            start = dataclasses.replace(start, source_addresses=addresses)
        await self._ask(start.flow, start, "did not start the flow")
        self._targets[start.flow] = (start.spec, start.target)
        self._servers[start.flow] = start.access.servers

    async def set_target(self, command: protocol.SetTarget) -> FlowChanged:
        """Grow or shrink a flow; see LoadDriver."""
        if command.flow in self._targets:
            spec, _ = self._targets[command.flow]
            connections = self._check_fits(command.flow, spec, command.target)
            addresses = source_addresses(self._servers[command.flow], connections)
            command = dataclasses.replace(command, source_addresses=addresses)
            self._targets[command.flow] = (spec, command.target)
        return await self._change(command.flow, command, "did not set the target of flow")

    async def set_rate(self, command: protocol.SetRate) -> None:
        """Have a flow of arrivals, etcd or churn go on at another rate; see LoadDriver."""
        await self._change(command.flow, command, "did not change the rate of flow")

    async def set_servers(self, command: protocol.SetServers) -> None:
        """Name the API servers for a flow's new connections."""
        await self._change(command.flow, command, "did not take new servers for flow")

    async def stop_flow(self, flow: str) -> None:
        """Stop a flow; see LoadDriver."""
        await self._ask(flow, protocol.StopFlow(flow), "did not stop the flow")
        self._targets.pop(flow, None)

    async def block(self, flow: str) -> FlowChanged:
        """Cut a flow's network path; see LoadDriver."""
        return await self._change(flow, protocol.Block(flow), "did not block flow")

    async def unblock(self, flow: str) -> None:
        """Open a flow's network path again."""
        await self._change(flow, protocol.Unblock(flow), "did not unblock flow")

    async def stop(self, *, quit_within_s: float = QUIT_WITHIN_S, term_within_s: float = TERM_WITHIN_S) -> None:
        """Ask the process to quit, then SIGTERM, then SIGKILL; returns when it is gone."""
        if not self._stopping:
            self._stopping = True
            with contextlib.suppress(ScaletestError):
                await self._send(protocol.Quit())
            if not await self._gone_within(quit_within_s):
                self._signal(self._process.terminate)
                if not await self._gone_within(term_within_s):
                    self._signal(self._process.kill)
        await asyncio.shield(self.exited)
        await asyncio.gather(*self._tasks)

    def _check_fits(self, flow: str, spec: FlowSpec, target: int) -> int:
        """Return the connections that all flows then need. Raises ResourceShortage."""
        others = [item for name, item in self._targets.items() if name != flow]
        beside = sum(connections_of(each, count) for each, count in others if not each.has_own_processes)
        check_descriptors(spec, target, beside=beside)
        return connections_of(spec, target) + sum(connections_of(each, count) for each, count in others)

    async def _gone_within(self, timeout_s: float) -> bool:
        done, _ = await asyncio.wait([self.exited], timeout=timeout_s)
        return bool(done)

    @staticmethod
    def _signal(send: Callable[[], None]) -> None:
        with contextlib.suppress(ProcessLookupError):
            send()

    async def _change(self, flow: str, command: protocol.Command, what_failed: str) -> FlowChanged:
        answer: FlowChanged = await self._ask(flow, command, what_failed)
        return answer

    async def _ask(self, flow: str, command: protocol.Command, what_failed: str) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        # It stays in line when nobody waits for it any more (a phase ended): the answer still comes, and is no other's.
        self._answers.setdefault(flow, deque()).append(answer)
        await self._send(command)
        return await self._within(answer, ANSWER_WITHIN_S, f"{what_failed} {flow!r}")

    async def _within(self, answer: asyncio.Future[Any], timeout_s: float, what_failed: str) -> Any:
        """Wait for an answer, the end of the process, or the time-out; whichever is first."""
        waiters: list[asyncio.Future[Any]] = [answer, self.exited]
        await asyncio.wait(waiters, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        if self.exited.done():
            raise EnvironmentProblem(str(self.exited.result()))
        msg = f"the load driver {what_failed} within {timeout_s:.0f} s"
        raise EnvironmentProblem(msg)

    async def _send(self, command: protocol.Command) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(protocol.encode(command))
            await stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            await asyncio.wait([self.exited], timeout=TERM_WITHIN_S)
            text = str(self.exited.result()) if self.exited.done() else "the load driver does not listen any more"
            raise EnvironmentProblem(text) from error

    async def _supervise(self) -> None:
        readers = asyncio.gather(self._read_reports(), self._read_stderr(), return_exceptions=True)
        # The end of the process, not of its pipes: a process that a locustfile started holds them open. wait() of Python 3.11
        # waits for the pipes too.
        while (code := self._process.returncode) is None:
            await asyncio.wait([readers], timeout=_LOOK_EVERY_S)
            if readers.done():
                await asyncio.sleep(_REAPED_WITHIN_S)
        _, held_open = await asyncio.wait([readers], timeout=_DRAINED_WITHIN_S)
        if held_open:
            readers.cancel()
            # The only way to close the pipes.
            self._process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
            await asyncio.gather(readers, return_exceptions=True)
        if self._process.stdin is not None:
            self._process.stdin.close()
        lines = self._stderr.decode("utf-8", "replace").splitlines()
        self.exited.set_result(
            DriverExit(code, self._stopping, "\n".join(line.rstrip() for line in lines[-_STDERR_LINES:]))
        )

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        # Blocks, for what a locustfile prints need not have lines.
        while block := await self._process.stderr.read(1 << 16):
            self._stderr = (self._stderr + block)[-_STDERR_BYTES:]

    async def _read_reports(self) -> None:
        assert self._process.stdout is not None
        async for line in whole_lines(self._process.stdout, lambda: self._on_error(_TOO_LONG)):
            with contextlib.suppress(ValueError):
                self._take(protocol.decode_report(line))

    def _take(self, report: protocol.Report) -> None:
        match report:
            case protocol.RecordReport(record=record):
                self._on_record(record)
            case protocol.Ready():
                _resolve(self._ready, None)
            case protocol.FlowStarted(flow=flow) | protocol.FlowChanged(flow=flow) | protocol.FlowStopped(flow=flow):
                _resolve(self._next_answer(flow), report)
            case protocol.DriverError():
                self._take_error(report)

    def _next_answer(self, flow: str) -> asyncio.Future[Any] | None:
        waiting = self._answers.get(flow)
        return waiting.popleft() if waiting else None

    def _take_error(self, report: protocol.DriverError) -> None:
        error: ScaletestError
        if report.usage:
            error = ProfileError([Problem(report.message)], hint=report.hint)
        else:
            error = EnvironmentProblem(report.message, hint=report.hint)
        waiting = self._next_answer(report.flow) if report.flow else None if self._ready.done() else self._ready
        if waiting is None or waiting.done():
            self._on_error(report.message)
        else:
            waiting.set_exception(error)


def _resolve(future: asyncio.Future[Any] | None, result: object) -> None:
    if future is not None and not future.done():
        future.set_result(result)
