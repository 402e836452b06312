"""Which resource is at its limit in a span: explicit rules, each with the figures that it looked at.

Rules in order, the first that applies names the *limiting* resource, since one that is exhausted makes those behind it look
exhausted too:

1. **memory** of an API server: killed at its cap, down after such a kill until its restart is due, or its resident set at 90 % of the cap
   or more.
2. **gc**: an API server's memory at 90 % of its GOMEMLIMIT or more, and garbage collection at a quarter of its CPU or more. Without a
   GOMEMLIMIT, garbage collection is a part of the CPU and is said there.
3. **cpu** of an API server at 90 % of its quota or more (mean), or of the host with less than 5 % idle.
4. **apf**: a priority level in which requests wait, or that rejects some. Its seats need not all be in use: with LISTs of 10 seats each, 50 of 53
   are a full level, and one that rejects at once has free seats at most scrapes (decision 027).
5. **in_flight**, where API Priority and Fairness is off: as many requests as the limit lets through, while others are rejected. Where it
   is on, the limits are the sum of all levels' seats, and none of their own.
6. **etcd_space**: requests failed because etcd's quota is used up (NOSPACE: it answers reads and takes no writes).
7. **etcd_fsync**: p99 of the WAL's fsync over 100 ms: etcd's heartbeat interval by default, ten times what its guide asks of a disk.
8. **etcd_cpu** at 90 % of etcd's quota or more (mean).
9. **network**: connections not taken because the queue of a listener was full, or memory for sockets short. Nothing else: on the loopback
   of one machine bandwidth is CPU of the host, which has a rule.
10. **generator**: the load driver, or a process that it has started, at 90 % of the one core that it has. Then it is the generator that is
    measured.
11. **watch_cache**: watchers ended because they did not take their events in time, or consistent reads that the cache was too late for.
    Last, since what is late may be etcd, the API server's CPU, or whoever watches.

A rule whose figures were not measured cannot apply, and says so by having none.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from scaletest.analysis.components import ComponentSeries
from scaletest.analysis.flows import refused_for_space
from scaletest.analysis.series import Span, contains
from scaletest.analysis.state import RunState

__all__ = [
    "API_SERVER",
    "CPU_SHARE",
    "FSYNC_P99_S",
    "GC_SHARE",
    "GENERATOR_CORES",
    "IDLE_SHARE",
    "MEMORY_SHARE",
    "Finding",
    "Resource",
    "findings",
    "limiting",
]

API_SERVER: Final = "kube-apiserver"
"""What the names of all API servers begin with."""

MEMORY_SHARE: Final = 0.90
CPU_SHARE: Final = 0.90
GC_SHARE: Final = 0.25
"""What Go's collector aims at while it marks (``gcBackgroundUtilization`` of its runtime): with more than that in the mean it never rests."""
IDLE_SHARE: Final = 0.05
FSYNC_P99_S: Final = 0.100
GENERATOR_CORES: Final = 0.90

_ETCD: Final = "etcd"
READ_ONLY: Final = "read-only requests"
MUTATING: Final = "mutating requests"
_IN_FLIGHT_FLAGS: Final = {
    READ_ONLY: ("max-requests-inflight", 400),
    MUTATING: ("max-mutating-requests-inflight", 200),
}
_READING: Final = frozenset({"GET", "LIST", "WATCH"})
_FALSE: Final = frozenset({"0", "f", "false"})
_NO_SPACE: Final = "database space exceeded"
"""What the API server passes on of etcd's answer when its quota is used up."""


class Resource(enum.StrEnum):
    """What can give out."""

    MEMORY = "memory"
    GC = "gc"
    CPU = "cpu"
    HOST_CPU = "host_cpu"
    APF = "apf"
    IN_FLIGHT = "in_flight"
    ETCD_SPACE = "etcd_space"
    ETCD_FSYNC = "etcd_fsync"
    ETCD_CPU = "etcd_cpu"
    NETWORK = "network"
    GENERATOR = "generator"
    WATCH_CACHE = "watch_cache"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule found of one subject."""

    resource: Resource
    subject: str
    """A component, a priority level, a kind of requests, ``host``, ``etcd`` or ``TCP``."""
    at_limit: bool
    values: Mapping[str, float] = field(default_factory=dict)
    """The figures in base units, by name; only those that were measured."""


def findings(state: RunState, span: Span, profile: Mapping[str, Any]) -> list[Finding]:
    """Apply every rule to a span; in the order of the rules, of one rule the fullest subject first.

    ``profile`` is the resolved one of ``run.json``: the in-flight limits are flags of the API server.
    """
    before = (_memory, _gc, _cpu, _host, _apf)
    after = (_space, _fsync, _etcd_cpu, _network, _generator, _watch_cache)
    return [
        *(item for rule in before for item in rule(state, span)),
        *_in_flight(state, span, in_flight_limits(profile)),
        *(item for rule in after for item in rule(state, span)),
    ]


def in_flight_limits(profile: Mapping[str, Any]) -> dict[str, float]:
    """Return the in-flight limits of an API server by kind of request; empty where API Priority and Fairness is on, as it is by default.

    Defaults are kube-apiserver's; 0 is no limit.
    """
    args = ((profile.get("controlPlane") or {}).get("args") or {}).get(API_SERVER) or {}
    if str(args.get("enable-priority-and-fairness", True)).lower() not in _FALSE:
        return {}
    limits = {kind: float(args.get(flag, default)) for kind, (flag, default) in _IN_FLIGHT_FLAGS.items()}
    return {kind: limit for kind, limit in limits.items() if limit > 0}


def limiting(found: Sequence[Finding]) -> Finding | None:
    """Return the finding that names the limiting resource; None when none is at its limit."""
    return next((item for item in found if item.at_limit), None)


def _servers(state: RunState) -> Iterator[tuple[str, ComponentSeries]]:
    return ((name, item) for name, item in sorted(state.components.items()) if name.startswith(API_SERVER))


def _memory(state: RunState, span: Span) -> list[Finding]:
    found: list[Finding] = []
    for name, component in _servers(state):
        kills, used = component.oom_kills(span), component.most_memory_bytes(span)
        down_s = component.down_after_oom_s((span[0], min(span[1], state.end_s)))
        cap = float(component.limit.memory_bytes or math.nan) if component.limit else math.nan
        at_limit = kills > 0 or down_s > 0 or used / cap >= MEMORY_SHARE
        values = _known(oom_kills=float(kills), down_s=down_s, used_bytes=used, cap_bytes=cap)
        if at_limit or not math.isnan(used):
            found.append(Finding(Resource.MEMORY, name, at_limit, values))
    return _fullest(found, lambda values: (values["oom_kills"], values["down_s"], values.get("used_bytes", 0.0)))


def _cpu(state: RunState, span: Span) -> list[Finding]:
    found = [item for name, component in _servers(state) for item in _cores(Resource.CPU, name, component, span)]
    shared = _known(gc_share=state.api_servers.gc_share(span))
    found = [replace(item, values={**item.values, **shared}) for item in found]
    return _fullest(found, lambda values: (values["cores"],))


def _gc(state: RunState, span: Span) -> list[Finding]:
    share = state.api_servers.gc_share(span)
    samples = [item for item in state.api_servers.go_memory if contains(span, item.t_s)]
    if math.isnan(share) or not samples:
        return []
    fullest = max(samples, key=lambda item: item.used_bytes / item.limit_bytes)
    at_limit = fullest.used_bytes / fullest.limit_bytes >= MEMORY_SHARE and share >= GC_SHARE
    values = {"gc_share": share, "used_bytes": fullest.used_bytes, "limit_bytes": fullest.limit_bytes}
    return [Finding(Resource.GC, API_SERVER, at_limit, values)]


def _etcd_cpu(state: RunState, span: Span) -> list[Finding]:
    component = state.components.get(_ETCD)
    return [] if component is None else _cores(Resource.ETCD_CPU, _ETCD, component, span)


def _cores(resource: Resource, name: str, component: ComponentSeries, span: Span) -> list[Finding]:
    cores = component.process.mean_cores(span)
    quota = float(component.limit.cpu_cores or math.nan) if component.limit else math.nan
    if math.isnan(cores):
        return []
    return [Finding(resource, name, cores / quota >= CPU_SHARE, _known(cores=cores, quota_cores=quota))]


def _generator(state: RunState, span: Span) -> list[Finding]:
    used = [(series.mean_cores(span), name) for name, series in state.generator_processes]
    cores, name = max(((item, name) for item, name in used if not math.isnan(item)), default=(math.nan, ""))
    if math.isnan(cores):
        return []
    values = _known(cores=cores, lag_p99_s=state.lag_us(span).quantile(0.99) / 1e6)
    return [Finding(Resource.GENERATOR, name, cores >= GENERATOR_CORES, values)]


def _host(state: RunState, span: Span) -> list[Finding]:
    idle = state.host.cpu_share(span, "idle")
    if math.isnan(idle):
        return []
    cores = float(state.host.cores or math.nan)
    return [Finding(Resource.HOST_CPU, "host", idle < IDLE_SHARE, _known(idle_share=idle, cores=cores))]


def _apf(state: RunState, span: Span) -> list[Finding]:
    found: list[Finding] = []
    for name in sorted(state.api_servers.levels):
        # A level without seats of its own is exempt: nothing waits in it.
        samples = [item for item in state.api_servers.level(name, span) if item.seats_limit > 0]
        if not samples:
            continue
        rejected = sum(state.api_servers.rejected(name, span).values())
        # A level lets its next request through as soon as that fits (queueset.dispatchAsMuchAsPossibleLocked): what waits, has
        # waited too long (time-out) or is not let wait (queue-full, concurrency-limit) does not fit.
        waiting = [item for item in samples if item.queued > 0]
        worst = max(waiting or samples, key=lambda item: (item.seats_in_use / item.seats_limit, item.queued))
        queued = max(item.queued for item in samples)
        values = {
            "seats_in_use": worst.seats_in_use,
            "seats": worst.seats_limit,
            "queued": queued,
            "rejected": rejected,
        }
        found.append(Finding(Resource.APF, name, queued + rejected > 0, values))
    return _fullest(
        found, lambda values: (values["queued"] + values["rejected"], values["seats_in_use"] / values["seats"])
    )


def _in_flight(state: RunState, span: Span, limits: Mapping[str, float]) -> list[Finding]:
    found: list[Finding] = []
    samples = [item for item in state.api_servers.in_flight if contains(span, item.t_s)]
    for kind, limit in limits.items() if samples else ():
        most = max(item.read_only if kind == READ_ONLY else item.mutating for item in samples)
        rejected = sum(
            count
            for key, count in state.api_servers.requests(span).items()
            if key.endswith(" 429") and (key.split()[0] in _READING) == (kind == READ_ONLY)
        )
        values = {"in_flight": most, "limit": limit, "rejected": rejected}
        found.append(Finding(Resource.IN_FLIGHT, kind, most >= limit and rejected > 0, values))
    return _fullest(found, lambda values: (values["rejected"], values["in_flight"] / values["limit"]))


def _network(state: RunState, span: Span) -> list[Finding]:
    values = _known(
        listen_overflows=state.host.counted(span, "listen_overflows"),
        memory_pressures=state.host.counted(span, "memory_pressures"),
    )
    return [Finding(Resource.NETWORK, "TCP", sum(values.values()) > 0, values)] if values else []


def _watch_cache(state: RunState, span: Span) -> list[Finding]:
    counted = state.api_servers.watch_cache(span)
    if not counted:
        return []
    waits = counted.get("waits", 0.0)
    values = _known(
        terminated_watchers=counted.get("terminated_watchers", 0.0),
        fallbacks=counted.get("fallbacks", 0.0),
        mean_wait_s=counted.get("wait_s", 0.0) / waits if waits else math.nan,
    )
    at_limit = values["terminated_watchers"] + values["fallbacks"] > 0
    return [Finding(Resource.WATCH_CACHE, API_SERVER, at_limit, values)]


def _space(state: RunState, span: Span) -> list[Finding]:
    # An API server passes etcd's words on in a 500, of which there are samples; etcd's own answers are counted.
    refused = sum(_NO_SPACE in (item.message or "") for item in state.flow_samples if contains(span, item.t_s))
    refused = max(refused, sum(refused_for_space(series, span) for series in state.flows.values()))
    sizes = [item.db_bytes for item in state.etcd.within(span) if not math.isnan(item.db_bytes)]
    if not refused and not sizes:
        return []
    values = _known(db_bytes=max(sizes, default=math.nan), refused=float(refused))
    return [Finding(Resource.ETCD_SPACE, _ETCD, refused > 0, values)]


def _fsync(state: RunState, span: Span) -> list[Finding]:
    p99_s, count = state.etcd.fsync_quantile_s(0.99, span)
    if math.isnan(p99_s):
        return []
    return [Finding(Resource.ETCD_FSYNC, "etcd", p99_s > FSYNC_P99_S, {"p99_s": p99_s, "fsyncs": float(count)})]


def _known(**values: float) -> dict[str, float]:
    return {name: value for name, value in values.items() if not math.isnan(value)}


def _fullest(found: list[Finding], weight: Callable[[Mapping[str, float]], tuple[float, ...]]) -> list[Finding]:
    """Order what one rule found: what is at its limit first, then by weight."""
    return sorted(found, key=lambda item: (item.at_limit, weight(item.values)), reverse=True)
