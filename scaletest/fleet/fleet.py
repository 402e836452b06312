"""Filling a cluster with the fleet that a profile asks for, and growing and shrinking it during a run."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from scaletest.core.access import ApiAccess
from scaletest.core.errors import ClusterError, UsageError
from scaletest.core.kubernetesapi import ApiError, KubernetesApi
from scaletest.fleet.addresses import stride_for
from scaletest.fleet.concurrency import gather_all
from scaletest.fleet.etcdstore import EtcdStore
from scaletest.fleet.family import Family, Values
from scaletest.fleet.filling import CONNECTIONS, check_copy, create_family, stamp_family
from scaletest.fleet.names import node_name
from scaletest.fleet.nodes import PoolPlan, node_family, pod_family
from scaletest.fleet.objects import WIDGET_CRD, Backends, namespace_family, object_families, service_family
from scaletest.fleet.ready import wait_pods_running
from scaletest.fleet.sample import Sample, make_sample, size_note
from scaletest.fleet.shrinking import ShrinkResult, delete_nodes, erase_nodes
from scaletest.profile.schema import FleetSpec

__all__ = ["FleetState", "FleetTarget", "Progress", "families_of", "pool_plans", "seed_fleet"]

Progress = Callable[[str, int, int], None]
"""Called with what is being made (``pods of pool gpu``), how many are there, and how many there will be."""

_CRD_COLLECTION: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CRD_TIMEOUT_S: Final = 30.0
_CACHED_TIMEOUT_S: Final = 120.0
_API_RUNNING_TIMEOUT_S: Final = 1800.0
"""KWOK plays pods that are created through the API at 50 to 200 a second."""


@dataclass(frozen=True, slots=True)
class FleetTarget:
    """The cluster to fill: an API server with ``system:masters`` rights, and the etcd behind it.

    ``etcd_endpoint`` is ``http://HOST:PORT``; None where etcd cannot be reached, which leaves ``via: api``.
    """

    access: ApiAccess
    etcd_endpoint: str | None
    paused: Callable[[], AbstractAsyncContextManager[object]] = nullcontext
    """Keeps the controllers (and KWOK) still while a fleet is stamped. With them at work, the API server's watch cache
    took 300 nodes a second in, since every event waits for the slowest watcher; without, 2,200 (2 cores)."""


@dataclass(slots=True)
class FleetState:
    """A fleet that stands in a cluster."""

    spec: FleetSpec
    target: FleetTarget
    rng: random.Random
    pools: dict[str, list[str]] = field(default_factory=dict)
    """Node names by pool, in the order of their making."""
    counts: Counter[str] = field(default_factory=Counter)
    """Objects made by kind, those that the cluster made with them included."""
    seconds: float = 0.0
    """How long the filling took."""
    notes: list[str] = field(default_factory=list)
    """Where the fleet is not quite what was asked: sizes that are too small for such an object."""
    paddings: dict[str, str] = field(default_factory=dict)
    """Padding by family, so that later objects have the size of the first."""
    numbered: dict[str, int] = field(default_factory=dict)
    """How many numbers each pool has given to nodes."""

    @property
    def nodes(self) -> int:
        """Nodes of all pools."""
        return sum(len(names) for names in self.pools.values())

    async def grow(self, pool: str, by: int, on_progress: Progress) -> list[str]:
        """Add nodes with their pods to a pool and return the new nodes' names. Raises ClusterError, UsageError."""
        plan = self._plan(pool)
        names = self.pools.setdefault(pool, [])
        # Numbers are not used again: KWOK remembers which addresses the pods of a node of that name had.
        first = max([self.numbered.get(pool, 0), *(_index_of(name) + 1 for name in names)])
        new = [node_name(pool, index) for index in range(first, first + by)]
        if new:
            size = self.nodes + by
            stages = [[node_family(plan, first, by, self.rng, cluster_nodes=size)], _pods(plan, first, by, self.rng)]
            await _fill(self, stages, on_progress)
            names.extend(new)
            self.numbered[pool] = first + by
        return new

    async def shrink(
        self, pool: str, by: int, on_progress: Progress, deleted: Counter[str] | None = None
    ) -> ShrinkResult:
        """Delete the newest nodes of a pool with their pods and leases, as far as the API answers.

        What was deleted is added to ``deleted``, by kind, also when this is cancelled.
        Raises UsageError for a pool that is unknown or has fewer nodes.
        """
        plan, names, doomed = self._plan(pool), self.pools.get(pool, []), self._newest(pool, by)
        title = f"nodes of pool {pool} deleted"
        count = _counter(title, by, on_progress)
        result = ShrinkResult(asked=by)
        try:
            async with KubernetesApi(self.target.access, connections=CONNECTIONS) as api:
                await delete_nodes(api, plan, [_index_of(name) for name in reversed(doomed)], count, result)
        finally:
            gone = set(result.nodes)
            self.pools[pool] = [name for name in names if name not in gone]
            by_kind = {"Node": len(gone), "Pod": result.pods, "Lease": result.leases}
            self.counts.subtract(by_kind)
            if deleted is not None:
                deleted.update(by_kind)
        return result

    @property
    def is_stamped(self) -> bool:
        """Whether nodes come and go by etcd."""
        return self.spec.via != "api" and self.target.etcd_endpoint is not None

    async def erase(self, pool: str, by: int) -> list[str]:
        """Take the newest nodes of a pool away from etcd, with their pods and leases, and return their names.

        That is how a stamped fleet grew, and it asks nothing of an API server that may be overloaded.
        Raises ClusterError; UsageError for a pool that is unknown or has fewer nodes.
        """
        plan, doomed = self._plan(pool), self._newest(pool, by)
        assert self.target.etcd_endpoint is not None, "see is_stamped"
        async with EtcdStore(self.target.etcd_endpoint) as store:
            await erase_nodes(store, plan, [_index_of(name) for name in doomed])
        self.pools[pool] = self.pools.get(pool, [])[: -len(doomed) or None]
        self.counts.subtract({"Node": by, "Pod": by * plan.pool.pods_per_node, "Lease": by})
        return doomed

    def _newest(self, pool: str, by: int) -> list[str]:
        names = self.pools.get(pool, [])
        if by > len(names):
            msg = f"pool {pool} has {len(names)} nodes; {by} cannot be taken away"
            raise UsageError(msg)
        return names[len(names) - by :]

    def _plan(self, name: str) -> PoolPlan:
        for plan in pool_plans(self.spec):
            if plan.pool.name == name:
                return plan
        known = ", ".join(pool.name for pool in self.spec.pools) or "none"
        msg = f"the fleet has no pool {name!r}; it has {known}"
        raise UsageError(msg)


async def seed_fleet(spec: FleetSpec, target: FleetTarget, *, rng: random.Random, on_progress: Progress) -> FleetState:
    """Fill a cluster and return what stands there: nodes Ready, pods Running.

    All random parts (uids, padding) come from ``rng``. Raises ClusterError when the cluster refuses, does not
    answer, or already holds a fleet; UsageError when the profile asks for something that cannot be.
    """
    state = FleetState(spec, target, rng, {pool.name: [] for pool in spec.pools})
    started_s = time.monotonic()
    plans = [plan for plan in pool_plans(spec) if plan.pool.nodes]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    await _fill(state, families_of(spec, rng, now), on_progress)
    for plan in plans:
        state.pools[plan.pool.name] = [node_name(plan.pool.name, index) for index in range(plan.pool.nodes)]
        state.numbered[plan.pool.name] = plan.pool.nodes
    state.seconds = time.monotonic() - started_s
    return state


def families_of(spec: FleetSpec, rng: random.Random, timestamp: str) -> list[list[Family]]:
    """Return the families of a fleet in stages: the samples of a stage need those of the stages before it."""
    plans = [plan for plan in pool_plans(spec) if plan.pool.nodes]
    nodes = [node_family(plan, 0, plan.pool.nodes, rng, cluster_nodes=spec.node_count) for plan in plans]
    standing = [family for plan in plans for family in _pods(plan, 0, plan.pool.nodes, rng)]
    with_pods = [plan for plan in plans if plan.pool.pods_per_node]
    backends = Backends(with_pods[0] if with_pods else None, spec.namespaces)
    if spec.services is not None:
        standing.append(service_family(spec.services, backends, rng))
    objects = {
        "configMaps": spec.config_maps,
        "secrets": spec.secrets,
        "events": spec.events,
        "customResources": spec.custom_resources,
    }
    standing.extend(object_families(objects, backends, rng, timestamp))
    return [[namespace_family(spec.namespaces, rng)], nodes, [family for family in standing if family.count]]


def _pods(plan: PoolPlan, first: int, nodes: int, rng: random.Random) -> list[Family]:
    return [pod_family(plan, first, nodes, rng)] if plan.pool.pods_per_node else []


def pool_plans(spec: FleetSpec) -> list[PoolPlan]:
    """Return the pools of a fleet with their places in it."""
    stride = stride_for(max((pool.pods_per_node for pool in spec.pools), default=0))
    return [
        PoolPlan(pool, position, len(spec.pools), spec.namespaces, stride) for position, pool in enumerate(spec.pools)
    ]


async def _fill(state: FleetState, stages: Sequence[Sequence[Family]], on_progress: Progress) -> None:
    async with _opened(state) as (api, store):
        if any(family.title == "customResources" for family in stages[-1]):
            await _create_crd(api)
        samples: list[Sample] = []
        for stage in stages:
            samples.extend(await _samples(state, api, stage))
        if store is not None:
            # A fleet that grows does so in a run: its controllers stay at work, as they are what is measured.
            async with nullcontext() if state.nodes else state.target.paused():
                await _stamp(api, store, samples, on_progress)
        else:
            for sample in samples:
                await create_family(api, sample, _counter_of(sample.family, on_progress))
            await wait_pods_running(api, _API_RUNNING_TIMEOUT_S)
        for sample in samples:
            state.counts.update({part.kind.name: sample.family.count for part in sample.family.parts})


async def _stamp(api: KubernetesApi, store: EtcdStore, samples: Sequence[Sample], on_progress: Progress) -> None:
    checks: list[tuple[Sample, Values]] = []
    for sample in samples:
        values = await stamp_family(store, sample, _counter_of(sample.family, on_progress))
        checks.extend((sample, found) for found in values)
    await _wait_cached(api, {part.kind.resource.path() for sample in samples for part in sample.family.parts})
    await gather_all([check_copy(store, api, sample, values) for sample, values in checks])


async def _wait_cached(api: KubernetesApi, collections: Iterable[str]) -> None:
    """Wait until the API server's watch caches hold all that has been written up to now. Raises ClusterError."""
    revision = (await api.get("/api/v1/namespaces?limit=1"))["metadata"]["resourceVersion"]
    query = f"?limit=1&resourceVersion={revision}&resourceVersionMatch=NotOlderThan"
    deadline_s = time.monotonic() + _CACHED_TIMEOUT_S
    for collection in sorted(collections):
        # A cache that is not that new after 3 s answers 504, "Too large resource version".
        while (answer := await api.request("GET", collection + query)).status == 504 and time.monotonic() < deadline_s:
            pass
        if answer.status != 200:
            msg = f"the API server has not read the fleet back: GET {collection}: {answer.status} {answer.message}"
            raise ClusterError(msg, hint="see the log of kube-apiserver")


@asynccontextmanager
async def _opened(state: FleetState) -> AsyncIterator[tuple[KubernetesApi, EtcdStore | None]]:
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(KubernetesApi(state.target.access, connections=CONNECTIONS))
        if state.spec.via == "api":
            yield api, None
            return
        if state.target.etcd_endpoint is None:
            msg = "fleet.via is etcd, but this cluster's etcd cannot be reached"
            raise UsageError(msg, hint="set fleet.via: api")
        yield api, await stack.enter_async_context(EtcdStore(state.target.etcd_endpoint))


async def _samples(state: FleetState, api: KubernetesApi, stage: Sequence[Family]) -> list[Sample]:
    """Make the samples of a stage at once, and remember their padding: a pool that grows has measured already."""
    samples = await gather_all(
        [make_sample(api, family, state.rng, padding=state.paddings.get(family.title)) for family in stage]
    )
    for sample in samples:
        if sample.family.size_bytes and sample.family.title not in state.paddings:
            state.paddings[sample.family.title] = sample.padding
            state.notes.extend(note for note in [size_note(sample)] if note)
    return samples


async def _create_crd(api: KubernetesApi) -> None:
    name = WIDGET_CRD["metadata"]["name"]
    try:
        await api.create(_CRD_COLLECTION, WIDGET_CRD)
    except ApiError as error:
        if error.status != 409:
            raise
    deadline_s = time.monotonic() + _CRD_TIMEOUT_S
    while time.monotonic() < deadline_s:
        conditions = (await api.get(f"{_CRD_COLLECTION}/{name}")).get("status", {}).get("conditions") or []
        if any(found["type"] == "Established" and found["status"] == "True" for found in conditions):
            return
        await asyncio.sleep(0.05)
    msg = f"the CRD {name} was not established within {_CRD_TIMEOUT_S:g} s"
    raise ClusterError(msg)


def _counter(title: str, total: int, on_progress: Progress, *, done: int = 0) -> Callable[[int], None]:
    on_progress(title, done, total)

    def count(more: int) -> None:
        nonlocal done
        done += more
        on_progress(title, done, total)

    return count


def _counter_of(family: Family, on_progress: Progress) -> Callable[[int], None]:
    return _counter(family.title, family.count, on_progress, done=1)


def _index_of(name: str) -> int:
    return int(name.rsplit("-", 1)[1])
