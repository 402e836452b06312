from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from hypothesis import given
from hypothesis import strategies as st

from scaletest.observe.periodic import next_due_s, periodically


@given(first_s=st.floats(0, 1e6), every_s=st.floats(0.01, 1e3), now_s=st.floats(0, 1e6))
def test_the_next_time_lies_on_the_grid_and_at_most_a_period_ahead(
    first_s: float, every_s: float, now_s: float
) -> None:
    due_s = next_due_s(first_s, every_s, now_s)

    turns = (due_s - first_s) / every_s
    slack_s = 1e-6 * every_s + 1e-9
    assert abs(turns - round(turns)) < 1e-3
    assert due_s >= now_s - slack_s
    assert due_s <= max(first_s, now_s) + every_s + slack_s


def run(turn: Callable[[], Awaitable[None]], *, every_s: float, for_s: float) -> list[str]:
    failures: list[str] = []

    async def main() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(for_s, stop.set)
        await periodically(every_s, turn, lambda error: failures.append(str(error)), stop)

    asyncio.run(main())
    return failures


def test_a_turn_that_fails_is_told_and_the_next_one_comes() -> None:
    turns = 0

    async def fails() -> None:
        nonlocal turns
        turns += 1
        msg = f"turn {turns}"
        raise ValueError(msg)

    failures = run(fails, every_s=0.05, for_s=0.5)

    assert turns >= 2
    assert failures == [f"turn {number + 1}" for number in range(turns)]


def test_turns_do_not_pile_up_behind_a_slow_one() -> None:
    at_once = most = turns = 0

    async def slow() -> None:
        nonlocal at_once, most, turns
        at_once, turns = at_once + 1, turns + 1
        most = max(most, at_once)
        await asyncio.sleep(0.2)
        at_once -= 1

    failures = run(slow, every_s=0.02, for_s=0.7)

    assert most == 1
    assert 2 <= turns <= 4
    assert failures == []


def test_stopping_cuts_off_a_turn_that_hangs_and_is_no_failure() -> None:
    began_s = time.monotonic()
    failures = run(lambda: asyncio.sleep(60), every_s=0.1, for_s=0.2)

    assert time.monotonic() - began_s < 30
    assert failures == []
