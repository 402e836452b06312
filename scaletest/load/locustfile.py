"""The ``locustfile`` flow: Users of the user's own locustfile, their requests counted by name."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any

import gevent
import requests
from geventhttpclient.useragent import ConnectionError as FastConnectionError
from locust import User

from scaletest.core.errors import EnvironmentProblem, Problem, ProfileError
from scaletest.load.connection import TlsContexts
from scaletest.load.flow import Flow, Host
from scaletest.load.metadata import FailureText, failure_text
from scaletest.load.mix import next_class
from scaletest.load.outcomes import outcome_of_error
from scaletest.load.pacing import Rollout
from scaletest.load.protocol import FlowChanged, FlowStart, SetTarget
from scaletest.load.statistics import step_name
from scaletest.load.userclasses import load_user_classes, reach_cluster

__all__ = ["LocustfileFlow", "user_of"]


def user_of(greenlet: Any) -> User | None:
    """Return the Locust User that a greenlet is, or was spawned by."""
    while greenlet is not None:
        arguments = getattr(greenlet, "args", ())
        if arguments and isinstance(arguments[0], User):
            return arguments[0]
        spawner = getattr(greenlet, "spawning_greenlet", None)
        greenlet = spawner() if spawner is not None else None
    return None


class LocustfileFlow(Flow):
    """Users of a locustfile; one that runs counts as connected."""

    def __init__(self, host: Host, start: FlowStart) -> None:
        super().__init__(host, start)
        assert start.spec.locustfile is not None
        self._start = start
        self._rate_per_s = start.spec.locustfile.spawn_per_s
        self._classes: dict[str, type[User]] = {}
        self._users: list[User] = []
        self._rollout: gevent.Greenlet | None = None

    def start(self) -> None:
        """Load the locustfile and begin to spawn its users. Raises ProfileError, EnvironmentProblem."""
        spec, access = self._start.spec.locustfile, self._start.access
        assert spec is not None
        path = ((self._start.directory or Path.cwd()) / spec.path).absolute()
        classes = load_user_classes(path)
        try:
            contexts = TlsContexts(access.ca_file)
            reaching = [reach_cluster(cls, self.name, access, contexts) for cls in classes]
        except OSError as error:
            msg = f"flow {self.name}: no connection can be made: {error}"
            raise EnvironmentProblem(msg) from error
        self._classes = {cls.__name__: cls for cls in reaching}
        environment = self.host.environment
        environment.user_classes.extend(reaching)
        events = self.host.events
        events.request.add_listener(self._on_request)
        events.user_error.add_listener(self._on_user_error)
        events.test_start.fire(environment=environment)
        self._rollout = gevent.spawn(self._roll_out)

    def set_target(self, command: SetTarget) -> FlowChanged:
        """Grow at the spawn rate, or stop the newest users at once."""
        self.target = command.target
        self._rate_per_s = command.rollout_per_s or self._rate_per_s
        if self._rollout is not None:
            self._rollout.kill()
        self._forget_dead()
        surplus = self._users[self.target :]
        del self._users[self.target :]
        gevent.killall([user.greenlet for user in surplus])
        self._rollout = gevent.spawn(self._roll_out)
        return FlowChanged(self.name, agents_stopped=len(surplus))

    def stop(self) -> None:
        """Stop all users at once."""
        self.target = 0
        if self._rollout is not None:
            self._rollout.kill()
        gevent.killall([user.greenlet for user in self._users])
        self._users = []
        environment = self.host.environment
        events = self.host.events
        events.test_stop.fire(environment=environment)
        events.request.remove_listener(self._on_request)
        events.user_error.remove_listener(self._on_user_error)
        for cls in self._classes.values():
            environment.user_classes.remove(cls)

    def block(self) -> FlowChanged:
        """Refuse: the connections belong to the locustfile. Raises ProfileError."""
        raise ProfileError([Problem("the network path of a locustfile cannot be blocked", key=f"flows.{self.name}")])

    def unblock(self) -> None:
        """Do nothing: the path was never blocked."""

    def user_counts(self) -> dict[str, int]:
        """Return living users by class."""
        counts = Counter(type(user).__name__ for user in self._users)
        return {name: counts[name] for name in self._classes}

    def gauges(self) -> dict[str, int]:
        """Return target, started, connected and blocked, in users."""
        self._forget_dead()
        return {"target": self.target, "started": len(self._users), "connected": len(self._users), "blocked": 0}

    def _forget_dead(self) -> None:
        self._users = [user for user in self._users if user.greenlet is not None and not user.greenlet.dead]

    def _roll_out(self) -> None:
        weights = {name: float(cls.weight) for name, cls in self._classes.items()}
        fixed = {name: cls.fixed_count for name, cls in self._classes.items()}
        rollout, spawned, missing = Rollout(time.monotonic(), self._rate_per_s), 0, self.target - len(self._users)
        while spawned < missing:
            wait_s = rollout.wait_s(time.monotonic(), spawned)
            if wait_s > 0:
                gevent.sleep(wait_s)
            name = next_class(self.user_counts(), weights, fixed)
            try:
                self._users += self.host.runner.spawn_users({name: 1})
            except Exception as error:  # noqa: BLE001 - the constructor is the user's code
                self.count_exception(self._step_of(name), error)
            spawned += 1

    def _is_ours(self, user: object) -> bool:
        return type(user).__name__ in self._classes

    def _on_request(
        self,
        name: str,
        response_time: float | None,
        response_length: int | None,
        exception: BaseException | str | None = None,
        response: object = None,
        **_others: object,
    ) -> None:
        if not self._is_ours(user_of(gevent.getcurrent())):
            return
        step = step_name(str(name).partition("?")[0])
        outcome = _outcome(exception, response)
        latency_us = None if response_time is None else max(0, round(response_time * 1000))
        self.statistics.step(step).record(outcome, latency_us, response_length or 0)
        if not outcome.startswith("2") and self.statistics.wants_sample(step, outcome):
            self.sample(step, outcome, getattr(response, "status_code", None), _failure(exception, response), None)

    def _on_user_error(
        self, user_instance: object, exception: BaseException, tb: TracebackType | None, **_others: object
    ) -> None:
        # Locust passes the User for on_start, but the TaskSet for a task.
        user = getattr(user_instance, "user", user_instance)
        if self._is_ours(user):
            self.count_exception(self._step_of(type(user).__name__), exception.with_traceback(tb))

    def _step_of(self, class_name: str) -> str:
        return step_name(class_name.removeprefix(f"{self.name}."))


def _outcome(exception: BaseException | str | None, response: object) -> str:
    status = getattr(response, "status_code", None)
    if status:
        # A 2xx that the locustfile called a failure (catch_response) is not a success.
        return "failed" if exception is not None and 200 <= int(status) < 300 else str(status)
    if exception is None:
        return "200"
    return outcome_of_exception(exception) if isinstance(exception, BaseException) else "failed"


def outcome_of_exception(exception: BaseException) -> str:
    """Return the outcome of a request that ended in an exception of requests or geventhttpclient."""
    seen: list[BaseException] = []
    queue: list[object] = [exception]
    while queue:
        current = queue.pop(0)
        if not isinstance(current, BaseException) or current in seen:
            continue
        seen.append(current)
        if isinstance(current, requests.Timeout):
            return "timeout"
        outcome = outcome_of_error(current)
        if outcome != "error":
            return outcome
        queue += [current.__cause__, current.__context__, getattr(current, "reason", None), *current.args]
    return "reset" if isinstance(exception, FastConnectionError) else "error"


def _failure(exception: BaseException | str | None, response: object) -> FailureText:
    content = getattr(response, "content", None)
    if isinstance(content, bytes) and content:
        return failure_text(content[:1024])
    return FailureText(type(exception).__name__ if isinstance(exception, BaseException) else None, str(exception))
