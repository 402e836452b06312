"""A kubeconfig for the user's kubectl: file paths only, no secret in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from scaletest.core.access import ApiAccess

__all__ = ["context_name", "kubeconfig_text"]


def context_name(cluster: str, identity: str) -> str:
    """Return the name of a context: ``scaletest-NAME`` for ``admin``, ``scaletest-NAME-masters`` for the superuser."""
    suffix = {"admin": "", "system:masters": "-masters"}.get(identity, f"-{identity}")
    return f"scaletest-{cluster}{suffix}"


def kubeconfig_text(cluster: str, accesses: Sequence[ApiAccess]) -> str:
    """Return a kubeconfig with one context per access; the first is the current one."""
    contexts = [context_name(cluster, access.credential.identity) for access in accesses]
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": contexts[0],
        "clusters": [
            {
                "name": f"scaletest-{cluster}",
                "cluster": {
                    "server": accesses[0].servers[0],
                    "certificate-authority": str(accesses[0].ca_file),
                },
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": f"scaletest-{cluster}", "user": name}} for name in contexts],
        "users": [{"name": name, "user": _user(access)} for name, access in zip(contexts, accesses, strict=True)],
    }
    return yaml.safe_dump(config, sort_keys=False)


def _user(access: ApiAccess) -> dict[str, str]:
    files: dict[str, Path | None] = {
        "client-certificate": access.credential.cert_file,
        "client-key": access.credential.key_file,
        "tokenFile": access.credential.token_file,
    }
    return {key: str(path) for key, path in files.items() if path is not None}
