"""What all kinds of flows share: a target, statistics, and where samples go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Final

import gevent
from locust import User
from locust.env import Environment
from locust.runners import LocalRunner

from scaletest.core.errors import EnvironmentProblem
from scaletest.core.journal import Record
from scaletest.load.connection import Sockets
from scaletest.load.metadata import FailureText
from scaletest.load.outcomes import is_success
from scaletest.load.protocol import Begin, FlowChanged, FlowStart, SetTarget
from scaletest.load.requests import Step
from scaletest.load.selfcheck import SelfChecks
from scaletest.load.statistics import FlowStatistics

__all__ = ["Flow", "FlowRunner", "Host", "TellingFlow"]

TELL_EVERY_S: Final = 0.05


class FlowRunner(LocalRunner):
    """Locust's local runner, which asks the flows how many users of each class there are.

    Locust's own answer walks over all users, for a debug line written on every spawn: 4 ms with 7,000 users.
    """

    def __init__(self, environment: Environment) -> None:
        self.counts: Callable[[], dict[str, int]] = dict
        super().__init__(environment)

    @property
    def user_classes_count(self) -> dict[str, int]:
        """Users by class."""
        return self.counts()


@dataclass(frozen=True, slots=True)
class Host:
    """What a flow needs of its driver."""

    environment: Environment
    events: Any
    """The environment's hooks (locust.event.Events, whose methods are untyped)."""

    runner: FlowRunner
    sockets: Sockets
    clock_origin_s: float
    """When the run's clock began."""

    emit: Callable[..., Record]
    """Append a record to the journal and report it: ``emit(kind, **fields)``."""

    fail: Callable[[str], None]
    """End the driver: something that a flow stands on is gone. Takes the reason."""


class Flow:
    """A running flow: ``start`` once, ``set_target`` any time, ``stop`` once."""

    def __init__(self, host: Host, start: FlowStart) -> None:
        self.host = host
        self.name = start.flow
        self.target = start.target
        self.statistics = FlowStatistics()
        self.blocked = False

    def start(self) -> None:
        """Begin to start agents. Raises ScaletestError, and OSError when a file or name is missing."""
        raise NotImplementedError

    def set_target(self, command: SetTarget) -> FlowChanged:
        """Grow or shrink; says what was ended."""
        raise NotImplementedError

    def begin_at(self, begin: Begin) -> None:  # noqa: ARG002 - for those of which a process makes a share
        """Begin a share's arrivals, or have them come at another rate. Raises EnvironmentProblem where there are no shares."""
        msg = f"flow {self.name} is not one of which a process makes a share"
        raise EnvironmentProblem(msg)

    def set_rate(self, rate_per_s: float) -> FlowChanged:  # noqa: ARG002 - the rate is for flows that have one
        """Go on at another rate. Raises EnvironmentProblem where there is none."""
        msg = f"flow {self.name} has neither arrivals nor churn: there is no rate to set"
        raise EnvironmentProblem(msg)

    def set_servers(self, servers: Sequence[str]) -> None:
        """Have new connections choose among these API servers; a locustfile's users keep the one they were given."""

    def stop(self) -> None:
        """Stop all agents; returns when they are gone."""
        raise NotImplementedError

    def block(self) -> FlowChanged:
        """Cut the flow's network path; says what was ended. Raises ScaletestError when it cannot be."""
        raise NotImplementedError

    def unblock(self) -> None:
        """Open the flow's network path again."""
        raise NotImplementedError

    def user_counts(self) -> dict[str, int]:
        """Return living users by the names of their Locust classes."""
        raise NotImplementedError

    def gauges(self) -> dict[str, int]:
        """Return target, started, connected and blocked, in agents."""
        raise NotImplementedError

    def workers(self) -> list[dict[str, Any]]:
        """Return ``pid``, ``cpu_s`` and ``rss_bytes`` of each process that the flow has started."""
        return []

    def take_checks(self) -> SelfChecks:
        """Return what the processes that the flow has started measured of themselves since the last call."""
        return SelfChecks()

    def sample(self, step: str, outcome: str, status: int | None, text: FailureText, node: str | None) -> None:
        """Journal one failure's reason."""
        self.host.emit(
            "flow.sample", flow=self.name, step=step, outcome=outcome, status=status,
            reason=text.reason, message=text.message, node=node,
        )  # fmt: skip

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

    def count_exception(self, step: str, error: BaseException) -> None:
        """Count an exception that a user's code (or ours) raised, and keep a sample of it."""
        self.statistics.exceptions += 1
        if self.statistics.wants_sample(step, "exception"):
            text = FailureText(type(error).__name__, f"{error}{_place(error.__traceback__)}")
            self.sample(step, "exception", None, text, None)

    def take_record(self, interval_s: float, gauges: dict[str, int] | None = None) -> dict[str, Any]:
        """Return the fields of this interval's record, and start the next interval."""
        return {"flow": self.name, "interval_s": interval_s, **(gauges or self.gauges()), **self.statistics.take()}


class TellingFlow(Flow):
    """A flow whose requests are not made by Locust Users: one User stands for it, and tells Locust of them in rows."""

    kind: ClassVar[str]
    """Of the flow, in the name of its User."""

    def __init__(self, host: Host, start: FlowStart) -> None:
        super().__init__(host, start)
        self._user_class = type(f"{self.kind}-{self.name}", (_TellingUser,), {"flow": self})
        self._users: list[User] = []

    def begin_telling(self) -> None:
        """Begin to tell Locust of what has ended."""
        self.host.environment.user_classes.append(self._user_class)
        self._users = self.host.runner.spawn_users({self._user_class.__name__: 1})

    def end_telling(self) -> None:
        """Tell Locust of the rest, and no more."""
        gevent.killall([user.greenlet for user in self._users])
        self._users = []
        self.tell_now()
        self.host.environment.user_classes.remove(self._user_class)

    def user_counts(self) -> dict[str, int]:
        """Return living users by class."""
        return {self._user_class.__name__: len(self._users)}

    def tell(self) -> None:
        """Tell Locust, again and again: listeners may wait, which the event loop must not."""
        while True:
            gevent.sleep(TELL_EVERY_S)
            self.tell_now()

    def tell_now(self) -> None:
        """Fire Locust's request event for what has ended since the last time."""
        raise NotImplementedError


class _TellingUser(User):
    """The User that stands for a flow; each flow makes its own subclass."""

    abstract = True
    flow: ClassVar[TellingFlow]

    def live(self) -> None:
        """Tell Locust, until killed."""
        self.flow.tell()

    tasks: list[Any] = [live]  # noqa: RUF012 - Locust's own declaration


def _place(traceback: TracebackType | None) -> str:
    if traceback is None:
        return ""
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return f" ({Path(traceback.tb_frame.f_code.co_filename).name}:{traceback.tb_lineno})"
