"""Default limits of the components, from the host, and what a fleet needs. Pure; see ``docs/guide/limits.md``.

usable    the host's memory, or the container's limit
reserve   25 % of usable, at least 1.5 GiB, at most 4 GiB: operating system, load driver, probes, page cache
caps      etcd and controller-manager usable/12 (512 MiB to 8 GiB), scheduler and kwok usable/24 (384 MiB to
          4 GiB); the API servers share the rest equally
CPU       the API servers together 85 % of the cores, so that driver and probes keep room; the others none
floor     8 % of usable, 1 GiB to 8 GiB, on hosts of 16 GiB and more at least 2 GiB: below it the cluster is ended
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scaletest.controlplane.host import Host
from scaletest.controlplane.plan import Limits
from scaletest.core import units
from scaletest.core.errors import ResourceShortage
from scaletest.profile.schema import COMPONENTS, ComponentName, LimitSpec

__all__ = ["default_limits", "floor_bytes", "memory_needed_bytes", "nodes_that_fit", "reserve_bytes"]

_MIB: Final = 1 << 20
_GIB: Final = 1 << 30

_API_SERVER_CPU_SHARE: Final = 0.85
_LEAST_API_SERVER_BYTES: Final = 512 * _MIB
"""An empty API server stands at 280 MiB; below this cap it is killed before it has served anything."""

_BASE_BYTES: Final[dict[ComponentName, int]] = {
    "etcd": 50 * _MIB,
    "kube-apiserver": 285 * _MIB,
    "kube-controller-manager": 125 * _MIB,
    "kube-scheduler": 70 * _MIB,
    "kwok-controller": 57 * _MIB,
}
"""Resident memory of each component of an empty cluster (measured, 1.37.2)."""

_PER_NODE_BYTES: Final[dict[ComponentName, int]] = {
    "etcd": 12_000,
    "kube-apiserver": 145_000,
    "kube-controller-manager": 31_000,
    "kube-scheduler": 12_000,
    "kwok-controller": 16_000,
}
"""Growth by node with its lease. From 7,000 nodes without pods at the real heartbeat rate: API server 1.3 GB (the upper end of
0.8 to 1.3), controller-manager 340 MB, kwok 167 MB, etcd 135 MB. The scheduler had 143 MB at a fifth of that rate."""

_PER_POD_BYTE: Final[dict[ComponentName, float]] = {
    "etcd": 3.5,
    "kube-apiserver": 13.0,
    "kube-controller-manager": 3.0,
    "kube-scheduler": 3.0,
    "kwok-controller": 3.0,
}
"""Growth by byte of JSON of pods. API server: 20,000 pods of 3.1 KB (62 MB) took it from 1.3 to
2.1 GB. 3,000 nodes with 18,000 such pods (56 MB) took etcd to 265 MB, kwok to 172, the controller-manager to 189 and the
scheduler to 110 within 75 s: 0.5 to 1.3 for these three, taken twice since a heap that has to collect grows to double."""

_PER_OTHER_BYTE: Final[dict[ComponentName, float]] = {**_PER_POD_BYTE, "kube-scheduler": 0.0, "kwok-controller": 0.0}
"""Growth by byte of JSON of other objects, which these two do not cache: with 100 ConfigMaps of 1 KB and with 10,000 the scheduler
stood at 67 MiB and kwok at 49 (1.37.2), while the controller-manager went from 111 to 156 and the API server, which was listed all
the time, from 340 to 449. (The scheduler caches Services, of 1 KB each.)"""

_HEADROOM: Final = 1.25
"""A cap is enough when it leaves a fifth above the need: a component at its cap is killed by its next request."""


def reserve_bytes(host: Host) -> int:
    """Return what the components' caps leave to everything else."""
    return _clamp(host.memory_bytes // 4, 1536 * _MIB, 4 * _GIB)


def floor_bytes(host: Host) -> int:
    """Return the available memory below which a cluster is ended."""
    least = 2 * _GIB if host.memory_bytes >= 15 * _GIB else _GIB  # a "16 GiB" machine shows less than 16 GiB
    return _clamp(host.memory_bytes * 8 // 100, least, 8 * _GIB)


def default_limits(
    host: Host, *, api_servers: int = 1, overrides: Mapping[ComponentName, LimitSpec] | None = None
) -> dict[ComponentName, Limits]:
    """Return the limits of each component (of *one* API server), a profile's own winning over the rule.

    Raises ResourceShortage when the API server would get less than it needs to start.
    """
    given = overrides or {}
    twelfth = _clamp(host.memory_bytes // 12, 512 * _MIB, 8 * _GIB)
    half_of_it = _clamp(host.memory_bytes // 24, 384 * _MIB, 4 * _GIB)
    memory: dict[ComponentName, int] = {
        "etcd": twelfth,
        "kube-controller-manager": twelfth,
        "kube-scheduler": half_of_it,
        "kwok-controller": half_of_it,
    }
    memory.update({name: spec.memory_bytes for name, spec in given.items() if spec.memory_bytes is not None})
    if "kube-apiserver" not in memory:
        rest = host.memory_bytes - reserve_bytes(host) - sum(memory.values())
        memory["kube-apiserver"] = _api_server_share(host, rest, api_servers)
    limits: dict[ComponentName, Limits] = {}
    for name in COMPONENTS:
        cores = round(host.cores * _API_SERVER_CPU_SHARE / api_servers, 2) if name == "kube-apiserver" else None
        spec = given.get(name)
        limits[name] = Limits(memory[name], spec.cpu_cores if spec and spec.cpu_cores is not None else cores)
    return limits


def memory_needed_bytes(
    *, nodes: int, pods: int, pod_bytes: int = 3_100, other_object_bytes: int = 0
) -> dict[ComponentName, int]:
    """Estimate what each component holds when the fleet stands and nothing else asks; ``*_bytes`` are of JSON."""
    return {
        name: round(
            _BASE_BYTES[name]
            + nodes * _PER_NODE_BYTES[name]
            + pods * pod_bytes * _PER_POD_BYTE[name]
            + other_object_bytes * _PER_OTHER_BYTE[name]
        )
        for name in COMPONENTS
    }


def nodes_that_fit(
    limits: Mapping[ComponentName, Limits],
    *,
    pods_per_node: float,
    pod_bytes: int = 3_100,
    other_object_bytes: int = 0,
) -> int:
    """Return the largest number of nodes whose need, with a quarter added, stays under every cap."""
    fitting = []
    for name, values in limits.items():
        fixed = _BASE_BYTES[name] + other_object_bytes * _PER_OTHER_BYTE[name]
        per_node = _PER_NODE_BYTES[name] + pods_per_node * pod_bytes * _PER_POD_BYTE[name]
        fitting.append((values.memory_bytes / _HEADROOM - fixed) / per_node)
    return max(0, int(min(fitting)))


def _api_server_share(host: Host, rest_bytes: int, api_servers: int) -> int:
    share = rest_bytes // api_servers
    if share < _LEAST_API_SERVER_BYTES:
        have, least = units.format_bytes(host.memory_bytes), units.format_bytes(_LEAST_API_SERVER_BYTES)
        left = units.format_bytes(max(0, share))
        msg = f"too little memory: of {have}, {left} would be left to each of {api_servers} API server(s), which needs {least}"
        raise ResourceShortage(
            msg, hint="lower the other components' limits, or set kube-apiserver's memory in the profile"
        )
    return share


def _clamp(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))
