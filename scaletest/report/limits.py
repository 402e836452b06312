"""What the rules on limiting resources found, in words and as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from scaletest.analysis.limiting import (
    CPU_SHARE,
    FSYNC_P99_S,
    GC_SHARE,
    GENERATOR_CORES,
    IDLE_SHARE,
    MEMORY_SHARE,
    Finding,
    Resource,
)
from scaletest.core.units import format_bytes, format_count, format_duration, format_share
from scaletest.report.document import LimitReport

__all__ = ["figures_text", "limit_report", "limit_text"]

Values = Mapping[str, float]


def limit_report(item: Finding) -> LimitReport:
    """Return a finding as data."""
    return LimitReport(
        resource=item.resource.value, subject=item.subject, at_limit=item.at_limit, values=dict(item.values)
    )


def limit_text(item: Finding) -> str:
    """Say what resource is at its limit, with the figures and the rule."""
    kills = int(item.values.get("oom_kills", 0))
    if kills:
        times = f"{kills} times" if kills > 1 else "once"
        return f"memory, {item.subject} killed out of memory {times}, {_memory(item.values)}"
    if item.values.get("down_s"):
        return f"memory, {figures_text(item)}"
    return _LIMITS[item.resource].format(figures=figures_text(item))


def figures_text(item: Finding) -> str:
    """Write the figures that a rule looked at."""
    return _FIGURES[item.resource](item.subject, item.values)


_LIMITS: Final = {
    Resource.MEMORY: f"memory, {{figures}} ({MEMORY_SHARE:.0%} counts as full)",
    Resource.GC: (f"{{figures}} ({GC_SHARE:.0%} counts as full, at {MEMORY_SHARE:.0%} of GOMEMLIMIT)"),
    Resource.CPU: f"CPU, {{figures}} ({CPU_SHARE:.0%} counts as full)",
    Resource.HOST_CPU: f"CPU, {{figures}} (under {IDLE_SHARE:.0%} counts as full)",
    Resource.APF: "API Priority and Fairness, {figures}",
    Resource.IN_FLIGHT: "the in-flight limit, {figures}",
    Resource.ETCD_SPACE: "etcd's quota is used up, {figures}",
    Resource.ETCD_FSYNC: f"etcd's disk, {{figures}} (over {format_duration(FSYNC_P99_S)} counts as slow)",
    Resource.ETCD_CPU: f"etcd's CPU, {{figures}} ({CPU_SHARE:.0%} counts as full)",
    Resource.NETWORK: "the network of this machine, {figures}",
    Resource.GENERATOR: f"the load driver, {{figures}} ({GENERATOR_CORES:.2f} counts as full)",
    Resource.WATCH_CACHE: "the {figures}",
}


def _memory(values: Values) -> str:
    used, cap = values.get("used_bytes"), values.get("cap_bytes")
    said = "memory not sampled" if used is None else format_bytes(used)
    return f"{said} of {format_bytes(cap)}" if cap is not None else said


def _memory_of(subject: str, values: Values) -> str:
    if values.get("down_s"):
        return f"{subject} down {format_duration(values['down_s'])} after it was killed out of memory"
    share = (
        f" ({format_share(values['used_bytes'] / values['cap_bytes'])})"
        if {"used_bytes", "cap_bytes"} <= values.keys()
        else ""
    )
    return f"{subject} memory {_memory(values)}{share}"


def _cpu(subject: str, values: Values) -> str:
    quota = f" of {values['quota_cores']:.2f}" if "quota_cores" in values else ""
    gc = f", of which {format_share(values['gc_share'])} garbage collection" if "gc_share" in values else ""
    return f"{subject} {values['cores']:.2f}{quota} cores{gc}"


def _gc(subject: str, values: Values) -> str:
    memory = f"{format_bytes(values['used_bytes'])} of GOMEMLIMIT {format_bytes(values['limit_bytes'])}"
    return f"garbage collection {format_share(values['gc_share'])} of {subject}'s CPU, memory {memory}"


def _in_flight(subject: str, values: Values) -> str:
    counts = f"{format_count(values['in_flight'])} of {format_count(values['limit'])}"
    return f"{counts} {subject} in flight, {values['rejected']:,.0f} rejected"


def _network(subject: str, values: Values) -> str:
    parts = []
    if "listen_overflows" in values:
        parts.append(f"{values['listen_overflows']:,.0f} connections dropped by full queues of listeners")
    if "memory_pressures" in values:
        parts.append(f"socket memory short {values['memory_pressures']:,.0f} times")
    return f"{subject} {', '.join(parts)}"


def _watch_cache(_subject: str, values: Values) -> str:
    wait = f", reads waited {format_duration(values['mean_wait_s'])} (mean)" if "mean_wait_s" in values else ""
    late = f"{values['fallbacks']:,.0f} consistent reads it was late for"
    return f"watch cache: {values['terminated_watchers']:,.0f} watchers ended, {late}{wait}"


def _apf(subject: str, values: Values) -> str:
    if values["rejected"] and not values["queued"]:
        # What it rejects at once does not stay for a scrape to see.
        return (
            f"level {subject} {values['rejected']:,.0f} rejected for want of its {format_count(values['seats'])} seats"
        )
    seats = f"{format_count(values['seats_in_use'])} of {format_count(values['seats'])} seats"
    return f"level {subject} {seats}, {values['queued']:,.0f} queued, {values['rejected']:,.0f} rejected"


def _space(subject: str, values: Values) -> str:
    held = (
        f"{subject} holds {format_bytes(values['db_bytes'])}" if "db_bytes" in values else f"size of {subject} not read"
    )
    return f"{held}, {values['refused']:,.0f} writes refused" if values["refused"] else held


def _generator(subject: str, values: Values) -> str:
    lag = f", event-loop lag p99 {format_duration(values['lag_p99_s'])}" if "lag_p99_s" in values else ""
    return f"{subject} {values['cores']:.2f} of 1 core{lag}"


_FIGURES: Final[dict[Resource, Callable[[str, Values], str]]] = {
    Resource.MEMORY: _memory_of,
    Resource.GC: _gc,
    Resource.CPU: _cpu,
    Resource.HOST_CPU: lambda subject, values: f"{subject} {format_share(values['idle_share'])} idle",
    Resource.APF: _apf,
    Resource.IN_FLIGHT: _in_flight,
    Resource.ETCD_SPACE: _space,
    Resource.ETCD_FSYNC: lambda subject, values: f"{subject} fsync p99 {format_duration(values['p99_s'])}",
    Resource.ETCD_CPU: _cpu,
    Resource.NETWORK: _network,
    Resource.GENERATOR: _generator,
    Resource.WATCH_CACHE: _watch_cache,
}
