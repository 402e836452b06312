import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from scaletest.core.errors import ClusterError
from scaletest.fleet.ready import count_ready, wait_nodes_ready
from tests.serving import Serve


def test_cordoned_nodes_are_ready_and_silent_ones_are_not() -> None:
    rows = [["a", "Ready"], ["b", "Ready,SchedulingDisabled"], ["c", "NotReady"], ["d", "Unknown"]]

    assert 2 == count_ready(rows)


def test_waiting_ends_once_enough_nodes_are_ready(served: Serve) -> None:
    answers: Iterator[list[list[str]]] = iter([[], [["a", "NotReady"]], [["a", "Ready"]]])

    def answer(*_: object) -> tuple[int, Any]:
        return 200, {"rows": [{"cells": cells} for cells in next(answers)]}

    async def check() -> tuple[float, int]:
        async with served(answer) as server:
            return await wait_nodes_ready(server.access, 1, 30), len(server.requests)

    waited_s, requests = asyncio.run(check())

    assert 3 == requests
    assert waited_s > 0


def test_nodes_that_do_not_become_ready_are_counted_in_the_error(served: Serve) -> None:
    async def check() -> None:
        async with served(lambda *_: (200, {"rows": [{"cells": ["a", "Ready"]}]})) as server:
            await wait_nodes_ready(server.access, 2, 0.6)

    with pytest.raises(ClusterError, match="1 of 2 nodes were Ready"):
        asyncio.run(check())


def test_an_api_that_does_not_answer_is_named_in_the_error(served: Serve) -> None:
    async def check() -> None:
        async with served(lambda *_: (503, {"message": "starting"})) as server:
            await wait_nodes_ready(server.access, 2, 0.6)

    with pytest.raises(ClusterError, match="503 starting"):
        asyncio.run(check())
