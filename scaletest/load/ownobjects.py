"""Objects of a flow's own: what it creates, changes and deletes, a bounded number of them, and what is written of them.

Names are numbered, and all carry the label ``scaletest.dev/flow``, by which they are removed in one request. A name is
*present* or *absent*, or in use by a request that creates or deletes it. Every write carries another revision, for the
API server does not store an object that did not change; it is the time of the write, so that whoever watches the object knows how long
its event took (``watchstream``).
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any, Final

from scaletest.core.resources import parse_resource
from scaletest.load.protobuf import bytes_field, map_entry
from scaletest.load.watchstream import REVISION_KEY
from scaletest.profile.arrivals import OWN_KINDS, RequestSpec

__all__ = [
    "DIGIT",
    "FLOW_LABEL",
    "NAME",
    "REVISION",
    "OwnObjects",
    "object_body",
    "own_name",
    "patch_body",
    "protobuf_body",
]

FLOW_LABEL: Final = "scaletest.dev/flow"

NAME: Final = "~NAME~"
REVISION: Final = "~REVISION~~~"
DIGIT: Final = "~DIGIT~"
"""Marks in a body, as long as what is put there: the number of an object, the revision of a write (microseconds of
``time.monotonic()``, 12 digits), and a digit that changes from write to write. No Kubernetes name has a tilde."""

DEFAULT_BYTES: Final = 1_000
_NEVER_SCHEDULED: Final = "scaletest.dev/nobody"


def own_name(flow: str, number: str) -> str:
    """Return the name of a flow's object, from its number in six digits."""
    return f"scaletest-{flow}-{number}"


class OwnObjects:
    """Which of ``count`` objects, numbered from ``first`` on, there are. Requests are spread over them in turn."""

    def __init__(self, count: int, first: int = 0) -> None:
        self.numbers = range(first, first + count)
        self._present: deque[int] = deque()
        self._absent: deque[int] = deque(self.numbers)

    @property
    def present(self) -> int:
        """Objects that are there and not being deleted."""
        return len(self._present)

    def any_present(self) -> int | None:
        """Return one that is there, for a request that leaves it there; None when there is none."""
        if not self._present:
            return None
        index = self._present[0]
        self._present.rotate(-1)
        return index

    def take_absent(self) -> int | None:
        """Take one that is not there, to create it; ``put_back`` says what came of it."""
        return self._absent.popleft() if self._absent else None

    def take_present(self) -> int | None:
        """Take one that is there, to delete it; ``put_back`` says what came of it."""
        return self._present.popleft() if self._present else None

    def put_back(self, index: int, *, present: bool) -> None:
        """End what ``take_absent`` or ``take_present`` began."""
        (self._present if present else self._absent).append(index)

    def is_missing(self, index: int) -> None:
        """Take note that one which should be there is not."""
        if index in self._present:
            self._present.remove(index)
            self._absent.append(index)


def _manifest(resource: str, payload: str) -> dict[str, Any]:
    match OWN_KINDS[resource]:
        case "ConfigMap":
            return {"data": {"revision": REVISION, "payload": payload}}
        case "Secret":
            return {"stringData": {"revision": REVISION, "payload": payload}}
        case "Lease":
            return {"spec": {"holderIdentity": REVISION, "leaseDurationSeconds": 40}}
        case "Pod":
            container = {"name": "c", "image": "scaletest.invalid/none", "env": [{"name": "PAYLOAD", "value": payload}]}
            return {"spec": {"schedulerName": _NEVER_SCHEDULED, "containers": [container]}}
        case "Deployment":
            # Paused and without replicas: the controllers make nothing of it, scaled or not.
            pod = {
                "metadata": {"labels": {"scaletest.dev/own": "true"}},
                "spec": {"containers": [{"name": "c", "image": "scaletest.invalid/none"}]},
            }
            selector = {"matchLabels": {"scaletest.dev/own": "true"}}
            return {"spec": {"paused": True, "replicas": 0, "selector": selector, "template": pod}}
        case _:
            return {"spec": {"payload": payload}}


def object_body(resource: str, flow: str, size_bytes: int | None) -> bytes:
    """Return an object's JSON with marks for name and revision, padded to about ``size_bytes``.

    ``resource`` is a key of ``OWN_KINDS``. Where there is no payload to pad, an annotation takes the padding.
    """

    def write(padding: str) -> bytes:
        parsed = parse_resource(resource)
        group = f"{parsed.group}/{parsed.version}" if parsed.group else parsed.version
        body = _manifest(resource, padding)
        annotations = {REVISION_KEY: REVISION}
        if padding and padding not in json.dumps(body):
            annotations["scaletest.dev/padding"] = padding
        metadata = {"name": own_name(flow, NAME), "labels": {FLOW_LABEL: flow}, "annotations": annotations}
        whole = {"apiVersion": group, "kind": OWN_KINDS[resource], "metadata": metadata, **body}
        return json.dumps(whole, separators=(",", ":")).encode()

    missing = (size_bytes or DEFAULT_BYTES) - len(write(""))
    return write("x" * missing) if missing > 0 else write("")


def patch_body(spec: RequestSpec) -> bytes:
    """Return the JSON of a merge or strategic patch that changes an object, or its scale.

    A status patch changes an annotation, as a kubelet's does: status strategies keep metadata, and any kind has it.
    """
    if spec.subresource == "scale":
        return b'{"spec":{"replicas":' + DIGIT.encode() + b"}}"
    return json.dumps({"metadata": {"annotations": {REVISION_KEY: REVISION}}}, separators=(",", ":")).encode()


def protobuf_body(resource: str, flow: str, size_bytes: int | None) -> bytes:
    """Return a ConfigMap or Secret in protobuf, with marks for name and revision.

    Field numbers are those of k8s.io/api/core/v1 ``generated.proto``: ConfigMap and Secret have metadata 1 and data 2 (a map;
    a Secret's values are bytes); ObjectMeta has name 1 and labels 11. The object is wrapped in ``runtime.Unknown`` (typeMeta
    1, raw 2) after the magic ``k8s`` and a zero byte.
    """

    def write(payload: bytes) -> bytes:
        metadata = bytes_field(1, own_name(flow, NAME).encode()) + map_entry(11, FLOW_LABEL, flow.encode())
        data = map_entry(2, "revision", REVISION.encode()) + map_entry(2, "payload", payload)
        type_meta = bytes_field(1, b"v1") + bytes_field(2, OWN_KINDS[resource].encode())
        return b"k8s\x00" + bytes_field(1, type_meta) + bytes_field(2, bytes_field(1, metadata) + data)

    return write(b"x" * max(0, (size_bytes or DEFAULT_BYTES) - len(write(b""))))
