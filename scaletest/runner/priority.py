"""Who gets a core first: those who measure or what they measure. A fact for the report."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

__all__ = ["claim_niceness", "give_back_niceness", "niceness_of", "priority_text"]

CLAIMED_NICENESS: Final = -10
"""Of whoever measures, where the user may: nine times the weight of an ordinary process, and in time when an event comes in."""


def claim_niceness() -> int:
    """Run this thread, and processes that it starts from now on, before others, where that is allowed; return its niceness before."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, min(before, CLAIMED_NICENESS))
    return before


def give_back_niceness(before: int) -> None:
    """Run as before the claim: a control plane that is started next must not inherit it."""
    os.setpriority(os.PRIO_PROCESS, 0, before)


def niceness_of(pids: Iterable[int | None]) -> int | None:
    """Return the niceness of the first of some processes that is there; None when none is."""
    for pid in pids:
        if pid is not None:
            try:
                return os.getpriority(os.PRIO_PROCESS, pid)
            except ProcessLookupError:
                continue
    return None


def priority_text(*, driver: int | None, probes: int | None, control_plane: int | None, cpu_by: str) -> str:
    """Say in a sentence whether load driver and probes run before the control plane.

    Where the control plane is in CPU groups (``cpu_by`` is not ``none``) the half weight of its group decides against processes
    outside it, and niceness only among processes of one group; elsewhere niceness decides.
    """
    if driver is None or probes is None or control_plane is None:
        return "not known: the control plane or the load driver was not there to be looked at"
    measuring = max(driver, probes)
    by_niceness = f"niceness {measuring} against {control_plane}"
    if cpu_by != "none":
        weight = f"half CPU weight for its {cpu_by.replace('_', ' ')}, {by_niceness}"
        return f"load driver and probes run before the control plane: {weight}"
    if measuring < control_plane:
        return f"load driver and probes run before the control plane: {by_niceness}"
    return f"load driver and probes do NOT run before the control plane: {by_niceness}"
