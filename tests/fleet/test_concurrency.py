import asyncio

import pytest

from scaletest.fleet.concurrency import gather_all, work_through


def test_every_item_is_done_once_with_no_more_workers_than_allowed() -> None:
    done: list[int] = []
    running = most = 0

    async def do(item: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        done.append(item)

    asyncio.run(work_through(iter(range(50)), do, workers=4))

    assert list(range(50)) == sorted(done)
    assert 4 == most


def test_the_first_error_comes_out_as_itself_and_ends_the_work() -> None:
    done: list[int] = []

    async def do(item: int) -> None:
        await asyncio.sleep(0)
        if item == 5:
            raise ValueError(item)
        done.append(item)

    with pytest.raises(ValueError, match="5"):
        asyncio.run(work_through(iter(range(10_000)), do, workers=2))

    assert len(done) < 10_000


def test_results_come_in_the_order_of_their_coroutines() -> None:
    async def wait(delay_s: float) -> float:
        await asyncio.sleep(delay_s)
        return delay_s

    assert [0.02, 0.0, 0.01] == asyncio.run(gather_all([wait(0.02), wait(0.0), wait(0.01)]))
