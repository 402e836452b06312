import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from scaletest.core.errors import ClusterError
from scaletest.core.kubernetesapi import KubernetesApi
from scaletest.fleet.ready import count_ready, wait_nodes_ready, wait_pods_running
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


def test_a_pod_that_kwok_passed_by_is_changed_and_changed_back_so_that_it_looks_again(served: Serve) -> None:
    """KWOK 0.8.0 passes by pods of a node whose Lease its watch has not shown it; it plays them at their next change."""
    annotations: list[str | None] = []

    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        if method == "PATCH":
            assert path.startswith("/api/v1/namespaces/fleet-0001/pods/gpu-00007-001?")
            annotations.extend(body["metadata"]["annotations"].values())
            return 200, {}
        stuck = not annotations
        if "includeObject=None" in path:
            return 200, {"rows": [{"cells": ["gpu-00007-001"]}] if stuck else []}
        return 200, {"items": [{"metadata": {"namespace": "fleet-0001", "name": "gpu-00007-001"}}]}

    async def check() -> None:
        async with served(answer) as server, KubernetesApi(server.access) as api:
            await wait_pods_running(api, 30, touch_after_s=0.3)

    asyncio.run(check())

    assert ["true", None] == annotations
