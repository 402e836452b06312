"""Kinds of API calls as the API server's latency metrics tell them apart: ``LIST pods cluster``.

A kind is a verb, a resource with its group, a subresource and a scope. Verbs and scopes are those of the metrics' labels
(Kubernetes, apiserver/pkg/endpoints: ``metrics.cleanVerb``, and ``requestScope`` in installer.go): a GET of a collection is a
``LIST``, server-side apply is ``APPLY``, the deletion of a collection is a ``DELETE`` of scope ``namespace`` or ``cluster``. The
text form is that of journals and reports: ``PATCH nodes/status resource``, ``GET deployments.apps resource``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

__all__ = ["SCOPES", "ApiCall", "call_of_path"]

SCOPES: Final = ("resource", "namespace", "cluster")
"""About one object, the objects of one namespace, and those of several."""


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A kind of API call."""

    verb: str
    group: str
    """Empty for the core group."""
    resource: str
    """Plural."""
    subresource: str
    """Empty for the object itself."""
    scope: str

    @property
    def target(self) -> str:
        """Resource, group and subresource: ``nodes/status``, ``deployments.apps/scale``."""
        group = f".{self.group}" if self.group else ""
        subresource = f"/{self.subresource}" if self.subresource else ""
        return f"{self.resource}{group}{subresource}"

    def __str__(self) -> str:
        return f"{self.verb} {self.target} {self.scope}"

    @classmethod
    def parse(cls, text: str) -> ApiCall:
        """Parse the text form. Raises ValueError."""
        verb, target, scope = text.split(" ")
        kind, _, subresource = target.partition("/")
        resource, _, group = kind.partition(".")
        if not verb or not resource or scope not in SCOPES:
            msg = f"{text!r} is no kind of API call: e.g. LIST pods cluster"
            raise ValueError(msg)
        return cls(verb, group, resource, subresource, scope)


def call_of_path(path: str) -> ApiCall | None:
    """Return the kind of call that a GET of a URL path is; None for one that is about no resource."""
    parts = [part for part in urlsplit(path).path.split("/") if part]
    match parts:
        case ["api", _, *rest]:
            group = ""
        case ["apis", group, _, *rest]:
            pass
        case _:
            return None
    namespaced = len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in {"status", "finalize"}
    match rest[2:] if namespaced else rest:
        case [resource]:
            return ApiCall("LIST", group, resource, "", "namespace" if namespaced else "cluster")
        case [resource, _]:
            return ApiCall("GET", group, resource, "", "resource")
        case [resource, _, subresource]:
            return ApiCall("GET", group, resource, subresource, "resource")
        case _:
            return None
