"""The supervisor of one cluster, from its plan to its end."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from scaletest.controlplane import plan as plans
from scaletest.controlplane.state import ClusterState, ComponentState, EndReason, Enforcement, write_state
from scaletest.controlplane.supervisor import cgroups, ending, replica, shim
from scaletest.controlplane.supervisor.backoff import BackoffState
from scaletest.controlplane.supervisor.component import Component, Surroundings
from scaletest.controlplane.supervisor.hostguard import watch_host
from scaletest.controlplane.supervisor.launch import Launch, StartFailed
from scaletest.controlplane.supervisor.lifetime import background, die_of_bugs, go_first, wait_gone
from scaletest.controlplane.supervisor.reaper import Reaper
from scaletest.controlplane.supervisor.recorder import Recorder
from scaletest.controlplane.supervisor.server import ControlServer
from scaletest.core.processes import ProcessId

__all__ = ["Supervisor"]


class Supervisor:
    """Starts, limits, restarts and ends the components of one cluster."""

    def __init__(self, cluster_dir: Path, plan: plans.ClusterPlan, available_bytes: Callable[[], int]) -> None:
        self.cluster_dir = cluster_dir
        self.plan = plan
        self.recorder = Recorder(plans.supervisor_journal_path(cluster_dir))
        self.state = ClusterState(
            plan.name, ProcessId.current(), owner=plan.owner, remove_paths=list(plan.remove_paths)
        )
        self._available_bytes = available_bytes
        self._nicer_by = 0
        self._around = Surroundings(cluster_dir, self.recorder, Reaper(), None, self._save)
        self._components: list[Component] = []
        self._end = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._owner_watch: asyncio.Task[None] | None = None
        self._save()

    async def run(self, server: ControlServer) -> None:
        """Supervise until the cluster has ended."""
        die_of_bugs()
        self._nicer_by = go_first()
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, self.ask_end, "signal")
        self._around.reaper.start()
        if self.plan.journal is not None:
            self.attach(self.plan.journal, None)
        self.set_owner(self.plan.owner)
        self._tasks.append(background(self._guard_host()))
        self._tasks.append(background(self._start()))
        await self._end.wait()
        await self._finish(server)

    def attach(self, target: plans.JournalTarget, holder: ProcessId | None) -> None:
        """Add a run's journal, beginning with what runs now. Raises OSError when it cannot be opened."""
        journal = self.recorder.attach(target, holder)
        for component in self._components:
            component.announce(journal)

    def set_owner(self, owner: ProcessId | None) -> None:
        """Tie the cluster's life to a process, or to none."""
        if self._owner_watch is not None:
            self._owner_watch.cancel()
            self._owner_watch = None
        self.state.owner = owner
        self._save()
        if owner is not None:
            self._owner_watch = background(self._follow_owner(owner))

    def ask_end(self, reason: EndReason) -> None:
        """Begin to end the cluster; the first reason stands."""
        if not self._end.is_set():
            self.state.status = "ending"
            self.state.reason = reason
            self._around.restarting = False
            self._around.ending = True
            self.recorder.append("cluster.end", reason=reason)
            self._save()
            self._end.set()

    def signal_component(self, name: str, signum: int) -> None:
        """Signal a component. Raises ValueError when there is none of that name, or it does not run."""
        for component in self._components:
            if component.plan.name == name:
                if component.send(signum):
                    return
                msg = f"component {name} does not run"
                raise ValueError(msg)
        msg = f"no component {name!r}: there are {', '.join(item.plan.name for item in self._components)}"
        raise ValueError(msg)

    def add_replica(self, name: str, of: str, port: int, flags: dict[str, str]) -> None:
        """Start one more of a component, with its limits. Raises ValueError when there is none of that name, OSError."""
        originals = {component.plan.name: component.plan for component in self._components}
        if of not in originals or name in originals:
            msg = f"no component {of!r} to add {name!r} to: there are {', '.join(originals)}"
            raise ValueError(msg)
        if self.state.status != "ready":
            msg = f"the cluster is {self.state.status}"
            raise ValueError(msg)
        plan, groups = replica.replica_plan(originals[of], name, port), self._around.groups
        if groups is not None:
            groups.add(name, plan.limits)
            self.state.groups = [str(directory) for directory in groups.directories()]
        records = plans.run_dir(self.cluster_dir)
        first = shim.read_invocation(records, of)
        args = replica.with_flags(first.args, flags)
        shim.write_invocation(records, name, shim.Invocation(args, first.cwd, first.env))
        self._take_in(plan).start()

    async def _start(self) -> None:
        try:
            await self._start_components()
        except StartFailed as failure:
            self.state.error = str(failure)
            self.ask_end("start_failed")

    async def _start_components(self) -> None:
        began_s = time.monotonic()
        self._prepare()
        launch = Launch(self.plan.launch, self._components, self._around)
        launch.start(ending.supervisor_mark(self.state.supervisor))
        self.state.launcher = launch.process
        self._save()
        await launch.wait_ready()
        self.state.launcher = None
        self.state.status = "ready"
        self._save()
        self.recorder.append("cluster.ready", seconds=round(time.monotonic() - began_s, 3))

    def _prepare(self) -> None:
        """Make the control groups and the shims. Raises StartFailed."""
        for directory in (plans.run_dir(self.cluster_dir), self.cluster_dir / "shims"):
            directory.mkdir(mode=0o700, exist_ok=True)
            for old in directory.iterdir():
                old.unlink()
        self._around.groups = self._make_groups()
        for plan in self.plan.components:
            self._take_in(plan)
        self._save()

    def _take_in(self, plan: plans.ComponentPlan) -> Component:
        """Make a component known, its shim written; its process comes later."""
        groups = self._around.groups
        enforcement = Enforcement(groups.memory_by, groups.cpu_by) if groups else Enforcement("watchdog", "none")
        state = ComponentState(plan.name, plan.limits, enforcement)
        component = Component(plan, state, self._around, BackoffState(self.plan.backoff))
        self.state.components[plan.name] = state
        self._components.append(component)
        self._write_shim(plan, groups)
        component.announce(self.recorder)
        return component

    def _make_groups(self) -> cgroups.Groups | None:
        if self.plan.limit_by == "watchdog":
            return None
        name = cgroups.group_name(self.plan.name, os.getpid())
        try:
            groups = cgroups.make_groups(name, {plan.name: plan.limits for plan in self.plan.components})
        except cgroups.GroupsUnavailable as error:
            if self.plan.limit_by == "cgroup":
                msg = f"the control plane did not start: control groups were asked for and cannot be used ({error})"
                raise StartFailed(msg) from error
            self.state.no_cgroup_because = str(error)
            return None
        self.state.groups = [str(directory) for directory in groups.directories()]
        self._save()
        return groups

    def _write_shim(self, plan: plans.ComponentPlan, groups: cgroups.Groups | None) -> None:
        by_quota = groups is not None and groups.cpu_by != "none"
        cores = None if by_quota else plan.limits.cpu_cores
        script = shim.shim_script(
            binary=plan.binary,
            run_prefix=plans.run_dir(self.cluster_dir) / plan.name,
            procs_files=groups.procs_files(plan.name) if groups else (),
            max_procs=None if cores is None else math.ceil(cores),
            nicer_by=self._nicer_by,
        )
        shim.write_shim(plans.shim_path(self.cluster_dir, plan.name), script)

    async def _guard_host(self) -> None:
        available = await watch_host(self._available_bytes, self.plan.floor_bytes)
        self.recorder.append("host.guard", available_bytes=available, floor_bytes=self.plan.floor_bytes)
        self.ask_end("host_guard")

    async def _follow_owner(self, owner: ProcessId) -> None:
        await wait_gone(owner)
        self.ask_end("owner_gone")

    async def _finish(self, server: ControlServer) -> None:
        for task in [*self._tasks, self._owner_watch]:
            if task is not None:
                task.cancel()
        for component in self._components:
            component.give_up_restart()
        if self.state.reason == "host_guard":
            self._kill_biggest_first()
        else:
            await self._end_in_order()
        groups = [Path(group) for group in self.state.groups]
        recorded = [component.process for component in self._components if component.process is not None]
        ending.end_leftovers(self.state.supervisor, recorded, groups)
        self._around.reaper.collect()
        # Data first: its pages are charged to the groups.
        ending.remove_files(self.state.remove_paths)
        self.state.groups = [str(group) for group in cgroups.remove_groups(groups)]
        self.state.status = "ended"
        self.state.launcher = None
        self._save()
        self.recorder.close()
        await server.stop()
        (self.cluster_dir / plans.CONTROL_SOCKET).unlink(missing_ok=True)

    async def _end_in_order(self) -> None:
        if self.state.launcher is not None:
            self.state.launcher.send(signal.SIGKILL)
        roles: tuple[plans.Role, ...] = ("controller", "server", "store")
        for role in roles:
            running = [item.process for item in self._components if item.plan.role == role and item.process is not None]
            await ending.end_gently(running, self.plan.end_grace_s)

    def _kill_biggest_first(self) -> None:
        running = [component.process for component in self._components if component.process is not None]
        for process in sorted(running, key=_resident_pages, reverse=True):
            process.send(signal.SIGKILL)

    def _save(self) -> None:
        write_state(self.cluster_dir, self.state)


def _resident_pages(process: ProcessId) -> int:
    try:
        return int(Path(f"/proc/{process.pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError):
        return 0
