"""Bounded concurrency over an iterator."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

__all__ = ["gather_all", "work_through"]


Item = TypeVar("Item")


async def work_through(items: Iterator[Item], do: Callable[[Item], Awaitable[None]], *, workers: int) -> None:
    """Do something with every item, ``workers`` at once; the iterator is advanced only as they take items.

    Raises the first error; the other workers are cancelled then.
    """

    async def work() -> None:
        for item in items:
            await do(item)

    await gather_all([work() for _ in range(workers)])


async def gather_all(coroutines: Iterable[Coroutine[Any, Any, Item]]) -> list[Item]:
    """Run all at once and return their results; when one raises, cancel the others and raise its error itself.

    ``asyncio.gather`` lets the others run on; a TaskGroup raises an ExceptionGroup.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
