"""What tests of the load driver stand on: certificates, a TLS server, a driver whose flows they run."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import json
import ssl
import threading
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from scaletest.core.access import ApiAccess, Credential
from scaletest.core.histogram import Histogram
from scaletest.core.journal import Record
from scaletest.load.client import LocustDriver
from scaletest.load.protocol import FlowStart
from scaletest.profile.schema import FlowSpec


class Authority:
    """A certificate authority for tests; its files lie in one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
        certificate = self._sign(self._name, self._key.public_key(), x509.BasicConstraints(ca=True, path_length=None))
        self.ca_file = directory / "ca.crt"
        self.ca_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def _sign(self, name: x509.Name, key: Any, *extensions: Any) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(hours=10))
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def issue(self, name: str) -> tuple[Path, Path]:
        """Issue a certificate for 127.0.0.1; return the files of certificate and key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        host = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        cert_file, key_file = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        cert_file.write_bytes(self._sign(subject, key.public_key(), host).public_bytes(serialization.Encoding.PEM))
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return cert_file, key_file

    def credential(self, name: str) -> Credential:
        """Issue a client certificate."""
        return Credential(name, *self.issue(name))


@dataclass
class TestServer:
    """The server, as tests see it."""

    __test__ = False

    url: str
    authority: Authority
    credential: Credential

    @property
    def access(self) -> ApiAccess:
        """Access with a client certificate."""
        return ApiAccess((self.url,), self.authority.ca_file, self.credential)

    def get(self, path: str) -> bytes:
        """GET with the standard library."""
        context = ssl.create_default_context(cafile=self.authority.ca_file)
        with urllib.request.urlopen(self.url + path, context=context, timeout=10) as response:
            data: bytes = response.read()
        return data

    def log(self, flow: str) -> list[dict[str, Any]]:
        """Requests of a flow, in order."""
        agent = f"User-Agent: scaletest/{flow}"
        return [entry for entry in json.loads(self.get("/log")) if agent in entry["headers"]]


@dataclass
class FlowResult:
    """What the journal says of one flow."""

    flow: str
    records: list[Record] = field(default_factory=list)

    @property
    def flows(self) -> list[Record]:
        """Its ``flow`` records."""
        return [record for record in self.records if record["kind"] == "flow"]

    @property
    def samples(self) -> list[Record]:
        """Its ``flow.sample`` records."""
        return [record for record in self.records if record["kind"] == "flow.sample"]

    def outcomes(self, step: str | None = None) -> dict[str, int]:
        """Outcomes of a step, or of all."""
        total: dict[str, int] = {}
        for data in self._steps(step):
            for outcome, count in data["outcomes"].items():
                total[outcome] = total.get(outcome, 0) + count
        return total

    def total(self, key: str, step: str | None = None) -> int:
        """Sum of a count of a step, or of all."""
        return sum(data.get(key, 0) for data in self._steps(step))

    def histogram(self, key: str, step: str | None = None) -> Histogram:
        """All values of a histogram."""
        return Histogram.merged(Histogram.from_json(data[key]) for data in self._steps(step) if key in data)

    def _steps(self, step: str | None) -> list[dict[str, Any]]:
        return [data for record in self.flows for name, data in record["steps"].items() if step in {None, name}]


class NamesOnceDriver(LocustDriver):
    """A driver that runs no second flow of a name: it is by their names that records and requests are told apart."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._ended: set[str] = set()

    async def start_flow(self, start: FlowStart) -> None:
        """Start a flow; see LocustDriver."""
        assert start.flow not in self._ended, f"another test had a flow {start.flow!r}, and counts would add up"
        await super().start_flow(start)

    async def stop_flow(self, flow: str) -> None:
        """Stop a flow; see LocustDriver."""
        self._ended.add(flow)
        await super().stop_flow(flow)


class Drivers:
    """An event loop in a thread, with one driver that flows of many tests share."""

    def __init__(self, directory: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.records: list[Record] = []
        self.journal = directory / "journal.jsonl"
        spawned = NamesOnceDriver.spawn(self.journal, time.monotonic(), self.records.append, interval_s=0.1)
        self.driver = self.do(spawned)

    def do(self, coroutine: Any) -> Any:
        """Run a coroutine in the loop and return its result."""
        future: Future[Any] = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        return future.result(90)

    def result(self, flow: str) -> FlowResult:
        """What is known of a flow so far."""
        return FlowResult(flow, [record for record in self.records if record.get("flow") == flow])

    def wait_for(self, flow: str, until: Callable[[FlowResult], bool], within_s: float = 30) -> FlowResult:
        """Wait until a flow's records say so."""
        deadline_s = time.monotonic() + within_s
        while not until(result := self.result(flow)):
            assert time.monotonic() < deadline_s, f"not within {within_s} s: {result.records[-3:]}"
            time.sleep(0.05)
        return result

    def start(
        self,
        flow: str,
        server: TestServer,
        steps: list[dict[str, Any]],
        *,
        agents: int = 1,
        access: ApiAccess | None = None,
        options: dict[str, Any] | None = None,
        **start: Any,
    ) -> None:
        """Start a flow of agents, all at once."""
        spec = FlowSpec.model_validate(
            {"agents": {"count": agents, "rollout": "1000/s"}, "steps": steps} | (options or {})
        )
        self.do(self.driver.start_flow(FlowStart(flow, spec, access or server.access, agents, **start)))

    def run(
        self,
        flow: str,
        server: TestServer,
        steps: list[dict[str, Any]],
        until: Callable[[FlowResult], bool] | None = None,
        **start: Any,
    ) -> FlowResult:
        """Start a flow, wait until its records say so (by default: until a request has ended), stop it."""
        self.start(flow, server, steps, **start)
        try:
            self.wait_for(flow, until or (lambda result: bool(result.outcomes())))
        finally:
            self.do(self.driver.stop_flow(flow))
        return self.result(flow)

    def close(self) -> None:
        """End the driver and the loop."""
        self.do(self.driver.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
