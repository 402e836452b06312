"""What flows of clients on nodes share: who and where each client is, the rollout, and how it is changed while it runs."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Generic, TypeVar

import gevent
from gevent.ssl import SSLContext

from scaletest.core.access import Credential
from scaletest.core.errors import EnvironmentProblem
from scaletest.load.connection import Endpoint, TlsContexts
from scaletest.load.flow import Flow, Host
from scaletest.load.nodeclient import NodeClient
from scaletest.load.pacing import Rollout
from scaletest.load.placement import Placement
from scaletest.load.protocol import FlowChanged, FlowStart, SetTarget
from scaletest.load.requests import Step, compile_steps

__all__ = ["NodeFlow"]

Client = TypeVar("Client", bound=NodeClient)


class NodeFlow(Flow, Generic[Client]):
    """Clients of one flow, each on the node that has the fewest. ``connected`` counts those that hold a connection now."""

    def __init__(self, host: Host, start: FlowStart, rollout_per_s: float | None) -> None:
        super().__init__(host, start)
        spec = start.spec
        self.sockets = host.sockets
        self.steps: tuple[Step, ...] = compile_steps(spec.steps, flow=start.flow)
        self.backoff = spec.on_error
        self.limit = spec.limit
        self.connected = 0
        self.random = random.Random(start.seed)
        self.endpoints: list[Endpoint] = []
        self._start = start
        self._rollout_per_s = rollout_per_s
        """Clients begun per second; None: as fast as it goes."""
        self._addresses = start.source_addresses
        self._placement = Placement(start.nodes)
        self._credentials = dict(zip(start.nodes, start.node_credentials, strict=False))
        self._contexts = TlsContexts(start.access.ca_file)
        self._authorizations: dict[Credential, str] = {}
        self._clients: list[Client] = []
        self._rollout: gevent.Greenlet | None = None

    # What clients ask for.

    def next_place(self) -> tuple[str, str | None]:
        """Return the node of the next client, and its source address."""
        index = len(self._clients)
        addresses = self._addresses
        source = addresses[index % len(addresses)] if addresses else None
        return self._placement.place() or f"agent-{index}", source

    def context_of(self, node: str) -> SSLContext:
        """Return the TLS context of a node's clients. Raises OSError when a certificate cannot be read."""
        return self._contexts.get(self._credential_of(node))

    def authorization_of(self, node: str) -> str:
        """Return the Authorization header line of a node's clients; empty when they have a certificate."""
        credential = self._credential_of(node)
        if credential.token_file is None:
            return ""
        line = self._authorizations.get(credential)
        if line is None:
            token = credential.token_file.read_text(encoding="ascii").strip()
            line = self._authorizations[credential] = f"Authorization: Bearer {token}\r\n"
        return line

    def _credential_of(self, node: str) -> Credential:
        return self._credentials.get(node, self._start.access.credential)

    # What the driver asks for.

    def set_target(self, command: SetTarget) -> FlowChanged:
        """Grow as the rollout says; clients of nodes that are gone, and the newest of too many, stop at once."""
        self._placement.add(command.nodes)
        self._placement.remove(command.gone)
        self._credentials.update(zip(command.nodes, command.node_credentials, strict=False))
        self.target = command.target
        self._rollout_per_s = command.rollout_per_s or self._rollout_per_s
        self._addresses = command.source_addresses or self._addresses
        gone = set(command.gone)
        staying = [client for client in self._clients if client.node not in gone]
        surplus = [client for client in self._clients if client.node in gone] + staying[self.target :]
        self._clients = staying[: self.target]
        for client in surplus:
            self._placement.take_away(client.node)
        self._go_on()
        connections, requests = _held(surplus)
        self._end_clients(surplus)
        return FlowChanged(self.name, len(surplus), connections, requests)

    def set_servers(self, servers: Sequence[str]) -> None:
        """Have new connections choose among these API servers."""
        self.endpoints = [Endpoint.resolve(server) for server in servers]

    def stop(self) -> None:
        """Stop all clients at once."""
        self.target = 0
        if self._rollout is not None:
            self._rollout.kill()
        clients, self._clients = self._clients, []
        self._end_clients(clients)

    def block(self) -> FlowChanged:
        """Close all connections and refuse new ones; says how many, and what was under way on them."""
        self.blocked = True
        connections, requests = _held(self._clients)
        for client in self._clients:
            client.disconnect()
        return FlowChanged(self.name, 0, connections, requests)

    def unblock(self) -> None:
        """Let clients connect again; they do so when their back-off ends."""
        self.blocked = False

    def gauges(self) -> dict[str, int]:
        """Return target, started, connected and blocked, in clients."""
        started = len(self._clients)
        return {
            "target": self.target,
            "started": started,
            "connected": self.connected,
            "blocked": started if self.blocked else 0,
        }

    # What is each flow's own.

    def _begin_client(self) -> Client:
        """Begin the next client; must not wait."""
        raise NotImplementedError

    def _end_clients(self, clients: list[Client]) -> None:
        """End clients and close their connections."""
        raise NotImplementedError

    def _prepare(self) -> None:
        """Look up and read what the first connection needs. Raises EnvironmentProblem."""
        try:
            self.endpoints = [Endpoint.resolve(server) for server in self._start.access.servers]
            first = self._start.nodes[0] if self._start.nodes else ""
            self.context_of(first)
            self.authorization_of(first)
        except OSError as error:
            msg = f"flow {self.name}: no connection can be made: {error}"
            raise EnvironmentProblem(msg) from error

    def _go_on(self) -> None:
        """Begin clients up to the target, at the rollout's rate."""
        if self._rollout is not None:
            self._rollout.kill()
        self._rollout = gevent.spawn(self._roll_out)

    def _roll_out(self) -> None:
        assert self._rollout_per_s is not None
        index, of = self._start.share
        # Shares take turns.
        begin_s = time.monotonic() + index / of / self._rollout_per_s
        rollout, first = Rollout(begin_s, self._rollout_per_s), len(self._clients)
        while len(self._clients) < self.target:
            wait_s = rollout.wait_s(time.monotonic(), len(self._clients) - first)
            if wait_s > 0:
                gevent.sleep(wait_s)
            self._clients.append(self._begin_client())


def _held(clients: Sequence[NodeClient]) -> tuple[int, int]:
    """Count the open connections of some clients, and the requests and watches under way on them."""
    connections = [connection for client in clients for connection in client.connections()]
    return len(connections), sum(connection.is_busy for connection in connections)
