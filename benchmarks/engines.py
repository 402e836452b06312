"""What a request costs the generator: ours beside Locust's FastHttpUser and k6, taking turns in one run.

Against a running cluster, with a client certificate (``system:masters``, so that API Priority and Fairness plays no part):

    python benchmarks/engines.py gets   --server https://127.0.0.1:PORT --ca ca.crt --cert admin.crt --key admin.key --k6 PATH
    python benchmarks/engines.py bodies --server … --path '/api/v1/pods?resourceVersion=0'
    python benchmarks/engines.py sends  --server … --rate 500

``gets``: CPU per GET of one ConfigMap of about 400 bytes, closed loop, 16 connections, the same headers, HTTP/1.1 over TLS. CPU is user and
system time of the generator's whole process tree, statistics included; requests are counted by the API server
(``apiserver_request_total``), both between two looks within the steady part. ``bodies``: CPU per MB of a LIST's body beside a
blocking ``recv_into`` loop. ``sends``: an open loop at a rate; how late arrivals begin, and how evenly they are sent, as the variance over
the mean of the sends per 10 ms, beside those of the schedule itself. k6 is left out unless its binary is given
(``go install go.k6.io/k6@v1.8.1``).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import socket
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import psutil

from scaletest.core.access import ApiAccess, Credential
from scaletest.core.histogram import Histogram
from scaletest.core.journal import Record
from scaletest.load.client import LocustDriver
from scaletest.load.protocol import FlowStart
from scaletest.load.schedule import RateCurve, Schedule
from scaletest.profile.schema import FlowSpec

NAME = "scaletest-benchmark"
OBJECT = f"/api/v1/namespaces/default/configmaps/{NAME}"
BIN_S = 0.010
WARM_UP_S = 2.5

LOCUSTFILE = """
import ssl
from locust import FastHttpUser, constant, task

CONTEXT = ssl.create_default_context(cafile={ca!r})
CONTEXT.load_cert_chain({cert!r}, {key!r})

class Client(FastHttpUser):
    host = {server!r}
    wait_time = constant(0)
    insecure = False
    concurrency = 1
    ssl_context_factory = staticmethod(lambda cafile=None: CONTEXT)

    @task
    def get(self):
        self.client.get({path!r}, headers={{"Accept": "application/json", "Accept-Encoding": "identity"}}, name="get")
"""

K6_SCRIPT = """
import http from 'k6/http';
const url = new URL_(__ENV.SERVER);
export const options = {{
  vus: {connections}, duration: '{seconds}s', discardResponseBodies: true, noConnectionReuse: false,
  tlsAuth: [{{ domains: [{host!r}], cert: open({cert!r}), key: open({key!r}) }}],
}};
const params = {{ headers: {{ 'Accept': 'application/json', 'Accept-Encoding': 'identity' }} }};
export default function () {{ http.get({url!r}, params); }}
""".replace("const url = new URL_(__ENV.SERVER);\n", "")


@dataclass(frozen=True)
class Server:
    """An API server, and the files of a client that may do everything."""

    url: str
    ca: Path
    cert: Path
    key: Path

    @property
    def access(self) -> ApiAccess:
        return ApiAccess((self.url,), self.ca, Credential("system:masters", self.cert, self.key))

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        context.load_cert_chain(self.cert, self.key)
        return context

    def ask(self, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
        connection = http.client.HTTPSConnection(urlsplit(self.url).netloc, context=self.context(), timeout=30)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data

    def answered(self, resource_name: str, verb: str) -> int:
        """Requests for a resource that the server has answered so far, by its own count."""
        total = 0.0
        for line in self.ask("GET", "/metrics")[1].decode().splitlines():
            if line.startswith("apiserver_request_total{") and f'resource="{resource_name}"' in line:
                total += float(line.rsplit(" ", 1)[1]) if f'verb="{verb}"' in line else 0.0
        return round(total)


@dataclass
class Window:
    """What a generator did within a steady span of time."""

    requests: int
    cpu_s: float
    seconds: float

    @property
    def cpu_us(self) -> float:
        return self.cpu_s / self.requests * 1e6


@dataclass
class Contender:
    """A generator, and its windows, one for each round."""

    name: str
    run: Callable[[], contextlib.AbstractAsyncContextManager[int]]
    """Starts it; gives its pid."""
    windows: list[Window] = field(default_factory=list)


def tree_cpu_s(pid: int) -> float:
    """User and system time of a process, its children that live, and those that it has waited for."""
    total = 0.0
    process = psutil.Process(pid)
    for item in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = item.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


async def measured(contender: Contender, count: Callable[[], int], seconds: float) -> Window:
    async with contender.run() as pid:
        await asyncio.sleep(WARM_UP_S)
        requests, cpu_s, began_s = count(), tree_cpu_s(pid), time.monotonic()
        await asyncio.sleep(seconds)
        cpu_s, seconds = tree_cpu_s(pid) - cpu_s, time.monotonic() - began_s
        return Window(count() - requests, cpu_s, seconds)


@contextlib.asynccontextmanager
async def command(*arguments: str, environment: dict[str, str] | None = None) -> AsyncIterator[int]:
    process = await asyncio.create_subprocess_exec(
        *arguments,
        env={**os.environ, **(environment or {})},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


@contextlib.asynccontextmanager
async def ours(server: Server, path: str, connections: int, records: list[Record] | None = None) -> AsyncIterator[int]:
    spec = FlowSpec.model_validate(
        {"arrivals": {"process": "closed", "connections": connections}, "mix": [{"get": path, "label": "get"}]}
    )
    with tempfile.TemporaryDirectory() as directory:
        kept = records if records is not None else []
        driver = await LocustDriver.spawn(Path(directory) / "journal.jsonl", time.monotonic(), kept.append)
        try:
            await driver.start_flow(FlowStart("engine", spec, server.access, connections))
            yield driver.process_id.pid
        finally:
            await driver.stop()


@contextlib.asynccontextmanager
async def fast_http_user(server: Server, path: str, connections: int) -> AsyncIterator[int]:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "locustfile.py"
        file.write_text(
            LOCUSTFILE.format(
                ca=str(server.ca), cert=str(server.cert), key=str(server.key), server=server.url, path=path
            )
        )
        users = (
            "--headless", "--users", str(connections), "--spawn-rate", "100", "--only-summary", "--skip-log",
        )  # fmt: skip
        async with command(sys.executable, "-m", "locust", "-f", str(file), *users) as pid:
            yield pid


@contextlib.asynccontextmanager
async def k6(binary: str, server: Server, path: str, connections: int) -> AsyncIterator[int]:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "script.js"
        file.write_text(
            K6_SCRIPT.format(
                connections=connections,
                seconds=600,
                host=urlsplit(server.url).hostname,
                cert=str(server.cert),
                key=str(server.key),
                url=server.url + path,
            )
        )
        # Go reads the authorities that it trusts from here.
        async with command(
            binary, "run", "--quiet", "--no-usage-report", "--summary-mode", "disabled", str(file),
            environment={"SSL_CERT_FILE": str(server.ca)},
        ) as pid:  # fmt: skip
            yield pid


def contenders(options: argparse.Namespace, server: Server, path: str, connections: int) -> list[Contender]:
    found = [
        Contender("scaletest", lambda: ours(server, path, connections)),
        Contender("FastHttpUser", lambda: fast_http_user(server, path, connections)),
    ]
    if options.k6:
        found.append(Contender("k6", lambda: k6(options.k6, server, path, connections)))
    return found


def in_turn(items: list[Contender], round_: int) -> list[Contender]:
    """Every round in another order: whoever comes first finds a cooler server."""
    turned = items[round_ % len(items) :] + items[: round_ % len(items)]
    return turned[::-1] if round_ % 2 else turned


async def gets(options: argparse.Namespace, server: Server) -> None:
    data = json.dumps({"metadata": {"name": NAME}, "data": {"text": "x" * 130}})
    server.ask("POST", OBJECT.rpartition("/")[0], data)
    status, body = server.ask("GET", OBJECT)
    print(
        f"GET of {len(body)} bytes (status {status}), closed loop, {options.connections} connections, {options.seconds:g} s each"
    )
    each = contenders(options, server, OBJECT, options.connections)
    try:
        for round_ in range(options.rounds):
            for item in in_turn(each, round_):
                window = await measured(item, lambda: server.answered("configmaps", "GET"), options.seconds)
                item.windows.append(window)
                print(f"  {item.name:13} {window.requests / window.seconds:6.0f}/s {window.cpu_us:6.1f} us")
    finally:
        server.ask("DELETE", OBJECT)
    told(each, lambda window: window.cpu_us, "us of CPU per GET")


def told(each: list[Contender], figure: Callable[[Window], float], unit: str) -> None:
    medians = {item.name: statistics.median(figure(window) for window in item.windows) for item in each}
    print()
    for item in each:
        values = [figure(window) for window in item.windows]
        ratios = [
            f"{statistics.median(figure(mine) / figure(theirs) for mine, theirs in zip(each[0].windows, item.windows, strict=True)):.2f}"
        ]
        print(
            f"{item.name:13} {medians[item.name]:7.2f} {unit} ({min(values):.2f} to {max(values):.2f}); "
            f"scaletest takes {ratios[0]} of it (median of the rounds' ratios)"
        )


async def bodies(options: argparse.Namespace, server: Server) -> None:
    _, body = server.ask("GET", options.path)
    megabytes = len(body) / 1e6
    print(f"LIST of {megabytes:.2f} MB, closed loop, 1 connection, {options.seconds:g} s each")
    each = [Contender("scaletest", lambda: ours(server, options.path, 1))]
    each.append(
        Contender(
            "recv_into",
            lambda: command(
                sys.executable,
                __file__,
                "--plain",
                server.url,
                str(server.ca),
                str(server.cert),
                str(server.key),
                options.path,
            ),
        )
    )
    each += contenders(options, server, options.path, 1)[1:]
    resource_name = options.path.partition("?")[0].rsplit("/", 1)[-1]
    for round_ in range(options.rounds):
        for item in in_turn(each, round_):
            window = await measured(item, lambda: server.answered(resource_name, "LIST"), options.seconds)
            item.windows.append(window)
            print(f"  {item.name:13} {window.requests:4} LISTs {window.cpu_us / 1000 / megabytes:6.2f} ms/MB")
    told(each, lambda window: window.cpu_us / 1000 / megabytes, "ms of CPU per MB")


def plain_loop(url: str, ca: str, cert: str, key: str, path: str) -> None:
    """Read bodies with a blocking socket into one buffer, until killed."""
    context = ssl.create_default_context(cafile=ca)
    context.load_cert_chain(cert, key)
    parts = urlsplit(url)
    buffer = bytearray(256 * 1024)
    request = (
        f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: application/json\r\nAccept-Encoding: identity\r\n\r\n"
    )
    with (
        socket.create_connection((parts.hostname or "", parts.port or 443)) as raw,
        context.wrap_socket(raw, server_hostname=parts.hostname) as tls,
    ):
        while True:
            tls.sendall(request.encode())
            tail = b""
            while not tail.endswith(b"0\r\n\r\n"):
                count = tls.recv_into(buffer)
                tail = (tail + bytes(buffer[max(0, count - 5) : count]))[-5:]


LISTENER = """
import atexit
from locust import User, constant, events, task

SENT = []

@events.request.add_listener
def heard(name, start_time, **_):
    SENT.append(start_time)

@events.test_stop.add_listener
def write(**_):
    with open({path!r}, "w") as file:
        file.write("\\n".join(map(repr, SENT)))

class Nobody(User):
    wait_time = constant(60)

    @task
    def nothing(self):
        pass
"""


async def sends(options: argparse.Namespace, server: Server) -> None:
    server.ask("POST", OBJECT.rpartition("/")[0], json.dumps({"metadata": {"name": NAME}, "data": {"text": "x" * 130}}))
    try:
        for process in ("poisson", "even"):
            await sends_of(options, server, process)
    finally:
        server.ask("DELETE", OBJECT)


async def sends_of(options: argparse.Namespace, server: Server, process: str) -> None:
    arrivals = {"rate": f"{options.rate:f}/s", "process": process, "connections": options.connections}
    spec = FlowSpec.model_validate({"arrivals": arrivals, "mix": [{"get": OBJECT, "label": "get"}]})
    records: list[Record] = []
    with tempfile.TemporaryDirectory() as directory:
        sent = Path(directory) / "sent"
        (Path(directory) / "listener.py").write_text(LISTENER.format(path=str(sent)))
        listener = FlowSpec.model_validate({"locustfile": {"path": "listener.py", "users": 1, "spawn": "1/s"}})
        driver = await LocustDriver.spawn(Path(directory) / "journal.jsonl", time.monotonic(), records.append)
        await driver.start_flow(FlowStart("listener", listener, server.access, 1, directory=Path(directory)))
        await driver.start_flow(FlowStart("engine", spec, server.access, options.connections))
        await asyncio.sleep(options.seconds)
        await driver.stop_flow("engine")
        await driver.stop_flow("listener")
        times = sorted(float(line) for line in sent.read_text().splitlines())
        await driver.stop()
    ours_of = [record for record in records if record["kind"] == "flow" and record["flow"] == "engine"]
    lag = Histogram.merged(Histogram.from_json(record["arrivals"]["lag_us"]) for record in ours_of)
    due, dropped = (sum(record["arrivals"][key] for record in ours_of) for key in ("due", "dropped"))
    schedule = Schedule(RateCurve((), options.rate), 0.0, Random(1), poisson=process == "poisson")
    asked = [schedule.next_due_s() for _ in range(len(times))]
    outcomes: dict[str, int] = {}
    latency = Histogram()
    service = Histogram()
    for step in (step for record in ours_of for step in record["steps"].values()):
        latency.merge(Histogram.from_json(step["latency_us"]))
        service.merge(Histogram.from_json(step["service_us"])) if "service_us" in step else None
        for outcome, count in step["outcomes"].items():
            outcomes[outcome] = outcomes.get(outcome, 0) + count
    print(
        f"{process:8} {options.rate:g}/s: {due:,} due, {dropped} dropped, {outcomes}; begun late p50 {lag.quantile(0.5) / 1000:.2f}, "
        f"p99 {lag.quantile(0.99) / 1000:.2f} ms; latency p50 {latency.quantile(0.5) / 1000:.2f}, from the send "
        f"{service.quantile(0.5) / 1000:.2f} ms; sends per 10 ms: variance/mean {unevenness(times):.2f}, of the schedule {unevenness(asked):.2f}"
    )


def unevenness(times: list[float]) -> float:
    """Variance over mean of the number of times in each 10 ms: 0 for even gaps, 1 for a Poisson process."""
    counts = [0] * int((times[-1] - times[0]) / BIN_S)
    for item in times:
        if (index := int((item - times[0]) / BIN_S)) < len(counts):
            counts[index] += 1
    return statistics.variance(counts) / statistics.mean(counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["gets", "bodies", "sends"])
    parser.add_argument("--server", required=True)
    parser.add_argument("--ca", type=Path, required=True)
    parser.add_argument("--cert", type=Path, required=True)
    parser.add_argument("--key", type=Path, required=True)
    parser.add_argument("--k6", help="k6's binary")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=6.0, help="length of a window")
    parser.add_argument("--rate", type=float, default=500.0, help="arrivals per second of `sends`")
    parser.add_argument("--path", default="/api/v1/pods?resourceVersion=0", help="what `bodies` reads")
    options = parser.parse_args()
    server = Server(options.server, options.ca, options.cert, options.key)
    asyncio.run({"gets": gets, "bodies": bodies, "sends": sends}[options.what](options, server))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--plain"]:
        plain_loop(*sys.argv[2:])
    else:
        main()
