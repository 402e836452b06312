"""Waiting until every API server has counted what stands in etcd.

An API server counts the objects of each kind from time to time (``--etcd-count-metric-poll-period``: every 10 to 22 s here, see
``kwok/kwokctl.yaml``), and API Priority and Fairness takes the seats of a LIST from that count: until the fleet was counted, a LIST of 20,000
pods takes one seat and not ten, and hundreds of them run at once. No cluster that has grown in an ordinary way is like that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Final

from scaletest.core.access import ApiAccess
from scaletest.core.apiclient import HttpApiClient
from scaletest.observe.promtext import select

__all__ = ["COUNTED_FROM", "RESOURCES", "counted_objects", "wait_counted", "worth_counting"]

COUNTED_FROM: Final = 300
"""Objects of a kind from which on the count makes a difference: a seat stands for 100 objects (until 1.33) or for 100 KB of them."""

RESOURCES: Final = {
    "Pod": "pods", "Node": "nodes", "ConfigMap": "configmaps", "Secret": "secrets", "Service": "services",
}  # fmt: skip
"""Kinds that are waited for, and what metrics call them."""

_NAMES: Final = ("apiserver_resource_objects", "apiserver_storage_objects")
"""The newer is there from 1.34 on, where the older is deprecated, and hidden by 1.37."""

_POLL_S: Final = 1.0
_SCRAPE_TIMEOUT_S: Final = 5.0


def worth_counting(counts: Mapping[str, int]) -> dict[str, int]:
    """Return, by resource, the objects that are to be waited for; ``counts`` are by kind."""
    return {RESOURCES[kind]: count for kind, count in counts.items() if kind in RESOURCES and count >= COUNTED_FROM}


def counted_objects(text: bytes) -> dict[str, int]:
    """Return objects of the core group by resource, as an API server's ``/metrics`` has them."""
    found: dict[str, int] = {}
    for sample in select(text, _NAMES):
        if not sample.labels.get("group"):
            resource = sample.labels.get("resource", "")
            found[resource] = max(found.get(resource, 0), round(sample.value))
    return found


async def wait_counted(access: ApiAccess, expected: Mapping[str, int], timeout_s: float) -> float | None:
    """Wait until every server has counted at least the expected objects; return the seconds that took, None when it took too long."""
    began_s = time.monotonic()
    for server in access.servers:
        client = HttpApiClient(server, access=access)
        try:
            while not await _has_counted(client, expected):
                if time.monotonic() - began_s > timeout_s:
                    return None
                await asyncio.sleep(_POLL_S)
        finally:
            await client.close()
    return time.monotonic() - began_s


async def _has_counted(client: HttpApiClient, expected: Mapping[str, int]) -> bool:
    answer = await client.get("/metrics", timeout_s=_SCRAPE_TIMEOUT_S, accept="text/plain")
    counted = counted_objects(answer.body) if answer.ok else {}
    return all(counted.get(resource, 0) >= count for resource, count in expected.items())
