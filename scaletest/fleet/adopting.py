"""Taking over a fleet that stands in a cluster already, as an earlier run or ``cluster up`` left it."""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Final

from scaletest.core.kubernetesapi import KubernetesApi
from scaletest.fleet.fleet import FleetState, FleetTarget
from scaletest.profile.schema import FleetSpec

__all__ = ["adopt_fleet", "pools_of"]

_NODE_NAME: Final = re.compile(r"(?P<pool>[a-z0-9]([a-z0-9-]*[a-z0-9])?)-\d{5,}")


async def adopt_fleet(spec: FleetSpec, target: FleetTarget, *, rng: random.Random) -> FleetState:
    """Return the fleet that stands in a cluster; without nodes when there is none.

    Pools are told by node names. A pool can grow and shrink only if ``spec`` describes it. Raises ClusterError.
    """
    async with KubernetesApi(target.access, connections=1) as api:
        names = [row[0] for row in await api.table("/api/v1/nodes")]
        pods = await api.get("/api/v1/pods?limit=1")
    pools = pools_of(names)
    counts = Counter(
        {
            "Node": sum(map(len, pools.values())),
            "Pod": len(pods["items"]) + pods["metadata"].get("remainingItemCount", 0),
        }
    )
    return FleetState(spec, target, rng, pools, counts)


def pools_of(node_names: list[str]) -> dict[str, list[str]]:
    """Sort node names into pools; names of another form make a pool of their own, called ``other``."""
    pools: dict[str, list[str]] = {}
    for name in sorted(node_names):
        match = _NODE_NAME.fullmatch(name)
        pools.setdefault(match["pool"] if match else "other", []).append(name)
    return pools
