"""Names that several parts of a profile use: components and identities."""

from __future__ import annotations

import re
from typing import Literal

__all__ = ["COMPONENTS", "ComponentName", "check_identity"]

ComponentName = Literal["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"]
COMPONENTS: tuple[ComponentName, ...] = (
    "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller",
)  # fmt: skip


def check_identity(value: str) -> str:
    """Return an identity's name if it is well-formed. Raises ValueError with the accepted forms."""
    kind, _, account = value.partition(":")
    if value in {"system:masters", "admin", "on-call", "node"}:
        return value
    if kind == "serviceAccount" and re.fullmatch(r"[a-z0-9][a-z0-9-]*/[a-z0-9][a-z0-9.-]*", account):
        return value
    msg = f"{value!r} is no identity: use system:masters, admin, on-call, node or serviceAccount:NAMESPACE/NAME"
    raise ValueError(msg)
