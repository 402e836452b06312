"""Names of everything in a fleet: fixed width, so that a copy of an object is as long as its sample.

Nodes of a pool are ``POOL-00000`` and so on; the pod in a *slot* of a node is ``POOL-00000-000``.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator

from scaletest.core.errors import UsageError
from scaletest.profile.schema import FleetSpec

__all__ = [
    "MAX_NODE_INDEX",
    "namespace_name",
    "new_hex",
    "new_uid",
    "node_name",
    "node_names",
    "object_name",
    "pod_name",
]

MAX_NODE_INDEX = 99_999
"""Five digits: the schema allows 100,000 nodes in a pool."""


def node_name(pool: str, index: int) -> str:
    """Name of a node. Raises UsageError past ``MAX_NODE_INDEX``."""
    if index > MAX_NODE_INDEX:
        msg = f"pool {pool} would get node number {index}; a pool numbers its nodes from 0 to {MAX_NODE_INDEX}"
        raise UsageError(msg, hint="spread the nodes over more pools")
    return f"{pool}-{index:05d}"


def node_names(spec: FleetSpec) -> Iterator[str]:
    """Yield the names of the nodes that a specification asks for, pool by pool."""
    for pool in spec.pools:
        for index in range(pool.nodes):
            yield node_name(pool.name, index)


def pod_name(node: str, slot: int) -> str:
    """Name of the pod in a slot (0 to 999) of a node."""
    return f"{node}-{slot:03d}"


def namespace_name(index: int) -> str:
    """Name of a namespace of the fleet (0 to 9,999)."""
    return f"fleet-{index:04d}"


def object_name(prefix: str, index: int) -> str:
    """Name of any other object (0 to 999,999)."""
    return f"{prefix}-{index:06d}"


def new_uid(rng: random.Random) -> str:
    """Return a random (version 4) UUID from ``rng``."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def new_hex(rng: random.Random, digits: int) -> str:
    """Return ``digits`` random hexadecimal digits."""
    return f"{rng.getrandbits(4 * digits):0{digits}x}"
