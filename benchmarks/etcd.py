"""What an etcd put costs the client, and how many a second there are: puts of 256 bytes into an etcd of its own.

    python benchmarks/etcd.py clients   # our gRPC over HTTP/2, gRPC's own asyncio client, and aetcd, taking turns
    python benchmarks/etcd.py flow      # the `etcd` flow through the load driver: 16 in flight; then with 2 processes
    python benchmarks/etcd.py quota     # the same flow into an etcd whose quota is used up
    python benchmarks/etcd.py rates     # an open loop: asked and achieved rate, start lag

etcd is that of scaletest's cache of binaries (built or fetched if it is not there), with its data in a temporary directory and its memory
capped. Puts are counted by etcd (``etcd_mvcc_put_total``), CPU is user and system time of the client's whole process tree, both between two
looks within the steady part.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from scaletest.controlplane.binaries import TerminalProgress, locate
from scaletest.controlplane.plan import Limits
from scaletest.controlplane.supervisor.cgroups import make_groups, remove_groups
from scaletest.core.access import ApiAccess, Credential
from scaletest.core.errors import EnvironmentProblem
from scaletest.core.histogram import Histogram
from scaletest.core.journal import Record
from scaletest.load.client import LocustDriver
from scaletest.load.protocol import FlowStart
from scaletest.profile.schema import ControlPlaneSpec, FlowSpec

KEY_BYTES = 64
VALUE_BYTES = 256
KEYS = 1000
WARM_UP_S = 1.5


@dataclass(frozen=True)
class Etcd:
    endpoint: str
    pid: int

    def puts(self) -> int:
        with urllib.request.urlopen(f"{self.endpoint}/metrics", timeout=10) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith("etcd_mvcc_put_total "):
                    return round(float(line.split()[1]))
        return 0


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for item in sockets:
            item.bind(("127.0.0.1", 0))
        return [int(item.getsockname()[1]) for item in sockets]


@contextlib.contextmanager
def etcd_of_its_own(options: argparse.Namespace, *flags: str) -> Iterator[Etcd]:
    found = locate("etcd", ControlPlaneSpec().etcd, progress=TerminalProgress())
    ports = free_ports(2)
    with tempfile.TemporaryDirectory(prefix="scaletest-etcd-", dir=options.directory) as directory:
        groups = make_groups(f"bench-{os.getpid()}", {"etcd": Limits(options.memory_mib * 2**20)})
        client, peer = (f"http://127.0.0.1:{port}" for port in ports)

        def join() -> None:
            for file in groups.procs_files("etcd"):
                file.write_text(str(os.getpid()))

        try:
            with (Path(directory) / "log").open("wb") as log:
                process = subprocess.Popen(
                    [
                        found.path, "--data-dir", f"{directory}/data", "--listen-client-urls", client,
                        "--advertise-client-urls", client, "--listen-peer-urls", peer,
                        "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}", *flags,
                    ],
                    stdout=log, stderr=log, preexec_fn=join,  # noqa: PLW1509 - no threads yet
                )  # fmt: skip
            try:
                etcd = Etcd(client, process.pid)
                wait_healthy(etcd)
                yield etcd
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(10)
        finally:
            remove_groups(groups.directories())


def wait_healthy(etcd: Etcd) -> None:
    deadline_s = time.monotonic() + 20
    while time.monotonic() < deadline_s:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{etcd.endpoint}/health", timeout=1) as answer:
            if b"true" in answer.read():
                return
        time.sleep(0.05)
    msg = "etcd did not become healthy"
    raise SystemExit(msg)


def cpu_s(pid: int) -> float:
    process = psutil.Process(pid)
    return sum(sum(item.cpu_times()[:2]) for item in (process, *process.children(recursive=True)))


@dataclass
class Window:
    puts_per_s: float
    client_us: float
    etcd_us: float


def measure_window(etcd: Etcd, client_pid: int, seconds: float) -> Window:
    began_s, puts, client_s, etcd_s = time.monotonic(), etcd.puts(), cpu_s(client_pid), cpu_s(etcd.pid)
    time.sleep(seconds)
    client_s, etcd_s, puts, took_s = (
        cpu_s(client_pid) - client_s, cpu_s(etcd.pid) - etcd_s, etcd.puts() - puts, time.monotonic() - began_s,
    )  # fmt: skip
    return Window(puts / took_s, client_s / max(1, puts) * 1e6, etcd_s / max(1, puts) * 1e6)


def told(name: str, windows: list[Window]) -> None:
    def text(values: list[float]) -> str:
        return f"{statistics.median(values):7,.0f} ({min(values):,.0f} to {max(values):,.0f})"

    rate, client, server = (
        text([getattr(item, key) for item in windows]) for key in ("puts_per_s", "client_us", "etcd_us")
    )
    print(f"{name:<26} {rate:>28} puts/s {client:>22} µs client {server:>22} µs etcd", flush=True)


# --- clients ---------------------------------------------------------------------------------------------------


def clients(options: argparse.Namespace) -> None:
    with etcd_of_its_own(options) as etcd:
        names = ["ours", "grpc.aio", "aetcd"]
        windows: dict[str, list[Window]] = {name: [] for name in names}
        for turn in range(options.turns):
            for name in names if turn % 2 == 0 else reversed(names):
                command = [sys.executable, __file__, "client", "--name", name, "--endpoint", etcd.endpoint]
                command += ["--in-flight", str(options.in_flight)]
                with subprocess.Popen(command, stdin=subprocess.PIPE) as client:
                    time.sleep(WARM_UP_S)
                    windows[name].append(measure_window(etcd, client.pid, options.seconds))
                    assert client.stdin is not None
                    client.stdin.close()
        print(f"puts of {VALUE_BYTES} bytes, {options.in_flight} in flight, one connection, without statistics:")
        for name in names:
            told(name, windows[name])


def client(options: argparse.Namespace) -> None:
    candidates: dict[str, Callable[[argparse.Namespace], Coroutine[Any, Any, None]]] = {
        "ours": put_ours, "grpc.aio": put_grpc, "aetcd": put_aetcd,
    }  # fmt: skip
    asyncio.run(candidates[options.name](options))


def put_message(number: int) -> bytes:
    key = b"/bench/%0*d" % (KEY_BYTES - 7, number % KEYS)
    value = b"x" * VALUE_BYTES
    return b"\x0a%c%b\x12\x80\x02%b" % (len(key), key, value)


async def owner_gone() -> None:
    await asyncio.to_thread(sys.stdin.buffer.read)


async def in_flight_until_gone(count: int, put: Callable[[int], Awaitable[object]]) -> None:
    async def loop(first: int) -> None:
        number = first
        while True:
            await put(number)
            number += count

    tasks = [asyncio.create_task(loop(index)) for index in range(count)]
    await owner_gone()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def put_ours(options: argparse.Namespace) -> None:
    from scaletest.load.etcd.connection import Exchange, GrpcConnection  # noqa: PLC0415 - only what is measured

    host, port = options.endpoint.removeprefix("http://").split(":")
    number = 0

    def again(exchange: Exchange, status: Any, error: Exception | None) -> None:
        nonlocal number
        if error is None:
            assert status[0] == 0
            number += 1
            connection.request(b"/etcdserverpb.KV/Put", put_message(number), exchange)

    _, connection = await asyncio.get_running_loop().create_connection(
        lambda: GrpcConnection(f"{host}:{port}", "bench", again), host, int(port)
    )
    await connection.ready
    for _ in range(options.in_flight):
        again(Exchange(), (0, ""), None)
    await owner_gone()
    connection.close()


async def put_grpc(options: argparse.Namespace) -> None:
    import grpc.aio  # noqa: PLC0415 - only what is measured

    async with grpc.aio.insecure_channel(options.endpoint.removeprefix("http://")) as channel:
        # Bytes in, bytes out: no message is built or parsed.
        call = channel.unary_unary("/etcdserverpb.KV/Put")

        async def put(number: int) -> None:
            await call(put_message(number))

        await in_flight_until_gone(options.in_flight, put)


async def put_aetcd(options: argparse.Namespace) -> None:
    import aetcd  # noqa: PLC0415 - only what is measured

    host, port = options.endpoint.removeprefix("http://").split(":")
    async with aetcd.Client(host=host, port=int(port)) as etcd:
        value = b"x" * VALUE_BYTES

        async def put(number: int) -> None:
            await etcd.put(b"/bench/%0*d" % (KEY_BYTES - 7, number % KEYS), value)

        await in_flight_until_gone(options.in_flight, put)


# --- flow ------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def driven(etcd: Etcd, spec: dict[str, Any]) -> AsyncIterator[tuple[LocustDriver, list[Record]]]:
    """A driver with one flow that runs; and its records, which grow."""
    records: list[Record] = []
    flow = FlowSpec.model_validate(
        {"etcd": {"operations": [{"op": "put"}], "valueSize": f"{VALUE_BYTES}B", "keys": KEYS} | spec}
    )
    nobody = ApiAccess((), Path("/nonexistent"), Credential("admin"))
    with tempfile.TemporaryDirectory() as directory:
        driver = await LocustDriver.spawn(Path(directory) / "journal", time.monotonic(), records.append)
        try:
            await driver.start_flow(FlowStart("puts", flow, nobody, flow.target(0), etcd_endpoint=etcd.endpoint))
            yield driver, records
            await driver.stop_flow("puts")
        finally:
            await driver.stop()


def flow(options: argparse.Namespace) -> None:
    loads = {f"{count} process{'es' if count > 1 else ''}": {"processes": count} for count in (1, 2)}

    async def turn(etcd: Etcd, spec: dict[str, Any]) -> Window:
        closed = {"process": "closed", "clients": options.in_flight}
        async with driven(etcd, closed | spec) as (driver, _):
            await asyncio.sleep(WARM_UP_S)
            return await asyncio.to_thread(measure_window, etcd, driver.process_id.pid, options.seconds)

    windows: dict[str, list[Window]] = {name: [] for name in loads}
    with etcd_of_its_own(options) as etcd:
        for number in range(options.turns):
            for name in list(loads) if number % 2 == 0 else reversed(list(loads)):
                windows[name].append(asyncio.run(turn(etcd, loads[name])))
    print(
        f"the etcd flow: puts of {VALUE_BYTES} bytes, {options.in_flight} in flight, statistics and Locust's events included:"
    )
    for name, seen in windows.items():
        told(name, seen)


def rates(options: argparse.Namespace) -> None:
    async def asked(etcd: Etcd, rate: int, processes: int) -> None:
        async with driven(etcd, {"rate": f"{rate}/s", "processes": processes, "maxInFlight": 5_000}) as (
            driver,
            records,
        ):
            await asyncio.sleep(WARM_UP_S)
            del records[:]
            window = await asyncio.to_thread(measure_window, etcd, driver.process_id.pid, options.seconds)
        flows = [record for record in records if record["kind"] == "flow"]
        lag = Histogram.merged(Histogram.from_json(record["arrivals"]["lag_us"]) for record in flows)
        latency = Histogram.merged(
            Histogram.from_json(step["latency_us"]) for record in flows for step in record["steps"].values()
        )
        print(
            f"{rate:>7,}/s asked of {processes}: {window.puts_per_s:9,.0f} puts/s {window.client_us:5,.0f} µs client "
            f"{window.etcd_us:5,.0f} µs etcd; begun {lag.quantile(0.99) / 1e3:6.2f} ms late at p99, latency p50 "
            f"{latency.quantile(0.5) / 1e3:6.2f} ms, p99 {latency.quantile(0.99) / 1e3:6.2f} ms",
            flush=True,
        )

    with etcd_of_its_own(options) as etcd:
        for rate in (1_000, 5_000, 10_000, 20_000):
            for processes in (1, 2):
                asyncio.run(asked(etcd, rate, processes))


def quota(options: argparse.Namespace) -> None:
    async def fill(etcd: Etcd) -> None:
        async with driven(etcd, {"process": "closed", "clients": 16, "valueSize": "100KB", "keys": 20}) as (_, records):
            await asyncio.sleep(options.seconds)
        outcomes: dict[str, int] = {}
        for record in records:
            for step in record.get("steps", {}).values():
                for outcome, count in step["outcomes"].items():
                    outcomes[outcome] = outcomes.get(outcome, 0) + count
        print(outcomes, [(item["reason"], item["message"]) for item in records if item["kind"] == "flow.sample"])

    with etcd_of_its_own(options, "--quota-backend-bytes", str(32 * 2**20)) as etcd:
        asyncio.run(fill(etcd))
        print("again, with the quota used up:")
        try:
            asyncio.run(fill(etcd))
        except EnvironmentProblem as error:
            print(error.message)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["clients", "client", "flow", "rates", "quota"])
    parser.add_argument("--in-flight", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of a measured window")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--memory-mib", type=int, default=1024, help="memory cap of etcd")
    parser.add_argument(
        "--directory", help="where etcd's data goes for the time; default: the system's temporary directory"
    )
    parser.add_argument("--name", help=argparse.SUPPRESS)
    parser.add_argument("--endpoint", help=argparse.SUPPRESS)
    options = parser.parse_args()
    {"clients": clients, "client": client, "flow": flow, "rates": rates, "quota": quota}[options.what](options)


if __name__ == "__main__":
    main()
