"""The state of a cluster as its supervisor last wrote it: ``CLUSTER_DIR/state.json``.

It is replaced atomically at every change, so that what is left of a cluster can be found and ended by pid and start
time when the supervisor itself was killed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from scaletest.controlplane.plan import Limits, state_path, write_private_json
from scaletest.core.processes import ProcessId

__all__ = [
    "ClusterState",
    "ComponentState",
    "EndReason",
    "Enforcement",
    "LastExit",
    "Status",
    "read_state",
    "write_state",
]

Status = Literal["starting", "ready", "ending", "ended"]
EndReason = Literal["asked", "owner_gone", "host_guard", "start_failed", "signal", "supervisor_gone"]


@dataclass(frozen=True, slots=True)
class Enforcement:
    """What enforces a component's limits: ``cgroup_v1``, ``cgroup_v2``, ``watchdog``, ``none``."""

    memory_by: Literal["cgroup_v1", "cgroup_v2", "watchdog"]
    cpu_by: Literal["cgroup_v1", "cgroup_v2", "none"]


@dataclass(frozen=True, slots=True)
class LastExit:
    """How a component ended last: ``oom``, ``exit`` (with ``code``) or ``signal``."""

    reason: Literal["oom", "exit", "signal"]
    code: int | None = None
    signal: int | None = None
    peak_rss_bytes: int | None = None


@dataclass(slots=True)
class ComponentState:
    """A component as it is now; ``process`` None: it does not run."""

    name: str
    limits: Limits
    enforcement: Enforcement
    process: ProcessId | None = None
    restarts: int = 0
    last_exit: LastExit | None = None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        end = self.last_exit
        return {
            "name": self.name,
            "limits": self.limits.to_json(),
            "memory_by": self.enforcement.memory_by,
            "cpu_by": self.enforcement.cpu_by,
            "process": self.process.to_json() if self.process else None,
            "restarts": self.restarts,
            "last_exit": {
                "reason": end.reason,
                "code": end.code,
                "signal": end.signal,
                "peak_rss_bytes": end.peak_rss_bytes,
            }
            if end
            else None,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ComponentState:
        """Read what ``to_json`` gave."""
        return cls(
            name=data["name"],
            limits=Limits.from_json(data["limits"]),
            enforcement=Enforcement(data["memory_by"], data["cpu_by"]),
            process=ProcessId.from_json(data["process"]) if data["process"] else None,
            restarts=data["restarts"],
            last_exit=LastExit(**data["last_exit"]) if data["last_exit"] else None,
        )


@dataclass(slots=True)
class ClusterState:
    """A cluster as it is now."""

    name: str
    supervisor: ProcessId
    status: Status = "starting"
    reason: EndReason | None = None
    """Why it is ending or has ended."""
    error: str | None = None
    """For people: why it did not start, with the tails of the logs that say so."""
    no_cgroup_because: str | None = None
    """Why memory is watched instead of limited by the kernel; None when control groups are used or were not wanted."""
    owner: ProcessId | None = None
    launcher: ProcessId | None = None
    components: dict[str, ComponentState] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)
    """Directories of the control groups made for the cluster, children before parents."""
    remove_paths: list[str] = field(default_factory=list)
    """What is deleted at the end."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {
            "name": self.name,
            "supervisor": self.supervisor.to_json(),
            "status": self.status,
            "reason": self.reason,
            "error": self.error,
            "no_cgroup_because": self.no_cgroup_because,
            "owner": self.owner.to_json() if self.owner else None,
            "launcher": self.launcher.to_json() if self.launcher else None,
            "components": [component.to_json() for component in self.components.values()],
            "groups": self.groups,
            "remove_paths": self.remove_paths,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ClusterState:
        """Read what ``to_json`` gave."""
        components = [ComponentState.from_json(item) for item in data["components"]]
        return cls(
            name=data["name"],
            supervisor=ProcessId.from_json(data["supervisor"]),
            status=data["status"],
            reason=data["reason"],
            error=data["error"],
            no_cgroup_because=data["no_cgroup_because"],
            owner=ProcessId.from_json(data["owner"]) if data["owner"] else None,
            launcher=ProcessId.from_json(data["launcher"]) if data["launcher"] else None,
            components={component.name: component for component in components},
            groups=data["groups"],
            remove_paths=data["remove_paths"],
        )


def read_state(cluster_dir: Path) -> ClusterState | None:
    """Read the state; None when there is none. Raises ValueError when the file is no state."""
    try:
        text = state_path(cluster_dir).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        return ClusterState.from_json(json.loads(text))
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        msg = f"{state_path(cluster_dir)}: not the state of a cluster ({error!r})"
        raise ValueError(msg) from error


def write_state(cluster_dir: Path, state: ClusterState) -> None:
    """Replace the state atomically."""
    write_private_json(state_path(cluster_dir), state.to_json())
