"""A toy cluster: a launcher that daemonizes as kwokctl does, and components that do as their arguments say."""

from __future__ import annotations

import asyncio
import json
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scaletest.controlplane import control
from scaletest.controlplane.plan import (
    ClusterPlan,
    ComponentPlan,
    LaunchPlan,
    Limits,
    RestartBackoff,
    Role,
    shim_path,
    supervisor_journal_path,
)
from scaletest.controlplane.state import read_state
from scaletest.controlplane.supervisor import cgroups
from scaletest.controlplane.supervisor.ending import marked_processes
from scaletest.core.journal import JournalReader, Record
from scaletest.core.processes import ProcessId

LAUNCHER = """
    import json, os, sys, time
    spec = json.loads(sys.argv[1])
    print("launching", flush=True)
    for item in spec["components"]:
        if os.fork() == 0:
            os.setsid()
            output = os.open(item["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.execv(item["shim"], [item["shim"], *item["args"]])
    time.sleep(spec["seconds"])
    print("launched", flush=True)
    sys.exit(spec["code"])
"""

COMPONENT = """
    import mmap, os, signal, socket, subprocess, sys, time
    print("up", os.getpid(), *sys.argv[1:], flush=True)
    for word in sys.argv[1:]:
        verb, _, value = word.partition("=")
        if verb == "listen":
            listening = socket.create_server(("127.0.0.1", int(value)))
        elif verb == "sleep":
            time.sleep(float(value))
        elif verb == "exit":
            sys.exit(int(value))
        elif verb == "once":  # only the first start goes on with the next words
            if os.path.exists(value):
                break
            open(value, "w").close()
        elif verb == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        elif verb == "child":
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        elif verb == "env":
            print("env", value, os.environ.get(value), flush=True)
        elif verb in {"hog", "shared-hog"}:  # takes memory without end, in steps of 2 MB, at a rate in MB/s
            flags = mmap.MAP_PRIVATE if verb == "hog" else mmap.MAP_SHARED
            held, ones = [], bytes([1]) * (2 << 20)
            began = time.monotonic()
            while True:
                block = mmap.mmap(-1, 2 << 20, flags | mmap.MAP_ANONYMOUS)
                block.write(ones)
                held.append(block)
                ahead = len(held) * 2 / float(value) - (time.monotonic() - began)
                if ahead > 0:
                    time.sleep(ahead)
    while True:
        time.sleep(600)
"""


@dataclass
class ToyCluster:
    """Builds the plan of a toy cluster, starts it, and knows what is left of it."""

    directory: Path
    scratch: Path
    components: dict[str, list[str]] = field(default_factory=dict)
    plans: list[ComponentPlan] = field(default_factory=list)
    launch_seconds: float = 0.1
    launch_code: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    began: bool = False

    def add(
        self, name: str, *args: str, role: Role = "controller", cap_mib: int = 512, cores: float | None = None
    ) -> ToyCluster:
        """Add a component with the words that it obeys."""
        binary = self.scratch / "component"
        if not binary.exists():
            binary.write_text(f"#!{sys.executable} -S\n{textwrap.dedent(COMPONENT)}")
            binary.chmod(0o755)
        ports = tuple(int(arg.partition("=")[2]) for arg in args if arg.startswith("listen="))
        self.components[name] = list(args)
        self.plans.append(
            ComponentPlan(
                name=name,
                binary=str(binary),
                role=role,
                limits=Limits(cap_mib << 20, cores),
                log=str(self.scratch / f"{name}.log"),
                tcp_ports=ports,
            )
        )
        return self

    def plan(self) -> ClusterPlan:
        """Return the plan."""
        spec = {
            "seconds": self.launch_seconds,
            "code": self.launch_code,
            "components": [
                {"shim": str(shim_path(self.directory, plan.name)), "log": plan.log, "args": self.components[plan.name]}
                for plan in self.plans
            ],
        }
        argv = (sys.executable, "-S", "-c", textwrap.dedent(LAUNCHER), json.dumps(spec))
        base = ClusterPlan(
            name="toy",
            components=tuple(self.plans),
            launch=LaunchPlan(argv=argv, timeout_s=30),
            floor_bytes=0,
            owner=ProcessId.current(),
            backoff=RestartBackoff(first_s=0.2, factor=2, most_s=0.5, reset_after_s=600),
            end_grace_s=1.0,
        )
        return replace(base, **self.options)

    def spawn(self) -> control.SupervisorClient:
        """Start the supervisor."""
        self.began = True
        return control.spawn_supervisor(self.directory, self.plan())

    def up(self) -> control.SupervisorClient:
        """Start the supervisor and wait until the cluster is ready."""
        client = self.spawn()
        asyncio.run(client.wait_ready(30))
        return client

    def records(self, kind: str | None = None) -> list[Record]:
        """Return the supervisor's records."""
        found = JournalReader(supervisor_journal_path(self.directory)).read()
        return [record for record in found if kind is None or record["kind"] == kind]

    def wait_record(self, kind: str, count: int = 1, *, timeout_s: float = 30, **fields: Any) -> list[Record]:
        """Wait until there are ``count`` records of a kind with these fields."""

        def matching() -> list[Record]:
            return [record for record in self.records(kind) if fields.items() <= record.items()]

        wait_until(lambda: len(matching()) >= count, timeout_s=timeout_s)
        return matching()

    def pid(self, component: str) -> int:
        """Return the pid of a component."""
        state = read_state(self.directory)
        assert state is not None
        process = state.components[component].process
        assert process is not None
        return process.pid

    def leftovers(self) -> list[str]:
        """Return what is left of the cluster: processes and groups."""
        state = read_state(self.directory)
        if state is None:
            return []
        left = [f"process {process.pid}" for process in marked_processes(state.supervisor)]
        left += [f"process {pid}" for pid in cgroups.pids_in([Path(group) for group in state.groups])]
        groups = cgroups.find_groups(cgroups.group_name(state.name, state.supervisor.pid))
        left += [f"group {group}" for group in groups]
        return left


def wait_until(condition: Callable[[], bool], *, timeout_s: float = 30) -> None:
    """Wait for a condition, and fail where it does not come."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "waited too long"
        time.sleep(0.02)
