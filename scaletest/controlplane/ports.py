"""Explicit loopback ports for a cluster, and who holds a port that is taken.

Ports are chosen above 20000 and below the range that the kernel hands to outgoing connections: a
component that restarts must find its port free, and with 7,000 clients a port within that range is soon
one of theirs. The caller holds the registry's lock while it chooses and records ports, and gives the
ports of all recorded clusters as ``taken``: a component that waits to be restarted does not hold its port.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from scaletest.core.errors import ResourceShortage

__all__ = [
    "PORT_ROLES",
    "Listener",
    "PortRole",
    "choose_ports",
    "ephemeral_first",
    "is_free",
    "listener_of",
    "listeners_of",
    "port_range",
    "rotated",
]

PortRole = Literal[
    "etcd", "etcd-peer", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"
]
PORT_ROLES: Final[tuple[PortRole, ...]] = get_args(PortRole)

LOOPBACK: Final = "127.0.0.1"
FIRST_PORT: Final = 20_001
LAST_PORT: Final = 31_999
"""kwokctl picks from 32767 downwards when it is given no port; clusters that others run so are left room."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A process that listens on a TCP port; pid and program are None where the kernel does not tell us."""

    address: str
    port: int
    pid: int | None
    program: str | None

    def __str__(self) -> str:
        if self.pid is None:
            return "a process of another user"
        return f"pid {self.pid} ({self.program})" if self.program else f"pid {self.pid}"


def port_range(ephemeral_first: int) -> range:
    """Return the ports to choose from, given the first port of ``net.ipv4.ip_local_port_range``.

    A host whose ephemeral range leaves too little room below it gets the ordinary range all the same.
    """
    last = min(LAST_PORT, ephemeral_first - 1)
    return range(FIRST_PORT, (last if last - FIRST_PORT >= 100 else LAST_PORT) + 1)


def rotated(ports: range, start: int) -> list[int]:
    """Return the ports beginning with the one at position ``start`` (modulo their number).

    With a random start, clusters that another user, or another state directory, starts at the same moment hardly
    ever choose the same ports: no lock of ours covers those.
    """
    at = start % len(ports)
    return [*ports[at:], *ports[:at]]


def ephemeral_first() -> int:
    """Return the first port that this kernel gives to outgoing connections (32768 where it does not say)."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 32_768


def choose_ports(
    wanted: Mapping[PortRole, int],
    *,
    taken: Collection[int],
    candidates: Collection[int],
    free: Callable[[int], bool],
    holder: Callable[[int], str | None],
) -> dict[PortRole, int]:
    """Return a port for every role: the wanted ones, and for the others the first free candidates.

    ``taken`` are ports of recorded clusters, ``free`` asks the kernel, ``holder`` describes who has a port.

    Raises:
        ResourceShortage: a wanted port is taken or wanted twice, or no candidate is left.
    """
    chosen: dict[PortRole, int] = {}
    for role, port in wanted.items():
        _refuse_if_taken(role, port, taken=taken, chosen=chosen, free=free, holder=holder)
        chosen[role] = port
    left = (port for port in candidates if port not in taken and port not in chosen.values() and free(port))
    for role in PORT_ROLES:
        if role not in chosen:
            found = next(left, None)
            if found is None:
                msg = f"no free port is left on {LOOPBACK} for {role}"
                raise ResourceShortage(msg, hint="`scaletest cluster status` lists the clusters that hold ports.")
            chosen[role] = found
    return {role: chosen[role] for role in PORT_ROLES}


def _refuse_if_taken(
    role: PortRole,
    port: int,
    *,
    taken: Collection[int],
    chosen: Mapping[PortRole, int],
    free: Callable[[int], bool],
    holder: Callable[[int], str | None],
) -> None:
    if port in chosen.values():
        msg = f"port {port} is given twice"
        raise ResourceShortage(msg, hint="Give every component a port of its own, or none.")
    if port in taken or not free(port):
        who = holder(port)
        msg = f"port {port} for {role} is taken" + (f" by {who}" if who else "")
        raise ResourceShortage(msg, hint=f"Give {role} another port, or none: a free one is then chosen.")


def is_free(port: int, address: str = LOOPBACK) -> bool:
    """Whether a server could listen on the port now.

    SO_REUSEADDR as Go's listeners set it: connections of an earlier server in TIME_WAIT do not count.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen(1)
        except OSError as error:
            if error.errno in {errno.EADDRINUSE, errno.EACCES}:
                return False
            raise
    return True


def listener_of(port: int) -> Listener | None:
    """Return who listens on a TCP port of any address, or None when nobody does."""
    return next((listener for listener in _listeners() if listener.port == port), None)


def listeners_of(pids: Collection[int]) -> list[Listener]:
    """Return every TCP port that one of the processes listens on, with its address."""
    return [listener for listener in _listeners() if listener.pid in pids]


def _listeners() -> Iterator[Listener]:
    import psutil  # noqa: PLC0415  (30 ms that most callers of this module need not spend)

    for connection in psutil.net_connections(kind="tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr:
            address = connection.laddr
            yield Listener(address.ip, address.port, connection.pid, _program(connection.pid))


def _program(pid: int | None) -> str | None:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
