"""The clusters that exist on this machine: one directory each, and what becomes of those whose processes died.

    CLUSTERS_DIR/
      .lock              held while a cluster is created or removed
      NAME/              0700
        cluster.json     the record: who made it, ports, versions, heartbeat, labels (``record``)
        plan.json        what the supervisor was told; state.json: what it last wrote
        kwokctl.yaml, kwok/        configuration and work directory of kwokctl: data, keys, logs
        credentials/, kubeconfig   clients' certificates and tokens, for kubectl

The directory *is* the reservation of the name and of the ports in its record: it appears with its record in one
rename, under the lock. A record is alive while its maker still sets it up or its supervisor runs; anything else is
dead, and the next command that starts a cluster ends what is left of it and removes the directory.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import errno
import fcntl
import json
import os
import random
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from scaletest.controlplane import ports as portlib
from scaletest.controlplane.cleaning import Done, What, clean_dead_cluster
from scaletest.controlplane.heartbeat import Heartbeat
from scaletest.controlplane.plan import run_dir, write_private_json
from scaletest.controlplane.ports import PortRole
from scaletest.controlplane.record import ClusterRecord
from scaletest.controlplane.state import ClusterState, read_state
from scaletest.controlplane.supervisor.shim import read_pid
from scaletest.core.errors import ClusterError, UsageError
from scaletest.core.paths import clusters_dir
from scaletest.core.processes import ProcessId, end_processes

__all__ = [
    "Cleaned",
    "ClusterRecord",
    "ClusterStatus",
    "add_server",
    "check_name",
    "clean_dead",
    "create",
    "end",
    "get",
    "list_clusters",
    "remove",
    "safe_name",
    "save",
    "status_of",
]

RECORD_NAME: Final = "cluster.json"
NAME_PATTERN: Final = r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?"
_LONGEST_NAME: Final = 63
LARGEST_PORT: Final = 65_535
_DELETE_TIMEOUT_S: Final = 5.0
SUPERVISOR_GRACE_S: Final = 20.0
"""For a supervisor to end its cluster after SIGTERM; three roles with 2 s of grace each, and what SIGKILL takes."""

ClusterStatus = Literal["starting", "ready", "ending", "ended", "dead"]


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A cluster that was removed, and what had to be done for it; in words, how much of each kind."""

    name: str
    was: ClusterStatus
    done: tuple[Done, ...] = ()

    def __str__(self) -> str:
        counts = Counter(done.what for done in self.done if not done.left)
        said = ["ended by its supervisor"] if counts["supervisor"] else []
        if counts["process"]:
            said.append(f"{_counted(counts, 'process')} ended")
        removed: list[What] = [what for what in ("control group", "directory", "file") if counts[what]]
        if removed:
            said.append(f"{' and '.join(_counted(counts, what) for what in removed)} removed")
        said += [done.said for done in self.done if done.left]
        what = ", ".join(said) or "nothing of it was left but its directory"
        return f"removed cluster {self.name} (it was {self.was}): {what}"


_PLURALS: Final[Mapping[What, str]] = {
    "process": "processes", "control group": "control groups", "directory": "directories", "file": "files",
}  # fmt: skip


def _counted(counts: Mapping[What, int], what: What) -> str:
    return f"{counts[what]} {what if counts[what] == 1 else _PLURALS[what]}"


def create(
    name: str,
    *,
    wanted_ports: Mapping[PortRole, int],
    created_at: str,
    versions: Mapping[str, str],
    heartbeat: Heartbeat,
    limits: Mapping[str, Mapping[str, Any]],
    labels: Mapping[str, str],
) -> ClusterRecord:
    """Reserve a name and ports for a cluster that the calling process is about to start.

    Raises:
        UsageError: a cluster of this name lives, or the name is none.
        ResourceShortage: a wanted port is taken.
    """
    root = _root()
    with _lock(root):
        check_name(name)
        target = root / name
        if target.exists():
            _clean(target)
        record = ClusterRecord(
            name=name,
            created_at=created_at,
            creator=ProcessId.current(),
            ports=_choose_ports(root, wanted_ports),
            versions=dict(versions),
            heartbeat=heartbeat,
            limits={component: dict(values) for component, values in limits.items()},
            labels=dict(labels),
        )
        scratch = root / f".new-{name}"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(mode=0o700)
        write_private_json(scratch / RECORD_NAME, record.to_json())
        scratch.rename(target)
    return record


def add_server(record: ClusterRecord, component: str) -> ClusterRecord:
    """Reserve a port for one more API server of a cluster, and return the cluster's new record, saved.

    Raises ResourceShortage when no port is left.
    """
    root = _root()
    with _lock(root):
        port = _choose_ports(root, {})["kube-apiserver"]
        added = dataclasses.replace(record, added_servers={**record.added_servers, component: port})
        save(added)
    return added


def check_name(name: str) -> None:
    """Raise UsageError unless a cluster of this name could be made now: to be asked before long work begins."""
    if not re.fullmatch(NAME_PATTERN, name):
        msg = f"{name!r} cannot name a cluster"
        raise UsageError(msg, hint="Use up to 63 lower-case letters, digits, dots and dashes.")
    path = clusters_dir() / name
    if not _is_alive(path):
        return
    record = _read(path)
    what = f"a cluster {name!r} is {_status(record, _state(path))}"
    where = f" at {record.servers[0]}, made {record.created_at}" if record else ""
    hint = f"Choose another name, use it with `--cluster {name}`, or end it: scaletest cluster down {name}"
    raise UsageError(what + where, hint=hint)


def save(record: ClusterRecord) -> None:
    """Replace a cluster's record."""
    write_private_json(record.dir / RECORD_NAME, record.to_json())


def get(name: str) -> ClusterRecord:
    """Return a cluster's record, alive or dead. Raises UsageError when there is none, naming the nearest."""
    record = _read(clusters_dir() / name)
    if record is not None:
        return record
    names = [other.name for other in list_clusters()]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"There {'are ' + ', '.join(names) if names else 'is none'}."
    msg = f"no cluster is called {name!r}"
    raise UsageError(msg, hint=hint)


def list_clusters() -> list[ClusterRecord]:
    """Return all recorded clusters by name; directories without a readable record are left out."""
    return [record for path in _cluster_dirs() if (record := _read(path)) is not None]


def safe_name(text: str, *, ending: str = "") -> str:
    """Return a name for a cluster made from any text, such as that of a run's directory, and an ending that stays whole."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower())[: _LONGEST_NAME - len(ending)].strip("-") or "run"
    return f"{name}{ending}"


def status_of(record: ClusterRecord) -> ClusterStatus:
    """Return how a cluster is now; ``dead``: neither its maker nor its supervisor runs."""
    return _status(record, read_state(record.dir))


def remove(name: str) -> None:
    """Delete a cluster's directory with its data, keys and logs; its processes must have ended."""
    root = _root()
    with _lock(root):
        _delete(root / name)


def end(name: str) -> Cleaned:
    """End a cluster, alive or dead, and remove it; blocks for seconds.

    Raises UsageError when there is none, or its maker has not yet started anything.
    """
    record = get(name)
    root = _root()
    with _lock(root):
        if _is_only_reserved(record.dir):
            msg = f"cluster {name} is being started by process {record.creator.pid}"
            raise UsageError(msg, hint="Interrupt that command: it takes back what it has begun.")
        return _clean(record.dir)


def clean_dead(*, also_alive: bool = False) -> list[Cleaned]:
    """End what is left of clusters that nobody looks after any more, and remove them; blocks for seconds.

    Processes are ended by recorded pid and start time. ``also_alive`` ends living clusters too, except one whose
    maker has not yet started anything.
    """
    root = clusters_dir()
    if not root.is_dir():
        return []
    with _lock(root):
        paths = [path for path in _cluster_dirs() if also_alive or not _is_alive(path)]
        return [_clean(path) for path in paths if not _is_only_reserved(path)]


def _root() -> Path:
    root = clusters_dir()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    return root


@contextlib.contextmanager
def _lock(root: Path) -> Iterator[None]:
    """Hold the registry's lock; the kernel drops it when the holder dies."""
    fd = os.open(root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _cluster_dirs() -> list[Path]:
    root = clusters_dir()
    if not root.is_dir():
        return []
    return sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))


def _read(path: Path) -> ClusterRecord | None:
    try:
        return ClusterRecord.from_json(json.loads((path / RECORD_NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _status(record: ClusterRecord | None, state: ClusterState | None) -> ClusterStatus:
    if state is not None and state.supervisor.is_alive():
        setting_up = record is not None and record.in_the_making and state.status == "ready"
        return "starting" if setting_up else state.status
    if record is not None and record.in_the_making and state is None:
        return "starting"
    return "ended" if state is not None and state.status == "ended" else "dead"


def _is_alive(path: Path) -> bool:
    record = _read(path)
    if record is not None and record.in_the_making:
        return True
    return _status(record, _state(path)) in {"starting", "ready", "ending"}


def _is_only_reserved(path: Path) -> bool:
    return _is_alive(path) and _state(path) is None


def _state(path: Path) -> ClusterState | None:
    try:
        return read_state(path)
    except (OSError, ValueError):
        return None


def _choose_ports(root: Path, wanted: Mapping[PortRole, int]) -> dict[PortRole, int]:
    owners = {
        port: record.name for path in root.iterdir() if (record := _read(path)) is not None for port in record.all_ports
    }

    def holder(port: int) -> str | None:
        listener = portlib.listener_of(port)
        cluster = f"cluster {owners[port]}" if port in owners else None
        return ", ".join(str(who) for who in (cluster, listener) if who) or None

    return portlib.choose_ports(
        wanted,
        taken=owners,
        candidates=portlib.rotated(portlib.port_range(portlib.ephemeral_first()), random.randrange(LARGEST_PORT)),
        free=portlib.is_free,
        holder=holder,
    )


def _clean(path: Path) -> Cleaned:
    was = _status(_read(path), _state(path))
    done = _end_supervisor(path)
    try:
        done += clean_dead_cluster(path)
    except ValueError:
        done += _end_recorded_by_shims(path)
    _delete(path)
    return Cleaned(path.name, was, tuple(done))


def _end_supervisor(path: Path) -> list[Done]:
    """Tell a living supervisor to end its cluster, and wait for it."""
    state = _state(path)
    if state is None or not state.supervisor.is_alive():
        return []
    end_processes([state.supervisor], grace_s=SUPERVISOR_GRACE_S)
    return [Done("supervisor", f"ended its supervisor {state.supervisor.pid} and its components")]


def _end_recorded_by_shims(path: Path) -> list[Done]:
    """End components where the supervisor's state cannot be read: each recorded its own pid before it began."""
    found = {file.stem: read_pid(run_dir(path), file.stem) for file in run_dir(path).glob("*.pid")}
    alive = {name: process for name, process in found.items() if process is not None and process.is_alive()}
    end_processes(alive.values())
    return [Done("process", f"ended {name} {process.pid}") for name, process in alive.items()]


def _delete(path: Path) -> None:
    """Delete a cluster's directory, while the guardian of a killed supervisor may be deleting and writing in it too."""
    deadline_s = time.monotonic() + _DELETE_TIMEOUT_S
    while path.exists():
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno == errno.ENOTEMPTY and time.monotonic() < deadline_s:
                continue
            msg = f"{path} cannot be removed: {error.strerror}"
            raise ClusterError(msg) from error
