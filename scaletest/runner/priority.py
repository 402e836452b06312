"""Who gets a core first: those who measure or what they measure. A fact for the report."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Niceness", "claim_for_session_of", "claim_niceness", "give_back_niceness", "niceness_of", "priority_text"]

CLAIMED_NICENESS: Final = -10
"""Of whoever measures, where the user may: nine times the weight of an ordinary process, and in time when an event comes in."""


AUTOGROUP: Final = "/proc/{process}/autogroup"
"""The kernel's group of all processes of one session (sched(7)), where it makes such groups: between groups, their niceness counts."""


@dataclass(frozen=True, slots=True)
class Niceness:
    """Niceness of a thread, and of its session's group."""

    thread: int
    autogroup: int | None
    """None where the kernel makes no such groups."""


def claim_niceness() -> Niceness:
    """Run this thread, and processes that it starts from now on, before others, where that is allowed; return what was before."""
    before = Niceness(os.getpriority(os.PRIO_PROCESS, 0), _autogroup_niceness())
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, min(before.thread, CLAIMED_NICENESS))
    if before.autogroup is not None:
        _set_autogroup("self", min(before.autogroup, CLAIMED_NICENESS))
    return before


def claim_for_session_of(pid: int) -> None:
    """Run the session of a process before others, where that is allowed: one that leads its own does not share ours."""
    _set_autogroup(str(pid), CLAIMED_NICENESS)


def give_back_niceness(before: Niceness) -> None:
    """Run as before the claim: a control plane that is started next must not inherit it."""
    os.setpriority(os.PRIO_PROCESS, 0, before.thread)
    if before.autogroup is not None:
        _set_autogroup("self", before.autogroup)


def _autogroup_niceness() -> int | None:
    try:
        return int(Path(AUTOGROUP.format(process="self")).read_text(encoding="ascii").split()[-1])
    except (OSError, ValueError, IndexError):
        return None


def _set_autogroup(process: str, niceness: int) -> None:
    # No such groups, not allowed, or asked twice within a tenth of a second: then it stays as it is.
    with suppress(OSError):
        Path(AUTOGROUP.format(process=process)).write_text(str(niceness), encoding="ascii")


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
