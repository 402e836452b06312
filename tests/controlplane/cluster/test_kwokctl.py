"""What kwokctl is told: every port and binary, loopback, the profile's flags last, the default stages in full."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from scaletest.controlplane import kwokctl
from scaletest.controlplane.heartbeat import heartbeat_for
from scaletest.controlplane.kwokctl import KwokLayout, KwokSettings
from scaletest.controlplane.plan import Limits, run_dir
from scaletest.controlplane.ports import PORT_ROLES
from scaletest.profile.schema import COMPONENTS

PORTS = {role: 21_000 + number for number, role in enumerate(PORT_ROLES)}


@pytest.fixture
def settings() -> KwokSettings:
    return KwokSettings(
        layout=KwokLayout(Path("/state/clusters/c1"), "c1"),
        kubernetes="1.37.2",
        binaries={name: Path(f"/bin/real/{name}") for name in (*COMPONENTS, "kwokctl")},
        ports=PORTS,
        heartbeat=heartbeat_for(nodes=7_000, cores=2, factor="auto"),
        args={
            "kube-apiserver": {"max-requests-inflight": 300, "profiling": False},
            "kube-scheduler": {"leader-elect": "false"},
        },
        env={"kube-apiserver": {"GOGC": "50"}, "etcd": {"GOMAXPROCS": "1"}},
    )


@pytest.fixture
def documents(settings: KwokSettings) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(kwokctl.config_text(kwokctl.base_documents(), settings)))


def patches(documents: list[dict[str, Any]], component: str) -> list[dict[str, Any]]:
    return [patch for patch in documents[0]["componentsPatches"] if patch["name"] == component]


def test_everything_listens_on_loopback_and_priority_and_fairness_stays_on(documents: list[dict[str, Any]]) -> None:
    options = documents[0]["options"]

    assert ("127.0.0.1", False) == (options["bindAddress"], options["disableQPSLimits"])


def test_the_port_that_has_no_flag_is_an_option(documents: list[dict[str, Any]]) -> None:
    assert PORTS["etcd-peer"] == documents[0]["options"]["etcdPeerPort"]


def test_the_heartbeat_factor_is_that_of_the_host(documents: list[dict[str, Any]]) -> None:
    assert 5 == documents[0]["options"]["heartbeatFactor"]


def test_flags_of_the_profile_come_after_ours(documents: list[dict[str, Any]]) -> None:
    flags = [arg for patch in patches(documents, "kube-apiserver") for arg in patch["extraArgs"]]

    assert [
        {"key": "enable-admission-plugins", "value": "NodeRestriction"},
        {"key": "etcd-count-metric-poll-period", "value": "10s"},
        {"key": "max-requests-inflight", "value": "300"},
        {"key": "profiling", "value": "false"},
    ] == flags


def test_environment_of_the_profile_reaches_its_component(documents: list[dict[str, Any]]) -> None:
    assert [{"name": "GOMAXPROCS", "value": "1"}] == patches(documents, "etcd")[0]["extraEnvs"]


@pytest.mark.parametrize("component", ["kube-controller-manager", "kube-scheduler"])
def test_components_serve_a_certificate_that_can_be_verified(documents: list[dict[str, Any]], component: str) -> None:
    flags = {arg["key"]: arg["value"] for patch in patches(documents, component) for arg in patch["extraArgs"]}

    assert "/state/clusters/c1/kwok/clusters/c1/pki/admin.crt" == flags["tls-cert-file"]
    assert "/state/clusters/c1/kwok/clusters/c1/pki/admin.key" == flags["tls-private-key-file"]


@pytest.mark.parametrize("component", ["kube-controller-manager", "kube-scheduler"])
def test_controllers_are_who_they_are_in_a_real_cluster(documents: list[dict[str, Any]], component: str) -> None:
    flags = {arg["key"]: arg["value"] for patch in patches(documents, component) for arg in patch["extraArgs"]}

    assert f"/state/clusters/c1/kwok/clusters/c1/pki/{component}.kubeconfig" == flags["kubeconfig"]
    assert (component == "kube-controller-manager") == (flags.get("use-service-account-credentials") == "true")


def test_the_stages_replace_kwokctls_defaults_in_full(documents: list[dict[str, Any]]) -> None:
    stages = sorted(document["metadata"]["name"] for document in documents if document["kind"] == "Stage")

    assert ["node-heartbeat-with-lease", "node-initialize", "pod-complete", "pod-delete", "pod-ready"] == stages


def test_kwok_works_on_many_nodes_at_once(documents: list[dict[str, Any]]) -> None:
    (kwok,) = [document for document in documents if document["kind"] == "KwokConfiguration"]

    assert {32} == set(kwok["options"].values())


def test_kwokctl_is_given_every_port_and_every_shim(settings: KwokSettings) -> None:
    argv = kwokctl.launch_plan(settings, search_path="/usr/bin").argv
    flags = dict(zip(argv[3::2], argv[4::2], strict=True))

    assert ("/bin/real/kwokctl", "create", "cluster") == argv[:3]
    assert {str(PORTS[role]) for role in PORT_ROLES if role != "etcd-peer"} == {
        value for flag, value in flags.items() if flag.endswith("-port")
    }
    assert {f"--{name}-binary": f"/state/clusters/c1/shims/{name}" for name in COMPONENTS} == {
        flag: value for flag, value in flags.items() if flag.endswith("-binary")
    }


def test_the_users_own_kubeconfig_is_left_alone(settings: KwokSettings) -> None:
    argv = kwokctl.launch_plan(settings, search_path="/usr/bin").argv

    assert "" == argv[argv.index("--kubeconfig") + 1]


def test_kwokctl_works_within_the_clusters_directory(settings: KwokSettings) -> None:
    env = kwokctl.launch_plan(settings, search_path="/usr/bin").env

    assert {
        "KWOK_WORKDIR": "/state/clusters/c1/kwok",
        "KWOK_KUBE_VERSION": "v1.37.2",
        "PATH": "/state/clusters/c1/path:/usr/bin",
    } == env


def test_each_component_has_a_plan_with_its_real_binary_log_and_port(settings: KwokSettings) -> None:
    plans = kwokctl.component_plans(settings, {name: Limits(1 << 30) for name in COMPONENTS})

    assert list(COMPONENTS) == [plan.name for plan in plans]
    etcd = plans[0]
    assert ("/bin/real/etcd", "store", (PORTS["etcd"],)) == (etcd.binary, etcd.role, etcd.tcp_ports)
    assert "/state/clusters/c1/kwok/clusters/c1/logs/etcd.log" == etcd.log


def test_the_stand_in_for_kubectl_says_ok_once_every_component_has_begun(
    settings: KwokSettings, tmp_path: Path
) -> None:
    home = tmp_path / "with space"
    run_dir(home).mkdir(parents=True)
    settings = dataclasses.replace(settings, layout=KwokLayout(home, "c1"))
    kwokctl.write_config(kwokctl.base_documents(), settings)

    with subprocess.Popen([home / "path" / "kubectl", "get", "--raw", "/healthz"], stdout=subprocess.PIPE) as asking:
        for name in COMPONENTS:
            assert asking.poll() is None
            (run_dir(home) / f"{name}.pid").write_text("1 1\n")
        said, _ = asking.communicate(timeout=20)

    assert b"ok" == said
    assert (home / "kwokctl.yaml").is_file()
