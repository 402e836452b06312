"""Kubernetes resources as profiles write them, and their URL paths."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Resource", "parse_resource"]

_SHORT_NAMES: dict[str, str] = {
    **{name: f"v1/{name}" for name in (
        "pods", "nodes", "namespaces", "services", "endpoints", "configmaps", "secrets", "events", "serviceaccounts",
    )},
    **{name: f"apps/v1/{name}" for name in ("daemonsets", "deployments", "replicasets", "statefulsets")},
    "jobs": "batch/v1/jobs",
    "leases": "coordination.k8s.io/v1/leases",
    "endpointslices": "discovery.k8s.io/v1/endpointslices",
}  # fmt: skip

_ROOTS = ("api", "apis")
"""First parts of URL paths; no group or version has such a name."""


@dataclass(frozen=True, slots=True)
class Resource:
    """An API resource: group (empty for core), version and plural name."""

    group: str
    version: str
    plural: str

    def path(self, *, namespace: str | None = None, name: str | None = None) -> str:
        """Return the URL path of the collection, or of one object when ``name`` is given."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if namespace else ""
        tail = f"/{name}" if name else ""
        return f"{root}{scope}/{self.plural}{tail}"

    def __str__(self) -> str:
        return "/".join(part for part in (self.group, self.version, self.plural) if part)


def parse_resource(text: str) -> Resource:
    """Parse ``pods``, ``v1/pods`` or ``apps/v1/daemonsets``. Raises ValueError with the accepted forms."""
    parts = _SHORT_NAMES.get(text, text).split("/")
    if len(parts) == 2 and all(parts) and parts[0] not in _ROOTS:
        return Resource("", parts[0], parts[1])
    # "api/v1/nodes" is a URL path: taken for a group called api, each request would be answered with 404.
    if len(parts) == 3 and all(parts) and parts[0] not in _ROOTS:
        return Resource(parts[0], parts[1], parts[2])
    msg = f"{text!r} is not a resource: write pods, v1/pods or apps/v1/daemonsets"
    raise ValueError(msg)
