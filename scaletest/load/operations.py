"""The requests of a mix, compiled: each is bytes that were put together before the first arrival, or nearly so.

What differs from request to request is the name of an object and the number of a write. Both stand in a request as marks,
and the bytes between the marks are joined with them when the request is sent.
"""

from __future__ import annotations

import itertools
import re
import time
from bisect import bisect
from collections.abc import Sequence
from random import Random
from typing import Any, Final
from urllib.parse import quote

from scaletest.core.resources import parse_resource
from scaletest.load.ownobjects import (
    DIGIT,
    FLOW_LABEL,
    NAME,
    REVISION,
    OwnObjects,
    object_body,
    own_name,
    patch_body,
    protobuf_body,
)
from scaletest.load.requests import watch_list_query
from scaletest.load.watchstream import REVISION_MODULUS
from scaletest.profile.arrivals import RequestSpec, parse_name_range

__all__ = ["Call", "Mix", "Operation", "Template"]

_MARKS = re.compile(f"({NAME}|{REVISION}|{DIGIT})".encode())
_NAME, _REVISION = NAME.encode(), REVISION.encode()
_DEFAULT_NAMESPACE: Final = "default"

_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_ACCEPT: Final = {
    "json": "application/json",
    # As client-go asks: types without protobuf (custom resources) answer JSON.
    "protobuf": f"{_PROTOBUF},application/json",
    "cbor": "application/cbor,application/json",
}
_ACCEPT_WATCH: Final = {
    "json": "application/json",
    "protobuf": f"{_PROTOBUF};stream=watch,application/json;stream=watch",
    "cbor": "application/cbor-seq,application/json;stream=watch",
}
_METHODS: Final = {"create": "POST", "put": "PUT", "patch": "PATCH", "delete": "DELETE"}
_PATCH_TYPES: Final = {
    "merge": "application/merge-patch+json",
    "apply": "application/apply-patch+yaml",
    "strategic": "application/strategic-merge-patch+json",
}
GONE_OUTCOMES: Final = frozenset({"404", "410"})


class Template:
    """Bytes with marks in them."""

    __slots__ = ("_kinds", "_parts", "is_constant")

    def __init__(self, text: bytes) -> None:
        pieces = _MARKS.split(text)
        self._parts = pieces
        self._kinds = [(at, mark) for at, mark in enumerate(pieces) if at % 2]
        self.is_constant = len(pieces) == 1

    def fill(self, name: bytes, revision: int = 0, number: int = 0) -> bytes:
        """Return the bytes for a name (or its number), the revision of a write, and a number that changes."""
        parts = self._parts
        if self.is_constant:
            return parts[0]
        parts = parts.copy()
        for at, mark in self._kinds:
            if mark == _NAME:
                parts[at] = name
            elif mark == _REVISION:
                parts[at] = b"%012d" % revision
            else:
                # As long as its mark, and still a JSON number.
                parts[at] = b"%7d" % (number % 10)
        return b"".join(parts)


class Call:
    """One arrival: which request it is, when it was due, and how far it is. Times are those of ``time.monotonic()``."""

    __slots__ = ("due_s", "index", "name", "operation", "page", "retried", "sent_s", "then")

    def __init__(self, operation: Operation, due_s: float, name: bytes = b"", index: int = -1) -> None:
        self.operation = operation
        self.due_s = due_s
        self.name = name
        self.index = index
        self.sent_s = 0.0
        """When it was sent; 0 before."""
        self.page = ""
        """Token of the page that it asks for."""
        self.retried = False
        self.then: object = None
        """For the flow's own requests, which are no arrivals: who waits for the outcome."""


class Operation:
    """A request of the mix: what is the same for all calls of it."""

    def __init__(self, spec: RequestSpec, flow: str, authorization: str, objects: OwnObjects | None) -> None:
        self.spec = spec
        self.name = spec.title
        self.method = _METHODS.get(spec.verb, "GET")
        self.timeout_s = spec.timeout_s
        self.follows_pages = spec.limit is not None
        self.is_watch_list = spec.verb == "watchList"
        self.is_plain = not self.follows_pages and not self.is_watch_list
        """Whether nothing of a good answer's body needs to be looked at."""
        self.may_repeat = self.method in {"GET", "PUT", "DELETE"}
        """Whether it may be sent again, when a kept connection turned out to be closed: HTTP's idempotent methods."""
        self.objects = objects
        self._flow = flow
        self._authorization = authorization
        self._names = parse_name_range(spec.name) if spec.name else None
        self._templates: dict[str, Template] = {}
        self._numbers = itertools.count(1)

    def call(self, due_s: float, random: Random) -> Call:
        """Return an arrival of this request, or (create, delete) of the one that must come before it."""
        if self._names is not None:
            names = self._names
            return Call(self, due_s, names.name(random.randrange(names.count)).encode())
        return Call(self, due_s)

    def encode(self, call: Call, host: str) -> bytes:
        """Return the bytes of a call for a server."""
        if call.page:
            return self._text(host, call.page).fill(call.name)
        template = self._templates.get(host)
        if template is None:
            template = self._templates[host] = self._text(host, "")
        if template.is_constant:
            return template.fill(b"")
        return template.fill(call.name, int(time.monotonic() * 1e6) % REVISION_MODULUS, next(self._numbers))

    def ended(self, call: Call, outcome: str) -> None:
        """Learn from the end of a call."""

    def _text(self, host: str, page: str) -> Template:
        body, content_type = self._body()
        accept = (_ACCEPT_WATCH if self.is_watch_list else _ACCEPT)[self.spec.accept]
        lines = [
            f"{self.method} {self._path()}{self._query(page)} HTTP/1.1",
            f"Host: {host}",
            f"User-Agent: scaletest/{self._flow}",
            f"Accept: {accept}",
            f"Accept-Encoding: {'gzip' if self.spec.gzip else 'identity'}",
        ]
        if body:
            lines += [f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
        head = "\r\n".join(lines) + "\r\n" + self._authorization + "\r\n"
        return Template(head.encode("latin-1") + body)

    def _path(self) -> str:
        spec = self.spec
        if spec.is_path:
            return quote(spec.target, safe="/?&=%:,{}~-._")
        name: str | None = None
        if spec.is_own:
            name = None if spec.verb == "create" else own_name(self._flow, NAME)
        elif spec.name:
            name = NAME
        namespace = spec.namespace or (_DEFAULT_NAMESPACE if spec.is_own else None)
        path = parse_resource(spec.target).path(namespace=namespace, name=name)
        return f"{path}/{spec.subresource}" if spec.subresource else path

    def _query(self, page: str) -> str:
        spec, parts = self.spec, []
        if spec.field_selector:
            parts.append(f"fieldSelector={quote(spec.field_selector, safe='')}")
        if spec.label_selector:
            parts.append(f"labelSelector={quote(spec.label_selector, safe='')}")
        if spec.limit:
            parts.append(f"limit={spec.limit}")
        if page:
            # The token names the version.
            parts.append(f"continue={quote(page, safe='')}")
        elif spec.verb == "watchList":
            parts += watch_list_query(spec.consistency)
        elif spec.verb in {"get", "list"} and not spec.is_path and spec.consistency == "any":
            parts.append("resourceVersion=0")
        if spec.patch_type == "apply":
            parts += ["fieldManager=scaletest", "force=true"]
        if not parts:
            return ""
        return ("&" if "?" in spec.target else "?") + "&".join(parts)

    def _body(self) -> tuple[bytes, str]:
        spec = self.spec
        if self.method in {"GET", "DELETE"}:
            return b"", ""
        resource = spec.resource
        if self.method == "PATCH":
            kind = spec.patch_type or "merge"
            body = object_body(resource, self._flow, spec.size_bytes) if kind == "apply" else patch_body(spec)
            return body, _PATCH_TYPES[kind]
        if spec.encoding == "protobuf":
            return protobuf_body(resource, self._flow, spec.size_bytes), _PROTOBUF
        return object_body(resource, self._flow, spec.size_bytes), "application/json"


class OwnOperation(Operation):
    """A request about an object of the flow's own."""

    other: OwnOperation
    """Of a create, the delete of the same objects; of all others, the create."""

    def call(self, due_s: float, random: Random) -> Call:
        """Return an arrival; where no object is there that it could be about, one of ``other``."""
        index = self._take()
        if index is not None:
            return self._about(due_s, index)
        index = self.other._take()  # noqa: SLF001 - the same class
        if index is not None:
            return self.other._about(due_s, index)  # noqa: SLF001
        # Every object is being created or deleted at this moment: any will do, and the answer may be a conflict.
        assert self.objects is not None
        return self._about(due_s, random.choice(self.objects.numbers))

    def _take(self) -> int | None:
        objects = self.objects
        assert objects is not None
        match self.spec.verb:
            case "create":
                return objects.take_absent()
            case "delete":
                return objects.take_present()
            case _:
                return objects.any_present()

    def _about(self, due_s: float, index: int) -> Call:
        return Call(self, due_s, b"%06d" % index, index)

    def ended(self, call: Call, outcome: str) -> None:
        """Learn whether the object is there."""
        objects = self.objects
        assert objects is not None
        good = outcome[0] == "2"
        match self.spec.verb:
            case "create":
                objects.put_back(call.index, present=good or outcome == "409")
            case "delete":
                # After a failure it may still be there; a later request that misses it will say so.
                objects.put_back(call.index, present=not good and outcome not in GONE_OUTCOMES)
            case _ if outcome in GONE_OUTCOMES:
                objects.is_missing(call.index)


class Mix:
    """The requests of a flow, drawn by weight."""

    def __init__(
        self, specs: Sequence[RequestSpec], flow: str, authorization: str, objects: int, first: int = 0
    ) -> None:
        self._flow = flow
        self._authorization = authorization
        self._objects_each = objects
        self._first = first
        self._own: dict[tuple[str, str], tuple[OwnOperation, OwnOperation]] = {}
        self._operations = [self._compile(spec) for spec in specs]
        self._bounds = list(itertools.accumulate(spec.weight for spec in specs))

    def draw(self, due_s: float, random: Random) -> Call:
        """Return the next arrival."""
        if len(self._operations) == 1:
            return self._operations[0].call(due_s, random)
        at = bisect(self._bounds, random.random() * self._bounds[-1], hi=len(self._bounds) - 1)
        return self._operations[at].call(due_s, random)

    def creations(self) -> list[tuple[OwnOperation, int]]:
        """Return what makes the flow's objects before it starts: an operation, and how many objects it makes."""
        return [(create, self._objects_each) for create, _ in self._own.values()]

    def removals(self) -> list[Operation]:
        """Return the requests that remove all objects of the flow, one for each resource and namespace."""
        return [_RemoveAll(create.spec, self._flow, self._authorization, None) for create, _ in self._own.values()]

    def _compile(self, spec: RequestSpec) -> Operation:
        if not spec.is_own:
            return Operation(spec, self._flow, self._authorization, None)
        create, delete = self._pair(spec)
        if spec.verb in {"create", "delete"}:
            return self._own_operation(spec, create.objects, delete if spec.verb == "create" else create)
        return self._own_operation(spec, create.objects, create)

    def _pair(self, spec: RequestSpec) -> tuple[OwnOperation, OwnOperation]:
        """Return what creates and deletes the objects that a request is about."""
        resource, namespace = spec.resource, spec.namespace or _DEFAULT_NAMESPACE
        pair = self._own.get((resource, namespace))
        if pair is None:
            objects = OwnObjects(self._objects_each, self._first)
            common: dict[str, Any] = {"namespace": spec.namespace, "timeout_s": spec.timeout_s}
            # Built from values that were checked; the verbs are not the spec's own.
            creating = RequestSpec.model_construct(create=spec.target, size_bytes=spec.size_bytes, **common)
            deleting = RequestSpec.model_construct(delete=spec.target, **common)
            create = OwnOperation(creating, self._flow, self._authorization, objects)
            delete = OwnOperation(deleting, self._flow, self._authorization, objects)
            create.other, delete.other = delete, create
            pair = self._own[resource, namespace] = create, delete
        return pair

    def _own_operation(self, spec: RequestSpec, objects: OwnObjects | None, other: OwnOperation) -> OwnOperation:
        operation = OwnOperation(spec, self._flow, self._authorization, objects)
        operation.other = other
        return operation


class _RemoveAll(Operation):
    """The DELETE of a whole collection, by the label that all of the flow's objects carry."""

    def __init__(self, spec: RequestSpec, flow: str, authorization: str, objects: OwnObjects | None) -> None:
        super().__init__(spec, flow, authorization, objects)
        self.name = "remove-" + spec.target.rsplit("/", maxsplit=1)[-1]
        self.method = "DELETE"
        self.may_repeat = True

    def _path(self) -> str:
        return parse_resource(self.spec.target).path(namespace=self.spec.namespace or _DEFAULT_NAMESPACE)

    def _query(self, page: str) -> str:  # noqa: ARG002 - the signature is Operation's
        return f"?labelSelector={quote(f'{FLOW_LABEL}={self._flow}', safe='')}"
