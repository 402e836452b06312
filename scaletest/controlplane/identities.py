"""Who a client can be to the API server, and how it proves it.

    system:masters             kwokctl's admin certificate: exempt from API Priority and Fairness
    admin                      user ``scaletest-admin``, cluster-admin by a binding: level ``global-default``
    on-call                    user ``scaletest-on-call``, cluster-admin, with a FlowSchema and a priority level of its own
    serviceAccount:NS/NAME     a ServiceAccount that may read everything; in kube-system it falls into another
                               flow schema (``kube-system-service-accounts``) than elsewhere (``service-accounts``)
    node:NAME                  user ``system:node:NAME`` in ``system:nodes``: level ``system``, and ``node-high`` for leases
                               and status

The control plane's own controllers are themselves, as kubeadm sets them up (``write_controllers``), and not kwokctl's admin, who is exempt:
controller-manager and scheduler have the level ``workload-high``, and ``leader-election`` for their leases.

What an identity needs is made when it is first asked for, and only then: the priority level of ``on-call`` takes
its share of seats from all others, so a cluster without it has Priority and Fairness as Kubernetes ships it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from scaletest.controlplane import pki
from scaletest.controlplane.kubeconfig import kubeconfig_text
from scaletest.core.access import ApiAccess, Credential
from scaletest.core.errors import ClusterError
from scaletest.core.kubernetesapi import KubernetesApi
from scaletest.profile.schema import ComponentName

__all__ = ["ADMIN_SUBJECT", "CONTROLLERS", "MASTERS", "Identities", "controller_kubeconfig", "write_controllers"]

MASTERS: Final = "system:masters"
ADMIN_SUBJECT: Final = pki.Subject("kwok-admin", ("system:masters",))
CONTROLLERS: Final[dict[ComponentName, str]] = {
    "kube-controller-manager": "system:kube-controller-manager",
    "kube-scheduler": "system:kube-scheduler",
}
"""Users of the controllers, to whom the API server binds the roles of its bootstrap policy."""
USERS: Final = {"admin": "scaletest-admin", "on-call": "scaletest-on-call"}

ON_CALL_SHARES: Final = 10
"""Nominal concurrency shares of the on-call level, as ``leader-election`` has; the defaults sum to 245."""
ON_CALL_PRECEDENCE: Final = 600
"""Before every default FlowSchema that takes users, after those for probes, leader election and nodes."""

TOKEN_LIFE_S: Final = 7 * 24 * 3600
"""Asked for; every call of ``credential`` makes a new token."""

EFFECT_TIMEOUT_S: Final = 20.0
"""From a binding to its effect in the authorizer's cache: milliseconds, seconds on a host in full use."""


def controller_kubeconfig(pki_dir: Path, component: ComponentName) -> Path:
    """Return where the kubeconfig of a controller is."""
    return pki_dir / f"{component}.kubeconfig"


def write_controllers(authority: pki.Authority, pki_dir: Path, server: str) -> None:
    """Make certificate and kubeconfig of each controller."""
    for component, user in CONTROLLERS.items():
        certificate, key = pki.write_client(authority, pki_dir, component, pki.Subject(user))
        access = ApiAccess((server,), pki_dir / "ca.crt", Credential(component, certificate, key))
        pki.write_private(controller_kubeconfig(pki_dir, component), kubeconfig_text(component, [access]))


@dataclass(frozen=True, slots=True)
class Identities:
    """Makes credentials for one cluster; ``home`` is a directory that only the user can read."""

    home: Path
    pki_dir: Path
    servers: tuple[str, ...]

    @property
    def ca_file(self) -> Path:
        """The cluster's CA."""
        return self.pki_dir / "ca.crt"

    @property
    def masters(self) -> Credential:
        """The admin certificate."""
        return Credential(MASTERS, self.pki_dir / "admin.crt", self.pki_dir / "admin.key")

    def access_as(self, credential: Credential) -> ApiAccess:
        """Return how to reach the API servers with a credential."""
        return ApiAccess(self.servers, self.ca_file, credential)

    async def credential(self, identity: str) -> Credential:
        """Return a credential that the API server accepts now, making what it needs.

        Raises:
            ValueError: no such identity.
            ClusterError: the API server did not take the objects, or does not honour them.
        """
        kind, _, rest = identity.partition(":")
        if identity == MASTERS:
            return self.masters
        if kind == "node" and rest:
            return (await asyncio.to_thread(self.node_credentials, [rest]))[0]
        if identity in USERS:
            return await self._user(identity)
        namespace, _, name = rest.partition("/")
        if kind == "serviceAccount" and namespace and name:
            return await self._service_account(identity, namespace, name)
        msg = f"{identity!r} is no identity"
        raise ValueError(msg)

    def node_credentials(self, names: Iterable[str]) -> list[Credential]:
        """Return certificates of nodes, which share one key; 1.1 ms of CPU for each that is new."""
        directory = self._directory("nodes")
        key_file, key = directory / "node.key", pki.new_client_key()
        if key_file.exists():
            key = pki.load_client_key(key_file)
        else:
            pki.write_private(key_file, pki.key_pem(key))
        wanted = {name: directory / f"{name}.crt" for name in names}
        missing = [name for name, path in wanted.items() if not path.exists()]
        if missing:
            authority = pki.load_authority(self.pki_dir)
            subjects = [pki.Subject(f"system:node:{name}", ("system:nodes",)) for name in missing]
            for name, pem in zip(missing, authority.sign_clients(subjects, key.public_key()), strict=True):
                pki.write_private(wanted[name], pem)
        return [Credential(f"node:{name}", path, key_file) for name, path in wanted.items()]

    async def _user(self, identity: str) -> Credential:
        credential = await asyncio.to_thread(self._user_certificate, identity)
        async with KubernetesApi(self.access_as(self.masters)) as api:
            await api.apply(*_cluster_admin(USERS[identity]))
            schema_uid = await _on_call_flow(api) if identity == "on-call" else None
        await self._wait_effective(credential, schema_uid)
        return credential

    def _user_certificate(self, identity: str) -> Credential:
        directory = self._directory("users")
        credential = Credential(identity, directory / f"{identity}.crt", directory / f"{identity}.key")
        if not (directory / f"{identity}.crt").exists():
            pki.write_client(pki.load_authority(self.pki_dir), directory, identity, pki.Subject(USERS[identity]))
        return credential

    async def _service_account(self, identity: str, namespace: str, name: str) -> Credential:
        token_file = self._directory("serviceaccounts", namespace) / f"{name}.token"
        async with KubernetesApi(self.access_as(self.masters)) as api:
            for path, body in _reading_account(namespace, name):
                await api.apply(path, body)
            request = {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": TOKEN_LIFE_S},
            }
            made = await api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", request)
        pki.write_private(token_file, made["status"]["token"])
        credential = Credential(identity, token_file=token_file)
        await self._wait_effective(credential, None)
        return credential

    async def _wait_effective(self, credential: Credential, schema_uid: str | None) -> None:
        """Wait until a read as the identity is allowed, and classified by its FlowSchema if it has one."""
        deadline_s = asyncio.get_running_loop().time() + EFFECT_TIMEOUT_S
        async with KubernetesApi(self.access_as(credential)) as api:
            while True:
                answer = await api.request("GET", "/api/v1/namespaces?limit=1")
                schema = answer.headers.get("X-Kubernetes-PF-FlowSchema-UID")
                if answer.status == 200 and schema_uid in {None, schema}:
                    return
                if asyncio.get_running_loop().time() > deadline_s:
                    msg = f"{credential.identity} has no access after {EFFECT_TIMEOUT_S:g} s: "
                    raise ClusterError(msg + f"{answer.status} {answer.message[:200]}")
                await asyncio.sleep(0.03)

    def _directory(self, *parts: str) -> Path:
        directory = self.home.joinpath(*parts)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return directory


def _cluster_admin(user: str) -> tuple[str, dict[str, Any]]:
    return _binding(user, "cluster-admin", {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user})


def _binding(name: str, role: str, subject: dict[str, str]) -> tuple[str, dict[str, Any]]:
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }
    return f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{name}", body


def _reading_account(namespace: str, name: str) -> list[tuple[str, dict[str, Any]]]:
    """Objects of a ServiceAccount that may read everything, in the order in which they are made."""
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "scaletest-reader"},
        "rules": [
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
            {"nonResourceURLs": ["*"], "verbs": ["get"]},
        ],
    }
    subject = {"kind": "ServiceAccount", "namespace": namespace, "name": name}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": namespace, "name": name}}
    return [
        (
            f"/api/v1/namespaces/{namespace}",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        ),
        (f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}", account),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles/scaletest-reader", role),
        _binding(f"scaletest-reader:{namespace}:{name}", "scaletest-reader", subject),
    ]


async def _on_call_flow(api: KubernetesApi) -> str:
    """Make the on-call priority level and FlowSchema; return the FlowSchema's uid."""
    name = USERS["on-call"]
    group = "flowcontrol.apiserver.k8s.io/v1"
    level = {
        "apiVersion": group,
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": name},
        "spec": {
            "type": "Limited",
            "limited": {
                "nominalConcurrencyShares": ON_CALL_SHARES,
                "limitResponse": {
                    "type": "Queue",
                    "queuing": {"queues": 16, "handSize": 4, "queueLengthLimit": 50},
                },
            },
        },
    }
    everything = {
        "subjects": [{"kind": "User", "user": {"name": name}}],
        "resourceRules": [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
        ],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }
    schema = {
        "apiVersion": group,
        "kind": "FlowSchema",
        "metadata": {"name": name},
        "spec": {
            "matchingPrecedence": ON_CALL_PRECEDENCE,
            "priorityLevelConfiguration": {"name": name},
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [everything],
        },
    }
    await api.apply(f"/apis/{group}/prioritylevelconfigurations/{name}", level)
    made = await api.apply(f"/apis/{group}/flowschemas/{name}", schema)
    return str(made["metadata"]["uid"])
