"""What a fleet is made of: families of objects that are copies of one sample.

A *family* is so many objects alike: the nodes of a pool, the ConfigMaps. Each of its objects has *values* by role
(``name``, ``uid``, ``node`` …), and consists of one or more *parts* that belong together and are written together: a
node and its lease, a Service and its EndpointSlice. The first object of every family is its *sample*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from scaletest.core.resources import Resource, parse_resource
from scaletest.fleet.fields import FieldMap, Json

__all__ = [
    "CONFIG_MAP",
    "ENDPOINT_SLICE",
    "EVENT",
    "LEASE",
    "NAMESPACE",
    "NODE",
    "POD",
    "SECRET",
    "SERVER_MADE",
    "SERVICE",
    "SERVICE_ACCOUNT",
    "WIDGET",
    "Family",
    "Kind",
    "Part",
    "Values",
]

Values = Mapping[str, str]
"""The values of one object by role."""

SERVER_MADE: Final = frozenset({"uid", "lease_uid", "account_uid", "root_ca_uid", "slice_uid", "pod_address"})
"""Roles whose value in an object made through the API is the choice of the API server, or of KWOK."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind, its resource, and where the API server keeps it in etcd (before the namespace, if any, and the name)."""

    name: str
    resource: Resource
    registry: str

    def key(self, namespace: str | None, name: str) -> str:
        """Return the etcd key of an object."""
        return "/".join(part for part in (self.registry, namespace, name) if part)


NODE = Kind("Node", parse_resource("nodes"), "/registry/minions")
LEASE = Kind("Lease", parse_resource("leases"), "/registry/leases")
NAMESPACE = Kind("Namespace", parse_resource("namespaces"), "/registry/namespaces")
SERVICE_ACCOUNT = Kind("ServiceAccount", parse_resource("serviceaccounts"), "/registry/serviceaccounts")
POD = Kind("Pod", parse_resource("pods"), "/registry/pods")
SERVICE = Kind("Service", parse_resource("services"), "/registry/services/specs")
ENDPOINT_SLICE = Kind("EndpointSlice", parse_resource("endpointslices"), "/registry/endpointslices")
CONFIG_MAP = Kind("ConfigMap", parse_resource("configmaps"), "/registry/configmaps")
SECRET = Kind("Secret", parse_resource("secrets"), "/registry/secrets")
EVENT = Kind("Event", parse_resource("events"), "/registry/events")
WIDGET = Kind("Widget", parse_resource("scaletest.dev/v1/widgets"), "/registry/scaletest.dev/widgets")


def _always(_: Json) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of object in a family."""

    kind: Kind
    name: str
    """Role of the name, or a name that is the same in all (``default``)."""
    namespace: str | None
    """Role of the namespace, or a fixed namespace; None for what lies in no namespace."""
    fields: FieldMap
    """What differs between the objects, apart from ``metadata.name`` and so on nothing."""
    manifest: Callable[[Values, str], Json] | None = None
    """Builds the object to create from its values and padding; None: the cluster makes it by itself."""
    settled: Callable[[Json], bool] = _always
    """Whether the cluster's controllers have done with a new object all that they will do."""

    def key(self, values: Values) -> str:
        """Return the etcd key of one object."""
        return self.kind.key(self._namespace_of(values), self.name_of(values))

    def name_of(self, values: Values) -> str:
        """Return the name of one object."""
        return values.get(self.name, self.name)

    def path(self, values: Values) -> str:
        """Return the URL path of one object."""
        return self.kind.resource.path(namespace=self._namespace_of(values), name=self.name_of(values))

    def collection(self, values: Values) -> str:
        """Return the URL path of the collection that an object is created in."""
        return self.kind.resource.path(namespace=self._namespace_of(values))

    def _namespace_of(self, values: Values) -> str | None:
        return None if self.namespace is None else values.get(self.namespace, self.namespace)


@dataclass(frozen=True, slots=True)
class Family:
    """So many objects alike; number 0 is the sample."""

    title: str
    """As progress and errors name it: ``pods of pool gpu``."""
    count: int
    parts: tuple[Part, ...]
    values: Callable[[int], Values]
    """Values of object number i; the random ones are drawn anew at every call."""
    size_bytes: int | None = None
    """JSON size that the first part must have, reached by padding."""
    padding_annotation: str | None = None
    """Annotation that holds the padding, where the size is known only once controllers have done their part.

    None where a rehearsal (``dryRun``) tells the size. KWOK deletes by name alone, so that a pod must not be
    deleted and made again under its name to find it.
    """
    size_key: str = ""
    """Key of the profile that asks for the size."""
    posts_status: bool = False
    """Whether the status is part of what is created (a kubelet registers its node with a status)."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Annotations that the controller-manager gives the first part once the whole fleet is there."""
    expires: bool = False
    """Whether the API server has etcd delete it after a while (events)."""

    @property
    def main(self) -> Part:
        """The part that counts."""
        return self.parts[0]
