"""The supervisor's own life: its priority, tasks that must not fail unseen, and waiting: for the end of a process that is not ours, and for what can only be polled.

A supervisor with a bug must not go on without its watchdog or its guard over the host. An exception that nobody expects
therefore ends the process at once, and the guardian ends the cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Coroutine
from typing import Any, Final, NoReturn

from scaletest.core.processes import ProcessId

__all__ = ["BEHIND", "background", "die_of_bugs", "go_first", "poll_until", "wait_gone"]

_POLL_S: Final = 0.02
_OWNER_POLL_S: Final = 0.2
_BUG_EXIT_CODE: Final = 1
_NICENESS: Final = -10

BEHIND: Final = 5
"""How much nicer the components are than who measures them: a third of the weight, so that of one core the load driver gets three
quarters, and it preempts when it wakes up."""

_NICEST: Final = 19


def go_first() -> int:
    """Have this process scheduled before others where that is permitted; return how much nicer its components shall be made.

    A watchdog that waits for its turn behind the very processes that overload the host comes too late. What this process starts
    begins at niceness 0, or at this process's where going first is not permitted; in either case ``BEHIND`` above the niceness that
    was given to this process is where components belong: the load driver and the probes are started with that. Being nicer is always
    permitted.
    """
    given = os.getpriority(os.PRIO_PROCESS, 0)
    begins = given
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
        begins = 0
    return max(0, min(_NICEST, given + BEHIND) - begins)


def die_of_bugs() -> None:
    """End the process when a callback of the running event loop raises."""
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: _die(context.get("exception"), context["message"])
    )


def background(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start a task that ends the process when it raises."""
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(_die_if_failed)
    return task


def _die_if_failed(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _die(error, "a task failed")


def _die(error: BaseException | None, message: str) -> NoReturn:
    sys.stderr.write(f"{message}\n")
    if error is not None:
        traceback.print_exception(error, file=sys.stderr)
    sys.stderr.flush()
    os._exit(_BUG_EXIT_CODE)


async def poll_until(
    condition: Callable[[], bool], *, timeout_s: float | None = None, period_s: float = _POLL_S
) -> bool:
    """Wait until a condition holds; says whether it does. For what tells nobody of its changes (``/proc``)."""
    deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        if condition():
            return True
        if deadline_s is not None and time.monotonic() >= deadline_s:
            return False
        await asyncio.sleep(period_s)


async def wait_gone(process: ProcessId) -> None:
    """Return when a process has ended (at once when it already has)."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    except OSError:  # a kernel before 5.3, or a sandbox without the call
        await poll_until(lambda: not process.is_alive(), period_s=_OWNER_POLL_S)
        return
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    try:
        # The descriptor is of the process that has the pid now; only its start time says whether it is the one meant.
        if process.is_alive():
            loop.add_reader(descriptor, gone.set)
            await gone.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
