"""The ``agents`` flow: one client per node, each a Locust User, rolled out at an even rate."""

from __future__ import annotations

from typing import Any, ClassVar

import gevent
from locust import User, constant
from locust.env import Environment

from scaletest.load.agent import Agent
from scaletest.load.flow import Host
from scaletest.load.nodeflow import NodeFlow
from scaletest.load.protocol import FlowStart

__all__ = ["AgentsFlow"]

STOPPED_AT_ONCE = 50
"""Agents that are killed in one turn of the event loop: 7,000 in one turn would hold it up for most of a second."""


class AgentUser(User):
    """The Locust User of an agent; each flow makes its own subclass."""

    abstract = True
    flow: ClassVar[AgentsFlow]

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.agent = Agent(self.flow, *self.flow.next_place())

    def live(self) -> None:
        """Be an agent until killed."""
        self.agent.run()

    # Should an agent fail by a bug of ours, it starts over, but not in a tight loop.
    wait_time = constant(1)
    tasks: list[Any] = [live]  # noqa: RUF012 - Locust's own declaration

    def on_stop(self) -> None:
        """Close the agent's connections."""
        self.agent.close()


class AgentsFlow(NodeFlow[Agent]):
    """Agents of one flow."""

    def __init__(self, host: Host, start: FlowStart) -> None:
        assert start.spec.agents is not None
        super().__init__(host, start, start.spec.agents.rollout_per_s)
        self._user_class = type(f"agents-{self.name}", (AgentUser,), {"flow": self})

    def start(self) -> None:
        """Begin the rollout; see Flow."""
        self._prepare()
        self.host.environment.user_classes.append(self._user_class)
        self.host.events.user_error.add_listener(self._on_user_error)
        self._go_on()

    def stop(self) -> None:
        """Stop all agents at once."""
        super().stop()
        self.host.events.user_error.remove_listener(self._on_user_error)
        self.host.environment.user_classes.remove(self._user_class)

    def user_counts(self) -> dict[str, int]:
        """Return living users by class."""
        return {self._user_class.__name__: len(self._clients)}

    def _begin_client(self) -> Agent:
        (user,) = self.host.runner.spawn_users({self._user_class.__name__: 1})
        assert isinstance(user, AgentUser)
        user.agent.greenlet = user.greenlet
        return user.agent

    def _end_clients(self, clients: list[Agent]) -> None:
        for at in range(0, len(clients), STOPPED_AT_ONCE):
            gevent.killall([agent.greenlet for agent in clients[at : at + STOPPED_AT_ONCE]])

    def _on_user_error(self, user_instance: object, exception: BaseException, **_others: object) -> None:
        if type(getattr(user_instance, "user", user_instance)) is self._user_class:
            self.count_exception("agent", exception)
