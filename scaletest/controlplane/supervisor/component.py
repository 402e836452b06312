"""One component under supervision: from its first pid through exits and restarts."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scaletest.controlplane.logs import LastWords
from scaletest.controlplane.plan import ComponentPlan, run_dir, shim_path
from scaletest.controlplane.state import ComponentState, LastExit
from scaletest.controlplane.supervisor import shim
from scaletest.controlplane.supervisor.backoff import BackoffState
from scaletest.controlplane.supervisor.cgroups import Groups
from scaletest.controlplane.supervisor.lifetime import background
from scaletest.controlplane.supervisor.reaper import UNKNOWN_EXIT, Exit, Reaper
from scaletest.controlplane.supervisor.recorder import Recorder
from scaletest.controlplane.supervisor.watchdog import watch_memory
from scaletest.core.journal import Journal
from scaletest.core.processes import ProcessId
from scaletest.core.rundir import LOGS_DIR

__all__ = ["Component", "Surroundings"]


@dataclass(slots=True)
class Surroundings:
    """What the components of a cluster share."""

    cluster_dir: Path
    recorder: Recorder
    reaper: Reaper
    groups: Groups | None
    changed: Callable[[], None]
    """Called after every change of a component's state."""
    restarting: bool = False
    """Whether a component that exits is started again: not while the launcher runs, nor when the cluster ends."""
    ending: bool = False
    """Whether exits are asked for, and so no news."""


class Component:
    """Adopts a component's process, notes its end, starts it again."""

    def __init__(self, plan: ComponentPlan, state: ComponentState, around: Surroundings, backoff: BackoffState) -> None:
        self.plan = plan
        self.state = state
        self.exits = 0
        self.last_ran_s = 0.0
        self._around = around
        self._backoff = backoff
        self._last_words = LastWords(Path(plan.log))
        self._started_s = 0.0
        self._oom_kills = 0
        self._killed_at_cap: ProcessId | None = None
        self._watchdog: asyncio.Task[None] | None = None
        self._restart: asyncio.Task[None] | None = None

    @property
    def process(self) -> ProcessId | None:
        """The process that was adopted last and has not ended, as far as is known."""
        return self.state.process

    def discover(self) -> None:
        """Adopt the process that the shim has recorded, if it is a new one."""
        found = shim.read_pid(run_dir(self._around.cluster_dir), self.plan.name)
        if found is None or found == self.state.process or not found.is_alive():
            return
        if self.state.process is not None:
            self._end_unseen()
        self._adopt(found)

    def settle(self) -> None:
        """Note the end of a process that is gone without having been our child (its launcher had reaped it)."""
        self._around.reaper.collect()
        if self.state.process is not None and not self.state.process.is_alive():
            self._end_unseen()

    def announce(self, journal: Journal | Recorder) -> None:
        """Write the limit, and the process if there is one, to a journal."""
        limits = self.plan.limits
        journal.append(
            "component.limit",
            component=self.plan.name,
            memory_bytes=limits.memory_bytes,
            cpu_cores=limits.cpu_cores,
            memory_by=self.state.enforcement.memory_by,
            cpu_by=self.state.enforcement.cpu_by,
        )
        self._announce_start(journal)

    def send(self, signum: int) -> bool:
        """Signal the process; says whether there was one."""
        return self.state.process is not None and self.state.process.send(signum)

    def start(self) -> None:
        """Run the component that no launcher has started. Raises OSError when no process can be made."""
        self._adopt(self._spawn())

    def give_up_restart(self) -> None:
        """Do not start the component again."""
        if self._restart is not None:
            self._restart.cancel()

    def ensure_restart(self) -> None:
        """Start the component again if it is down and nothing is under way; used once the launcher has exited."""
        if self.state.process is None and self.exits and (self._restart is None or self._restart.done()):
            self._schedule_restart()

    def _adopt(self, process: ProcessId) -> None:
        self.state.process = process
        self._started_s = time.monotonic()
        if self._around.groups is None:
            watching = watch_memory(process, self.plan.limits.memory_bytes, lambda _: self._note_kill(process))
            self._watchdog = background(watching)
        self._announce_start(self._around.recorder)
        self._around.changed()
        self._around.reaper.watch(process.pid, self._exited)

    def _announce_start(self, journal: Journal | Recorder) -> None:
        if self.state.process is not None:
            journal.append(
                "component.start",
                component=self.plan.name,
                pid=self.state.process.pid,
                restart=self.state.restarts,
            )

    def _note_kill(self, process: ProcessId) -> None:
        self._killed_at_cap = process

    def _end_unseen(self) -> None:
        assert self.state.process is not None
        self._around.reaper.forget(self.state.process.pid)
        self._exited(UNKNOWN_EXIT)

    def _exited(self, end: Exit) -> None:
        process = self.state.process
        assert process is not None
        last = LastExit(self._reason(process, end), end.code, end.signal, end.peak_rss_bytes)
        self.state.process = None
        self.state.last_exit = last
        self.exits += 1
        self.last_ran_s = time.monotonic() - self._started_s
        if self._watchdog is not None:
            self._watchdog.cancel()
        if not self._around.ending:
            log = Path(self.plan.log)
            self._around.recorder.append(
                "component.exit",
                component=self.plan.name,
                pid=process.pid,
                reason=last.reason,
                code=last.code,
                signal=last.signal,
                peak_rss_bytes=last.peak_rss_bytes,
                cap_bytes=self.plan.limits.memory_bytes,
                log_tail="\n".join(self._last_words.take()),
                # Where a run keeps it: copied there when the run ends.
                log=f"{LOGS_DIR}/{log.name}",
            )
        if self._around.restarting:
            self._schedule_restart()
        self._around.changed()

    def _reason(self, process: ProcessId, end: Exit) -> Literal["oom", "exit", "signal"]:
        if self._killed_at_cap == process:
            return "oom"
        if end.signal is None:
            return "exit"
        groups = self._around.groups
        kills_before, self._oom_kills = self._oom_kills, groups.oom_kills(self.plan.name) if groups else 0
        by_kernel = self._oom_kills > kills_before
        return "oom" if end.signal == signal.SIGKILL and by_kernel else "signal"

    def _schedule_restart(self) -> None:
        wait_s = self._backoff.after_exit(self.last_ran_s)
        self._around.recorder.append("component.backoff", component=self.plan.name, wait_s=wait_s)
        self._restart = background(self._restart_after(wait_s))

    async def _restart_after(self, wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        if not self._around.restarting:
            return
        self.state.restarts += 1
        try:
            process = self._spawn()
        except OSError as error:
            # No process could be made (memory, descriptors, a full process table): it counts as an exit at once.
            self._around.recorder.append("note", level="warning", text=f"{self.plan.name} was not restarted: {error}")
            self.last_ran_s = 0.0
            self._schedule_restart()
            return
        self._adopt(process)

    def _spawn(self) -> ProcessId:
        """Run the shim as the launcher had run it, its output appended to the same file."""
        invocation = shim.read_invocation(run_dir(self._around.cluster_dir), self.plan.name)
        program = str(shim_path(self._around.cluster_dir, self.plan.name))
        with Path(self.plan.log).open("ab") as log:
            child = subprocess.Popen(
                [program, *invocation.args],
                cwd=invocation.cwd,
                env=invocation.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        # The reaper waits for it; without this, Popen would when it is collected.
        child.returncode = 0
        # None when it has ended already; then the reaper says so at once.
        return ProcessId.of(child.pid) or ProcessId(child.pid, 0)
