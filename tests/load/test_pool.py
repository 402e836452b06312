"""The pool of an arrivals flow, over channels that answer when the test says so."""

from __future__ import annotations

import time
from typing import Any

import gevent
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.load.channel import Ended
from scaletest.load.connection import Answer, Endpoint
from scaletest.load.operations import Call, Operation
from scaletest.load.outcomes import PeerClosed
from scaletest.load.pool import ChannelPool
from scaletest.profile.schema import RequestSpec

GET = Operation(RequestSpec.model_validate({"get": "/readyz"}), "f", "", None)
POST = Operation(RequestSpec.model_validate({"create": "configmaps"}), "f", "", None)


class FakeChannel:
    """Remembers what it was asked; the test answers, or breaks it."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.endpoint = Endpoint("127.0.0.1", 6443, 2, ("127.0.0.1", 6443))
        self.call: Call | None = None
        self.is_open = True
        self.used = False

    def ask(self, call: Call, request: bytes) -> None:
        assert self.is_open
        assert self.call is None
        assert request
        self.call = call
        call.sent_s = time.monotonic()

    def answer(self, outcome: str = "200") -> None:
        call, self.call, self.used = self.call, None, True
        self.owner.answered(self, call, Ended(outcome, 2))

    def give_up(self, error: Exception) -> None:
        call, self.call, self.is_open = self.call, None, False
        self.owner.lost(self, call, Ended("", 0, Answer(), error))

    def close(self) -> None:
        self.is_open = False


class Bench:
    """A pool, its channels, and how calls ended."""

    def __init__(self, size: int, *, keep: bool = True) -> None:
        self.channels: list[FakeChannel] = []
        self.ended: list[tuple[Call, str]] = []
        self.refuses = False
        self.pool = ChannelPool(self.connect, self.end, size=size, keep=keep)

    def connect(self, owner: Any, _call: Call) -> Any:
        if self.refuses:
            raise ConnectionRefusedError
        self.channels.append(FakeChannel(owner))
        return self.channels[-1]

    def end(self, call: Call, ended: Ended) -> Call | None:
        self.ended.append((call, ended.outcome))
        return None

    def start(self, operation: Operation = GET, due_s: float | None = None) -> Call:
        call = Call(operation, time.monotonic() if due_s is None else due_s)
        self.pool.start(call)
        gevent.sleep(0)
        return call

    @property
    def asking(self) -> list[FakeChannel]:
        return [channel for channel in self.channels if channel.is_open and channel.call is not None]

    def outcomes(self) -> list[str]:
        return [outcome for _, outcome in self.ended]


@given(
    st.integers(1, 5), st.lists(st.sampled_from(["start", "answer", "break", "close idle"]), max_size=60), st.booleans()
)
def test_every_call_ends_once_and_no_more_channels_than_allowed_are_open(
    size: int, acts: list[str], keep: bool
) -> None:
    bench = Bench(size, keep=keep)
    calls = []
    for act in acts:
        asking = bench.asking
        idle = [channel for channel in bench.channels if channel.is_open and channel.call is None]
        if act == "start":
            calls.append(bench.start())
        elif act == "answer" and asking:
            asking[0].answer()
        elif act == "break" and asking:
            asking[-1].give_up(TimeoutError())
        elif act == "close idle" and idle:
            idle[0].give_up(PeerClosed())
        gevent.sleep(0)
        assert sum(channel.is_open for channel in bench.channels) <= size
        assert bench.pool.in_use == len(bench.asking)
        # Nobody waits while a channel could be had.
        assert not bench.pool.waiting or len(bench.asking) == size
    while bench.asking:
        bench.asking[0].answer()
        gevent.sleep(0)
    assert calls == sorted((call for call, _ in bench.ended), key=calls.index)
    assert len(calls) == len(bench.ended)


def test_those_who_wait_are_served_in_order() -> None:
    bench = Bench(1)
    first, second, third = (bench.start() for _ in range(3))
    for _ in range(3):
        bench.asking[0].answer()

    assert [first, second, third] == [call for call, _ in bench.ended]
    assert first.sent_s <= second.sent_s <= third.sent_s
    assert 1 == len(bench.channels)


def test_free_channels_are_used_in_turn() -> None:
    bench = Bench(3)
    for _ in range(3):
        bench.start()
    for channel in bench.channels:
        channel.answer()
    used = []
    for _ in range(6):
        bench.start()
        used.append(bench.asking[0])
        bench.asking[0].answer()

    assert bench.channels * 2 == used


@pytest.mark.parametrize(
    ("operation", "used", "expected"),
    [(GET, True, []), (POST, True, ["reset"]), (GET, False, ["reset"])],
)
def test_only_what_may_be_repeated_is_sent_again_when_a_kept_connection_was_closed(
    operation: Operation, used: bool, expected: list[str]
) -> None:
    bench = Bench(1)
    bench.start(operation)
    bench.channels[0].used = used
    bench.channels[0].give_up(PeerClosed())
    gevent.sleep(0)

    assert expected == bench.outcomes()
    assert (1 if expected else 2) == len(bench.channels)


def test_it_is_sent_again_only_once() -> None:
    bench = Bench(1)
    bench.start()
    for _ in range(2):
        bench.asking[0].used = True
        bench.asking[0].give_up(PeerClosed())
        gevent.sleep(0)

    assert ["reset"] == bench.outcomes()


def test_a_sweep_ends_what_is_overdue_also_of_those_who_wait() -> None:
    bench = Bench(1)
    now_s = time.monotonic()
    old, waiting, young = bench.start(due_s=now_s - 61), bench.start(due_s=now_s - 61), bench.start()

    bench.pool.sweep(now_s)
    gevent.sleep(0)

    assert {old, waiting} == {call for call, outcome in bench.ended if outcome == "timeout"}
    assert young is bench.asking[0].call


def test_nobody_listening_ends_calls_as_refused() -> None:
    bench = Bench(2)
    bench.refuses = True
    for _ in range(3):
        bench.start()
    gevent.sleep(0)

    assert ["refused"] * 3 == bench.outcomes()


def test_the_rest_of_a_closed_loop_after_a_failure_is_no_part_of_its_latency() -> None:
    bench = Bench(1)
    following = Call(GET, time.monotonic())

    def follow(call: Call, _ended: Ended) -> Call | None:
        return following if call is not following else None

    bench.pool = ChannelPool(bench.connect, follow, size=1, keep=True, rest_s=0.05)
    bench.refuses = True
    bench.start()
    bench.refuses = False
    gevent.sleep(0.1)

    assert following is bench.asking[0].call
    assert following.sent_s - following.due_s < 0.04
