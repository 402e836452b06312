"""The actions of a phase: begun in order, told in the journal, ended with the phase.

Each is between ``action.start`` and ``action.end`` {ok, detail, error, proof, duration_s}, where ``proof`` has in
figures what the action ended, made or deleted (``connections_closed``), done or not; attempts through the API are ``action.try``. Actions
that may take as long as their phase are done in the background (``profile.actions.BACKGROUND``): the phase goes on
meanwhile, and what is not done when it ends has failed. A lever is told as an action around those that it stands for.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from scaletest.core.errors import ScaletestError
from scaletest.core.journal import Journal
from scaletest.profile.actions import Action
from scaletest.profile.levers import expand
from scaletest.profile.schema import Profile
from scaletest.runner.attempts import ActionLog

__all__ = ["Actions", "Acts"]


class Acts(Protocol):
    """What can do an action."""

    async def act(self, action: Action, log: ActionLog) -> str:
        """Do an action; returns what was done. Raises ScaletestError when it could not be."""


class Actions:
    """The actions that are under way."""

    def __init__(self, acts: Acts, profile: Profile, journal: Journal) -> None:
        self._acts = acts
        self._profile = profile
        self._journal = journal
        self._tasks: list[asyncio.Task[None]] = []
        self._logs: list[ActionLog] = []

    async def begin(self, phase: int) -> None:
        """Begin the actions of phase number ``phase``; returns when those in the foreground are done."""
        for action in self._profile.phases[phase].do:
            each = expand(action, self._profile, phase)
            if action.lever is not None:
                self._journal.append("action.start", action="lever", detail=action.lever)
            for part in each:
                await self._begin(part)
            if action.lever is not None:
                told = ", ".join(part.name for part in each) or "nothing is done"
                self._journal.append(
                    "action.end", action="lever", detail=f"{action.lever}: {told}", ok=True, error=None, duration_s=0.0
                )

    async def end(self) -> None:
        """End what is under way, and take back what lasts as long as a phase."""
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        for log in reversed(self._logs):
            if log.undo is not None:
                self._journal.append("note", level="info", text=f"{log.action} ends with its phase: {await log.undo()}")
        self._logs.clear()
        for error in ended:
            if isinstance(error, BaseException) and not isinstance(error, asyncio.CancelledError):
                raise error

    async def _begin(self, action: Action) -> None:
        self._journal.append("action.start", action=action.name, detail=_detail(action))
        log = ActionLog(self._journal, action.name)
        self._logs.append(log)
        if action.in_background:
            self._tasks.append(asyncio.create_task(self._do(action, log)))
            await asyncio.sleep(0)  # it begins before the next action does
        else:
            await self._do(action, log)

    async def _do(self, action: Action, log: ActionLog) -> None:
        done, error = "", None
        try:
            done = await self._acts.act(action, log)
        except ScaletestError as failure:
            error = failure.message
        except asyncio.CancelledError:
            error = log.cut_short()
            raise
        except BaseException as bug:
            error = f"{type(bug).__name__}: {bug}"
            raise
        finally:
            self._journal.append(
                "action.end",
                action=action.name, detail=done, ok=error is None, error=error, attempts=log.attempts,
                proof=log.proof, duration_s=round(log.elapsed_s, 3),
            )  # fmt: skip


def _detail(action: Action) -> Any:
    (detail,) = action.model_dump(exclude_none=True, by_alias=True).values()
    return detail
