"""An API server that has not counted its objects takes a LIST of all of them for one seat."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from scaletest.observe.counted import COUNTED_FROM, counted_objects, wait_counted, worth_counting
from tests.serving import Serve

OLD = 'apiserver_storage_objects{resource="pods"} %d\napiserver_storage_objects{resource="leases.coordination.k8s.io"} 7\n'
NEW = 'apiserver_resource_objects{group="",resource="pods"} %d\napiserver_resource_objects{group="apps",resource="pods"} 9\n'


@pytest.mark.parametrize("text", [OLD, NEW])
def test_the_core_group_is_read_in_both_spellings(text: str) -> None:
    assert 21_000 == counted_objects((text % 21_000).encode())["pods"]


def test_few_objects_are_not_waited_for() -> None:
    counts = {"Pod": COUNTED_FROM, "Node": COUNTED_FROM - 1, "Lease": 7_000}

    assert {"pods": COUNTED_FROM} == worth_counting(counts)


def test_waiting_ends_when_the_fleet_was_counted(served: Serve) -> None:
    answers: Iterator[str] = iter([NEW % 0, NEW % 299, NEW % 300])

    async def check() -> tuple[float | None, int]:
        async with served(lambda *_: (200, next(answers))) as server:
            return await wait_counted(server.access, {"pods": 300}, 30), len(server.requests)

    waited_s, requests = asyncio.run(check())

    assert waited_s is not None
    assert 3 == requests


def test_waiting_ends_at_its_time(served: Serve) -> None:
    async def check() -> Any:
        async with served(lambda *_: (200, NEW % 5)) as server:
            return await wait_counted(server.access, {"pods": 300}, 0.5)

    assert asyncio.run(check()) is None
