"""The requests that a step makes: URL paths, queries, headers.

A step is compiled once for a flow; what differs from agent to agent is its node (``{node}``) and the versions that
it was told. Consistency as the API server understands it (Kubernetes API concepts, "Resource versions"):

    step         any                      exact                                        quorum
    LIST         resourceVersion=0        resourceVersion=V, resourceVersionMatch=Exact   none
    GET          resourceVersion=0        resourceVersion=V (not older than)           none
    WATCH        from V of its LIST, or 0  from V                                       none (state, then changes)
    WATCH-LIST   resourceVersion=0                                                      an empty one: as new as now

An agent that knows no version yet asks as with ``any``. A GET of a bare path is sent as it is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from scaletest.core.resources import parse_resource
from scaletest.profile.schema import StepSpec

__all__ = ["Step", "compile_steps", "request_bytes", "watch_list_query"]

_ACCEPT = {
    "json": "application/json",
    # As client-go asks: types without protobuf (custom resources) answer JSON.
    "protobuf": "application/vnd.kubernetes.protobuf,application/json",
}
_ACCEPT_WATCH = {
    "json": "application/json",
    "protobuf": "application/vnd.kubernetes.protobuf;stream=watch,application/json;stream=watch",
}
NODE = "{node}"


@dataclass(frozen=True, slots=True)
class Step:
    """A step, compiled: what is the same for all agents of a flow."""

    name: str
    spec: StepSpec
    collection: str
    """Path without query, ``{node}`` unresolved: LIST and WATCH of one collection share a version."""

    query: tuple[str, ...]
    """Query parts that do not change."""

    keeps_version: bool
    """Whether the version of its answers is needed by a later request."""

    headers: str

    @property
    def method(self) -> str:
        """Verb in upper case, as Locust's listeners see it."""
        return self.spec.verb.upper()

    def path(
        self, node: str, version: str | None, *, next_page: str = "", whole: bool = False, watch_s: int = 0
    ) -> str:
        """Return path and query for an agent.

        ``version`` is the one that the agent knows, ``next_page`` a continue token (which rules a version out),
        ``whole`` asks for a list without pages, ``watch_s`` is the time after which the server shall end a watch.
        """
        parts = [*self.query]
        if self.spec.limit and not whole:
            parts.append(f"limit={self.spec.limit}")
        if next_page:
            parts.append(f"continue={quote(next_page, safe='')}")
        elif self.spec.verb == "watchList":
            parts += watch_list_query(self.spec.consistency)
        elif not self._is_plain_get:
            parts += _version_parts(self.spec, version)
        if self.spec.verb == "watch":
            parts += ["watch=1", "allowWatchBookmarks=true", f"timeoutSeconds={watch_s}"]
        if not parts:
            return self.collection.replace(NODE, node)
        separator = "&" if "?" in self.collection else "?"
        return (self.collection + separator + "&".join(parts)).replace(NODE, node)

    @property
    def _is_plain_get(self) -> bool:
        return self.spec.verb == "get" and self.spec.target.startswith("/")


def watch_list_query(consistency: str) -> list[str]:
    """Return the query parts of a watch that sends the state first, as client-go's reflector asks for it (KEP-3157)."""
    version = "0" if consistency == "any" else ""
    return [
        "watch=1", "sendInitialEvents=true", "allowWatchBookmarks=true", f"resourceVersion={version}",
        "resourceVersionMatch=NotOlderThan", "timeoutSeconds=300",
    ]  # fmt: skip


def _version_parts(spec: StepSpec, version: str | None) -> list[str]:
    if spec.verb == "watch":
        if version is not None:
            return [f"resourceVersion={version}"]
        return [] if spec.consistency == "quorum" else ["resourceVersion=0"]
    match spec.consistency:
        case "quorum":
            return []
        case "exact" if version is not None:
            exact = ["resourceVersionMatch=Exact"] if spec.verb == "list" else []
            return [f"resourceVersion={version}", *exact]
        case _:
            return ["resourceVersion=0"]


def compile_steps(specs: list[StepSpec], *, flow: str) -> tuple[Step, ...]:
    """Compile the steps of a flow."""
    watched = {_collection(spec) for spec in specs if spec.verb == "watch"}
    any_exact = any(spec.consistency == "exact" for spec in specs)
    return tuple(
        Step(
            name=spec.title,
            spec=spec,
            collection=_collection(spec),
            query=_query(spec),
            keeps_version=spec.verb == "list" and (any_exact or _collection(spec) in watched),
            headers=_headers(spec, flow),
        )
        for spec in specs
    )


def _collection(spec: StepSpec) -> str:
    if spec.target.startswith("/"):
        return quote(spec.target, safe="/?&=%:,{}~-._")
    return parse_resource(spec.target).path(
        namespace=_quoted(spec.namespace) if spec.namespace else None,
        name=_quoted(spec.name) if spec.name else None,
    )


def _quoted(text: str) -> str:
    return quote(text, safe="{}")


def _query(spec: StepSpec) -> tuple[str, ...]:
    parts: list[str] = []
    if spec.field_selector:
        parts.append(f"fieldSelector={_quoted(spec.field_selector)}")
    if spec.label_selector:
        parts.append(f"labelSelector={_quoted(spec.label_selector)}")
    return tuple(parts)


def _headers(spec: StepSpec, flow: str) -> str:
    accept = (_ACCEPT_WATCH if spec.verb in {"watch", "watchList"} else _ACCEPT)[spec.accept]
    encoding = "gzip" if spec.gzip else "identity"
    return f"User-Agent: scaletest/{flow}\r\nAccept: {accept}\r\nAccept-Encoding: {encoding}\r\n"


def request_bytes(path: str, *, host: str, headers: str, authorization: str) -> bytes:
    """Return the bytes of a GET; ``authorization`` is a whole header line with its end, or empty."""
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}{authorization}\r\n".encode("latin-1")
