"""Which resource is at its limit in a span: explicit rules, each with the figures that it looked at.

Rules in order, the first that applies names the *limiting* resource, since one that is exhausted makes those behind it look
exhausted too:

1. **memory** of an API server: killed at its cap, or its resident set at 90 % of the cap or more.
2. **cpu** of an API server at 90 % of its quota or more (mean), or of the host with less than 5 % idle.
3. **apf**: a priority level with all its seats in use while requests queue in it, or are rejected.
4. **etcd_space**: requests failed because etcd's quota is used up (NOSPACE: it answers reads and takes no writes).
5. **etcd_fsync**: p99 of the WAL's fsync over 100 ms: etcd's heartbeat interval by default, ten times what its guide asks of a disk.
6. **etcd_cpu** at 90 % of etcd's quota or more (mean).
7. **generator**: the load driver, or a process that it has started, at 90 % of the one core that it has. Then it is the generator that is measured.

With API Priority and Fairness on, as it is by default, the in-flight limits are the sum of all levels' seats, and no limit of their own.
The network is the loopback of one machine: what it takes is CPU of the host. Garbage collection is not told from other CPU.

A rule whose figures were not measured cannot apply, and says so by having none.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from scaletest.analysis.components import ComponentSeries
from scaletest.analysis.flows import refused_for_space
from scaletest.analysis.series import Span, contains
from scaletest.analysis.state import RunState

__all__ = [
    "API_SERVER",
    "CPU_SHARE",
    "FSYNC_P99_S",
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
IDLE_SHARE: Final = 0.05
FSYNC_P99_S: Final = 0.100
GENERATOR_CORES: Final = 0.90

_ETCD: Final = "etcd"
_NO_SPACE: Final = "database space exceeded"
"""What the API server passes on of etcd's answer when its quota is used up."""


class Resource(enum.StrEnum):
    """What can give out."""

    MEMORY = "memory"
    CPU = "cpu"
    HOST_CPU = "host_cpu"
    APF = "apf"
    ETCD_SPACE = "etcd_space"
    ETCD_FSYNC = "etcd_fsync"
    ETCD_CPU = "etcd_cpu"
    GENERATOR = "generator"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule found of one subject."""

    resource: Resource
    subject: str
    """A component, a priority level, ``host`` or ``etcd``."""
    at_limit: bool
    values: Mapping[str, float] = field(default_factory=dict)
    """The figures in base units, by name; only those that were measured."""


def findings(state: RunState, span: Span) -> list[Finding]:
    """Apply every rule to a span; in the order of the rules, of one rule the fullest subject first."""
    rules = (_memory, _cpu, _host, _apf, _space, _fsync, _etcd_cpu, _generator)
    return [item for rule in rules for item in rule(state, span)]


def limiting(found: Sequence[Finding]) -> Finding | None:
    """Return the finding that names the limiting resource; None when none is at its limit."""
    return next((item for item in found if item.at_limit), None)


def _servers(state: RunState) -> Iterator[tuple[str, ComponentSeries]]:
    return ((name, item) for name, item in sorted(state.components.items()) if name.startswith(API_SERVER))


def _memory(state: RunState, span: Span) -> list[Finding]:
    found: list[Finding] = []
    for name, component in _servers(state):
        kills, used = component.oom_kills(span), component.most_memory_bytes(span)
        cap = float(component.limit.memory_bytes or math.nan) if component.limit else math.nan
        at_limit = kills > 0 or used / cap >= MEMORY_SHARE
        values = _known(oom_kills=float(kills), used_bytes=used, cap_bytes=cap)
        if at_limit or not math.isnan(used):
            found.append(Finding(Resource.MEMORY, name, at_limit, values))
    return _fullest(found, lambda values: (values["oom_kills"], values.get("used_bytes", 0.0)))


def _cpu(state: RunState, span: Span) -> list[Finding]:
    found = [item for name, component in _servers(state) for item in _cores(Resource.CPU, name, component, span)]
    return _fullest(found, lambda values: (values["cores"],))


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
        full = [item for item in samples if item.seats_in_use >= item.seats_limit]
        worst = max(full or samples, key=lambda item: (item.seats_in_use / item.seats_limit, item.queued))
        queued = max(item.queued for item in (full or samples))
        values = {
            "seats_in_use": worst.seats_in_use,
            "seats": worst.seats_limit,
            "queued": queued,
            "rejected": rejected,
        }
        found.append(Finding(Resource.APF, name, bool(full) and queued + rejected > 0, values))
    return _fullest(
        found, lambda values: (values["queued"] + values["rejected"], values["seats_in_use"] / values["seats"])
    )


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
