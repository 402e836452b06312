"""Taking nodes away: their Node, Pod and Lease objects go, through the API as far as it answers, or from etcd whatever the API server's state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from scaletest.core.kubernetesapi import ApiError, KubernetesApi
from scaletest.fleet.concurrency import work_through
from scaletest.fleet.etcdstore import EtcdStore
from scaletest.fleet.family import LEASE, NODE, POD
from scaletest.fleet.nodes import PoolPlan

__all__ = ["ShrinkResult", "delete_nodes", "erase_nodes"]

_WORKERS: Final = 32
_LEASE_NAMESPACE: Final = "kube-node-lease"


@dataclass(slots=True)
class ShrinkResult:
    """What of a scale-down the API server has done. ``errors`` counts failed requests by outcome (``http_429``)."""

    asked: int
    nodes: list[str] = field(default_factory=list)
    """Names of the nodes that are gone."""
    pods: int = 0
    leases: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    first_error: str | None = None

    @property
    def complete(self) -> bool:
        """Whether everything that was asked for is gone."""
        return len(self.nodes) == self.asked and not self.errors


async def delete_nodes(
    api: KubernetesApi,
    plan: PoolPlan,
    indices: Sequence[int],
    on_done: Callable[[int], None],
    result: ShrinkResult,
) -> None:
    """Delete nodes by their numbers in the pool, each with its pods and its lease; never raises for a failed request.

    What is done is counted in ``result`` as it is done, so that it is known when this is cancelled.

    The Node goes first: KWOK makes a missing lease anew as long as it knows the node.
    """
    errors: Counter[str] = Counter(result.errors)

    async def gone(request: Awaitable[None]) -> bool:
        try:
            await request
        except ApiError as error:
            if error.status == 404:
                return True
            errors[error.outcome] += 1
            result.errors = dict(errors)
            result.first_error = result.first_error or str(error)
            return False
        return True

    async def delete(index: int) -> None:
        name = plan.node_values(index)["name"]
        if await gone(api.delete(NODE.resource.path(name=name))):
            result.nodes.append(name)
            for slot in range(plan.pool.pods_per_node):
                pod = plan.pod_values(index, slot)
                # Not "+= await": other workers count while this one waits.
                pod_gone = await gone(api.delete(POD.resource.path(namespace=pod["namespace"], name=pod["name"])))
                result.pods += pod_gone
            lease_gone = await gone(api.delete(LEASE.resource.path(namespace=_LEASE_NAMESPACE, name=name)))
            result.leases += lease_gone
        on_done(1)

    await work_through(iter(indices), delete, workers=_WORKERS)


async def erase_nodes(store: EtcdStore, plan: PoolPlan, indices: Sequence[int]) -> None:
    """Delete the keys of nodes, then of their pods, then of their leases; see ``delete_nodes`` for the order. Raises ClusterError."""
    names = [plan.node_values(index)["name"] for index in indices]
    pods = [plan.pod_values(index, slot) for index in indices for slot in range(plan.pool.pods_per_node)]
    await store.delete_all([NODE.key(None, name) for name in names])
    await store.delete_all([POD.key(pod["namespace"], pod["name"]) for pod in pods])
    await store.delete_all([LEASE.key(_LEASE_NAMESPACE, name) for name in names])
