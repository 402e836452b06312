from __future__ import annotations

import asyncio
import time

from hypothesis import given
from hypothesis import strategies as st

from scaletest.probes.schedule import OpenLoop, most_in_flight, run_open_loop

PERIODS = st.floats(0.001, 100)


@given(first_s=st.floats(0, 1e5), every_s=PERIODS, steps=st.lists(st.floats(0, 250), max_size=40))
def test_every_due_time_is_taken_once_in_order_and_never_early(
    first_s: float, every_s: float, steps: list[float]
) -> None:
    loop = OpenLoop(first_s, every_s)
    now_s = first_s
    taken: list[float] = []
    for step in steps:
        now_s += step * every_s
        ticks = loop.take(now_s)
        assert all(tick.due_s <= now_s for tick in ticks)
        taken.extend(tick.due_s for tick in ticks)

    assert taken == [first_s + k * every_s for k in range(len(taken))]
    assert loop.next_due_s > now_s or not steps


@given(every_s=PERIODS, late_periods=st.floats(0, 50))
def test_of_the_due_times_that_went_by_only_the_last_is_still_sent(every_s: float, late_periods: float) -> None:
    ticks = OpenLoop(10.0, every_s).take(10.0 + late_periods * every_s)

    assert len(ticks) >= 1
    assert [tick.missed for tick in ticks] == [True] * (len(ticks) - 1) + [False]


def test_a_due_time_less_than_a_period_old_is_not_missed() -> None:
    ticks = OpenLoop(0.0, 1.0).take(2.5)

    assert [(tick.due_s, tick.missed) for tick in ticks] == [(0.0, True), (1.0, True), (2.0, False)]


def test_as_many_requests_are_under_way_as_time_out_and_period_allow_and_one_more() -> None:
    assert [most_in_flight(20, 1), most_in_flight(0.5, 1), most_in_flight(1, 0.3)] == [21, 2, 5]


class Clockwork:
    """Runs an open loop of 50 ms and keeps what it did."""

    def __init__(self, answer_s: float, *, limit: int = 100) -> None:
        self.answer_s = answer_s
        self.limit = limit
        self.sent: list[float] = []
        self.ended: list[str] = []
        self.missed: list[str] = []

    async def send(self, due_s: float) -> None:
        self.sent.append(due_s)
        try:
            await asyncio.sleep(self.answer_s)
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("answered")

    async def run(self, for_s: float) -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(for_s, stop.set)
        loop = OpenLoop(time.monotonic(), 0.05)
        await run_open_loop(loop, self.send, lambda _, why: self.missed.append(why), limit=self.limit, stop=stop)


def test_a_slow_answer_does_not_delay_the_next_send() -> None:
    slow = Clockwork(answer_s=0.6)
    asyncio.run(slow.run(0.5))

    assert len(slow.sent) + len(slow.missed) >= 9
    assert len(slow.sent) >= 2
    assert slow.ended == ["answered"] * len(slow.sent)


def test_a_send_over_the_limit_is_missed_and_said() -> None:
    hung = Clockwork(answer_s=0.6, limit=2)
    asyncio.run(hung.run(0.4))

    assert len(hung.sent) == 2
    assert "not sent: 2 requests without an answer" in hung.missed


def test_a_process_that_was_held_up_says_what_it_missed_and_goes_on() -> None:
    clockwork = Clockwork(answer_s=0)

    async def main() -> None:
        asyncio.get_running_loop().call_later(0.1, time.sleep, 0.5)
        await clockwork.run(0.9)

    asyncio.run(main())

    assert clockwork.missed.count("not sent: the measuring process was held up") >= 7
    assert clockwork.sent[-1] - clockwork.sent[0] > 0.5


def test_cancelling_the_loop_cancels_what_is_under_way() -> None:
    hung = Clockwork(answer_s=60)

    async def main() -> None:
        task = asyncio.create_task(hung.run(60))
        await asyncio.sleep(0.3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())

    assert hung.ended == ["cancelled"] * len(hung.sent)
    assert hung.sent
