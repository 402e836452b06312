"""How fast a cluster is filled, whether the API server can tell how it was, and whether the fleet stays.

    python benchmarks/seeding.py ways       # stamping beside `kwokctl scale node`, until all nodes are Ready
    python benchmarks/seeding.py encodings  # restarts and LISTs over fleets stamped, created through the API, and JSON
    python benchmarks/seeding.py hold       # lease renewals, NotReady nodes and requests after seeding

Each brings up control planes of its own, one after the other. ``--nodes 7000`` is the full size; with it,
``kwokctl scale node`` takes minutes. Times include whatever else the machine does: CPU seconds are given beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import psutil

from scaletest.controlplane.binaries import Binaries, TerminalProgress, locate_all
from scaletest.controlplane.cluster import ClusterRequest, KwokControlPlane, start_cluster
from scaletest.controlplane.host import read_host
from scaletest.controlplane.identities import MASTERS
from scaletest.controlplane.limits import default_limits, floor_bytes
from scaletest.core.access import ApiAccess
from scaletest.core.kubernetesapi import ApiError, KubernetesApi
from scaletest.core.processes import ProcessId
from scaletest.fleet import FleetTarget, seed_fleet, wait_nodes_ready
from scaletest.fleet.batching import Put, batches
from scaletest.fleet.etcdstore import EtcdStore
from scaletest.fleet.fields import tokens_of
from scaletest.fleet.fleet import families_of
from scaletest.fleet.ready import count_ready
from scaletest.fleet.sample import Sample, make_sample
from scaletest.fleet.stamping import compile_template
from scaletest.profile.schema import ControlPlaneSpec, FleetSpec

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?resourceVersion=0"
READY_TIMEOUT_S = 1_800.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = {"ways": ways, "encodings": encodings, "hold": hold}
    parser.add_argument("what", choices=modes)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods-per-node", type=int, default=3)
    parser.add_argument("--namespaces", type=int, default=10)
    parser.add_argument("--kubernetes", default="1.37")
    parser.add_argument("--heartbeat-factor", type=int, default=1)
    parser.add_argument("--restarts", type=int, default=3, help="restarts of the API server for each fleet")
    options = parser.parse_args()
    asyncio.run(modes[options.what](options))


def say(text: str) -> None:
    print(text, flush=True)


def load() -> str:
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def spec_of(options: argparse.Namespace, via: str = "etcd") -> FleetSpec:
    pool = {"name": "gpu", "nodes": options.nodes, "podsPerNode": options.pods_per_node}
    return FleetSpec.model_validate({"via": via, "pools": [pool], "namespaces": options.namespaces})


def programs(options: argparse.Namespace) -> Binaries:
    return locate_all(options.kubernetes, ControlPlaneSpec().etcd, progress=TerminalProgress())


@asynccontextmanager
async def cluster_of(options: argparse.Namespace) -> AsyncIterator[tuple[KwokControlPlane, FleetTarget]]:
    host = read_host()
    spec = ControlPlaneSpec.model_validate(
        {"kubernetes": options.kubernetes, "heartbeatFactor": options.heartbeat_factor}
    )
    cluster = await start_cluster(
        ClusterRequest(
            name=f"bench-{os.getpid()}",
            spec=spec,
            nodes=options.nodes,
            binaries=programs(options),
            limits=default_limits(host),
            floor_bytes=floor_bytes(host),
            owner=ProcessId.current(),
        )
    )
    try:
        yield cluster, FleetTarget(await cluster.access(MASTERS), cluster.etcd_endpoint, cluster.controllers_paused)
    finally:
        await cluster.stop()


def pid_of(cluster: KwokControlPlane, name: str) -> int | None:
    return next((component.pid for component in cluster.components() if component.name == name), None)


# --- ways ------------------------------------------------------------------------------------------------------


async def ways(options: argparse.Namespace) -> None:
    say(f"{options.nodes} nodes, heartbeat factor {options.heartbeat_factor}, {load()}")
    async with cluster_of(options) as (_, target):
        began_s = time.monotonic()
        state = await seed_fleet(spec_of(options), target, rng=random.Random(1), on_progress=lambda *_: None)
        written_s = time.monotonic() - began_s
        await wait_nodes_ready(target.access, options.nodes, READY_TIMEOUT_S)
        stamped_s = time.monotonic() - began_s
        pods = state.counts["Pod"]
    say(f"stamped, with {options.nodes} leases and {pods} pods: written {written_s:.2f} s, all Ready {stamped_s:.2f} s")
    async with cluster_of(options) as (cluster, target):
        began_s = time.monotonic()
        scaling = await asyncio.create_subprocess_exec(
            *(programs(options).paths["kwokctl"], "scale", "node"),
            *("--name", cluster.name, "--replicas", str(options.nodes)),
            env={**os.environ, "KWOK_WORKDIR": str(cluster.layout.workdir)},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, log = await scaling.communicate()
        if scaling.returncode:
            raise SystemExit(log.decode())
        returned_s = time.monotonic() - began_s
        await wait_nodes_ready(target.access, options.nodes, READY_TIMEOUT_S)
        scaled_s = time.monotonic() - began_s
    say(f"kwokctl scale node, without pods: returned {returned_s:.2f} s, all Ready {scaled_s:.2f} s")
    say(f"stamping is {scaled_s / stamped_s:.1f} times faster; {load()}")


# --- encodings -------------------------------------------------------------------------------------------------


@dataclass
class Measured:
    """Wall-clock and CPU seconds of the API server, by what it did."""

    wall_s: dict[str, list[float]] = field(default_factory=dict)
    cpu_s: dict[str, list[float]] = field(default_factory=dict)

    def add(self, what: str, wall_s: float, cpu_s: float) -> None:
        self.wall_s.setdefault(what, []).append(wall_s)
        self.cpu_s.setdefault(what, []).append(cpu_s)


async def encodings(options: argparse.Namespace) -> None:
    found: dict[str, Measured] = {}
    for name in ("api", "etcd", "json"):
        async with cluster_of(options) as (cluster, target):
            began_s = time.monotonic()
            if name == "json":
                await seed_json(spec_of(options), target)
            else:
                await seed_fleet(spec_of(options, name), target, rng=random.Random(1), on_progress=lambda *_: None)
            await wait_nodes_ready(target.access, options.nodes, READY_TIMEOUT_S)
            say(f"{name}: filled in {time.monotonic() - began_s:.1f} s; {load()}")
            found[name] = await measure(cluster, target.access, options)
    words = {"api": "created through the API", "etcd": "stamped (protobuf)", "json": "written as JSON"}
    say(f"\n{options.nodes} nodes, {options.nodes * options.pods_per_node} pods, Kubernetes {options.kubernetes};")
    say("median [lowest–highest]; CPU seconds of the API server; difference from the API-created fleet by CPU\n")
    say("| what | fleet | wall s | CPU s | difference |\n|---|---|---|---|---|")
    for what in found["api"].wall_s:
        base = statistics.median(found["api"].cpu_s[what])
        for name, measured in found.items():
            wall, cpu = measured.wall_s[what], measured.cpu_s[what]
            change = statistics.median(cpu) / base - 1
            say(f"| {what} | {words[name]} | {spread(wall)} | {spread(cpu)} | {change:+.0%} |")


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} [{min(values):.2f}–{max(values):.2f}]"


async def seed_json(spec: FleetSpec, target: FleetTarget) -> None:
    """Write the copies of a fleet as JSON, which the API server decodes too: the way that stamping replaced."""
    rng = random.Random(1)
    assert target.etcd_endpoint is not None
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    async with KubernetesApi(target.access) as api, EtcdStore(target.etcd_endpoint) as store:
        samples: list[Sample] = []
        for stage in families_of(spec, rng, now):
            samples.extend([await make_sample(api, family, rng) for family in stage])
        for sample in samples:
            await store.create_all(batches(json_copies(sample)), lambda _: None)


def json_copies(sample: Sample) -> Iterator[tuple[Put, ...]]:
    family = sample.family
    templates = []
    for part, obj in zip(family.parts, sample.objects, strict=True):
        metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
        raw = json.dumps({**obj, "metadata": metadata}, separators=(",", ":")).encode()
        templates.append(compile_template(raw, tokens_of(obj, part.fields)))
    for number in range(1, family.count):
        values = family.values(number)
        yield tuple(
            Put(part.key(values).encode(), template.stamp(values))
            for part, template in zip(family.parts, templates, strict=True)
        )


async def measure(cluster: KwokControlPlane, access: ApiAccess, options: argparse.Namespace) -> Measured:
    measured = Measured()
    pods = options.nodes * options.pods_per_node
    for _ in range(options.restarts):
        await restart(cluster, access, pods, measured)
        async with KubernetesApi(access, connections=1, timeout_s=120) as api:
            await timed(cluster, measured, "quorum LIST, 5 times", partial(list_times, api, pods, 5))
            await timed(cluster, measured, "1,000 quorum GETs", partial(get_times, api, 1_000))
    return measured


def cpu_s_of(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


async def timed(cluster: KwokControlPlane, measured: Measured, what: str, do: Callable[[], Awaitable[object]]) -> None:
    pid = pid_of(cluster, "kube-apiserver")
    assert pid is not None
    cpu_s, began_s = cpu_s_of(pid), time.monotonic()
    await do()
    measured.add(what, time.monotonic() - began_s, cpu_s_of(pid) - cpu_s)


async def restart(cluster: KwokControlPlane, access: ApiAccess, pods: int, measured: Measured) -> None:
    """Kill the API server; time its successor from its start to ready, and to all pods from the watch cache."""
    old = pid_of(cluster, "kube-apiserver")
    assert old is not None
    os.kill(old, signal.SIGKILL)
    await until(partial(replaced, cluster, old))
    pid = pid_of(cluster, "kube-apiserver")
    assert pid is not None
    began_s = time.monotonic()
    async with KubernetesApi(access, connections=1, timeout_s=120) as api:
        await until(lambda: api.get_text("/readyz"))
        measured.add("restart to ready", time.monotonic() - began_s, cpu_s_of(pid))
        await until(lambda: all_pods_cached(api, pods))
        measured.add("restart to all pods in the watch cache", time.monotonic() - began_s, cpu_s_of(pid))
    await asyncio.sleep(5)


async def until(ask: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await ask()
        except ApiError:
            await asyncio.sleep(0.02)
        else:
            return


async def replaced(cluster: KwokControlPlane, old: int) -> None:
    if pid_of(cluster, "kube-apiserver") in {old, None}:
        msg = "not restarted yet"
        raise ApiError(msg, outcome="old")


async def all_pods_cached(api: KubernetesApi, pods: int) -> None:
    rows = await api.table("/api/v1/pods")
    if len(rows) < pods:
        msg = f"{len(rows)} pods"
        raise ApiError(msg, outcome="few")


async def list_times(api: KubernetesApi, pods: int, times: int) -> None:
    for _ in range(times):
        body = (await api.good("GET", "/api/v1/pods")).content
        assert body.count(b'"phase":"Running"') >= pods


async def get_times(api: KubernetesApi, times: int) -> None:
    for _ in range(times):
        await api.good("GET", "/api/v1/nodes/gpu-00001")


# --- hold ------------------------------------------------------------------------------------------------------


async def hold(options: argparse.Namespace) -> None:
    async with cluster_of(options) as (cluster, target), KubernetesApi(target.access, timeout_s=60) as api:
        before = await requests_of(api)
        began_s = time.monotonic()
        state = await seed_fleet(spec_of(options), target, rng=random.Random(1), on_progress=lambda *_: None)
        say(f"written {time.monotonic() - began_s:.2f} s: {dict(state.counts)}; {load()}")
        await wait_nodes_ready(target.access, options.nodes, READY_TIMEOUT_S)
        ready_s = time.monotonic() - began_s
        say(f"all Ready {ready_s:.2f} s")
        cpu_before = {item.name: cpu_s_of(item.pid) for item in cluster.components() if item.pid}
        held_from_s = time.monotonic()
        end_s = held_from_s + 1.5 * cluster.heartbeat.grace_period_s
        renewals: dict[str, set[str]] = {}
        lowest = options.nodes
        while time.monotonic() < end_s:
            try:
                rows = await api.table("/api/v1/nodes")
                leases = (await api.get(LEASES))["items"]
            except ApiError as error:
                say(f"{time.monotonic() - began_s:.0f} s: {error}")
                continue
            lowest = min(lowest, count_ready(rows))
            for lease in leases:
                renewals.setdefault(lease["metadata"]["name"], set()).add(lease["spec"]["renewTime"])
            # Three looks for each renewal: seldom enough not to be the load.
            await asyncio.sleep(cluster.heartbeat.renew_interval_s / 3)
        held_s = time.monotonic() - held_from_s
        cores = {
            item.name: (cpu_s_of(item.pid) - cpu_before[item.name]) / held_s
            for item in cluster.components()
            if item.pid and item.name in cpu_before
        }
        counts = sorted(len(times) for times in renewals.values())
        say(
            f"1.5 × grace ({1.5 * cluster.heartbeat.grace_period_s:.0f} s) later: lowest number of Ready nodes {lowest}"
        )
        say(f"renewals seen of a lease: fewest {counts[0] - 1}, median {statistics.median(counts) - 1:.0f}; {load()}")
        parts = ", ".join(f"{name} {value:.2f}" for name, value in cores.items())
        say(f"cores while it held: {sum(cores.values()):.2f} ({parts}); expected {cluster.heartbeat.cost_cores:.2f}")
        writes = (await requests_of(api)) - before
        say("writes since before the seeding: " + ", ".join(f"{what} {n:.0f}" for what, n in writes.most_common(12)))


async def requests_of(api: KubernetesApi) -> Counter[str]:
    """Count the API server's writes by verb, resource and code."""
    counts: Counter[str] = Counter()
    for line in (await api.get_text("/metrics")).splitlines():
        if line.startswith("apiserver_request_total{"):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            if labels["verb"] in {"POST", "PUT", "PATCH", "DELETE"}:
                name = f"{labels['verb']} {labels['resource']}/{labels['subresource']} {labels['code']}"
                counts[name] += int(float(line.rsplit(" ", 1)[1]))
    return counts


if __name__ == "__main__":
    main()
