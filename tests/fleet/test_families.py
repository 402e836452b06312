"""The families of a fleet: counts, values, manifests. What the API server makes of them is tested end to end."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.fleet.family import NODE, POD, Family
from scaletest.fleet.fields import Json, value_at
from scaletest.fleet.fleet import families_of, pool_plans
from scaletest.fleet.nodes import node_family, pod_family, ttl_seconds
from scaletest.fleet.objects import Backends, namespace_family, service_family
from scaletest.profile.schema import FleetSpec, ServicesSpec

SPEC = {
    "pools": [
        {
            "name": "gpu",
            "nodes": 4,
            "podsPerNode": 3,
            "labels": {"zone": "a"},
            "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
            "resources": {"nvidia.com/gpu": 8, "pods": 200},
        },
        {"name": "cpu", "nodes": 2},
    ],
    "namespaces": 3,
    "services": {"count": 5, "endpoints": 2},
    "configMaps": {"count": 7},
    "secrets": {"count": 6},
    "events": {"count": 9},
    "customResources": {"count": 8},
}


def spec(**changes: object) -> FleetSpec:
    return FleetSpec.model_validate({**SPEC, **changes})


def families(of: FleetSpec) -> dict[str, Family]:
    return {
        family.title: family for stage in families_of(of, random.Random(1), "2026-01-01T00:00:00Z") for family in stage
    }


def manifest_of(family: Family, padding: str = "") -> Json:
    assert family.main.manifest is not None
    return family.main.manifest(family.values(0), padding)


def test_a_fleet_has_a_family_for_all_that_is_asked_for_and_nothing_else() -> None:
    counts = {title: family.count for title, family in families(spec()).items()}

    expected = {
        "namespaces": 3,
        "nodes of pool gpu": 4,
        "nodes of pool cpu": 2,
        "pods of pool gpu": 12,
        "services": 5,
        "configMaps": 7,
        "secrets": 6,
        "events": 9,
        "customResources": 8,
    }
    assert expected == counts


def test_empty_pools_and_counts_of_nothing_make_no_family() -> None:
    empty = spec(pools=[{"name": "gpu", "nodes": 0, "podsPerNode": 3}], configMaps={"count": 0}, services=None)

    assert {"namespaces", "secrets", "events", "customResources"} == set(families(empty))


@pytest.mark.parametrize("title", sorted(families(spec())))
def test_objects_of_a_family_differ_in_name_and_uid_and_have_values_of_one_width(title: str) -> None:
    family = families(spec())[title]
    values = [family.values(number) for number in range(family.count)]

    assert family.count == len({family.main.key(found) for found in values})
    assert family.count == len({found["uid"] for found in values})
    assert 1 == len({tuple((role, len(value)) for role, value in found.items()) for found in values})


@pytest.mark.parametrize("title", sorted(families(spec())))
def test_a_manifest_has_each_value_where_the_stamping_looks_for_it(title: str) -> None:
    family = families(spec())[title]
    values = family.values(1)
    for part in family.parts:
        manifest = part.manifest(values, "") if part.manifest else None
        for path, role in part.fields.items():
            if manifest is None or (role.endswith("uid") and path == ("metadata", "uid")) or path[0] == "status":
                continue
            if path == ("metadata", "labels", "kubernetes.io/metadata.name"):
                continue  # admission adds it
            assert values[role] == value_at(manifest, path)


def test_pods_are_spread_over_the_namespaces_and_stand_on_the_nodes_of_their_pool() -> None:
    plan = pool_plans(spec())[0]
    pods = [pod_family(plan, 0, 4, random.Random(1)).values(number) for number in range(12)]

    assert {"fleet-0000": 4, "fleet-0001": 4, "fleet-0002": 4} == {
        name: sum(pod["namespace"] == name for pod in pods) for name in {pod["namespace"] for pod in pods}
    }
    assert ["gpu-00000"] * 3 + ["gpu-00001"] * 3 == [pod["node"] for pod in pods[:6]]


def test_a_pod_is_at_the_address_of_its_node() -> None:
    plans = pool_plans(
        spec(pools=[{"name": "a", "nodes": 3, "podsPerNode": 2}, {"name": "b", "nodes": 3, "podsPerNode": 2}])
    )
    for plan in plans:
        for index in range(3):
            assert plan.node_values(index)["address"] == plan.pod_values(index, 1)["host_address"]


@given(st.integers(1, 5), st.integers(0, 50))
def test_no_two_nodes_of_a_fleet_share_an_address_however_its_pools_grow(pools: int, index: int) -> None:
    plans = pool_plans(spec(pools=[{"name": f"p{number}", "nodes": 1} for number in range(pools)]))
    found = [plan.node_values(number)["address"] for plan in plans for number in range(index + 1)]

    assert len(found) == len(set(found))


def test_a_node_has_the_labels_taints_and_resources_of_its_pool() -> None:
    family = node_family(pool_plans(spec())[0], 0, 1, random.Random(1), cluster_nodes=1)
    node = manifest_of(family)

    assert NODE is family.main.kind
    assert "a" == node["metadata"]["labels"]["zone"]
    assert [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}] == node["spec"]["taints"]
    expected = {"cpu": "32", "memory": "256Gi", "pods": "200", "nvidia.com/gpu": "8"}
    assert expected == node["status"]["capacity"] == node["status"]["allocatable"]


def test_pods_tolerate_the_taints_of_their_pool() -> None:
    family = pod_family(pool_plans(spec())[0], 0, 4, random.Random(1))
    pod = manifest_of(family)

    assert POD is family.main.kind
    assert [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}] == pod["spec"]["tolerations"]


def test_a_node_is_settled_once_ready_without_the_admission_taint_and_annotated() -> None:
    part = node_family(pool_plans(spec())[0], 0, 1, random.Random(1), cluster_nodes=1).main
    own = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    admitted = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}

    def node(status: str, taints: list[dict[str, str]], annotations: dict[str, str]) -> Json:
        return {
            "metadata": {"annotations": annotations},
            "spec": {"taints": taints},
            "status": {"conditions": [{"type": "Ready", "status": status}]},
        }

    ttl = {"node.alpha.kubernetes.io/ttl": "0"}
    assert part.settled(node("True", [own], ttl))
    assert not part.settled(node("Unknown", [own], ttl))
    assert not part.settled(node("True", [own, admitted], ttl))
    assert not part.settled(node("True", [own], {}))


def test_the_ttl_annotation_follows_the_controller_managers_table() -> None:
    sizes = {0: 0, 100: 0, 101: 15, 500: 15, 501: 30, 1_000: 30, 1_001: 60, 2_000: 60, 2_001: 300, 7_000: 300}

    assert sizes == {size: ttl_seconds(size) for size in sizes}


@given(
    nodes=st.integers(0, 20), pods_per_node=st.integers(0, 5), namespaces=st.integers(1, 6), endpoints=st.integers(0, 8)
)
def test_endpoints_of_a_service_differ_and_its_pods_are_of_its_namespace(
    nodes: int, pods_per_node: int, namespaces: int, endpoints: int
) -> None:
    pools = [{"name": "gpu", "nodes": nodes, "podsPerNode": pods_per_node}]
    plan = pool_plans(spec(pools=pools, namespaces=namespaces))[0]
    family = service_family(ServicesSpec(count=9, endpoints=endpoints), Backends(plan, namespaces), random.Random(1))
    pods = {
        (found["name"], found["namespace"], found["node"], found["pod_address"])
        for index in range(nodes)
        for slot in range(pods_per_node)
        for found in [plan.pod_values(index, slot)]
    }
    for number in range(9):
        values = family.values(number)
        assert endpoints == len({values[f"address_{index}"] for index in range(endpoints)})
        for index in range(endpoints):
            if f"pod_{index}" in values:
                roles = (f"pod_{index}", "namespace", f"node_{index}", f"address_{index}")
                assert tuple(values[role] for role in roles) in pods


def test_a_service_has_made_up_backends_where_there_are_too_few_pods() -> None:
    assert Backends(None, 3).has(1) is False
    plan = pool_plans(spec())[0]
    assert Backends(plan, 3).has(4) is True
    assert Backends(plan, 3).has(5) is False


def test_a_namespace_comes_with_what_the_controller_manager_puts_into_it() -> None:
    family = namespace_family(2, random.Random(1))

    expected = [
        "/registry/namespaces/fleet-0001",
        "/registry/serviceaccounts/fleet-0001/default",
        "/registry/configmaps/fleet-0001/kube-root-ca.crt",
    ]
    assert expected == [part.key(family.values(1)) for part in family.parts]


def test_a_secrets_payload_is_whole_base64() -> None:
    family = families(spec())["secrets"]

    assert {"payload": "abcd"} == manifest_of(family, "abcdefg")["data"]
