"""What a run needs of the world: a control plane, a fleet, a load driver, probes and observers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from scaletest.core.journal import JournalFile
from scaletest.observe.pprof import Capture
from scaletest.profile.actions import Action
from scaletest.profile.schema import Profile
from scaletest.profile.stepping import StepChange
from scaletest.runner.attempts import ActionLog

__all__ = ["Engines", "FakeEngines", "Lost"]

Lost = Callable[[str, str], None]
"""Called with a ``run.end`` status and a reason when something a run stands on has gone."""


class Engines(Protocol):
    """Everything with processes and sockets, behind what a run asks of it."""

    async def start(self, journal: JournalFile, lost: Lost) -> None:
        """Bring up the control plane, fill it, start driver, probes and observers."""

    def facts(self) -> dict[str, Any]:
        """Return what ``run.json`` says about them: versions, limits, heartbeat. Grows while they start."""

    async def start_flow(self, flow: str) -> int:
        """Start a flow; returns the number of agents or users it aims at."""

    async def stop_flow(self, flow: str) -> None:
        """Stop a flow and wait until it has stopped."""

    async def act(self, action: Action, log: ActionLog) -> str:
        """Do an action; returns what was done. Raises ScaletestError when it could not be."""

    async def step_to(self, profile: Profile, change: StepChange) -> None:
        """Go to another load of a search: resize pools, retarget running flows; flows that start later are as ``profile`` says.

        Raises ScaletestError when the fleet could not be resized.
        """

    async def capture(self, capture: Capture) -> list[str]:
        """Capture the profiles of the API servers; returns why each that is missing is."""

    async def stop(self) -> None:
        """End everything that ``start`` began, as far as it got; never raises for what is gone already."""


@dataclass
class FakeEngines:
    """Engines without processes, for tests of the runner: they remember what they were asked.

    ``script`` may hold a coroutine function per call name; it runs in place of the call.
    """

    calls: list[str] = field(default_factory=list)
    script: dict[str, Callable[[JournalFile, Lost], Awaitable[None]]] = field(default_factory=dict)
    profile: Profile | None = None
    """Of the latest load of a search."""
    changes: list[StepChange] = field(default_factory=list)
    _journal: JournalFile | None = None
    _lost: Lost | None = None

    async def _play(self, call: str) -> None:
        self.calls.append(call)
        if call in self.script and self._journal is not None and self._lost is not None:
            await self.script[call](self._journal, self._lost)

    async def start(self, journal: JournalFile, lost: Lost) -> None:
        """Remember the journal; play the script's ``start``."""
        self._journal, self._lost = journal, lost
        await self._play("start")

    def facts(self) -> dict[str, Any]:
        """Return the version of nothing."""
        return {"versions": {"kubernetes": "fake"}}

    async def start_flow(self, flow: str) -> int:
        """Play ``start_flow NAME``."""
        await self._play(f"start_flow {flow}")
        return 1

    async def stop_flow(self, flow: str) -> None:
        """Play ``stop_flow NAME``."""
        await self._play(f"stop_flow {flow}")

    async def act(self, action: Action, log: ActionLog) -> str:  # noqa: ARG002
        """Play ``act NAME``."""
        await self._play(f"act {action.name}")
        return str(action.model_dump(exclude_none=True))

    async def step_to(self, profile: Profile, change: StepChange) -> None:
        """Take over the profile; play ``step_to``."""
        self.profile, self.changes = profile, [*self.changes, change]
        await self._play("step_to")

    async def capture(self, capture: Capture) -> list[str]:
        """Play ``capture NAME``."""
        await self._play(f"capture {capture.name}")
        return []

    async def stop(self) -> None:
        """Play ``stop``."""
        await self._play("stop")
