"""What one driver process can hold: file descriptors, client ports, memory."""

from __future__ import annotations

import ipaddress
import resource
from collections.abc import Iterable
from urllib.parse import urlsplit

from scaletest.core.errors import ResourceShortage
from scaletest.profile.schema import FlowSpec

__all__ = [
    "check_all_descriptors",
    "check_descriptors",
    "connections_of",
    "connections_per_user",
    "driver_memory_bytes",
    "raise_descriptor_limit",
    "source_addresses",
]

OWN_DESCRIPTORS = 100
"""Descriptors of the driver itself: libraries, pipes, journal, event loop, certificates being read."""

PORTS_PER_ADDRESS = 28_000
"""Ephemeral ports of one source address towards one server (32768 to 60999 by default), rounded down."""

BASE_MEMORY_BYTES = 80 * 2**20
CONNECTION_MEMORY_BYTES = 50 * 1024
"""Memory of the process without agents, and of an agent with its connection: 61 MiB and 40 KiB were measured with 7,000
agents (``benchmarks/agents.py``), before the heap's growth over a long run."""


def connections_per_user(spec: FlowSpec) -> int:
    """Connections that one unit of a flow's target (an agent, a watch, a connection, a user) may hold: one, and one for each watch.

    A churn is one user, whatever the number of its pods.
    """
    if spec.churn is not None:
        return spec.churn.connections + 1
    if spec.paced is not None or spec.watchers is not None:
        return 1
    if spec.agents is None:
        # requests and geventhttpclient keep one connection for each user that sends one request at a time.
        return 2
    watches = sum(1 for step in spec.steps if step.verb == "watch")
    return watches + (1 if watches < len(spec.steps) else 0)


def connections_of(spec: FlowSpec, target: int) -> int:
    """Connections that a flow with this target may hold."""
    return _users_of(spec, target) * connections_per_user(spec)


def _users_of(spec: FlowSpec, target: int) -> int:
    return 1 if spec.churn is not None else target


def driver_memory_bytes(connections: int) -> int:
    """Estimate the resident memory of a driver whose agents hold ``connections``."""
    return BASE_MEMORY_BYTES + connections * CONNECTION_MEMORY_BYTES


def raise_descriptor_limit() -> int:
    """Raise this process' soft limit of open files to the hard one and return it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def check_descriptors(spec: FlowSpec, target: int, *, beside: int = 0, hard_limit: int | None = None) -> None:
    """Raise ResourceShortage when a flow's connections do not fit into its processes; it says how many agents would.

    ``beside`` are connections of other flows in the load driver; they do not concern a flow that has processes of its own.
    """
    if hard_limit is None:
        hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard_limit == resource.RLIM_INFINITY:
        return
    users, per_user, processes = _users_of(spec, target), connections_per_user(spec), spec.processes
    there = 0 if spec.has_own_processes else beside
    wanted = -(-users // processes) * per_user + there
    free = hard_limit - OWN_DESCRIPTORS
    if wanted <= free:
        return
    fits = max(0, free - there) // per_user * processes
    where = "in all" if processes == 1 else f"in each of {processes} processes"
    msg = (
        f"{users:,} agents need {wanted:,} connections {where}, "
        f"but a process may open only {hard_limit:,} files: {fits:,} agents would fit"
    )
    others = "" if spec.churn is not None or spec.locustfile is not None else ", use more processes"
    raise ResourceShortage(
        msg, hint=f"raise the limit (ulimit -Hn {wanted + OWN_DESCRIPTORS}){others} or use fewer agents"
    )


def check_all_descriptors(flows: Iterable[FlowSpec], nodes: int, *, hard_limit: int | None = None) -> int:
    """Check all flows of a fleet of so many nodes, and return the connections that they hold. Raises ResourceShortage."""
    whole = in_driver = 0
    for spec in flows:
        target = spec.target(nodes)
        check_descriptors(spec, target, beside=in_driver, hard_limit=hard_limit)
        connections = connections_of(spec, target)
        whole += connections
        in_driver += 0 if spec.has_own_processes else connections
    return whole


def source_addresses(servers: tuple[str, ...], connections: int) -> tuple[str, ...]:
    """Return the local addresses that connections are spread over; none: whichever the kernel picks.

    A loopback server can be reached from any of 127.0.0.0/8; each address has its own ephemeral ports.
    """
    hosts = [urlsplit(server).hostname or "" for server in servers]
    if not all(_is_loopback(host) for host in hosts):
        return ()
    wanted = -(-connections // PORTS_PER_ADDRESS)
    if wanted <= 1:
        return ()
    return tuple(f"127.0.{1 + index // 250}.{1 + index % 250}" for index in range(wanted))


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.version == 4 and address.is_loopback
