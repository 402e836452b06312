"""Doing something through an API that may not answer: tried again until it is done, each attempt in the journal.

Operators with kubectl do the same. An attempt begins ``EVERY_S`` after the one before it began, or when that ends if it takes longer.
Whoever waits for the outcome sets the end: the phase, which cancels.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from scaletest.core.access import ApiAccess
from scaletest.core.errors import ClusterError
from scaletest.core.journal import Journal
from scaletest.core.kubernetesapi import ApiError, KubernetesApi

__all__ = ["ATTEMPT_TIMEOUT_S", "EVERY_S", "ActionLog", "Operator", "until_done"]

EVERY_S: Final = 5.0
"""Between the beginnings of two attempts: a person at a terminal."""

ATTEMPT_TIMEOUT_S: Final = 20.0
"""A request without an answer by then is given up: as long as a probe waits for a good answer."""

UNFINISHED: Final = "unfinished"
"""Outcome of an attempt that the end of its phase cut off."""

Result = TypeVar("Result")


class ActionLog:
    """What becomes of one action: its attempts, in the journal as they end and counted here."""

    def __init__(self, journal: Journal, action: str) -> None:
        self.action = action
        self.attempts = 0
        self.latest: str | None = None
        """What the latest failed attempt was told."""
        self.so_far: str | None = None
        """What is done already, of an action that consists of many steps."""
        self.proof: dict[str, int | float | str] = {}
        """That it acted, in figures: what it ended, made or deleted so far. In the journal whether or not it is done."""
        self._journal = journal
        self._began_s = time.monotonic()
        self.undo: Callable[[], Awaitable[str]] | None = None
        """Called when the phase ends: takes the action back and says what it did."""

    @property
    def elapsed_s(self) -> float:
        """Seconds since the action began."""
        return time.monotonic() - self._began_s

    def tried(self, step: str, *, ok: bool, outcome: str, message: str | None, latency_s: float, server: str) -> None:
        """Journal an attempt that has ended."""
        self.attempts += 1
        if not ok and outcome != UNFINISHED:
            self.latest = message
        self._journal.append(
            "action.try",
            action=self.action, step=step, attempt=self.attempts, ok=ok, outcome=outcome, message=message,
            latency_s=round(latency_s, 3), server=server,
        )  # fmt: skip

    def count(self, **figures: int) -> None:
        """Add figures to the proof."""
        for name, value in figures.items():
            self.proof[name] = int(self.proof.get(name, 0)) + value

    def cut_short(self) -> str:
        """Say why an action that its phase cut short was not done."""
        done = f"; {self.so_far}" if self.so_far else ""
        told = f"; the latest failure, in {self.attempts} attempts: {self.latest}" if self.latest else ""
        return f"not done when its phase ended, {self.elapsed_s:.0f} s after it began{done}{told}"


class Operator:
    """One identity at a terminal; each attempt goes to the next of the API servers, as behind a load balancer."""

    def __init__(
        self, access: Callable[[], ApiAccess], log: ActionLog, *, timeout_s: float = ATTEMPT_TIMEOUT_S
    ) -> None:
        self._access = access
        self._log = log
        self._timeout_s = timeout_s
        self._requests = 0

    async def attempt(self, step: str, request: Callable[[KubernetesApi], Awaitable[Result]]) -> Result:
        """Make one attempt on a connection of its own, and journal it. Raises ApiError."""
        access = self._access()
        server = access.servers[self._requests % len(access.servers)]
        self._requests += 1
        began_s = time.monotonic()
        ok, outcome, message = True, "ok", None
        try:
            async with KubernetesApi(access, server=server, connections=1, timeout_s=self._timeout_s) as api:
                return await request(api)
        except ApiError as error:
            ok, outcome, message = False, error.outcome, error.message
            raise
        except asyncio.CancelledError:
            ok, outcome, message = False, UNFINISHED, "the phase ended first"
            raise
        finally:
            latency_s = time.monotonic() - began_s
            self._log.tried(step, ok=ok, outcome=outcome, message=message, latency_s=latency_s, server=server)


async def until_done(attempt: Callable[[], Awaitable[Result]], *, every_s: float = EVERY_S) -> Result:
    """Call ``attempt`` until it does not raise ClusterError, and return its result."""
    while True:
        began_s = time.monotonic()
        try:
            return await attempt()
        except ClusterError:
            await asyncio.sleep(max(0.0, every_s - (time.monotonic() - began_s)))
