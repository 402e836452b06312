"""Families of everything that is neither node nor pod: namespaces, Services, ConfigMaps, Secrets, events, Widgets."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from scaletest.fleet.addresses import backend_address
from scaletest.fleet.family import (
    CONFIG_MAP,
    ENDPOINT_SLICE,
    EVENT,
    NAMESPACE,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    WIDGET,
    Family,
    Kind,
    Part,
    Values,
)
from scaletest.fleet.fields import FieldMap, Json
from scaletest.fleet.names import namespace_name, new_hex, new_uid, object_name
from scaletest.fleet.nodes import PoolPlan
from scaletest.profile.schema import ObjectsSpec, ServicesSpec

__all__ = ["WIDGET_CRD", "Backends", "namespace_family", "object_families", "service_family"]

_PORT: Final = 9100

_METADATA_FIELDS: FieldMap = {
    ("metadata", "name"): "name",
    ("metadata", "namespace"): "namespace",
    ("metadata", "uid"): "uid",
}

WIDGET_CRD: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.scaletest.dev"},
    "spec": {
        "group": "scaletest.dev",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"payload": {"type": "string"}}},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
                "subresources": {"status": {}},
            }
        ],
    },
}


def namespace_family(count: int, rng: random.Random) -> Family:
    """Namespaces with what the controller-manager makes in each: a ServiceAccount and the CA's ConfigMap."""

    def values(number: int) -> Values:
        return {
            "name": namespace_name(number),
            "uid": new_uid(rng),
            "account_uid": new_uid(rng),
            "root_ca_uid": new_uid(rng),
        }

    def manifest(values: Values, _padding: str) -> Json:
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": values["name"]}}

    namespace = Part(
        NAMESPACE,
        "name",
        None,
        {
            ("metadata", "name"): "name",
            ("metadata", "labels", "kubernetes.io/metadata.name"): "name",
            ("metadata", "uid"): "uid",
        },
        manifest,
    )
    account = Part(
        SERVICE_ACCOUNT, "default", "name", {("metadata", "namespace"): "name", ("metadata", "uid"): "account_uid"}
    )
    root_ca = Part(
        CONFIG_MAP, "kube-root-ca.crt", "name", {("metadata", "namespace"): "name", ("metadata", "uid"): "root_ca_uid"}
    )
    return Family("namespaces", count, (namespace, account, root_ca), values)


@dataclass(frozen=True, slots=True)
class Backends:
    """The pods that Services and events refer to: those of one pool, or made-up ones where there are too few."""

    plan: PoolPlan | None
    namespaces: int

    def _pods_in(self, namespace: int) -> int:
        if self.plan is None:
            return 0
        pods = self.plan.pool.nodes * self.plan.pool.pods_per_node
        return len(range(namespace, pods, self.namespaces))

    def has(self, count: int) -> bool:
        """Whether every namespace has at least ``count`` pods."""
        return self._pods_in(self.namespaces - 1) >= max(count, 1)

    def pod(self, namespace: int, number: int) -> dict[str, str]:
        """Return the values of a pod of a namespace; ``number`` may be larger than their number."""
        assert self.plan is not None
        place = namespace + self.namespaces * (number % self._pods_in(namespace))
        return self.plan.pod_values(*divmod(place, self.plan.pool.pods_per_node))


def service_family(spec: ServicesSpec, backends: Backends, rng: random.Random) -> Family:
    """Headless Services without selector, each with one EndpointSlice as the endpoint controller would write it."""
    of_pods = backends.has(spec.endpoints)

    def values(number: int) -> Values:
        namespace = number % backends.namespaces
        name = object_name("service", number)
        found = {
            "name": name,
            "namespace": namespace_name(namespace),
            "uid": new_uid(rng),
            "slice_name": f"{name}-{new_hex(rng, 5)}",
            "slice_uid": new_uid(rng),
        }
        first = number // backends.namespaces * spec.endpoints
        for index in range(spec.endpoints):
            if of_pods:
                pod = backends.pod(namespace, first + index)
                found |= {
                    f"address_{index}": pod["pod_address"],
                    f"node_{index}": pod["node"],
                    f"pod_{index}": pod["name"],
                }
            else:
                found[f"address_{index}"] = backend_address(number * spec.endpoints + index)
        return found

    service = Part(SERVICE, "name", "namespace", _METADATA_FIELDS, _service_manifest)
    return Family(
        "services",
        spec.count,
        (service, _endpoint_slice_part(spec.endpoints, of_pods=of_pods)),
        values,
    )


def _service_manifest(values: Values, _padding: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": values["name"], "namespace": values["namespace"], "labels": {"app": "scaletest"}},
        "spec": {"clusterIP": "None", "ports": [{"name": "metrics", "port": _PORT, "protocol": "TCP"}]},
    }


def _endpoint_slice_part(endpoints: int, *, of_pods: bool) -> Part:
    fields: dict[tuple[str | int, ...], str] = {
        ("metadata", "name"): "slice_name",
        ("metadata", "namespace"): "namespace",
        ("metadata", "uid"): "slice_uid",
        ("metadata", "labels", "kubernetes.io/service-name"): "name",
        ("metadata", "ownerReferences", 0, "name"): "name",
        ("metadata", "ownerReferences", 0, "uid"): "uid",
    }
    for index in range(endpoints):
        fields["endpoints", index, "addresses", 0] = f"address_{index}"
        if of_pods:
            fields["endpoints", index, "nodeName"] = f"node_{index}"
            fields["endpoints", index, "targetRef", "name"] = f"pod_{index}"
            fields["endpoints", index, "targetRef", "namespace"] = "namespace"

    def endpoint(values: Values, index: int) -> Json:
        found: Json = {
            "addresses": [values[f"address_{index}"]],
            "conditions": {"ready": True, "serving": True, "terminating": False},
        }
        if of_pods:
            found["nodeName"] = values[f"node_{index}"]
            found["targetRef"] = {"kind": "Pod", "name": values[f"pod_{index}"], "namespace": values["namespace"]}
        return found

    def manifest(values: Values, _padding: str) -> Json:
        owner = {
            "apiVersion": "v1",
            "kind": "Service",
            "name": values["name"],
            "uid": values["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": values["slice_name"],
                "namespace": values["namespace"],
                "labels": {
                    "endpointslice.kubernetes.io/managed-by": "scaletest",
                    "kubernetes.io/service-name": values["name"],
                    "service.kubernetes.io/headless": "",
                },
                "ownerReferences": [owner],
            },
            "addressType": "IPv4",
            "endpoints": [endpoint(values, index) for index in range(endpoints)],
            "ports": [{"name": "metrics", "port": _PORT, "protocol": "TCP"}],
        }

    return Part(ENDPOINT_SLICE, "slice_name", "namespace", fields, manifest)


def object_families(
    specs: dict[str, ObjectsSpec | None], backends: Backends, rng: random.Random, timestamp: str
) -> list[Family]:
    """Families of ``configMaps``, ``secrets``, ``events`` and ``customResources``, as far as they are asked for."""
    makers: dict[str, Callable[[ObjectsSpec], Family]] = {
        "configMaps": lambda spec: _plain_family(
            "configMaps", CONFIG_MAP, spec, namespaces=backends.namespaces, rng=rng
        ),
        "secrets": lambda spec: _plain_family("secrets", SECRET, spec, namespaces=backends.namespaces, rng=rng),
        "events": lambda spec: _event_family(spec, backends, rng, timestamp),
        "customResources": lambda spec: _plain_family(
            "customResources", WIDGET, spec, namespaces=backends.namespaces, rng=rng
        ),
    }
    return [makers[key](spec) for key, spec in specs.items() if spec is not None]


def _plain_family(key: str, kind: Kind, spec: ObjectsSpec, *, namespaces: int, rng: random.Random) -> Family:
    def values(number: int) -> Values:
        return {
            "name": object_name(kind.name.lower(), number),
            "namespace": namespace_name(number % namespaces),
            "uid": new_uid(rng),
        }

    def manifest(values: Values, padding: str) -> Json:
        metadata = {"name": values["name"], "namespace": values["namespace"], "labels": {"app": "scaletest"}}
        if kind is WIDGET:
            return {
                "apiVersion": "scaletest.dev/v1",
                "kind": "Widget",
                "metadata": metadata,
                "spec": {"payload": padding},
            }
        # A Secret's values are base64: groups of four characters.
        payload = padding[: len(padding) // 4 * 4] if kind is SECRET else padding
        body: Json = {"apiVersion": "v1", "kind": kind.name, "metadata": metadata, "data": {"payload": payload}}
        return {**body, "type": "Opaque"} if kind is SECRET else body

    part = Part(kind, "name", "namespace", _METADATA_FIELDS, manifest)
    return Family(key, spec.count, (part,), values, size_bytes=spec.size_bytes, size_key=f"fleet.{key}: size")


_EVENT_FIELDS: FieldMap = {
    **_METADATA_FIELDS,
    ("involvedObject", "name"): "pod",
    ("involvedObject", "namespace"): "namespace",
    ("involvedObject", "uid"): "pod_uid",
    ("source", "host"): "node",
    ("reportingInstance",): "node",
}


def _event_family(spec: ObjectsSpec, backends: Backends, rng: random.Random, timestamp: str) -> Family:
    of_pods = backends.has(1)

    def values(number: int) -> Values:
        namespace = number % backends.namespaces
        if of_pods:
            about = backends.pod(namespace, number // backends.namespaces)
        else:
            about = {"name": object_name("pod", number), "node": object_name("node", number)}
        return {
            "name": f"{about['name']}.{new_hex(rng, 16)}",
            "namespace": namespace_name(namespace),
            "uid": new_uid(rng),
            "pod": about["name"],
            "pod_uid": new_uid(rng),
            "node": about["node"],
        }

    def manifest(values: Values, padding: str) -> Json:
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": values["name"], "namespace": values["namespace"]},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": values["pod"],
                "namespace": values["namespace"],
                "uid": values["pod_uid"],
            },
            "reason": "Started",
            "message": f"Started container main {padding}",
            "type": "Normal",
            "count": 1,
            "firstTimestamp": timestamp,
            "lastTimestamp": timestamp,
            "source": {"component": "kubelet", "host": values["node"]},
            "reportingComponent": "kubelet",
            "reportingInstance": values["node"],
        }

    part = Part(EVENT, "name", "namespace", _EVENT_FIELDS, manifest)
    return Family(
        "events", spec.count, (part,), values, size_bytes=spec.size_bytes, size_key="fleet.events: size", expires=True
    )
