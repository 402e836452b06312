"""The first reason cuts a run short; the body is cancelled once."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from scaletest.runner.cut import Cut, CutReason, on_signals


def test_a_cut_cancels_the_body_and_the_first_reason_stays() -> None:
    async def scenario() -> Cut:
        cut = Cut()
        loop = asyncio.get_running_loop()
        loop.call_soon(cut, "interrupted", "SIGINT")
        loop.call_soon(cut, "cluster_lost", "later")
        await cut.guard(asyncio.create_task(asyncio.sleep(60)))
        return cut

    assert CutReason("interrupted", "SIGINT") == asyncio.run(scenario()).why


def test_a_cut_before_the_body_began_cancels_it_at_once() -> None:
    ran = False

    async def body() -> None:
        nonlocal ran
        await asyncio.sleep(0)
        ran = True

    async def scenario() -> None:
        cut = Cut()
        cut("host_guard", "memory")
        await cut.guard(asyncio.create_task(body()))

    asyncio.run(scenario())
    assert not ran


def test_a_failure_of_the_body_is_raised() -> None:
    async def body() -> None:
        msg = "no"
        raise RuntimeError(msg)

    async def scenario() -> None:
        await Cut().guard(asyncio.create_task(body()))

    with pytest.raises(RuntimeError, match="no"):
        asyncio.run(scenario())


def test_a_body_that_finishes_leaves_no_reason() -> None:
    async def scenario() -> Cut:
        cut = Cut()
        await cut.guard(asyncio.create_task(asyncio.sleep(0)))
        return cut

    assert asyncio.run(scenario()).why is None


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_reach_the_handler_until_undone(signum: signal.Signals) -> None:
    seen: list[signal.Signals] = []

    async def scenario() -> None:
        undo = on_signals(seen.append)
        os.kill(os.getpid(), signum)
        await asyncio.sleep(0.05)
        undo()

    before = signal.getsignal(signum)
    asyncio.run(scenario())
    signal.signal(signum, before)
    assert [signum] == seen
