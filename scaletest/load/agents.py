"""The ``agents`` flow: one client per node, each a Locust User, rolled out at an even rate."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any, ClassVar

import gevent
from gevent.ssl import SSLContext
from locust import User, constant
from locust.env import Environment

from scaletest.core.access import Credential
from scaletest.core.errors import EnvironmentProblem
from scaletest.load.agent import Agent
from scaletest.load.connection import Endpoint, TlsContexts
from scaletest.load.flow import Flow, Host
from scaletest.load.outcomes import is_success
from scaletest.load.pacing import Rollout
from scaletest.load.placement import Placement
from scaletest.load.protocol import FlowChanged, FlowStart, SetTarget
from scaletest.load.requests import Step, compile_steps

__all__ = ["AgentsFlow"]

STOPPED_AT_ONCE = 50
"""Agents that are killed in one turn of the event loop: 7,000 in one turn would hold it up for most of a second."""


class AgentUser(User):
    """The Locust User of an agent; each flow makes its own subclass."""

    abstract = True
    flow: ClassVar[AgentsFlow]

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.agent = self.flow.new_agent()

    def live(self) -> None:
        """Be an agent until killed."""
        self.agent.run()

    # Should an agent fail by a bug of ours, it starts over, but not in a tight loop.
    wait_time = constant(1)
    tasks: list[Any] = [live]  # noqa: RUF012 - Locust's own declaration

    def on_stop(self) -> None:
        """Close the agent's connections."""
        self.agent.close()


class AgentsFlow(Flow):
    """Agents of one flow. ``connected`` counts those that hold a connection now."""

    def __init__(self, host: Host, start: FlowStart) -> None:
        super().__init__(host, start)
        spec = start.spec
        assert spec.agents is not None
        self.sockets = host.sockets
        self.steps: tuple[Step, ...] = compile_steps(spec.steps, flow=start.flow)
        self.backoff = spec.on_error
        self.limit = spec.limit
        self.connected = 0
        self.random = random.Random(start.seed)
        self.endpoints: list[Endpoint] = []
        self._start = start
        self._rate_per_s = spec.agents.rollout_per_s
        self._placement = Placement(start.nodes)
        self._credentials = dict(zip(start.nodes, start.node_credentials, strict=False))
        self._contexts = TlsContexts(start.access.ca_file)
        self._tokens: dict[Credential, str] = {}
        self._users: list[AgentUser] = []
        self._rollout: gevent.Greenlet | None = None
        self._user_class = type(f"agents-{self.name}", (AgentUser,), {"flow": self})

    # What agents ask for.

    def new_agent(self) -> Agent:
        """Make the next agent, on its node."""
        index = len(self._users)
        addresses = self._start.source_addresses
        source = addresses[index % len(addresses)] if addresses else None
        return Agent(self, self._placement.place() or f"agent-{index}", source)

    def context_of(self, node: str) -> SSLContext:
        """Return the TLS context of a node's agents. Raises OSError when a certificate cannot be read."""
        return self._contexts.get(self._credential_of(node))

    def authorization_of(self, node: str) -> str:
        """Return the Authorization header line of a node's agents; empty when they have a certificate."""
        credential = self._credential_of(node)
        if credential.token_file is None:
            return ""
        token = self._tokens.get(credential)
        if token is None:
            token = self._tokens[credential] = credential.token_file.read_text(encoding="ascii").strip()
        return f"Authorization: Bearer {token}\r\n"

    def _credential_of(self, node: str) -> Credential:
        return self._credentials.get(node, self._start.access.credential)

    def tell_locust(self, step: Step, outcome: str, latency_us: int, body_bytes: int, error: Exception | None) -> None:
        """Fire Locust's request event, for whoever listens."""
        failure = None if is_success(outcome) else error or RuntimeError(outcome)
        self.host.events.request.fire(
            request_type=step.method,
            name=f"{self.name}/{step.name}",
            response_time=latency_us / 1000.0,
            response_length=body_bytes,
            exception=failure,
            context={},
        )

    # What the driver asks for.

    def start(self) -> None:
        """Begin the rollout; see Flow."""
        try:
            self.endpoints = [Endpoint.resolve(server) for server in self._start.access.servers]
            first = self._start.nodes[0] if self._start.nodes else ""
            self.context_of(first)
            self.authorization_of(first)
        except OSError as error:
            msg = f"flow {self.name}: no connection can be made: {error}"
            raise EnvironmentProblem(msg) from error
        self.host.environment.user_classes.append(self._user_class)
        self.host.events.user_error.add_listener(self._on_user_error)
        self._restart_rollout()

    def set_target(self, command: SetTarget) -> FlowChanged:
        """Grow at the rollout's rate; agents of nodes that are gone, and the newest of too many, stop at once."""
        self._placement.add(command.nodes)
        self._placement.remove(command.gone)
        self._credentials.update(zip(command.nodes, command.node_credentials, strict=False))
        self.target = command.target
        self._rate_per_s = command.rollout_per_s or self._rate_per_s
        gone = set(command.gone)
        staying = [user for user in self._users if user.agent.node not in gone]
        surplus = [user for user in self._users if user.agent.node in gone] + staying[self.target :]
        self._users = staying[: self.target]
        for user in surplus:
            self._placement.take_away(user.agent.node)
        self._restart_rollout()
        connections, requests = _held(surplus)
        _stop_users(surplus)
        return FlowChanged(self.name, len(surplus), connections, requests)

    def set_servers(self, servers: Sequence[str]) -> None:
        """Have new connections choose among these API servers."""
        self.endpoints = [Endpoint.resolve(server) for server in servers]

    def stop(self) -> None:
        """Stop all agents at once."""
        self.target = 0
        if self._rollout is not None:
            self._rollout.kill()
        users, self._users = self._users, []
        _stop_users(users)
        self.host.events.user_error.remove_listener(self._on_user_error)
        self.host.environment.user_classes.remove(self._user_class)

    def block(self) -> FlowChanged:
        """Close all connections and refuse new ones; says how many, and what was under way on them."""
        self.blocked = True
        connections, requests = _held(self._users)
        for user in self._users:
            user.agent.disconnect()
        return FlowChanged(self.name, 0, connections, requests)

    def unblock(self) -> None:
        """Let agents connect again; they do so when their back-off ends."""
        self.blocked = False

    def user_counts(self) -> dict[str, int]:
        """Return living users by class."""
        return {self._user_class.__name__: len(self._users)}

    def gauges(self) -> dict[str, int]:
        """Return target, started, connected and blocked, in agents."""
        started = len(self._users)
        return {
            "target": self.target,
            "started": started,
            "connected": self.connected,
            "blocked": started if self.blocked else 0,
        }

    def _on_user_error(self, user_instance: object, exception: BaseException, **_others: object) -> None:
        if type(getattr(user_instance, "user", user_instance)) is self._user_class:
            self.count_exception("agent", exception)

    def _restart_rollout(self) -> None:
        if self._rollout is not None:
            self._rollout.kill()
        self._rollout = gevent.spawn(self._roll_out)

    def _roll_out(self) -> None:
        rollout, first = Rollout(time.monotonic(), self._rate_per_s), len(self._users)
        while len(self._users) < self.target:
            wait_s = rollout.wait_s(time.monotonic(), len(self._users) - first)
            if wait_s > 0:
                gevent.sleep(wait_s)
            self._users += self.host.runner.spawn_users({self._user_class.__name__: 1})


def _held(users: list[AgentUser]) -> tuple[int, int]:
    """Count the open connections of some agents, and the requests and watches under way on them."""
    connections = [connection for user in users for connection in user.agent.connections()]
    return len(connections), sum(connection.is_busy for connection in connections)


def _stop_users(users: list[AgentUser]) -> None:
    for at in range(0, len(users), STOPPED_AT_ONCE):
        gevent.killall([user.greenlet for user in users[at : at + STOPPED_AT_ONCE]])
