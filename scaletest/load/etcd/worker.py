"""One process of an ``etcd`` flow: its keys, its connections, its pacer, and what came of each request.

Times are those of ``arrivals`` (see there): start lag, latency from when a request was due, service time from when it was sent. In a
closed loop each client asks again as soon as it was answered, and requests are due when they are made.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from scaletest.core.errors import EnvironmentProblem
from scaletest.load.etcd import requests
from scaletest.load.etcd.connection import OK, Exchange, GrpcStatus
from scaletest.load.etcd.operations import Keys, Mix, Planned
from scaletest.load.etcd.pipe import Failure, Report, WorkerConfig
from scaletest.load.etcd.slots import Outgoing, Slots
from scaletest.load.etcd.watches import Watch, WatchStream
from scaletest.load.outcomes import (
    GRPC_OK,
    NO_SPACE,
    REQUEST_ERRORS,
    RequestTimedOut,
    outcome_of_error,
    outcome_of_grpc,
)
from scaletest.load.schedule import Pacer, RateCurve, Schedule, curve_of
from scaletest.load.statistics import SAMPLES_PER_OUTCOME
from scaletest.load.timerfd import TimerFd
from scaletest.profile.etcd import WATCH_TITLE

__all__ = ["Worker"]

REPORT_EVERY_S: Final = 0.1
SWEEP_EVERY_S: Final = 0.1
FILL_AT_ONCE: Final = 64
"""First puts in flight at once, in one process."""

FILL_WITHIN_S: Final = 30.0
OWN_TIMEOUT_S: Final = 10.0
"""Time-out of requests that are no arrivals: first puts, and what is removed at the end."""

LATE_S: Final = 1e-3
"""After a stall of etcd thousands of answers come in one read, which took 16 to 68 ms to take in: arrivals do not wait for its end.
Less than this late they go out together."""

DRAIN_LOOKS: Final = 100
DRAIN_S: Final = 1.0
REMOVE_WITHIN_S: Final = 3.0
"""Time that requests under way have to end when the flow stops, and that the removal of its keys may take."""

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class Call(Outgoing):
    """An arrival."""

    __slots__ = ("done", "due_s", "ended", "step")

    def __init__(self, planned: Planned, due_s: float) -> None:
        super().__init__(planned.path, planned.message)
        self.step = planned.step
        self.ended = planned.ended
        self.due_s = due_s
        self.done = False


class _Own(Outgoing):
    """A request that is no arrival."""

    __slots__ = ("result",)

    def __init__(self, path: bytes, message: bytes) -> None:
        super().__init__(path, message)
        self.result: asyncio.Future[GrpcStatus] = asyncio.get_running_loop().create_future()


class Worker:
    """The load of one process."""

    def __init__(self, config: WorkerConfig, send: Callable[..., None]) -> None:
        """``send`` takes the kind of a message to the driver, and its fields."""
        spec = config.spec
        self._config = config
        self._spec = spec
        self._send_message = send
        self._random = Random(f"{config.seed}/{config.share[0]}")
        self._keys = Keys(config.flow, config.share[0], config.part(spec.keys), spec.key_bytes)
        self._mix = Mix(spec, self._keys, self._random)
        self._slots = Slots(
            config.endpoint,
            f"scaletest/{config.flow}",
            config.part(spec.all_connections),
            self._on_end,
            self._connected,
        )
        self._most_in_flight = max(1, config.part(spec.most_in_flight))
        self._in_flight = 0
        self._stopping = False
        self._report = Report()
        self._outcomes: dict[str, int] = {}
        self._sampled: dict[tuple[str, str], int] = {}
        self._open: deque[Call] = deque()
        """Calls in the order in which they are due, for their time-outs; those that are done are swept out."""
        self._pacer: Pacer | None = None
        self._timer: TimerFd | None = None
        self._watches: list[Watch] = []
        self._origin_s = 0.0
        self._tasks: list[asyncio.Task[None]] = []

    # What the driver asks for.

    async def fill(self) -> None:
        """Connect, and make the keys. Raises EnvironmentProblem."""
        try:
            async with asyncio.timeout(FILL_WITHIN_S):
                await self._slots.open_all()
                await self._remove_keys()
                puts = self._mix.first_puts()
                for first in range(0, len(puts), FILL_AT_ONCE):
                    row = puts[first : first + FILL_AT_ONCE]
                    await asyncio.gather(*(self._ask(requests.PUT, write(time.monotonic())) for _, write in row))
                    for _ in row:
                        index = self._keys.ring.take_absent()
                        assert index is not None
                        self._keys.ring.put_back(index, present=True)
        except REQUEST_ERRORS as error:
            said = str(error) or f"no answer within {FILL_WITHIN_S:g} s"
            msg = f"flow {self._config.flow}: etcd at {self._config.endpoint} does not take its keys: {said}"
            hint = "give etcd a larger quota (quota-backend-bytes), or compact and defragment it and disarm its alarm"
            raise EnvironmentProblem(msg, hint=hint if NO_SPACE in said else None) from error

    def begin(self, origin_s: float) -> None:
        """Begin to ask; arrivals are due from ``origin_s`` on."""
        self._origin_s = origin_s
        self._tasks = [asyncio.create_task(self._sweep()), asyncio.create_task(self._report_on())]
        for number in range(self._config.part(self._spec.watches)):
            watch = Watch(self._keys[number % len(self._keys)], self._slots, self._watch_ended, self._report_of_events)
            self._watches.append(watch)
            watch.open()
        if self._spec.is_closed:
            for _ in range(self._config.part(self._spec.in_flight)):
                self._ask_again()
        else:
            self._timer = TimerFd()
            asyncio.get_running_loop().add_reader(self._timer.descriptor, self._rang)
            self._follow(curve_of(self._spec), origin_s)

    def set_rate(self, rate_per_s: float, origin_s: float) -> None:
        """Go on at another rate (of all processes together), from ``origin_s`` on and without end."""
        self._follow(RateCurve((), rate_per_s), origin_s)

    def block(self) -> tuple[int, int]:
        """Close all connections and refuse new ones; returns how many, and the requests on them."""
        return self._slots.block()

    def unblock(self) -> None:
        """Let connections be opened again."""
        self._slots.unblock()

    async def stop(self) -> None:
        """Ask no more, wait a moment for what is under way, remove keys and leases, send the last report."""
        self._stopping = True
        if self._timer is not None:
            asyncio.get_running_loop().remove_reader(self._timer.descriptor)
            self._timer.close()
        for watch in self._watches:
            watch.close()
        never_sent = self._slots.drop_waiting()
        for _ in range(DRAIN_LOOKS):
            if self._in_flight <= never_sent:
                break
            await asyncio.sleep(DRAIN_S / DRAIN_LOOKS)
        for task in self._tasks:
            task.cancel()
        self._send_report()
        with contextlib.suppress(*REQUEST_ERRORS):
            async with asyncio.timeout(REMOVE_WITHIN_S):
                await self._remove_leases()
                await self._remove_keys()
        # Tell no more: what a closed connection ends belongs to nobody.
        self._in_flight = 0
        await self._slots.close()

    # Arrivals.

    def _follow(self, curve: RateCurve, origin_s: float) -> None:
        poisson = self._spec.process == "poisson"
        schedule = Schedule(curve, origin_s, self._random, poisson=poisson, share=self._config.share)
        self._pacer = Pacer(schedule, self._arrive)
        if self._timer is not None:
            self._timer.set(self._pacer.next_due_s)

    def _rang(self) -> None:
        if self._timer is not None and self._pacer is not None and self._timer.has_rung():
            self._timer.set(self._pacer.ring())

    def _ring_if_late(self, now_s: float) -> None:
        """Begin and send what has been due for a while; the timer is not looked at before all answers of one read are."""
        if self._timer is None or self._pacer is None or self._stopping or self._pacer.next_due_s > now_s - LATE_S:
            return
        self._timer.set(self._pacer.ring())
        self._slots.flush()

    def _arrive(self, due_s: float, now_s: float) -> None:
        arrivals = self._report.arrivals
        arrivals.due += 1
        arrivals.lag_us.record(int((now_s - due_s) * 1e6))
        if self._in_flight >= self._most_in_flight:
            arrivals.dropped += 1
            return
        self._begin(due_s, now_s)

    def _ask_again(self) -> None:
        now_s = time.monotonic()
        self._report.arrivals.due += 1
        self._begin(now_s, now_s)

    def _begin(self, due_s: float, now_s: float) -> None:
        call = Call(self._mix.draw(now_s), due_s)
        self._in_flight += 1
        self._open.append(call)
        self._slots.send(call)

    def _on_end(self, exchange: Exchange, status: GrpcStatus | None, error: Exception | None) -> None:
        if isinstance(exchange, Call):
            self._ended(exchange, status, error)
        elif isinstance(exchange, _Own):
            if not exchange.result.done():
                _settle(exchange.result, status, error)
        elif isinstance(exchange, WatchStream):
            exchange.ended(status, error)

    def _ended(self, call: Call, status: GrpcStatus | None, error: Exception | None) -> None:
        now_s = time.monotonic()
        outcome = GRPC_OK if status is not None and status[0] == OK else _outcome(status, error)
        call.done = True
        if call.ended is not None:
            call.ended(outcome == GRPC_OK)
        self._in_flight -= 1
        service_us = int((now_s - call.sent_s) * 1e6) if call.sent_s else -1
        self._report.arrivals.sent += service_us >= 0
        self._tell(
            call.step, outcome, call.sent_s or now_s,
            latency_us=int((now_s - call.due_s) * 1e6), service_us=service_us, body_bytes=call.received_bytes,
        )  # fmt: skip
        if outcome != GRPC_OK:
            self._sample(self._mix.titles[call.step], outcome, status, error)
        if self._spec.is_closed and not self._stopping:
            self._ask_again()
        self._ring_if_late(now_s)

    def _tell(
        self, step: int, outcome: str, sent_s: float, *, latency_us: int, service_us: int = -1, body_bytes: int = 0
    ) -> None:
        index = self._outcomes.get(outcome)
        if index is None:
            index = self._outcomes[outcome] = len(self._outcomes)
        since_us = int((sent_s - self._origin_s) * 1e6)
        self._report.ended.append((step, index, since_us, latency_us, service_us, body_bytes))

    def _sample(self, step: str, outcome: str, status: GrpcStatus | None, error: Exception | None) -> None:
        taken = self._sampled.get((step, outcome), 0)
        if taken < SAMPLES_PER_OUTCOME:
            self._sampled[step, outcome] = taken + 1
            reason = type(error).__name__ if error is not None else None
            message = (str(error) if error is not None else status[1] if status is not None else "") or None
            self._report.failures.append(Failure(step, outcome, reason, message))

    # Watches.

    def _watch_ended(self, opened: bool, latency_us: int, status: GrpcStatus | None, error: Exception | None) -> None:
        """Count a watch that was opened, could not be, or broke (then its latency is -1)."""
        if self._stopping:
            return
        outcome = GRPC_OK if opened else _outcome(status, error)
        step, now_s = self._mix.titles.index(WATCH_TITLE), time.monotonic()
        self._tell(step, outcome, now_s - max(0, latency_us) / 1e6, latency_us=latency_us)
        if not opened:
            self._sample(WATCH_TITLE, outcome, status, error)

    def _report_of_events(self, ages_us: Sequence[int]) -> None:
        for age_us in ages_us:
            self._report.events_us.record(age_us)

    # Time-outs and reports.

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            now_s = time.monotonic()
            calls, timeout_s = self._open, self._spec.timeout_s
            while calls and (calls[0].done or calls[0].due_s + timeout_s <= now_s):
                call = calls.popleft()
                if not call.done:
                    self._slots.cancel(call)
                    self._ended(call, None, RequestTimedOut(f"no answer within {timeout_s:g} s"))
            if len(calls) > 2 * self._in_flight + 1_000:
                self._open = deque(call for call in calls if not call.done)

    async def _report_on(self) -> None:
        while True:
            await asyncio.sleep(REPORT_EVERY_S)
            self._send_report()

    def _send_report(self) -> None:
        report, self._report = self._report, Report()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        pacer = self._pacer
        report.outcomes = list(self._outcomes)
        report.behind = pacer.behind() if pacer is not None and not self._stopping else 0
        report.in_flight, report.waiting = self._in_flight, self._slots.waiting
        report.connected = self._slots.connected
        report.cpu_s = round(usage.ru_utime + usage.ru_stime, 4)
        report.rss_bytes = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
        self._send_message("report", **report.to_json())

    def _connected(self, took_us: int) -> None:
        self._report.connect_us.append(took_us)

    # The flow's own requests.

    async def _ask(self, path: bytes, message: bytes) -> None:
        """Ask something that is no arrival. Raises one of REQUEST_ERRORS, an error status among them."""
        own = _Own(path, message)
        self._slots.send(own)
        async with asyncio.timeout(OWN_TIMEOUT_S):
            code, text = await own.result
        if code != OK:
            outcome = outcome_of_grpc(code, text)
            why = "its quota is used up (NOSPACE)" if outcome == NO_SPACE else f"{outcome}: {text}"
            raise OSError(why)

    async def _remove_keys(self) -> None:
        await self._ask(requests.DELETE_RANGE, requests.delete(self._keys.prefix, self._keys.end))

    async def _remove_leases(self) -> None:
        asked = [self._ask(requests.LEASE_REVOKE, requests.lease_revoke(lease)) for lease in self._mix.held_leases()]
        # One that has ended meanwhile is not there any more.
        await asyncio.gather(*asked, return_exceptions=True)


def _outcome(status: GrpcStatus | None, error: Exception | None) -> str:
    if status is not None:
        return outcome_of_grpc(*status)
    assert error is not None
    return outcome_of_error(error)


def _settle(result: asyncio.Future[Any], status: GrpcStatus | None, error: Exception | None) -> None:
    if error is not None:
        result.set_exception(error)
    else:
        result.set_result(status)
