"""The requests of a churn flow: namespaces, Deployments, Jobs and pods as the official load test has them.

Manifests follow kubernetes/perf-tests, ``clusterloader2/testing/load/deployment.yaml`` and ``job.yaml``: requests of 1 m CPU and 4 MB of memory, one
second of grace, 15 minutes of toleration for nodes that are not ready or cannot be reached. Left out are volumes, whose
ConfigMaps and Secrets only a kubelet would read, and the image, which no fake node pulls.
"""

from __future__ import annotations

import json
from typing import Any, Final

from scaletest.core.resources import parse_resource
from scaletest.load.churnplan import Act, Group, Kind, Move
from scaletest.load.operations import Call, Operation
from scaletest.load.ownobjects import FLOW_LABEL
from scaletest.load.watchstream import REVISION_KEY
from scaletest.profile.arrivals import RequestSpec

__all__ = ["RUN_LABEL", "ChurnCall", "ChurnOperation", "ChurnRequests"]

RUN_LABEL: Final = "scaletest.dev/churn"
"""Tells the objects of one start of a flow from those that an earlier one has left behind."""
GROUP_LABEL: Final = "scaletest.dev/group"

_RESOURCES: Final = {
    Kind.DEPLOYMENT: "apps/v1/deployments",
    Kind.JOB: "batch/v1/jobs",
    Kind.POD: "v1/pods",
}
_MERGE: Final = "application/merge-patch+json"
_JSON: Final = "application/json"
_TOLERATION_S: Final = 900


class ChurnCall(Call):
    """A request of a churn flow: where it goes, what it says, and the move that it makes (none for namespaces)."""

    __slots__ = ("body", "move", "path")

    def __init__(
        self,
        operation: Operation,
        due_s: float,
        path: str,
        body: dict[str, Any] | None = None,
        move: Move | None = None,
    ) -> None:
        super().__init__(operation, due_s)
        self.path = path
        self.body = body
        self.move = move


class ChurnOperation(Operation):
    """What all calls of one kind have in common."""

    def __init__(self, flow: str, authorization: str, timeout_s: float, *, label: str, **verb: Any) -> None:
        # Built from values that need no check; a profile has no such request.
        spec = RequestSpec.model_construct(label=label, timeout_s=timeout_s, **verb)
        super().__init__(spec, flow, authorization, None)
        self._lines = f"User-Agent: scaletest/{flow}\r\nAccept: {_JSON}\r\nAccept-Encoding: identity\r\n{authorization}"
        self._content_type = _MERGE if self.method == "PATCH" else _JSON

    def encode(self, call: Call, host: str) -> bytes:
        """Return the bytes of a call for a server."""
        assert isinstance(call, ChurnCall)
        body = json.dumps(call.body, separators=(",", ":")).encode() if call.body is not None else b""
        content = f"Content-Type: {self._content_type}\r\nContent-Length: {len(body)}\r\n" if body else ""
        head = f"{self.method} {call.path} HTTP/1.1\r\nHost: {host}\r\n{self._lines}{content}\r\n"
        return head.encode("latin-1") + body


class ChurnRequests:
    """Makes the calls of one start of a flow; ``mark`` tells it from other starts."""

    def __init__(self, flow: str, mark: str, namespaces: int, authorization: str, timeout_s: float) -> None:
        self._flow = flow
        self._mark = mark
        self._labels = {FLOW_LABEL: flow, RUN_LABEL: mark}
        self._revision = 0
        self.namespaces = [f"scaletest-{flow}-{mark}-{number:03d}" for number in range(namespaces)]

        def operation(verb: str, resource: str, label: str) -> ChurnOperation:
            return ChurnOperation(flow, authorization, timeout_s, label=label, **{verb: resource})

        verbs = {Act.CREATE: "create", Act.SCALE: "patch", Act.ROLL: "patch", Act.DELETE: "delete"}
        self._operations = {
            (kind, act): operation(verbs[act], resource, f"{act.value}-{kind.value}")
            for kind, resource in _RESOURCES.items()
            for act in Act
        }
        self._create_namespace = operation("create", "v1/namespaces", "create-namespace")
        self._delete_namespace = operation("delete", "v1/namespaces", "delete-namespace")
        self._get = operation("get", "v1/namespaces", "look")

    @property
    def selector(self) -> str:
        """Label selector of all objects of this start."""
        return f"{RUN_LABEL}={self._mark}"

    def create_namespace(self, name: str, due_s: float) -> ChurnCall:
        """Create a namespace."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": self._labels}}
        return ChurnCall(self._create_namespace, due_s, "/api/v1/namespaces", body)

    def delete_namespace(self, name: str, due_s: float) -> ChurnCall:
        """Delete a namespace with all that is in it."""
        return ChurnCall(self._delete_namespace, due_s, f"/api/v1/namespaces/{name}")

    def get_namespace(self, name: str, due_s: float) -> ChurnCall:
        """Ask whether a namespace is there."""
        return ChurnCall(self._get, due_s, f"/api/v1/namespaces/{name}")

    def look_for_account(self, namespace: str, due_s: float) -> ChurnCall:
        """Get a namespace's ServiceAccount, without which its pods are refused; the controller-manager makes it."""
        return ChurnCall(self._get, due_s, f"/api/v1/namespaces/{namespace}/serviceaccounts/default")

    def call(self, move: Move, due_s: float) -> ChurnCall:
        """Return the request of a move."""
        group = move.group
        operation = self._operations[group.kind, move.act]
        resource = parse_resource(_RESOURCES[group.kind])
        namespace = self.namespaces[group.namespace]
        path = resource.path(namespace=namespace, name=None if move.act is Act.CREATE else group.name)
        match move.act:
            case Act.CREATE:
                return ChurnCall(operation, due_s, path, self._manifest(group), move)
            case Act.SCALE:
                return ChurnCall(operation, due_s, f"{path}/scale", {"spec": {"replicas": move.replicas}}, move)
            case Act.ROLL:
                self._revision += 1
                metadata = {"annotations": {REVISION_KEY: str(self._revision)}}
                return ChurnCall(operation, due_s, path, {"spec": {"template": {"metadata": metadata}}}, move)
            case Act.DELETE:
                # A Job's pods are left behind by default (batch/v1).
                return ChurnCall(operation, due_s, f"{path}?propagationPolicy=Background", None, move)

    def _manifest(self, group: Group) -> dict[str, Any]:
        resource = parse_resource(_RESOURCES[group.kind])
        labels = {**self._labels, GROUP_LABEL: group.name}
        metadata = {"name": group.name, "labels": labels}
        api_version = f"{resource.group}/{resource.version}" if resource.group else resource.version
        whole = {"apiVersion": api_version, "kind": group.kind.value.capitalize(), "metadata": metadata}
        template = {"metadata": {"labels": labels}, "spec": _pod_spec(group.kind)}
        match group.kind:
            case Kind.DEPLOYMENT:
                selector = {"matchLabels": {GROUP_LABEL: group.name}}
                return whole | {"spec": {"replicas": group.pods, "selector": selector, "template": template}}
            case Kind.JOB:
                return whole | {"spec": {"parallelism": group.pods, "completions": group.pods, "template": template}}
            case Kind.POD:
                return whole | {"spec": _pod_spec(group.kind)}


def _pod_spec(kind: Kind) -> dict[str, Any]:
    container = {
        "name": "pause",
        "image": "scaletest.invalid/none",
        "resources": {"requests": {"cpu": "1m", "memory": "4M"}},
    }
    tolerations = [
        {
            "key": f"node.kubernetes.io/{what}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _TOLERATION_S,
        }
        for what in ("not-ready", "unreachable")
    ]
    return {
        "containers": [container],
        "restartPolicy": "OnFailure" if kind is Kind.JOB else "Always",
        "terminationGracePeriodSeconds": 1,
        "tolerations": tolerations,
    }
