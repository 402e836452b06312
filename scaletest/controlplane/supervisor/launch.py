"""Starting a cluster: run the launcher, adopt its components, wait until they are ready."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from scaletest.controlplane.logs import quote_log
from scaletest.controlplane.plan import SUPERVISOR_ENV, LaunchPlan, launcher_log_path
from scaletest.controlplane.supervisor.component import Component, Surroundings
from scaletest.controlplane.supervisor.lifetime import poll_until
from scaletest.controlplane.supervisor.reaper import Exit
from scaletest.core import units
from scaletest.core.processes import ProcessId, children_of

__all__ = ["Launch", "StartFailed"]

_POLL_S: Final = 0.02
_DEAD_FOR_S: Final = 1.5
"""How long a store or server may be down while the launcher runs: it may be about to start it again itself."""
_QUICK_EXIT_S: Final = 5.0
"""A controller may exit while the API server is slow to come: it gives up after ten seconds or more, and is started again. One that
exits twice, the second time sooner than this, will not come up at all."""
_CONNECT_TIMEOUT_S: Final = 1.0
_REAP_TIMEOUT_S: Final = 2.0


class StartFailed(Exception):
    """The cluster did not start; the text says why, with the tails of the logs that tell."""


@dataclass(slots=True)
class Launch:
    """One start: from the launcher's first instruction until every port accepts."""

    plan: LaunchPlan
    components: Sequence[Component]
    around: Surroundings
    process: ProcessId | None = None
    """The launcher, while it runs."""
    end: Exit | None = None
    _deadline_s: float = 0.0
    _dead_since_s: dict[str, float] = field(default_factory=dict)

    def start(self, mark: str) -> None:
        """Start the launcher. Raises StartFailed when it cannot be executed."""
        self._deadline_s = time.monotonic() + self.plan.timeout_s
        try:
            with self._log.open("wb") as output:
                child = subprocess.Popen(
                    self.plan.argv,
                    cwd=self.plan.cwd or self.around.cluster_dir,
                    env={**os.environ, **self.plan.env, SUPERVISOR_ENV: mark},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
        except OSError as error:
            msg = f"{self.plan.argv[0]} cannot be run: {error.strerror}"
            raise StartFailed(msg) from error
        # The reaper waits for it; without this, Popen would when it is collected.
        child.returncode = 0
        self.process = ProcessId.of(child.pid)
        self.around.reaper.watch(child.pid, self._ended)

    async def wait_ready(self) -> None:
        """Return when the launcher exited with 0, every component runs and every port accepts. Raises StartFailed."""
        await self._until_launched()
        # From here on the components are children of this process, and their lives its business.
        self.around.restarting = True
        for component in self.components:
            component.ensure_restart()
        await self._until_accepting()

    async def _until_launched(self) -> None:
        while self.end is None:
            for component in self.components:
                component.discover()
            await self._check_dead()
            await self._check_time(f"{self._name} was still running")
            await asyncio.sleep(_POLL_S)
        if self.end.code != 0:
            await self._stop()
            what = f"{self._name} {_exit_text(self.end)}"
            raise self._failed(what, [self._log, *self._logs_of_dead()])
        while unseen := self._discover_all():
            if not self._shims_under_way():
                what = f"{self._name} exited with 0 but has not started {', '.join(unseen)}"
                raise self._failed(what, [self._log])
            await self._check_time(f"still waiting for {', '.join(unseen)} to start")
            await asyncio.sleep(_POLL_S)

    def _discover_all(self) -> list[str]:
        """Return the components that have not been seen yet."""
        for component in self.components:
            component.discover()
            component.settle()
        return [component.plan.name for component in self.components if not (component.process or component.exits)]

    def _shims_under_way(self) -> bool:
        """Whether there are processes that may yet record themselves as components."""
        adopted = {component.process.pid for component in self.components if component.process is not None}
        return bool(set(children_of(os.getpid())) - adopted)

    async def _until_accepting(self) -> None:
        waiting = [(component, port) for component in self.components for port in component.plan.tcp_ports]
        while True:
            self._check_exits()
            waiting = [(component, port) for component, port in waiting if not await _accepts(port)]
            down = [component.plan.name for component in self.components if component.process is None]
            if not waiting and not down:
                return
            missing = down + [f"{component.plan.name} (port {port})" for component, port in waiting]
            await self._check_time(f"still waiting for {', '.join(missing)}")
            await asyncio.sleep(_POLL_S)

    async def _check_dead(self) -> None:
        """Do not wait for the launcher's own time-out when what it waits for has died."""
        now_s = time.monotonic()
        for component in self.components:
            name = component.plan.name
            if component.plan.role == "controller" or component.process is None or component.process.is_alive():
                self._dead_since_s.pop(name, None)
            elif now_s - self._dead_since_s.setdefault(name, now_s) > _DEAD_FOR_S:
                await self._stop()
                raise self._component_failed(component)

    def _check_exits(self) -> None:
        for component in self.components:
            vital = component.plan.role != "controller"
            hopeless = component.exits > 1 and component.last_ran_s < _QUICK_EXIT_S
            if hopeless or (vital and component.process is None):
                raise self._component_failed(component)

    async def _check_time(self, what: str) -> None:
        if time.monotonic() > self._deadline_s:
            await self._stop()
            told = f"after {self.plan.timeout_s:g} s {what}"
            raise self._failed(told, [self._log, *self._logs_of_dead()])

    async def _stop(self) -> None:
        """Kill the launcher, so that its dead children become ours and tell how they ended."""
        if self.process is not None and self.end is None:
            self.process.send(signal.SIGKILL)
            await poll_until(lambda: self.end is not None, timeout_s=_REAP_TIMEOUT_S)
        for component in self.components:
            component.settle()

    def _logs_of_dead(self) -> list[Path]:
        return [Path(component.plan.log) for component in self.components if component.process is None]

    def _component_failed(self, component: Component) -> StartFailed:
        last = component.state.last_exit
        if last is None:
            what = "ended"
        elif last.reason == "oom":
            what = f"was killed at its memory cap of {units.format_bytes(component.plan.limits.memory_bytes)}"
        else:
            what = _exit_text(Exit(last.code, last.signal, None))
        return self._failed(f"{component.plan.name} {what}", [Path(component.plan.log)])

    def _failed(self, what: str, logs: list[Path]) -> StartFailed:
        quotes = [quote for log in logs if (quote := quote_log(log))]
        return StartFailed("\n".join([f"the control plane did not start: {what}", *quotes]))

    def _ended(self, end: Exit) -> None:
        self.end = end

    @property
    def _name(self) -> str:
        return Path(self.plan.argv[0]).name

    @property
    def _log(self) -> Path:
        return launcher_log_path(self.around.cluster_dir)


async def _accepts(port: int) -> bool:
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), _CONNECT_TIMEOUT_S)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def _exit_text(end: Exit) -> str:
    if end.signal is not None:
        return f"was killed by {signal.Signals(end.signal).name}"
    return "ended" if end.code is None else f"exited with code {end.code}"
