"""What a probe is: one small question to one API server as one identity, answered by one observation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from scaletest.core.apiclient import Answer, ApiClient
from scaletest.core.resources import parse_resource
from scaletest.probes.readiness import TABLE_ACCEPT, TABLE_PATH, NodeCounts, count_nodes
from scaletest.profile.schema import ProbeSpec

__all__ = ["FakeProbe", "NodeReadinessProbe", "Observation", "OperatorProbe", "Probe", "make_probe", "probe_path"]

UNFINISHED: Final = "unfinished"
"""Outcome of a request that the end of the run cut off: no answer yet, and not yet timed out."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one request found out; ``nodes`` only where nodes were counted."""

    outcome: str
    latency_s: float
    status: int | None = None
    reason: str | None = None
    nodes: NodeCounts | None = None

    @classmethod
    def of(cls, answer: Answer) -> Observation:
        """Return the observation that an answer is by itself."""
        return cls(answer.outcome, answer.latency_s, answer.status, answer.reason)

    def fields(self, kind: str) -> dict[str, Any]:
        """Return the fields of a record of ``kind`` (``probe`` or ``probe.nodes``)."""
        fields: dict[str, Any] = {
            "latency_s": round(self.latency_s, 6),
            "ok": self.outcome == "ok",
            "status": self.status,
            "outcome": self.outcome,
            "reason": self.reason,
        }
        if kind == "probe.nodes":
            nodes = self.nodes
            fields["ready"] = nodes and nodes.ready
            fields["not_ready"] = nodes and nodes.not_ready
            fields["total"] = nodes and nodes.total
        return fields


class Probe(Protocol):
    """One identity at one server; ``kind`` is the kind of its records."""

    kind: str

    async def observe(self) -> Observation:
        """Ask once. Never raises for what the server or the network does."""
        ...

    async def close(self) -> None:
        """Let go of the connection."""
        ...


class OperatorProbe:
    """Operator access: GET one path, as ``kubectl get`` would, and read all of it."""

    kind = "probe"

    def __init__(self, client: ApiClient, *, path: str, timeout_s: float) -> None:
        self._client = client
        self._path = path
        self._timeout_s = timeout_s

    async def observe(self) -> Observation:
        """Ask once."""
        return Observation.of(await self._client.get(self._path, timeout_s=self._timeout_s))

    async def close(self) -> None:
        """Let go of the connection."""
        await self._client.close()


class NodeReadinessProbe:
    """LIST of nodes as a table, counted by the STATUS column that people see."""

    kind = "probe.nodes"

    def __init__(self, client: ApiClient, *, timeout_s: float) -> None:
        self._client = client
        self._timeout_s = timeout_s

    async def observe(self) -> Observation:
        """List and count once; a body that is no table of nodes is an ``error``."""
        answer = await self._client.get(TABLE_PATH, timeout_s=self._timeout_s, accept=TABLE_ACCEPT)
        if not answer.ok:
            return Observation.of(answer)
        try:
            nodes = count_nodes(answer.body)
        except ValueError as error:
            return Observation("error", answer.latency_s, answer.status, str(error))
        return Observation("ok", answer.latency_s, answer.status, None, nodes)

    async def close(self) -> None:
        """Let go of the connection."""
        await self._client.close()


@dataclass
class FakeProbe:
    """Answers from a script."""

    script: Callable[[], Awaitable[Observation]]
    kind: str = "probe"
    closed: bool = False

    async def observe(self) -> Observation:
        """Call the script."""
        return await self.script()

    async def close(self) -> None:
        """Note that the probe was closed."""
        self.closed = True


def probe_path(spec: ProbeSpec) -> str:
    """Return the URL path that an operator probe asks for."""
    assert spec.get is not None
    return spec.get if spec.get.startswith("/") else parse_resource(spec.get).path(namespace=spec.namespace)


def make_probe(spec: ProbeSpec, client: ApiClient) -> Probe:
    """Return the probe that a spec asks for, on a client that it owns from now on."""
    if spec.get is not None:
        return OperatorProbe(client, path=probe_path(spec), timeout_s=spec.timeout_s)
    return NodeReadinessProbe(client, timeout_s=spec.timeout_s)
