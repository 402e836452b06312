"""The plan of a cluster: what its supervisor is to start, limit, watch and end.

Whoever brings a cluster up writes ``CLUSTER_DIR/plan.json`` (a ``ClusterPlan``) and starts the supervisor, which knows
nothing of Kubernetes beyond it. This module and ``state`` import only the standard library and ``core``, so
that the supervisor starts quickly.

    launcher   the program that starts the components detached and exits (``kwokctl create cluster``)
    shim       a shell script given to the launcher in place of a component's binary: it joins the component's
               control groups, records its pid, and execs the real binary with the arguments it was given
    role       store, server or controller: controllers are ended first and stores last
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, cast

from scaletest.core.processes import ProcessId

__all__ = [
    "CONTROL_SOCKET",
    "SUPERVISOR_ENV",
    "ClusterPlan",
    "ComponentPlan",
    "JournalTarget",
    "LaunchPlan",
    "LimitBy",
    "Limits",
    "RestartBackoff",
    "Role",
    "launcher_log_path",
    "plan_path",
    "read_plan",
    "run_dir",
    "shim_path",
    "state_path",
    "supervisor_journal_path",
    "supervisor_log_path",
    "write_plan",
]

Role = Literal["store", "server", "controller"]
LimitBy = Literal["auto", "cgroup", "watchdog"]

CONTROL_SOCKET: Final = "control.sock"
SUPERVISOR_ENV: Final = "SCALETEST_SUPERVISOR"
"""Set in the environment of the launcher, and so of every process that comes from it, to ``PID-STARTTICKS`` of the
supervisor: what is left of a cluster is found by it even where no pid had been recorded yet."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one component; ``cpu_cores`` None: no quota."""

    memory_bytes: int
    cpu_cores: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {"memory_bytes": self.memory_bytes, "cpu_cores": self.cpu_cores}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Limits:
        """Read what ``to_json`` gave."""
        return cls(int(data["memory_bytes"]), data["cpu_cores"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentPlan:
    """One component. The launcher must be given ``shim_path(cluster_dir, name)`` as its binary."""

    name: str
    binary: str
    """Absolute path of the real binary."""
    role: Role
    limits: Limits
    log: str
    """Absolute path of the file that the launcher sends its output to: restarts append to it, errors quote it."""
    tcp_ports: tuple[int, ...] = ()
    """Ports on 127.0.0.1 that accept connections once the component is ready."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {
            "name": self.name,
            "binary": self.binary,
            "role": self.role,
            "limits": self.limits.to_json(),
            "log": self.log,
            "tcp_ports": list(self.tcp_ports),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ComponentPlan:
        """Read what ``to_json`` gave."""
        return cls(
            name=data["name"],
            binary=data["binary"],
            role=data["role"],
            limits=Limits.from_json(data["limits"]),
            log=data["log"],
            tcp_ports=tuple(data["tcp_ports"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """How the components are started: a program that daemonizes them and exits with 0."""

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    """Added to the environment that the supervisor inherited."""
    cwd: str | None = None
    """Working directory; None: the cluster's directory."""
    timeout_s: float = 120.0
    """From the launcher's start until every component runs and every port accepts."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {"argv": list(self.argv), "env": self.env, "cwd": self.cwd, "timeout_s": self.timeout_s}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> LaunchPlan:
        """Read what ``to_json`` gave."""
        return cls(argv=tuple(data["argv"]), env=data["env"], cwd=data["cwd"], timeout_s=data["timeout_s"])


@dataclass(frozen=True, slots=True)
class RestartBackoff:
    """When a component that exited is started again; the defaults are the kubelet's.

    Source: kubelet ``MaxContainerBackOff`` 300 s, ``backOffPeriod`` 10 s, doubling, forgotten after twice the
    longest wait without a restart. The first restart is immediate.
    """

    first_s: float = 10.0
    factor: float = 2.0
    most_s: float = 300.0
    reset_after_s: float = 600.0
    """A component that ran this long starts from the beginning again."""

    def to_json(self) -> dict[str, float]:
        """Return a JSON value."""
        return {
            "first_s": self.first_s,
            "factor": self.factor,
            "most_s": self.most_s,
            "reset_after_s": self.reset_after_s,
        }

    @classmethod
    def from_json(cls, data: dict[str, float]) -> RestartBackoff:
        """Read what ``to_json`` gave."""
        return cls(**data)


@dataclass(frozen=True, slots=True)
class JournalTarget:
    """The journal of a run, and the run's start on the machine's monotonic clock."""

    path: Path
    clock_origin_s: float

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {"path": str(self.path), "clock_origin_s": self.clock_origin_s}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> JournalTarget:
        """Read what ``to_json`` gave."""
        return cls(Path(data["path"]), float(data["clock_origin_s"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """Everything that a supervisor needs to know."""

    name: str
    components: tuple[ComponentPlan, ...]
    launch: LaunchPlan
    floor_bytes: int
    """The cluster is ended when the host has less memory available than this."""
    owner: ProcessId | None = None
    """The cluster ends with this process; None: it stays until it is asked to end."""
    limit_by: LimitBy = "auto"
    journal: JournalTarget | None = None
    """A run that is attached from the first moment, until the owner is gone or it detaches."""
    backoff: RestartBackoff = field(default_factory=RestartBackoff)
    remove_paths: tuple[str, ...] = ()
    """Files and directories deleted at the end (data, keys), absolute paths."""
    end_grace_s: float = 2.0
    """From SIGTERM to SIGKILL, for each role in turn."""
    cpus: tuple[int, ...] = ()
    """CPUs that supervisor and components run on; none: all."""

    def component(self, name: str) -> ComponentPlan:
        """Return a component by name. Raises KeyError."""
        for component in self.components:
            if component.name == name:
                return component
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {
            "name": self.name,
            "components": [component.to_json() for component in self.components],
            "launch": self.launch.to_json(),
            "floor_bytes": self.floor_bytes,
            "owner": self.owner.to_json() if self.owner else None,
            "limit_by": self.limit_by,
            "journal": self.journal.to_json() if self.journal else None,
            "backoff": self.backoff.to_json(),
            "remove_paths": list(self.remove_paths),
            "end_grace_s": self.end_grace_s,
            "cpus": list(self.cpus),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ClusterPlan:
        """Read what ``to_json`` gave."""
        return cls(
            name=data["name"],
            components=tuple(ComponentPlan.from_json(item) for item in data["components"]),
            launch=LaunchPlan.from_json(data["launch"]),
            floor_bytes=data["floor_bytes"],
            owner=ProcessId.from_json(data["owner"]) if data["owner"] else None,
            limit_by=cast("LimitBy", data["limit_by"]),
            journal=JournalTarget.from_json(data["journal"]) if data["journal"] else None,
            backoff=RestartBackoff.from_json(data["backoff"]),
            remove_paths=tuple(data["remove_paths"]),
            end_grace_s=data["end_grace_s"],
            cpus=tuple(data["cpus"]),
        )


def plan_path(cluster_dir: Path) -> Path:
    """Path of the plan."""
    return cluster_dir / "plan.json"


def state_path(cluster_dir: Path) -> Path:
    """Path of the state that the supervisor keeps up to date."""
    return cluster_dir / "state.json"


def run_dir(cluster_dir: Path) -> Path:
    """Directory where shims record pid, arguments and environment of each component."""
    return cluster_dir / "run"


def shim_path(cluster_dir: Path, component: str) -> Path:
    """Path of the shim to give to the launcher as a component's binary; the supervisor writes it before the launch."""
    return cluster_dir / "shims" / component


def supervisor_journal_path(cluster_dir: Path) -> Path:
    """Path of the supervisor's own journal: all that happened to the cluster, whatever run was attached."""
    return cluster_dir / "supervisor.jsonl"


def supervisor_log_path(cluster_dir: Path) -> Path:
    """Path of the supervisor's output: empty unless it has a bug."""
    return cluster_dir / "supervisor.log"


def launcher_log_path(cluster_dir: Path) -> Path:
    """Path of the launcher's output."""
    return cluster_dir / "launcher.log"


def write_private_json(path: Path, data: Any) -> None:
    """Write JSON to a file that only its owner can read, replacing it atomically."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        json.dump(data, stream, indent=1)
    scratch.replace(path)


def write_plan(cluster_dir: Path, plan: ClusterPlan) -> None:
    """Write the plan, readable by its owner only: the environment in it may hold secrets."""
    write_private_json(plan_path(cluster_dir), plan.to_json())


def read_plan(cluster_dir: Path) -> ClusterPlan:
    """Read the plan. Raises OSError or ValueError."""
    return ClusterPlan.from_json(json.loads(plan_path(cluster_dir).read_text(encoding="utf-8")))
