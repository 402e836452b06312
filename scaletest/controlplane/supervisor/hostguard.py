"""The guard over the host's memory: ends a cluster before the machine freezes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

__all__ = ["watch_host"]

_PERIOD_S: Final = 0.25


async def watch_host(available_bytes: Callable[[], int], floor_bytes: int) -> int:
    """Return the available memory as soon as it is below the floor."""
    while True:
        available = available_bytes()
        if available < floor_bytes:
            return available
        await asyncio.sleep(_PERIOD_S)
