"""A fleet in real control planes: one stamped into etcd, one of the same size created through the API."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import random
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from scaletest.controlplane.cluster import KwokControlPlane, start_cluster
from scaletest.controlplane.identities import MASTERS
from scaletest.core.errors import ClusterError, UsageError
from scaletest.core.kubernetesapi import KubernetesApi
from scaletest.fleet import FleetState, FleetTarget, seed_fleet, wait_nodes_ready
from scaletest.fleet.fields import Json, differences
from scaletest.profile.schema import ControlPlaneSpec, FleetSpec
from tests.e2e.conftest import RequestMaker

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

SPEC = {
    "pools": [
        {
            "name": "gpu",
            "nodes": 30,
            "podsPerNode": 3,
            "podSize": "4KB",
            "labels": {"topology.kubernetes.io/zone": "a"},
            "taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoExecute"}],
            "resources": {"nvidia.com/gpu": 8},
        },
        {"name": "cpu", "nodes": 10, "podsPerNode": 2, "podSize": "3.5KB"},
    ],
    "namespaces": 3,
    "services": {"count": 12, "endpoints": 7},
    "configMaps": {"count": 12, "size": "20KB"},
    "secrets": {"count": 12, "size": "2KB"},
    "events": {"count": 12, "size": "1.2KB"},
    "customResources": {"count": 12, "size": "5KB"},
}
NODES, PODS = 40, 110

OBJECTS = {
    "Namespace": "/api/v1/namespaces/fleet-0001",
    "ServiceAccount": "/api/v1/namespaces/fleet-0001/serviceaccounts/default",
    "root CA": "/api/v1/namespaces/fleet-0001/configmaps/kube-root-ca.crt",
    "Node": "/api/v1/nodes/gpu-00007",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/gpu-00007",
    "Pod": "/api/v1/namespaces/fleet-0001/pods/gpu-00007-001",
    "Service": "/api/v1/namespaces/fleet-0001/services/service-000004",
    "ConfigMap": "/api/v1/namespaces/fleet-0001/configmaps/configmap-000004",
    "Secret": "/api/v1/namespaces/fleet-0001/secrets/secret-000004",
    "Widget": "/apis/scaletest.dev/v1/namespaces/fleet-0001/widgets/widget-000004",
}
LISTED = {
    "EndpointSlice": "/apis/discovery.k8s.io/v1/namespaces/fleet-0001/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dservice-000004",
    "Event": "/api/v1/namespaces/fleet-0001/events?fieldSelector=reason%3DStarted",
}
"""Objects with a random part in their names."""

SIZES = {"Pod": 4_000, "ConfigMap": 20_000, "Secret": 2_000, "Widget": 5_000}


@dataclasses.dataclass
class Filled:
    cluster: KwokControlPlane
    state: FleetState

    def get(self, path: str) -> Json:
        return self.run_get([path])[0]

    def run_get(self, paths: list[str]) -> list[Json]:
        async def fetch() -> list[Json]:
            async with KubernetesApi(self.state.target.access) as api:
                return [await api.get(path) for path in paths]

        return asyncio.run(fetch())


def fill(request_named: RequestMaker, name: str, via: str) -> Iterator[Filled]:
    request = dataclasses.replace(request_named(name), spec=ControlPlaneSpec.model_validate({"heartbeatFactor": 1}))
    cluster = asyncio.run(start_cluster(request))
    try:
        target = FleetTarget(asyncio.run(cluster.access(MASTERS)), cluster.etcd_endpoint, cluster.controllers_paused)
        spec = FleetSpec.model_validate({**SPEC, "via": via})
        seeding = seed_fleet(spec, target, rng=random.Random(7), on_progress=lambda *_: None)
        yield Filled(cluster, asyncio.run(seeding))
    finally:
        asyncio.run(cluster.stop())


@pytest.fixture(scope="module")
def stamped(request_named: RequestMaker) -> Iterator[Filled]:
    yield from fill(request_named, "fleet-etcd", "etcd")


@pytest.fixture(scope="module")
def created(request_named: RequestMaker) -> Iterator[Filled]:
    yield from fill(request_named, "fleet-api", "api")


def comparable(obj: Json) -> Json:
    """Leave out what may differ: uids, times, random names and padding, and what belongs to a cluster."""
    if obj["kind"] == "Node":
        # A kubelet posts its status, KWOK patches the sample's: the fields have other managers.
        obj["metadata"].pop("managedFields")
        obj["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] = "PORT"
    obj.get("data", {}).pop("ca.crt", None)
    obj["metadata"].pop("resourceVersion")
    text = json.dumps(obj)
    for pattern, word in (
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"\b[0-9a-f]{32}\b", "MACHINE"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        # KWOK hands out a node's pod addresses in the order of playing.
        (r"\b(10\.1\d\d\.1\d\d)\.\d{3}\b", r"\1.POD"),
        (r"(service-\d{6})-[0-9a-f]{5}\b", r"\1-RANDOM"),
        (r"(-\d{3})\.[0-9a-f]{16}\b", r"\1.RANDOM"),
    ):
        text = re.sub(pattern, word, text)
    text = re.sub(r"[A-Za-z0-9]{100,}", lambda found: f"PADDING of {len(found[0])}", text)
    found: Json = json.loads(text)
    if "managedFields" in found["metadata"]:
        # Sorted by time, which is left out.
        found["metadata"]["managedFields"].sort(key=json.dumps)
    return found


@pytest.mark.parametrize("kind", [*OBJECTS, *LISTED])
def test_a_stamped_object_equals_one_created_through_the_api_field_by_field(
    kind: str, stamped: Filled, created: Filled
) -> None:
    pair: list[Json] = []
    for filled in (created, stamped):
        obj = filled.get(OBJECTS.get(kind) or LISTED[kind])
        if "items" in obj:
            obj = {"kind": kind, **min(obj["items"], key=lambda item: str(item["metadata"]["name"]))}
        pair.append(comparable(obj))

    assert [] == list(differences(pair[0], pair[1]))


def test_every_kind_is_there_as_often_as_was_asked(stamped: Filled, created: Filled) -> None:
    expected = {
        "Namespace": 3,
        "ServiceAccount": 3,
        "ConfigMap": 15,
        "Node": NODES,
        "Lease": NODES,
        "Pod": PODS,
        "Service": 12,
        "EndpointSlice": 12,
        "Secret": 12,
        "Event": 12,
        "Widget": 12,
    }
    for filled in (stamped, created):
        assert expected == dict(filled.state.counts)
        pods, nodes = filled.run_get(["/api/v1/pods", "/api/v1/nodes"])
        assert {"Running"} == {pod["status"]["phase"] for pod in pods["items"]}
        assert (PODS, NODES) == (len(pods["items"]), len(nodes["items"]))
        # Those of pods made through the API are KWOK's, which now and then gives one twice on a busy machine.
        if filled is stamped:
            assert PODS == len({pod["status"]["podIP"] for pod in pods["items"]})
        assert PODS + NODES == len({obj["metadata"]["uid"] for obj in pods["items"] + nodes["items"]})
        assert [] == filled.state.notes


@pytest.mark.parametrize("kind", SIZES)
def test_objects_have_the_size_that_was_asked_to_three_percent(kind: str, stamped: Filled, created: Filled) -> None:
    async def size_bytes(filled: Filled) -> int:
        async with KubernetesApi(filled.state.target.access) as api:
            return len((await api.good("GET", OBJECTS[kind])).content)

    for filled in (stamped, created):
        assert SIZES[kind] == pytest.approx(asyncio.run(size_bytes(filled)), rel=0.03)


def test_stamped_events_do_not_expire(stamped: Filled) -> None:
    async def leases_of_events() -> set[int]:
        import aetcd.rpc as wire  # noqa: PLC0415

        from scaletest.fleet.etcdstore import EtcdStore  # noqa: PLC0415

        async with EtcdStore(stamped.cluster.etcd_endpoint) as store:
            request = wire.RangeRequest(key=b"/registry/events/fleet-", range_end=b"/registry/events/fleet.")
            answer: Any = await store._call(lambda stub: stub.Range(request))
            assert 12 == len(answer.kvs)
            return {kv.lease for kv in answer.kvs}

    assert {0} == asyncio.run(leases_of_events())


def test_kwok_renews_every_stamped_lease_and_no_node_leaves_ready(stamped: Filled) -> None:
    leases_path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    asyncio.run(wait_nodes_ready(stamped.state.target.access, stamped.state.nodes, 60))
    seen: dict[str, set[str]] = {}
    silent: list[str] = []
    deadline_s = time.monotonic() + 90
    while time.monotonic() < deadline_s and (len(seen) < NODES or min(map(len, seen.values())) < 3):
        leases, nodes = stamped.run_get([leases_path, "/api/v1/nodes"])
        for lease in leases["items"]:
            seen.setdefault(lease["metadata"]["name"], set()).add(lease["spec"]["renewTime"])
        silent += [
            node["metadata"]["name"]
            for node in nodes["items"]
            for condition in node["status"]["conditions"]
            if condition["type"] == "Ready" and condition["status"] != "True"
        ]
        time.sleep(2)

    assert [] == silent
    assert not [name for name, times in seen.items() if len(times) < 3]


def test_a_cluster_that_holds_a_fleet_refuses_a_second_one_and_keeps_the_first(stamped: Filled) -> None:
    state = stamped.state

    with pytest.raises(ClusterError, match="already has /api/v1/namespaces/fleet-0000"):
        asyncio.run(seed_fleet(state.spec, state.target, rng=random.Random(8), on_progress=lambda *_: None))

    assert "Active" == stamped.get("/api/v1/namespaces/fleet-0000")["status"]["phase"]


@pytest.mark.parametrize("via", ["stamped", "created"])
def test_a_pool_grows_and_shrinks_by_its_newest_nodes(via: str, request: pytest.FixtureRequest) -> None:
    filled: Filled = request.getfixturevalue(via)
    state = filled.state

    async def grow_and_shrink() -> None:
        before = list(state.pools["cpu"])
        new = await state.grow("cpu", 3, lambda *_: None)
        assert ["cpu-00010", "cpu-00011", "cpu-00012"] == new
        await wait_nodes_ready(state.target.access, NODES + 3, 60)

        result = await state.shrink("cpu", 4, lambda *_: None)

        assert result.complete, result
        assert ["cpu-00009", *new] == sorted(result.nodes)
        assert before[:-1] == state.pools["cpu"]
        assert 8 == result.pods
        assert ["cpu-00013"] == await state.grow("cpu", 1, lambda *_: None)
        await wait_nodes_ready(state.target.access, NODES, 60)

    asyncio.run(grow_and_shrink())

    pods = filled.get("/api/v1/pods")["items"]
    nodes = {node["metadata"]["name"] for node in filled.get("/api/v1/nodes")["items"]}
    assert {pod["spec"]["nodeName"] for pod in pods} == nodes
    assert PODS == len(pods)
    assert {"Node": NODES, "Pod": PODS} == {kind: state.counts[kind] for kind in ("Node", "Pod")}


def test_nodes_are_erased_from_etcd_without_the_api_server(stamped: Filled) -> None:
    state = stamped.state

    async def grow_and_erase() -> None:
        new = await state.grow("cpu", 3, lambda *_: None)
        await wait_nodes_ready(state.target.access, NODES + 3, 60)
        far = dataclasses.replace(state.target.access, servers=("https://127.0.0.1:1",))
        cut_off = dataclasses.replace(state, target=FleetTarget(far, state.target.etcd_endpoint))

        assert new == await cut_off.erase("cpu", 3)
        await wait_nodes_ready(state.target.access, NODES, 60)

    asyncio.run(grow_and_erase())

    pods = stamped.get("/api/v1/pods")["items"]
    nodes = {node["metadata"]["name"] for node in stamped.get("/api/v1/nodes")["items"]}
    assert {pod["spec"]["nodeName"] for pod in pods} == nodes
    assert (NODES, PODS) == (len(nodes), len(pods))
    assert {"Node": NODES, "Pod": PODS} == {kind: state.counts[kind] for kind in ("Node", "Pod")}


def test_a_pool_that_does_not_exist_or_is_too_small_is_a_usage_error(stamped: Filled) -> None:
    with pytest.raises(UsageError, match="no pool 'tpu'; it has gpu, cpu"):
        asyncio.run(stamped.state.grow("tpu", 1, lambda *_: None))
    with pytest.raises(UsageError, match="pool gpu has 30 nodes"):
        asyncio.run(stamped.state.shrink("gpu", 31, lambda *_: None))


def test_shrinking_against_an_api_server_that_is_gone_says_what_was_not_done(stamped: Filled) -> None:
    state = stamped.state
    access = dataclasses.replace(state.target.access, servers=("https://127.0.0.1:1",))
    cut_off = dataclasses.replace(
        state, target=FleetTarget(access, None), pools=dict(state.pools), counts=state.counts.copy()
    )

    result = asyncio.run(cut_off.shrink("gpu", 5, lambda *_: None))

    assert ([], 0, 0, {"refused": 5}) == (result.nodes, result.pods, result.leases, result.errors)
    assert not result.complete
    assert state.pools["gpu"] == cut_off.pools["gpu"]
