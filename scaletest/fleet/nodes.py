"""Families of nodes, their leases, and pods."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from scaletest.fleet.addresses import node_address, pod_address, pod_cidr
from scaletest.fleet.family import LEASE, NODE, POD, Family, Part, Values
from scaletest.fleet.fields import FieldMap, Json
from scaletest.fleet.names import namespace_name, new_hex, new_uid, node_name, pod_name
from scaletest.profile.schema import PoolSpec

__all__ = ["TTL_KEY", "PoolPlan", "node_family", "pod_family", "ttl_seconds"]

TTL_KEY: Final = "node.alpha.kubernetes.io/ttl"
_PADDING_KEY: Final = "scaletest.dev/padding"
_POOL_KEY: Final = "scaletest.dev/pool"
_IMAGE: Final = "registry.k8s.io/pause:3.10"

# (largest cluster, seconds): pkg/controller/ttl/ttl_controller.go, for a cluster that grows.
_TTL_BY_SIZE: Final = ((100, 0), (500, 15), (1000, 30), (2000, 60))
_TTL_LARGEST_S: Final = 300


def ttl_seconds(nodes: int) -> int:
    """Return the ``node.alpha.kubernetes.io/ttl`` that the controller-manager wants on the nodes of a cluster."""
    return next((seconds for largest, seconds in _TTL_BY_SIZE if nodes <= largest), _TTL_LARGEST_S)


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """A pool and its place in the fleet, which gives every node and pod its name, namespace and addresses.

    Nodes of different pools take turns in the ranges of addresses, so that any pool can grow.
    """

    pool: PoolSpec
    position: int
    """Number of the pool in the fleet."""
    pools: int
    namespaces: int
    stride: int
    """See ``addresses``."""

    def node_values(self, index: int) -> dict[str, str]:
        """Return what follows from the number of a node in its pool."""
        place = index * self.pools + self.position
        return {
            "name": node_name(self.pool.name, index),
            "address": node_address(place),
            "pod_cidr": pod_cidr(place, self.stride),
            "provider_id": f"kwok://{node_name(self.pool.name, index)}",
        }

    def pod_values(self, index: int, slot: int) -> dict[str, str]:
        """Return what follows from the number of a node in its pool and the slot on it."""
        place = index * self.pools + self.position
        node = node_name(self.pool.name, index)
        return {
            "name": pod_name(node, slot),
            "namespace": namespace_name((index * self.pool.pods_per_node + slot) % self.namespaces),
            "node": node,
            "host_address": node_address(place),
            "pod_address": pod_address(place, slot, self.stride),
        }


def _taints(pool: PoolSpec) -> list[dict[str, str]]:
    return [taint.model_dump(exclude_defaults=True) for taint in pool.taints]


_NODE_FIELDS: FieldMap = {
    ("metadata", "name"): "name",
    ("metadata", "uid"): "uid",
    ("metadata", "labels", "kubernetes.io/hostname"): "name",
    ("spec", "podCIDR"): "pod_cidr",
    ("spec", "podCIDRs", 0): "pod_cidr",
    ("spec", "providerID"): "provider_id",
    ("status", "addresses", 0, "address"): "address",
    ("status", "addresses", 1, "address"): "name",
    ("status", "nodeInfo", "machineID"): "machine_id",
    ("status", "nodeInfo", "systemUUID"): "system_uuid",
    ("status", "nodeInfo", "bootID"): "boot_id",
}

_LEASE_FIELDS: FieldMap = {
    ("metadata", "name"): "name",
    ("metadata", "uid"): "lease_uid",
    ("metadata", "ownerReferences", 0, "name"): "name",
    ("metadata", "ownerReferences", 0, "uid"): "uid",
}


def node_family(plan: PoolPlan, first: int, count: int, rng: random.Random, *, cluster_nodes: int) -> Family:
    """Nodes ``first`` to ``first + count - 1`` of a pool, as KWOK has played them, with the leases it holds.

    A lease's holder is the KWOK controller, not the node as with a kubelet: KWOK lets a lease of any other
    holder run out (40 s times the heartbeat factor) before it takes over, and by then the node is NotReady.
    ``cluster_nodes`` is the size of the cluster when all are there.
    """

    def values(number: int) -> Values:
        return {
            **plan.node_values(first + number),
            "uid": new_uid(rng),
            "lease_uid": new_uid(rng),
            "machine_id": new_hex(rng, 32),
            "system_uuid": new_uid(rng),
            "boot_id": new_uid(rng),
        }

    node = Part(NODE, "name", None, _NODE_FIELDS, _node_manifest(plan.pool), _node_settled(plan.pool))
    lease = Part(LEASE, "name", "kube-node-lease", _LEASE_FIELDS, None, _lease_settled)
    return Family(
        f"nodes of pool {plan.pool.name}",
        count,
        (node, lease),
        values,
        posts_status=True,
        # Seeded with another value, every node would be patched by the controller-manager: 170 to 215 a second.
        annotations={TTL_KEY: str(ttl_seconds(cluster_nodes))},
    )


def _node_manifest(pool: PoolSpec) -> Callable[[Values, str], Json]:
    resources = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    resources |= {name: str(amount) for name, amount in pool.resources.items()}

    def manifest(values: Values, _padding: str) -> Json:
        spec: Json = {
            "podCIDR": values["pod_cidr"],
            "podCIDRs": [values["pod_cidr"]],
            "providerID": values["provider_id"],
        }
        if pool.taints:
            spec["taints"] = _taints(pool)
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": values["name"],
                "annotations": {"kwok.x-k8s.io/node": "fake"},
                "labels": {
                    # The old names too: the controller-manager adds them to every node that lacks them.
                    "beta.kubernetes.io/arch": "amd64",
                    "beta.kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                    "kubernetes.io/hostname": values["name"],
                    "kubernetes.io/os": "linux",
                    "node-role.kubernetes.io/agent": "",
                    "type": "kwok",
                    _POOL_KEY: pool.name,
                    **pool.labels,
                },
            },
            "spec": spec,
            "status": {
                "addresses": [
                    {"type": "InternalIP", "address": values["address"]},
                    {"type": "Hostname", "address": values["name"]},
                ],
                "allocatable": resources,
                "capacity": resources,
                "nodeInfo": {
                    "architecture": "amd64",
                    "operatingSystem": "linux",
                    "machineID": values["machine_id"],
                    "systemUUID": values["system_uuid"],
                    "bootID": values["boot_id"],
                },
            },
        }

    return manifest


def _node_settled(pool: PoolSpec) -> Callable[[Json], bool]:
    taints = {(taint.key, taint.effect) for taint in pool.taints}

    def settled(node: Json) -> bool:
        # Admission taints every new node as not ready; the controller-manager takes that away once it is.
        left = {(taint["key"], taint["effect"]) for taint in node["spec"].get("taints", [])}
        return is_ready(node) and left == taints and TTL_KEY in node["metadata"].get("annotations", {})

    return settled


def is_ready(obj: Json) -> bool:
    """Whether a node or pod has the condition Ready."""
    conditions: list[dict[str, Any]] = obj.get("status", {}).get("conditions") or []
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _lease_settled(lease: Json) -> bool:
    return bool(lease["metadata"].get("ownerReferences")) and bool(lease["spec"].get("renewTime"))


_POD_FIELDS: FieldMap = {
    ("metadata", "name"): "name",
    ("metadata", "namespace"): "namespace",
    ("metadata", "uid"): "uid",
    ("spec", "nodeName"): "node",
    ("status", "hostIP"): "host_address",
    ("status", "hostIPs", 0, "ip"): "host_address",
    ("status", "podIP"): "pod_address",
    ("status", "podIPs", 0, "ip"): "pod_address",
}


def pod_family(plan: PoolPlan, first: int, nodes: int, rng: random.Random) -> Family:
    """Return the pods on nodes ``first`` to ``first + nodes - 1`` of a pool, node by node, as KWOK has played them."""
    pool = plan.pool

    def values(number: int) -> Values:
        node, slot = divmod(number, pool.pods_per_node)
        return {**plan.pod_values(first + node, slot), "uid": new_uid(rng)}

    pod = Part(POD, "name", "namespace", _POD_FIELDS, _pod_manifest(pool), is_ready)
    return Family(
        f"pods of pool {pool.name}",
        nodes * pool.pods_per_node,
        (pod,),
        values,
        size_bytes=pool.pod_bytes,
        padding_annotation=_PADDING_KEY,
        size_key=f"fleet.pools ({pool.name}): podSize",
    )


def _pod_manifest(pool: PoolSpec) -> Callable[[Values, str], Json]:
    tolerations = [
        {"key": taint.key, "operator": "Exists", "effect": taint.effect} for taint in pool.taints
    ]  # fmt: skip

    def manifest(values: Values, padding: str) -> Json:
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": values["name"],
                "namespace": values["namespace"],
                "annotations": {_PADDING_KEY: padding},
                "labels": {"app": pool.name},
            },
            "spec": {
                "nodeName": values["node"],
                "containers": [{"name": "main", "image": _IMAGE}],
                "tolerations": tolerations,
                # The token volume would be 650 B and requests 160 B of every pod: pods of 3 KB could not be had.
                "automountServiceAccountToken": False,
            },
        }

    return manifest
