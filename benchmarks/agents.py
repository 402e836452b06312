"""What agents cost: driver CPU and memory, event-loop lag, and the time to read bodies beside a plain loop.

Against a running cluster, with a client certificate:

    python benchmarks/agents.py rollout --server https://127.0.0.1:PORT --ca ca.crt --cert admin.crt --key admin.key
    python benchmarks/agents.py bodies  --server … --path '/api/v1/pods?resourceVersion=0'

``rollout`` starts agents that each make a small LIST (``limit=1``, every 30 s) and reports when all are connected.
``bodies`` compares the CPU per MB of one agent that reads a large LIST with that of a blocking ``recv_into`` loop.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import socket
import ssl
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scaletest.core.access import ApiAccess, Credential
from scaletest.core.histogram import Histogram
from scaletest.core.journal import Record
from scaletest.load.client import LocustDriver
from scaletest.load.protocol import FlowStart
from scaletest.profile.schema import FlowSpec


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["rollout", "bodies"])
    parser.add_argument("--server", required=True)
    parser.add_argument("--ca", type=Path, required=True)
    parser.add_argument("--cert", type=Path, required=True)
    parser.add_argument("--key", type=Path, required=True)
    parser.add_argument("--agents", type=int, default=7000)
    parser.add_argument("--rate", type=float, default=80.0, help="agents started per second")
    parser.add_argument("--path", default="/api/v1/pods?resourceVersion=0", help="what `bodies` reads")
    parser.add_argument("--gzip", action="store_true", help="whether `bodies` accepts gzip")
    parser.add_argument("--watch", action="store_true", help="whether agents of `rollout` watch, too")
    options = parser.parse_args()
    access = ApiAccess((options.server,), options.ca, Credential("system:masters", options.cert, options.key))
    asyncio.run({"rollout": rollout, "bodies": bodies}[options.what](options, access))


def flow_records(records: list[Record]) -> list[Record]:
    return [record for record in records if record["kind"] == "flow"]


def merged(records: list[Record], key: str) -> Histogram:
    parts = [step[key] for record in flow_records(records) for step in record["steps"].values()]
    return Histogram.merged(Histogram.from_json(part) for part in parts)


def outcomes(records: list[Record]) -> dict[str, int]:
    total: dict[str, int] = {}
    for record in flow_records(records):
        for step in record["steps"].values():
            for outcome, count in step["outcomes"].items():
                total[outcome] = total.get(outcome, 0) + count
    return total


def spec_of(agents: int, rate: float, steps: list[dict[str, Any]]) -> FlowSpec:
    return FlowSpec.model_validate({"agents": {"count": agents, "rollout": f"{rate:f}/s"}, "steps": steps})


async def rollout(options: argparse.Namespace, access: ApiAccess) -> None:
    steps: list[dict[str, Any]] = [
        {
            "list": "/api/v1/nodes?resourceVersion=0&limit=1&fieldSelector=metadata.name=none",
            "every": "30s",
            "label": "small",
        }
    ]
    if options.watch:
        steps.append({"watch": "pods", "fieldSelector": "spec.nodeName={node}"})
    spec = spec_of(options.agents, options.rate, steps)
    records: list[Record] = []
    with tempfile.TemporaryDirectory() as directory:
        driver = await LocustDriver.spawn(Path(directory) / "journal.jsonl", time.monotonic(), records.append)
        await asyncio.sleep(1.5)
        base = next(record for record in records if record["kind"] == "driver")
        began_s = time.monotonic()
        await driver.start_flow(FlowStart("agents", spec, access, options.agents))
        while not (flows := flow_records(records)) or flows[-1]["connected"] < options.agents:
            await asyncio.sleep(0.2)
            if driver.exited.done() or time.monotonic() - began_s > 2 * options.agents / options.rate + 30:
                break
        print(f"{flows[-1]['connected']:,} of {options.agents:,} connected after {time.monotonic() - began_s:.1f} s")
        rising = [record for record in records if record["kind"] == "driver"]
        await asyncio.sleep(10)
        holding = [record for record in records if record["kind"] == "driver"][len(rising) :]
        await driver.stop()
    for title, part in (("rollout", rising), ("holding", holding)):
        span_s, cpu_s = part[-1]["t"] - part[0]["t"], part[-1]["cpu_s"] - part[0]["cpu_s"]
        lag = Histogram.merged(Histogram.from_json(record["lag_us"]) for record in part)
        print(
            f"{title}: driver CPU {cpu_s:.1f} s in {span_s:.0f} s ({cpu_s / span_s:.2f} cores), "
            f"lag p50 {lag.quantile(0.5) / 1000:.2f} ms, p99 {lag.quantile(0.99) / 1000:.2f} ms, max {lag.quantile(1) / 1000:.0f} ms"
        )
    rss, sockets = holding[-1]["rss_bytes"], holding[-1]["sockets"]
    print(
        f"RSS {rss / 2**20:.0f} MiB, before {base['rss_bytes'] / 2**20:.0f}: {(rss - base['rss_bytes']) / options.agents / 1024:.1f} KiB an agent"
    )
    latency, connect = merged(records, "latency_us"), merged(records, "connect_us")
    print(f"{outcomes(records)}, sockets {sockets:,}")
    print(
        f"latency p50 {latency.quantile(0.5) / 1000:.1f} ms, p99 {latency.quantile(0.99) / 1000:.1f} ms; connect p50 {connect.quantile(0.5) / 1000:.1f} ms"
    )


async def bodies(options: argparse.Namespace, access: ApiAccess) -> None:
    plain = [await asyncio.to_thread(plain_loop, options, access) for _ in range(3)]
    step = {"list": options.path, "every": "1ms", "label": "body", "gzip": options.gzip}
    records: list[Record] = []
    with tempfile.TemporaryDirectory() as directory:
        driver = await LocustDriver.spawn(Path(directory) / "journal.jsonl", time.monotonic(), records.append)
        await asyncio.sleep(1.2)
        await driver.start_flow(FlowStart("bodies", spec_of(1, 1, [step]), access, 1))
        await asyncio.sleep(12)
        await driver.stop()
    drivers = [record for record in records if record["kind"] == "driver"]
    ours_bytes = sum(step["bytes"] for record in flow_records(records) for step in record["steps"].values())
    idle_cpu_s = 0.005 * (drivers[-1]["t"] - drivers[0]["t"])
    ours = (drivers[-1]["cpu_s"] - drivers[0]["cpu_s"] - idle_cpu_s) / (ours_bytes / 1e6) * 1000
    print(f"plain loop: {', '.join(f'{value:.2f}' for value in plain)} ms CPU per MB")
    print(f"agent:      {ours:.2f} ms CPU per MB ({ours_bytes / 1e6:.0f} MB, {outcomes(records)})")
    print(f"ratio       {ours / sorted(plain)[1]:.2f}")


def plain_loop(options: argparse.Namespace, access: ApiAccess) -> float:
    """Read bodies with a blocking socket into one buffer for 4 s; return ms of CPU per MB."""
    context = ssl.create_default_context(cafile=access.ca_file)
    assert access.credential.cert_file is not None
    context.load_cert_chain(access.credential.cert_file, access.credential.key_file)
    parts = urlsplit(options.server)
    buffer, total = bytearray(256 * 1024), 0
    request = f"GET {options.path} HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\nAccept-Encoding: identity\r\n\r\n"
    with (
        socket.create_connection((parts.hostname, parts.port)) as raw,
        context.wrap_socket(raw, server_hostname=parts.hostname) as tls,
    ):
        began_s, cpu_s = time.monotonic(), thread_cpu_s()
        while time.monotonic() - began_s < 4:
            tls.sendall(request.encode())
            tail = b""
            while not tail.endswith(b"0\r\n\r\n"):
                count = tls.recv_into(buffer)
                total += count
                tail = (tail + bytes(buffer[max(0, count - 5) : count]))[-5:]
        return (thread_cpu_s() - cpu_s) / (total / 1e6) * 1000


def thread_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
