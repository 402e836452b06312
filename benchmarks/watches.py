"""What standing watches cost: time to open them, driver memory for each, and how long events take to reach them.

    python benchmarks/watches.py              # brings up a small control plane of its own
    python benchmarks/watches.py --watches 1000 --seconds 10

One driver process opens ``--watches`` watches of ConfigMaps, each with a TLS connection of its own. Memory for each is the driver's resident
memory with all of them open, minus that with none, by their number (``/proc/PID/statm``). Then objects are written: 5 a second go to
100 of the watches, one every two seconds goes to all, since the same 5 a second to each of 7,000 would be 35,000 events a second.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from scaletest.controlplane.binaries import TerminalProgress, locate_all
from scaletest.controlplane.cluster import ClusterRequest, KwokControlPlane, start_cluster
from scaletest.controlplane.host import read_host
from scaletest.controlplane.identities import MASTERS
from scaletest.controlplane.limits import default_limits, floor_bytes
from scaletest.core.access import ApiAccess
from scaletest.core.histogram import Histogram
from scaletest.core.journal import Record
from scaletest.core.processes import ProcessId
from scaletest.load.client import LocustDriver
from scaletest.load.protocol import FlowStart
from scaletest.profile.schema import ControlPlaneSpec, FlowSpec

FEW = 100
FEW_PER_S = 5.0
ALL_PER_S = 0.5
OPEN_WITHIN_S = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--watches", type=int, default=7_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long objects are written")
    parser.add_argument("--rollout", help="watches begun per second (500/s); as fast as they open, without")
    parser.add_argument("--identity", default=MASTERS, help="who watches")
    parser.add_argument("--kubernetes", default=ControlPlaneSpec().kubernetes)
    asyncio.run(measure(parser.parse_args()))


def say(text: str) -> None:
    print(text, flush=True)


@asynccontextmanager
async def control_plane(kubernetes: str) -> AsyncIterator[KwokControlPlane]:
    host, spec = read_host(), ControlPlaneSpec.model_validate({"kubernetes": kubernetes})
    request = ClusterRequest(
        name=f"bench-{os.getpid()}",
        spec=spec,
        nodes=0,
        binaries=locate_all(spec.kubernetes, spec.etcd, progress=TerminalProgress()),
        limits=default_limits(host),
        floor_bytes=floor_bytes(host),
        owner=ProcessId.current(),
    )
    cluster = await start_cluster(request)
    try:
        yield cluster
    finally:
        await cluster.stop()


class Seen:
    """Records of a driver, and totals over a flow's."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def of(self, flow: str) -> list[dict[str, Any]]:
        return [record for record in self.records if record["kind"] == "flow" and record["flow"] == flow]

    def outcomes(self, *flows: str) -> dict[str, int]:
        total: dict[str, int] = {}
        for step in self._steps(*flows):
            for outcome, count in step["outcomes"].items():
                total[outcome] = total.get(outcome, 0) + count
        return total

    def total(self, key: str, *flows: str) -> int:
        return sum(step.get(key, 0) for step in self._steps(*flows))

    def histogram(self, key: str, *flows: str) -> Histogram:
        return Histogram.merged(Histogram.from_json(step[key]) for step in self._steps(*flows) if key in step)

    def _steps(self, *flows: str) -> list[dict[str, Any]]:
        return [step for flow in flows for record in self.of(flow) for step in record["steps"].values()]


def watching(selector: str, count: int, rollout: str | None) -> FlowSpec:
    step = {"watch": "configmaps", "namespace": "default", "labelSelector": f"scaletest.dev/flow {selector}"}
    return FlowSpec.model_validate({"watchers": {"count": count, "rollout": rollout}, "steps": [step]})


def writing(per_s: float, objects: int) -> FlowSpec:
    arrivals = {"rate": f"{per_s:g}/s", "process": "even", "connections": 2, "objects": objects}
    return FlowSpec.model_validate({"arrivals": arrivals, "mix": [{"patch": "configmaps"}]})


async def measure(options: argparse.Namespace) -> None:
    async with control_plane(options.kubernetes) as cluster:
        access, admin = await cluster.access(options.identity), await cluster.access("admin")
        (server,) = [item.pid for item in cluster.components() if item.name == "kube-apiserver"]
        assert server is not None
        with tempfile.TemporaryDirectory() as directory:
            seen = Seen()
            driver = await LocustDriver.spawn(
                Path(directory) / "j", time.monotonic(), seen.records.append, interval_s=0.25
            )
            try:
                await standing(options, driver, seen, (access, admin), psutil.Process(server))
            finally:
                await driver.stop()


async def standing(
    options: argparse.Namespace,
    driver: LocustDriver,
    seen: Seen,
    access: tuple[ApiAccess, ApiAccess],
    server: psutil.Process,
) -> None:
    """Open the watches, hold them, write to them."""
    process, few = psutil.Process(driver.process_id.pid), min(FEW, options.watches // 2)
    counts = {"all": options.watches - few, "few": few}
    # One watch first: what the first of all connections loads is not the memory of 7,000.
    await driver.start_flow(FlowStart("first", watching("= nothing", 1, None), access[0], 1))
    await until(lambda: seen.outcomes("first").get("200", 0) == 1)
    await driver.stop_flow("first")
    before, server_before = cost(process), cost(server)
    began_s = time.monotonic()
    for flow, selector in (("few", "in (to-all,to-few)"), ("all", "= to-all")):
        spec = watching(selector, counts[flow], options.rollout)
        await driver.start_flow(FlowStart(flow, spec, access[0], counts[flow]))
    await until(lambda: seen.outcomes("all", "few").get("200", 0) >= options.watches)
    opened_s = time.monotonic() - began_s
    opened, server_opened = cost(process), cost(server)
    lag = Histogram.merged(Histogram.from_json(r["lag_us"]) for r in seen.records if r["kind"] == "driver")
    await asyncio.sleep(3)
    held = cost(process)
    each = (held[1] - before[1]) / options.watches
    say(f"{options.watches:,} watches as {options.identity}, {sockets(seen):,} sockets: open after {opened_s:.1f} s")
    say(
        f"  driver {opened[0] - before[0]:.1f} s CPU, API server {server_opened[0] - server_before[0]:.1f} s; lag p99 {ms(lag, 0.99)}"
    )
    say(f"  driver {held[1] / 2**20:.0f} MiB, before {before[1] / 2**20:.0f}: {each / 1000:.1f} KB a watch")
    say(f"  API server {server_opened[1] / 2**20:.0f} MiB, before {server_before[1] / 2**20:.0f}")
    say(f"  connect p99 {ms(seen.histogram('connect_us', 'all', 'few'), 0.99)}, {seen.outcomes('all', 'few')}")
    await writes(options.seconds, driver, seen, access[1], server)


async def writes(seconds: float, driver: LocustDriver, seen: Seen, access: ApiAccess, server: psutil.Process) -> None:
    process = psutil.Process(driver.process_id.pid)
    began, server_began, marks = cost(process), cost(server), len(seen.records)
    for flow, per_s in (("to-few", FEW_PER_S), ("to-all", ALL_PER_S)):
        await driver.start_flow(FlowStart(flow, writing(per_s, 1), access, 2))
    await asyncio.sleep(seconds)
    for flow in ("to-few", "to-all"):
        await driver.stop_flow(flow)
    await asyncio.sleep(1)
    ended, server_ended = cost(process), cost(server)
    events, written = seen.histogram("event_us", "all", "few"), seen.outcomes("to-few", "to-all")
    records = [record for record in seen.records[marks:] if record["kind"] == "driver"]
    lag = Histogram.merged(Histogram.from_json(record["lag_us"]) for record in records)
    say(f"{sum(written.values())} writes in {seconds:.0f} s, {seen.total('events', 'all', 'few'):,} events")
    for flow in ("few", "all"):
        part = seen.histogram("event_us", flow)
        say(f"  {flow}: {part.count:,} events timed, p50 {ms(part, 0.5)}, p99 {ms(part, 0.99)}, max {ms(part, 1.0)}")
    say(f"  together p99 {ms(events, 0.99)}, lag p99 {ms(lag, 0.99)}")
    say(f"  driver {ended[0] - began[0]:.1f} s CPU, API server {server_ended[0] - server_began[0]:.1f} s")
    say(f"  driver {ended[1] / 2**20:.0f} MiB, {(ended[1] - began[1]) / 2**20:+.1f}")
    say(f"  reconnects {seen.total('reconnects', 'all', 'few')}, {seen.outcomes('all', 'few')}")


def sockets(seen: Seen) -> int:
    return max(int(record["sockets"]) for record in seen.records if record["kind"] == "driver")


def cost(process: psutil.Process) -> tuple[float, int]:
    """CPU seconds and resident bytes of a process."""
    times = process.cpu_times()
    return times.user + times.system, process.memory_info().rss


def ms(histogram: Histogram, quantile: float) -> str:
    return f"{histogram.quantile(quantile) / 1000:.1f} ms" if histogram.count else "-"


async def until(condition: Any) -> None:
    async with asyncio.timeout(OPEN_WITHIN_S):
        # The driver's records are looked at as they come.
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    main()
