"""A real control plane: what is up when it is ready, who its identities are, and that nothing is left of it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from scaletest.controlplane import cluster as clusters
from scaletest.controlplane import ports, registry
from scaletest.controlplane.binaries import Binaries
from scaletest.controlplane.cluster import ClusterRequest, KwokControlPlane
from scaletest.controlplane.state import ClusterState
from scaletest.core.access import ApiAccess
from scaletest.core.errors import ClusterError, ResourceShortage, UsageError
from scaletest.core.kubernetesapi import ApiAnswer, KubernetesApi
from scaletest.core.processes import ProcessId
from scaletest.profile.schema import COMPONENTS

pytestmark = pytest.mark.e2e

RequestMaker = Callable[[str], ClusterRequest]

SCHEMA_HEADER = "X-Kubernetes-PF-FlowSchema-UID"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


def ask(access: ApiAccess, method: str, path: str, body: Any = None) -> ApiAnswer:
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"

    async def once() -> ApiAnswer:
        async with KubernetesApi(access) as api:
            return await api.request(method, path, body, content_type=kind)

    return asyncio.run(once())


def access_to(cluster: KwokControlPlane, identity: str) -> ApiAccess:
    return asyncio.run(cluster.access(identity))


def state_of(cluster: KwokControlPlane) -> ClusterState:
    state = cluster.supervisor.state()
    assert state is not None
    return state


@dataclass
class Remains:
    """What a cluster has on this machine while it lives, to look at afterwards."""

    processes: list[ProcessId]
    ports: list[int]
    groups: list[Path]
    dir: Path

    @classmethod
    def of(cls, cluster: KwokControlPlane) -> Remains:
        state = state_of(cluster)
        components = [component.process for component in state.components.values() if component.process]
        return cls(
            [state.supervisor, *components],
            list(cluster.record.ports.values()),
            [Path(group) for group in state.groups],
            cluster.dir,
        )

    def left(self) -> list[str]:
        """Everything but the directory that is still there."""
        return [
            *(f"pid {process.pid}" for process in self.processes if process.is_alive()),
            *(f"port {port}" for port in self.ports if not ports.is_free(port)),
            *(str(group) for group in self.groups if group.exists()),
        ]


def wait_until(condition: Callable[[], object], timeout_s: float = 30) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "waited in vain"
        time.sleep(0.05)


# What is up


def test_every_component_runs_when_the_cluster_is_ready(cluster: KwokControlPlane) -> None:
    running = {component.name: ProcessId.of(component.pid or 0) for component in cluster.components()}

    assert set(COMPONENTS) == set(running)
    assert all(process is not None and process.is_alive() for process in running.values())


def test_nothing_listens_off_loopback_and_only_on_the_recorded_ports(cluster: KwokControlPlane) -> None:
    pids = {component.pid for component in cluster.components() if component.pid}
    found = ports.listeners_of({*pids, state_of(cluster).supervisor.pid})

    assert {"127.0.0.1"} == {listener.address for listener in found}
    assert set(cluster.record.ports.values()) == {listener.port for listener in found}


def test_ports_lie_below_those_of_outgoing_connections(cluster: KwokControlPlane) -> None:
    assert all(20_000 < port < ports.ephemeral_first() for port in cluster.record.ports.values())


def test_components_serve_metrics_that_verify_against_the_clusters_ca(cluster: KwokControlPlane) -> None:
    masters = access_to(cluster, "system:masters")
    context = ssl.create_default_context(cafile=str(masters.ca_file))
    assert masters.credential.cert_file
    context.load_cert_chain(masters.credential.cert_file, masters.credential.key_file)

    for component in cluster.components():
        tls = context if component.metrics_url.startswith("https:") else None
        with urllib.request.urlopen(component.metrics_url, context=tls, timeout=20) as answer:
            assert b"process_resident_memory_bytes" in answer.read(), component.name


def test_a_client_that_does_not_know_the_ca_refuses_the_server(cluster: KwokControlPlane) -> None:
    with pytest.raises(urllib.error.URLError, match="certificate verify failed"):
        urllib.request.urlopen(f"{cluster.servers[0]}/version", context=ssl.create_default_context(), timeout=20)


def test_priority_and_fairness_is_on_with_default_limits(cluster: KwokControlPlane) -> None:
    argv = _argv(cluster, "kube-apiserver")

    assert not [flag for flag in argv if "priority-and-fairness" in flag or "inflight" in flag]
    answer = ask(access_to(cluster, "admin"), "GET", "/api/v1/namespaces")
    assert answer.headers.get(SCHEMA_HEADER)


def test_leader_election_is_on(cluster: KwokControlPlane) -> None:
    admin = access_to(cluster, "admin")

    def leases() -> set[str]:
        found = ask(admin, "GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")
        return {item["metadata"]["name"] for item in found.object()["items"]}

    wait_until(lambda: {"kube-controller-manager", "kube-scheduler"} <= leases())


def test_the_reported_heartbeat_is_what_the_components_were_told(cluster: KwokControlPlane) -> None:
    heartbeat = cluster.heartbeat

    assert f"--node-lease-duration-seconds={heartbeat.lease_duration_s}" in _argv(cluster, "kwok-controller")
    manager = _argv(cluster, "kube-controller-manager")
    assert f"--node-monitor-grace-period={heartbeat.grace_period_s}s" in manager
    assert f"--node-monitor-period={heartbeat.monitor_period_s}s" in manager


def _argv(cluster: KwokControlPlane, name: str) -> list[str]:
    (pid,) = [component.pid for component in cluster.components() if component.name == name]
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def test_what_is_secret_is_readable_by_its_owner_only(cluster: KwokControlPlane) -> None:
    for identity in ("admin", "serviceAccount:secrets/agent", "node:secret-1"):
        access_to(cluster, identity)

    assert 0o700 == stat.S_IMODE(cluster.dir.stat().st_mode)
    secret = [path for suffix in ("key", "token", "crt") for path in cluster.dir.rglob(f"*.{suffix}")]
    assert len(secret) >= 9
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in secret}


# Who the identities are


@pytest.mark.parametrize(
    ("identity", "user", "group"),
    [
        ("system:masters", "kwok-admin", "system:masters"),
        ("admin", "scaletest-admin", "system:authenticated"),
        ("on-call", "scaletest-on-call", "system:authenticated"),
        ("serviceAccount:who/agent", "system:serviceaccount:who:agent", "system:serviceaccounts:who"),
        (
            "serviceAccount:kube-system/agent",
            "system:serviceaccount:kube-system:agent",
            "system:serviceaccounts:kube-system",
        ),
        ("node:who-1", "system:node:who-1", "system:nodes"),
    ],
)
def test_the_api_server_knows_an_identity_as_who_it_is(
    cluster: KwokControlPlane, identity: str, user: str, group: str
) -> None:
    answer = ask(access_to(cluster, identity), "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", REVIEW)

    info = answer.object()["status"]["userInfo"]
    assert user == info["username"]
    assert group in info["groups"]
    assert ("system:masters" in info["groups"]) == (identity == "system:masters")


@pytest.mark.parametrize(
    ("identity", "schema"),
    [
        ("system:masters", "exempt"),
        ("admin", "global-default"),
        ("on-call", "scaletest-on-call"),
        ("serviceAccount:apf/agent", "service-accounts"),
        ("serviceAccount:kube-system/agent", "kube-system-service-accounts"),
    ],
)
def test_the_flow_schema_decides_who_drowns_with_whom(cluster: KwokControlPlane, identity: str, schema: str) -> None:
    group = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
    access = access_to(cluster, identity)
    schemas = ask(access_to(cluster, "system:masters"), "GET", group)
    uids = {item["metadata"]["uid"]: item["metadata"]["name"] for item in schemas.object()["items"]}

    answer = ask(access, "GET", "/api/v1/namespaces?limit=1")

    assert (200, schema) == (answer.status, uids[answer.headers[SCHEMA_HEADER]])


def test_controllers_are_not_exempt_and_do_their_work(cluster: KwokControlPlane) -> None:
    masters = access_to(cluster, "system:masters")
    wanted = {"system-leader-election", "kube-scheduler", "kube-system-service-accounts"}
    deadline_s = time.monotonic() + 20
    while True:
        metrics = ask(masters, "GET", "/metrics").content.decode()
        schemas = set(re.findall(r'apiserver_flowcontrol_dispatched_requests_total{flow_schema="([^"]+)"', metrics))
        # The controller-manager's own controller makes it, as a ServiceAccount of kube-system.
        account = ask(masters, "GET", "/api/v1/namespaces/default/serviceaccounts/default").status
        if wanted <= schemas and account == 200:
            return
        # They start last, and elect a leader first.
        assert time.monotonic() < deadline_s, (schemas, account)
        time.sleep(0.2)


def test_a_service_account_reads_everything_and_writes_nothing(cluster: KwokControlPlane) -> None:
    access = access_to(cluster, "serviceAccount:readers/agent")
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "not-mine"}}

    assert 200 == ask(access, "GET", "/api/v1/pods").status
    assert 403 == ask(access, "POST", "/api/v1/namespaces", body).status


def test_a_node_renews_its_own_lease_and_no_other(cluster: KwokControlPlane) -> None:
    masters = access_to(cluster, "system:masters")
    for name in ("lease-1", "lease-2"):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        assert 201 == ask(masters, "POST", "/api/v1/nodes", node).status
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    wait_until(lambda: {ask(masters, "GET", f"{leases}/lease-{number}").status for number in (1, 2)} == {200})
    own = access_to(cluster, "node:lease-1")

    def renew(name: str) -> int:
        return ask(own, "PATCH", f"{leases}/{name}", {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}).status

    assert (200, 403) == (renew("lease-1"), renew("lease-2"))


def test_many_nodes_get_certificates_with_one_key(cluster: KwokControlPlane) -> None:
    names = [f"bulk-{number:05}" for number in range(300)]

    credentials = asyncio.run(cluster.node_credentials(names))

    assert [f"node:{name}" for name in names] == [credential.identity for credential in credentials]
    assert 1 == len({credential.key_file for credential in credentials})
    assert 300 == len({credential.cert_file for credential in credentials})


def test_an_identity_that_is_none_is_refused(cluster: KwokControlPlane) -> None:
    with pytest.raises(ValueError, match="root"):
        access_to(cluster, "root")


def test_the_kubeconfig_reaches_the_cluster_as_both_admins(cluster: KwokControlPlane) -> None:
    config = yaml.safe_load(cluster.kubeconfig.read_text())

    for user in config["users"]:
        files = user["user"]
        context = ssl.create_default_context(cafile=config["clusters"][0]["cluster"]["certificate-authority"])
        context.load_cert_chain(files["client-certificate"], files["client-key"])
        with urllib.request.urlopen(
            f"{cluster.servers[0]}/api/v1/nodes?limit=1", context=context, timeout=20
        ) as answer:
            assert 200 == answer.status


# Names and ports


def test_a_name_in_use_is_refused_with_the_way_to_end_it(
    cluster: KwokControlPlane, request_named: RequestMaker
) -> None:
    with pytest.raises(UsageError, match="'e2e' is ready") as refused:
        asyncio.run(clusters.start_cluster(request_named("e2e")))

    assert "scaletest cluster down e2e" in (refused.value.hint or "")
    assert "ready" == registry.status_of(cluster.record)


def test_a_second_client_finds_the_running_cluster(cluster: KwokControlPlane) -> None:
    found = asyncio.run(clusters.connect_cluster("e2e"))

    assert (cluster.servers, cluster.versions) == (found.servers, found.versions)
    assert cluster.components() == found.components()


def test_a_taken_port_is_refused_with_the_process_that_has_it(request_named: RequestMaker) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        wanted = dataclasses.replace(request_named("port"), ports={"kube-apiserver": port})

        with pytest.raises(ResourceShortage, match=rf"port {port} for kube-apiserver is taken by pid {os.getpid()} \("):
            asyncio.run(clusters.start_cluster(wanted))

    assert not [record for record in registry.list_clusters() if record.name == "port"]


# How it ends


def test_after_stop_nothing_is_left_but_the_logs_asked_for(request_named: RequestMaker, tmp_path: Path) -> None:
    started = asyncio.run(clusters.start_cluster(request_named("brief")))
    remains = Remains.of(started)

    asyncio.run(started.stop(logs_to=tmp_path / "logs"))

    assert [] == remains.left()
    assert not remains.dir.exists()
    logs = {path.name for path in (tmp_path / "logs").iterdir()}
    assert {f"{name}.log" for name in COMPONENTS} <= logs


def test_a_component_that_cannot_start_is_named_with_its_log_and_nothing_is_left(request_named: RequestMaker) -> None:
    request = request_named("broken")
    spec = request.spec.model_copy(update={"args": {"kube-apiserver": {"no-such-flag": 1}}})

    with pytest.raises(ClusterError, match=r"(?s)kube-apiserver.*unknown flag: --no-such-flag"):
        asyncio.run(clusters.start_cluster(dataclasses.replace(request, spec=spec)))

    record = registry.get("broken")
    assert "ended" == registry.status_of(record)
    assert [] == [port for port in record.ports.values() if not ports.is_free(port)]
    assert ["broken"] == [cleaned.name for cleaned in registry.clean_dead()]


def test_a_component_that_listens_everywhere_is_refused(request_named: RequestMaker) -> None:
    request = request_named("exposed")
    spec = request.spec.model_copy(update={"args": {"kube-scheduler": {"bind-address": "0.0.0.0"}}})

    with pytest.raises(ClusterError, match="listens off loopback: kube-scheduler on"):
        asyncio.run(clusters.start_cluster(dataclasses.replace(request, spec=spec)))

    registry.clean_dead()


OWNER = """
import asyncio, pickle, sys
from scaletest.controlplane.cluster import start_cluster
from scaletest.core.processes import ProcessId
import dataclasses
request = pickle.load(open(sys.argv[1], "rb"))
asyncio.run(start_cluster(dataclasses.replace(request, owner=ProcessId.current())))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def owner(request_named: RequestMaker, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has started the cluster ``owned`` and owns it."""
    import pickle  # noqa: PLC0415

    (tmp_path / "request").write_bytes(pickle.dumps(request_named("owned")))
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path / "request")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
        yield process
        process.kill()


def test_a_cluster_ends_with_its_owner_even_by_sigkill(owner: subprocess.Popen[str]) -> None:
    started = KwokControlPlane(registry.get("owned"))
    remains = Remains.of(started)

    owner.send_signal(signal.SIGKILL)

    wait_until(lambda: not remains.left())
    wait_until(lambda: registry.status_of(started.record) == "ended")
    assert "owner_gone" == state_of(started).reason
    assert not list(started.dir.rglob("*.key"))
    assert ["owned"] == [cleaned.name for cleaned in registry.clean_dead()]
    assert not remains.dir.exists()


def test_what_a_killed_supervisor_leaves_is_cleaned_by_the_next_command(request_named: RequestMaker) -> None:
    started = asyncio.run(clusters.start_cluster(request_named("orphan")))
    remains = Remains.of(started)

    state_of(started).supervisor.send(signal.SIGKILL)
    wait_until(lambda: registry.status_of(started.record) in {"dead", "ended"})
    cleaned = registry.clean_dead()

    assert ["orphan"] == [one.name for one in cleaned]
    # The guardian of the killed supervisor may be ending the same processes at this moment.
    wait_until(lambda: not remains.left())
    assert not remains.dir.exists()


def test_a_cluster_that_is_kept_outlives_its_owner(owner: subprocess.Popen[str]) -> None:
    started = asyncio.run(clusters.connect_cluster("owned"))
    remains = Remains.of(started)
    asyncio.run(started.keep())

    owner.kill()
    owner.wait()
    time.sleep(1)

    assert "ready" == registry.status_of(started.record)
    assert "owned" == registry.end("owned").name
    assert [] == remains.left()
    assert not remains.dir.exists()


# The command


UP = ("--name", "cli", "--nodes", "20", "--pods", "30")


@pytest.fixture
def command(binaries: Binaries, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start ``scaletest`` with the session's programs and a state directory of its own."""
    flags = [part for name, path in binaries.paths.items() for part in ("--binary", f"{name}={path}")]
    env = {**os.environ, "SCALETEST_STATE_DIR": str(tmp_path / "state")}

    def start(*argv: str) -> subprocess.Popen[str]:
        extra = flags if argv[:2] == ("cluster", "up") else []
        return subprocess.Popen(
            [sys.executable, "-m", "scaletest", *argv, *extra],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    yield start
    start("clean", "--all").communicate(timeout=60)


def test_up_status_kubeconfig_and_down_are_one_round(command: Callable[..., subprocess.Popen[str]]) -> None:
    said, progress = (up := command("cluster", "up", *UP)).communicate(timeout=200)
    assert 0 == up.returncode, progress
    assert "20 nodes and 30 pods written" in progress
    assert "scaletest cluster down cli" in said

    told, _ = command("cluster", "status", "cli", "--format", "json").communicate(timeout=60)
    (described,) = json.loads(told)
    assert ("cli", "ready") == (described["name"], described["status"])
    assert set(COMPONENTS) == {component["name"] for component in described["components"]}
    assert described["kubeconfig"] in said

    ended, _ = (down := command("cluster", "down", "cli")).communicate(timeout=60)
    assert 0 == down.returncode
    assert ended.startswith("removed cluster cli (it was ready)")
    assert [] == [port for port in described["ports"].values() if not ports.is_free(port)]
    assert not Path(described["dir"]).exists()


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_up_takes_back_what_it_has_begun(
    command: Callable[..., subprocess.Popen[str]], tmp_path: Path, signum: signal.Signals
) -> None:
    up = command("cluster", "up", *UP)
    state = tmp_path / "state" / "clusters" / "cli" / "state.json"
    wait_until(lambda: up.poll() is not None or "kube-apiserver" in _text(state))

    up.send_signal(signum)
    _, progress = up.communicate(timeout=60)

    assert 130 == up.returncode, progress
    assert "interrupted" in progress
    assert "Traceback" not in progress
    assert not state.parent.exists()


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
