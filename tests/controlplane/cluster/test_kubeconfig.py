"""The user's kubeconfig names files and holds no secret."""

from __future__ import annotations

from pathlib import Path

import yaml

from scaletest.controlplane.kubeconfig import kubeconfig_text
from scaletest.core.access import ApiAccess, Credential

CA = Path("/c/ca.crt")
SERVERS = ("https://127.0.0.1:21000",)
ADMIN = ApiAccess(SERVERS, CA, Credential("admin", Path("/c/admin.crt"), Path("/c/admin.key")))
MASTERS = ApiAccess(SERVERS, CA, Credential("system:masters", Path("/c/m.crt"), Path("/c/m.key")))


def test_the_first_identity_is_current_and_all_have_a_context() -> None:
    config = yaml.safe_load(kubeconfig_text("c1", [ADMIN, MASTERS]))

    assert "scaletest-c1" == config["current-context"]
    assert ["scaletest-c1", "scaletest-c1-masters"] == [context["name"] for context in config["contexts"]]
    assert {"client-certificate": "/c/m.crt", "client-key": "/c/m.key"} == config["users"][1]["user"]
    assert {"server": SERVERS[0], "certificate-authority": "/c/ca.crt"} == config["clusters"][0]["cluster"]


def test_a_token_is_named_by_its_file() -> None:
    access = ApiAccess(SERVERS, CA, Credential("serviceAccount:a/b", token_file=Path("/c/b.token")))

    config = yaml.safe_load(kubeconfig_text("c1", [access]))

    assert {"tokenFile": "/c/b.token"} == config["users"][0]["user"]
