"""Which resource is at its limit: every rule applies, and every rule does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from scaletest.analysis.limiting import Finding, Resource, findings, in_flight_limits, limiting
from scaletest.analysis.state import RunState
from scaletest.core.journal import Record
from tests.analysis.journals import GIB, apf_level, apiserver, driver, etcd, flow, host, process, record, step

SPAN = (0.0, 60.0)


def limit(name: str = "kube-apiserver", *, memory: float = 4 * GIB, cpu: float | None = 2.0) -> Record:
    fields: dict[str, Any] = {
        "memory_bytes": int(memory),
        "cpu_cores": cpu,
        "memory_by": "cgroup_v2",
        "cpu_by": "cgroup_v2",
    }
    return record("component.limit", 0.0, component=name, **fields)


def used(memory: float, cores: float) -> list[Record]:
    return [process(float(t), kube_apiserver=(1, memory, cores * t)) for t in (1, 30, 59)]


def ended(t: float) -> Record:
    """An exit that memory has nothing to do with."""
    return {**killed(t), "reason": "exit", "code": 1, "signal": None}


def killed(t: float, name: str = "kube-apiserver") -> Record:
    return record(
        "component.exit",
        t,
        component=name,
        reason="oom",
        code=None,
        signal=9,
        peak_rss_bytes=4 * GIB,
        cap_bytes=4 * GIB,
    )


def level(t: float, in_use: float, queued: float, rejected: int = 0) -> Record:
    return apiserver(
        t, workload_low=apf_level(seats_limit=245, seats_in_use=in_use, queued=queued, rejected={"time-out": rejected})
    )


def hosts(idle: float) -> list[Record]:
    return [host(t, busy=t * (1 - idle), idle=t * idle) for t in (1.0, 59.0)]


def slow_disk(seconds: float) -> list[Record]:
    return [etcd(t, {0.001: 0, seconds: int(100 * t)}) for t in (1.0, 30.0, 59.0)]


def used_by_etcd(cores: float) -> list[Record]:
    return [process(float(t), etcd=(1, GIB, cores * t)) for t in (1, 30, 59)]


def no_space(message: str) -> list[Record]:
    sample: dict[str, Any] = {
        "flow": "writes",
        "step": "create-configmaps",
        "outcome": "500",
        "status": 500,
        "message": message,
    }
    return [record("flow.sample", 30.0, **sample)]


def driven(cores: float, *, worker: float = 0.0) -> list[Record]:
    times = (1, 30, 59)
    workers = [[{"pid": 7, "cpu_s": worker * t, "rss_bytes": 1}] if worker else [] for t in times]
    return [driver(float(t), cpu_s=cores * t, workers=items) for t, items in zip(times, workers, strict=True)]


def collected(share: float, *, memory: float = GIB, limit: float | None = None, spare_s: float = 0.0) -> list[Record]:
    """A server that spends a share of its CPU on garbage collection, and ``spare_s`` more a second on idle processors."""
    return [
        apiserver(
            t,
            go={
                "cpu_s": 4 * t, "idle_s": (2 - spare_s) * t, "gc_s": (2 * share + spare_s) * t, "gc_idle_s": spare_s * t,
                "memory_bytes": memory, "memory_limit_bytes": limit,
            },
        )
        for t in (1.0, 59.0)
    ]  # fmt: skip


def in_flight(read_only: int, mutating: int, **rejected: int) -> list[Record]:
    """Two scrapes between which requests were rejected, by verb."""
    inflight = {"read_only": read_only, "mutating": mutating}
    none, counts = (
        {f"{verb} 429": 0 for verb in rejected},
        {f"{verb} 429": count for verb, count in rejected.items()},
    )
    return [apiserver(t, inflight=inflight, requests=requests) for t, requests in ((1.0, none), (59.0, counts))]


def cached(**figures: float) -> list[Record]:
    whole = {"terminated_watchers": 3, "fallbacks": 5, "waits": 100, "wait_s": 0.5}
    grown = {name: whole[name] + figures.get(name, 0) for name in whole}
    return [apiserver(t, server="second", watch_cache=part) for t, part in ((1.0, whole), (59.0, grown))]


def tcp(overflows: int | None, pressures: int | None) -> list[Record]:
    before = [None if value is None else 7 for value in (overflows, pressures)]
    after = [None if value is None else 7 + value for value in (overflows, pressures)]
    return [
        host(t, busy=t, idle=t, tcp_listen_overflows=values[0], tcp_memory_pressures=values[1])
        for t, values in ((1.0, before), (59.0, after))
    ]


def without_apf(**flags: Any) -> dict[str, Any]:
    return {"controlPlane": {"args": {"kube-apiserver": {"enable-priority-and-fairness": False, **flags}}}}


def look(records: Iterable[Record], profile: Mapping[str, Any] | None = None, *, since_s: float = 0.0) -> list[Finding]:
    """Look at the minute of ``SPAN``; records at ``since_s`` are at its begin, those before it are earlier."""
    span = (SPAN[0] + since_s, SPAN[1] + since_s)
    return findings(RunState().apply_all(records), span, profile or {})


def later(records: Iterable[Record], by_s: float) -> list[Record]:
    return [{**item, "t": item["t"] + by_s} for item in records]


def found(*records: Record, profile: Mapping[str, Any] | None = None) -> str:
    item = limiting(look(records, profile))
    return "none" if item is None else f"{item.resource} {item.subject}"


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([limit(), killed(30.0)], "memory kube-apiserver"),
        ([limit(), killed(61.0)], "none"),
        ([limit(), *used(3.61 * GIB, 0.1)], "memory kube-apiserver"),
        ([limit(), *used(3.59 * GIB, 0.1)], "none"),
        ([*used(3.99 * GIB, 9.0)], "none"),  # no cap, no quota
        ([limit(), *used(GIB, 1.81)], "cpu kube-apiserver"),
        ([limit(), *used(GIB, 1.79)], "none"),
        ([limit(), *used(GIB, 0.1), *hosts(0.04)], "host_cpu host"),
        ([limit(), *used(GIB, 0.1), *hosts(0.06)], "none"),
        ([level(5.0, 245, 10)], "apf workload-low"),
        ([level(5.0, 245, 0)], "none"),
        ([level(5.0, 240, 10)], "apf workload-low"),  # the next LIST takes ten seats
        # It rejects what does not fit; a scrape need not have seen it full.
        ([level(5.0, 0, 0, 1), level(10.0, 0, 0, 7)], "apf workload-low"),
        ([level(5.0, 245, 0, 7), level(10.0, 245, 0, 7)], "none"),
        ([level(61.0, 245, 10)], "none"),
        (slow_disk(0.2), "etcd_fsync etcd"),
        (slow_disk(0.1), "none"),
        ([limit("etcd"), *used_by_etcd(1.81)], "etcd_cpu etcd"),
        ([limit("etcd"), *used_by_etcd(1.79)], "none"),
        (no_space("etcdserver: mvcc: database space exceeded"), "etcd_space etcd"),
        (no_space("etcdserver: request timed out"), "none"),
        ([flow(5.0, "puts", steps={"put": step(outcomes={"OK": 9, "NOSPACE": 1})})], "etcd_space etcd"),
        ([flow(5.0, "puts", steps={"put": step(outcomes={"OK": 9, "UNAVAILABLE": 1})})], "none"),
        (driven(0.91), "generator load driver"),
        (driven(0.1, worker=0.91), "generator load process 7"),
        (driven(0.89), "none"),
        (collected(0.251, memory=0.901 * GIB, limit=GIB), "gc kube-apiserver"),
        (collected(0.249, memory=0.901 * GIB, limit=GIB), "none"),
        (collected(0.251, memory=0.899 * GIB, limit=GIB), "none"),
        (collected(0.6), "none"),  # no GOMEMLIMIT: a part of the CPU
        (collected(0.24, memory=GIB, limit=GIB, spare_s=1.0), "none"),  # what idle processors do takes nothing away
        (cached(terminated_watchers=1), "watch_cache kube-apiserver"),
        (cached(fallbacks=1), "watch_cache kube-apiserver"),
        (cached(waits=100, wait_s=90.0), "none"),
        (tcp(1, 0), "network TCP"),
        (tcp(0, 1), "network TCP"),
        (tcp(None, 1), "network TCP"),
        (tcp(0, 0), "none"),
        ([*tcp(1, 0), *driven(0.91), *cached(fallbacks=1)], "network TCP"),
        ([*driven(0.91), *cached(fallbacks=1)], "generator load driver"),
        ([], "none"),
    ],
)
def test_each_rule_applies_at_its_threshold(records: list[Record], expected: str) -> None:
    assert expected == found(*records)


def test_of_several_the_first_rule_that_applies_decides() -> None:
    everything = [limit(), killed(30.0), *used(3.9 * GIB, 1.95), *hosts(0.01), level(5.0, 245, 10), *slow_disk(0.5)]
    each = look(everything)

    assert [Resource.MEMORY, Resource.CPU, Resource.HOST_CPU, Resource.APF, Resource.ETCD_FSYNC] == [
        item.resource for item in each if item.at_limit
    ]
    assert found(*everything) == "memory kube-apiserver"
    assert found(*everything[2:]) == "host_cpu host"


def test_findings_have_their_figures_in_base_units() -> None:
    records = [limit(), *used(GIB, 1.0), *hosts(0.5), level(1.0, 100, 3), level(6.0, 120, 0, 4), *slow_disk(0.016)]
    values = {item.resource: dict(item.values) for item in look(records)}

    assert values[Resource.MEMORY] == {"oom_kills": 0.0, "down_s": 0.0, "used_bytes": GIB, "cap_bytes": 4 * GIB}
    assert values[Resource.CPU] == {"cores": pytest.approx(1.0), "quota_cores": 2.0}
    assert values[Resource.HOST_CPU] == {"idle_share": pytest.approx(0.5), "cores": 2.0}
    assert values[Resource.APF] == {"seats_in_use": 100, "seats": 245, "queued": 3, "rejected": 4}
    assert values[Resource.ETCD_FSYNC]["p99_s"] == pytest.approx(0.016, rel=0.1)


def test_what_was_not_measured_is_not_found_and_has_no_figure() -> None:
    assert look([]) == []
    (memory,) = look([killed(30.0)])
    assert dict(memory.values) == {"oom_kills": 1.0, "down_s": 0.0, "used_bytes": 4 * GIB}


def test_a_server_that_waits_to_be_restarted_after_a_kill_is_out_of_memory_though_it_uses_none() -> None:
    """Its back-off grows to five minutes: a whole span may lie in it."""

    def again(t: float) -> Record:
        return record("component.start", t, component="kube-apiserver", pid=2, restart=1)

    (memory,) = look([limit(), killed(0.0), *later(hosts(0.9), 100.0)], since_s=100.0)[:1]
    assert (Resource.MEMORY, True) == (memory.resource, memory.at_limit)
    assert dict(memory.values) == {"oom_kills": 0.0, "down_s": pytest.approx(59.0), "cap_bytes": 4 * GIB}

    records = [limit(), killed(0.0), again(140.0), *later(used(GIB, 0.1), 100.0)]
    (memory,) = look(records, since_s=100.0)[:1]
    assert memory.at_limit
    assert memory.values["down_s"] == pytest.approx(40.0)

    for records in ([limit(), killed(0.0), again(60.0)], [limit(), ended(0.0)]):
        assert limiting(look(records, since_s=100.0)) is None


def test_of_several_servers_and_levels_the_fullest_comes_first() -> None:
    second = "kube-apiserver-2"
    records = [
        limit(), limit(second), killed(30.0, second), *used(GIB, 0.5),
        apiserver(5.0, low=apf_level(seats_limit=10, seats_in_use=10, queued=1), high=apf_level(seats_limit=10, seats_in_use=9, rejected={"time-out": 50})),
    ]  # fmt: skip
    each = look(records)

    assert [second, "kube-apiserver"] == [item.subject for item in each if item.resource is Resource.MEMORY]
    assert ["low", "high"] == [item.subject for item in each if item.resource is Resource.APF]


@pytest.mark.parametrize(
    ("records", "flags", "expected"),
    [
        (in_flight(400, 0, LIST=1), {}, "in_flight read-only requests"),
        (in_flight(399, 0, LIST=1), {}, "none"),
        (in_flight(400, 0, LIST=0), {}, "none"),
        (in_flight(400, 0, POST=1), {}, "none"),
        (in_flight(0, 200, PATCH=1), {}, "in_flight mutating requests"),
        (in_flight(0, 199, PATCH=1), {}, "none"),
        (in_flight(40, 0, GET=1), {"max-requests-inflight": 40}, "in_flight read-only requests"),
        (in_flight(40, 0, GET=1), {"max-requests-inflight": "41"}, "none"),
        (in_flight(400, 0, GET=1), {"max-requests-inflight": 0}, "none"),
        (in_flight(400, 0, LIST=1), {"enable-priority-and-fairness": True}, "none"),
        (in_flight(400, 0, LIST=1), {"enable-priority-and-fairness": "False"}, "in_flight read-only requests"),
    ],
)
def test_in_flight_limits_count_where_priority_and_fairness_is_off(
    records: list[Record], flags: dict[str, Any], expected: str
) -> None:
    assert expected == found(*records, profile=without_apf(**flags))


def test_in_flight_limits_are_the_defaults_of_the_api_server_unless_given() -> None:
    assert {} == in_flight_limits({})
    assert {"read-only requests": 400, "mutating requests": 200} == in_flight_limits(without_apf())
    given = without_apf(**{"max-requests-inflight": 3000, "max-mutating-requests-inflight": 0})
    assert {"read-only requests": 3000} == in_flight_limits(given)


def test_cpu_says_what_of_it_was_garbage_collection() -> None:
    records = [limit(), *used(GIB, 1.95), *collected(0.46, spare_s=0.5)]
    (cpu,) = (item for item in look(records) if item.resource is Resource.CPU)

    assert {"cores": pytest.approx(1.95), "quota_cores": 2.0, "gc_share": pytest.approx(0.46)} == dict(cpu.values)
    assert "cpu kube-apiserver" == found(*records)


def test_figures_of_the_other_rules() -> None:
    records = [
        *collected(0.3, memory=0.5 * GIB, limit=GIB),
        *cached(terminated_watchers=2, fallbacks=4, waits=8, wait_s=0.4),
        *tcp(5, 0),
    ]
    values = {item.resource: dict(item.values) for item in look(records)}

    assert {"gc_share": pytest.approx(0.3), "used_bytes": 0.5 * GIB, "limit_bytes": GIB} == values[Resource.GC]
    assert {"listen_overflows": 5, "memory_pressures": 0} == values[Resource.NETWORK]
    counts = {"terminated_watchers": 2, "fallbacks": 4, "mean_wait_s": pytest.approx(0.05)}
    assert counts == values[Resource.WATCH_CACHE]


def test_a_restart_between_scrapes_is_no_negative_share() -> None:
    records = [*collected(0.2), apiserver(59.5, go={"cpu_s": 4.0, "idle_s": 2.0, "gc_s": 1.0, "gc_idle_s": 0.0})]

    assert 0.2 < RunState().apply_all(records).api_servers.gc_share(SPAN) < 0.21
