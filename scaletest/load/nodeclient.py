"""A client that stands on a node: its identity there, its connections, and what it does after a failure."""

from __future__ import annotations

import errno
import time
from random import Random
from typing import Protocol

import gevent
from gevent.ssl import SSLContext

from scaletest.load.backoff import Retries
from scaletest.load.connection import Answer, Connection, Endpoint, Sockets, connect
from scaletest.load.metadata import BodyHead, FailureText, failure_text
from scaletest.load.outcomes import is_success
from scaletest.load.pacing import TokenBucket
from scaletest.load.requests import Step, request_bytes
from scaletest.load.statistics import FlowStatistics
from scaletest.profile.schema import BackoffSpec, ClientLimitSpec

__all__ = ["NodeClient", "NodeClientHost"]


class NodeClientHost(Protocol):
    """The flow that a client belongs to, as far as the client knows it."""

    steps: tuple[Step, ...]
    backoff: BackoffSpec
    limit: ClientLimitSpec | None
    sockets: Sockets
    endpoints: list[Endpoint]
    random: Random
    statistics: FlowStatistics
    blocked: bool
    connected: int
    """Clients that hold a connection."""

    def context_of(self, node: str) -> SSLContext:
        """Return the TLS context of a node's clients. Raises OSError when a certificate cannot be read."""

    def authorization_of(self, node: str) -> str:
        """Return the Authorization header line of a node's clients; empty when they have a certificate."""

    def tell_locust(self, step: Step, outcome: str, latency_us: int, body_bytes: int, error: Exception | None) -> None:
        """Fire Locust's request event, for whoever listens."""

    def sample(self, step: str, outcome: str, status: int | None, text: FailureText, node: str | None) -> None:
        """Journal one failure's reason."""


class NodeClient:
    """What agents and watchers have in common."""

    __slots__ = ("_authorization", "_bucket", "_connections", "_versions", "flow", "node", "source")

    def __init__(self, flow: NodeClientHost, node: str, source: str | None) -> None:
        self.flow = flow
        self.node = node
        self.source = source
        self._authorization = flow.authorization_of(node)
        self._bucket = TokenBucket(flow.limit.qps, flow.limit.burst, time.monotonic()) if flow.limit else None
        self._connections = 0
        self._versions: dict[str, str] | None = None

    def connections(self) -> list[Connection]:
        """Return the connections that are open at this moment."""
        raise NotImplementedError

    def disconnect(self) -> None:
        """Close all connections under whoever uses them."""
        raise NotImplementedError

    def wait_after(self, retries: Retries, answer: Answer, outcome: str) -> float:
        """Return the seconds to wait after a request that failed."""
        if self.flow.blocked:
            # Whoever knocks at a blocked path learns nothing, and 7,000 who do so once a second take half a core from the measurement.
            return retries.longest_s(self.flow.random.random())
        return retries.wait_s(
            # An answer whose body broke is no answer to act on.
            status=answer.status if outcome.isdigit() else None,
            retry_after_s=answer.head.retry_after_s if answer.head else None,
            answer_began=answer.began,
            outcome=outcome,
            now_s=time.monotonic(),
            draw=self.flow.random.random(),
        )

    def wait_for_token(self) -> None:
        """Wait for the client's own rate limit."""
        if self._bucket is not None and (wait_s := self._bucket.take(time.monotonic())) > 0:
            gevent.sleep(wait_s)

    def version_for(self, step: Step) -> str | None:
        """Return the version that a request names: of the same collection for a watch, else of the last LIST."""
        if self._versions is None:
            return None
        exact = step.spec.consistency == "exact"
        return self._versions.get(step.collection) or (self._versions.get("") if exact else None)

    def request_for(self, step: Step, path: str, connection: Connection) -> bytes:
        """Return the bytes of a request on a connection."""
        host = connection.endpoint.header
        return request_bytes(path, host=host, headers=step.headers, authorization=self._authorization)

    def connect(self, step: Step) -> Connection:
        """Open a connection to a server picked at random. Raises OSError, SSLError among them."""
        flow = self.flow
        if flow.blocked:
            raise _blocked()
        started_s = time.perf_counter()
        connection = connect(
            flow.sockets,
            flow.random.choice(flow.endpoints),
            flow.context_of(self.node),
            source=self.source,
            on_close=self._connection_closed,
        )
        self._connections += 1
        if self._connections == 1:
            flow.connected += 1
        if flow.blocked:
            # The path was cut while the connection was being made.
            connection.close()
            raise _blocked()
        flow.statistics.step(step.name).connect_us.record(int((time.perf_counter() - started_s) * 1e6))
        return connection

    def _connection_closed(self) -> None:
        self._connections -= 1
        if not self._connections:
            self.flow.connected -= 1

    def report(self, step: Step, outcome: str, started_s: float, answer: Answer, error: Exception | None) -> None:
        """Count a request that ended (or a watch that opened), and keep a sample of a failure."""
        latency_us = int((time.perf_counter() - started_s) * 1e6)
        flow = self.flow
        flow.statistics.step(step.name).record(outcome, latency_us, answer.body_bytes)
        if not is_success(outcome):
            self.sample(step, outcome, answer, error)
        flow.tell_locust(step, outcome, latency_us, answer.body_bytes, error)

    def sample(self, step: Step, outcome: str, answer: Answer, error: Exception | None) -> None:
        """Journal a failure's reason, a few times for each step and outcome."""
        if not self.flow.statistics.wants_sample(step.name, outcome):
            return
        if error is not None:
            text = FailureText(type(error).__name__, str(error) or None)
        else:
            body = answer.sink.data if isinstance(answer.sink, BodyHead) else b""
            text = failure_text(body, answer.head.content_type if answer.head else "")
        self.flow.sample(step.name, outcome, answer.status, text, self.node)


def _blocked() -> ConnectionRefusedError:
    return ConnectionRefusedError(errno.ECONNREFUSED, "the flow's network path is blocked")
