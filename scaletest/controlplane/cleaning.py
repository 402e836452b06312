"""What a supervisor that was killed has left behind, and its removal: by pid and start time, never by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scaletest.controlplane.plan import CONTROL_SOCKET
from scaletest.controlplane.state import ClusterState, read_state, write_state
from scaletest.controlplane.supervisor import cgroups, ending

__all__ = ["Done", "clean_dead_cluster", "is_dead_cluster"]

What = Literal["supervisor", "process", "control group", "directory", "file"]


@dataclass(frozen=True, slots=True)
class Done:
    """One thing that was ended or removed, or could not be."""

    what: What
    said: str
    left: bool = False
    """Whether it is still there."""


def is_dead_cluster(cluster_dir: Path) -> bool:
    """Whether the directory holds a cluster whose supervisor is gone without having ended it completely."""
    state = read_state(cluster_dir)
    return state is not None and not state.supervisor.is_alive() and (state.status != "ended" or bool(state.groups))


def clean_dead_cluster(cluster_dir: Path) -> list[Done]:
    """End what is left of a cluster whose supervisor is gone; return what was done.

    Kills what is left of its processes, removes its control groups and the plan's ``remove_paths``, and leaves the
    directory with its logs. Does nothing to a cluster whose supervisor lives, or that has ended. Blocks up to some
    seconds. Raises ValueError when the state cannot be read.
    """
    state = read_state(cluster_dir)
    if state is None or not is_dead_cluster(cluster_dir):
        return []
    found = cgroups.find_groups(cgroups.group_name(state.name, state.supervisor.pid))
    state.groups += [str(group) for group in found if str(group) not in state.groups]
    done = _end_processes(state)
    done += _remove(state)
    state.groups = [group for group in state.groups if Path(group).exists()]
    (cluster_dir / CONTROL_SOCKET).unlink(missing_ok=True)
    for component in state.components.values():
        component.process = None
    state.status = "ended"
    state.reason = state.reason or "supervisor_gone"
    current = read_state(cluster_dir)
    if current is not None and current.supervisor == state.supervisor:
        write_state(cluster_dir, state)
    return done


def _end_processes(state: ClusterState) -> list[Done]:
    names = {component.process: name for name, component in state.components.items() if component.process}
    if state.launcher is not None:
        names[state.launcher] = "launcher"
    killed = ending.end_leftovers(state.supervisor, names, [Path(group) for group in state.groups])
    return [Done("process", f"killed {names.get(process, 'process')} {process.pid}") for process in killed]


def _remove(state: ClusterState) -> list[Done]:
    there: dict[str, What] = {group: "control group" for group in state.groups if Path(group).exists()}
    there |= {
        path: "directory" if Path(path).is_dir() else "file" for path in state.remove_paths if Path(path).exists()
    }
    left = {str(path) for path in cgroups.remove_groups([Path(group) for group in state.groups])}
    left |= set(ending.remove_files(state.remove_paths))
    return [
        Done(what, f"could not remove {path}" if path in left else f"removed {path}", left=path in left)
        for path, what in there.items()
    ]
