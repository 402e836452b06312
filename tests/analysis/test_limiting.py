"""Which resource is at its limit: every rule applies, and every rule does not."""

from __future__ import annotations

from typing import Any

import pytest

from scaletest.analysis.limiting import Resource, findings, limiting
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


def found(*records: Record) -> str:
    item = limiting(findings(RunState().apply_all(records), SPAN))
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
        ([level(5.0, 200, 10)], "none"),
        ([level(5.0, 245, 0, 1), level(10.0, 245, 0, 7)], "apf workload-low"),
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
        (driven(0.1, worker=0.91), "generator etcd load process 7"),
        (driven(0.89), "none"),
        ([], "none"),
    ],
)
def test_each_rule_applies_at_its_threshold(records: list[Record], expected: str) -> None:
    assert expected == found(*records)


def test_of_several_the_first_rule_that_applies_decides() -> None:
    everything = [limit(), killed(30.0), *used(3.9 * GIB, 1.95), *hosts(0.01), level(5.0, 245, 10), *slow_disk(0.5)]
    each = findings(RunState().apply_all(everything), SPAN)

    assert [Resource.MEMORY, Resource.CPU, Resource.HOST_CPU, Resource.APF, Resource.ETCD_FSYNC] == [
        item.resource for item in each if item.at_limit
    ]
    assert found(*everything) == "memory kube-apiserver"
    assert found(*everything[2:]) == "host_cpu host"


def test_findings_have_their_figures_in_base_units() -> None:
    records = [limit(), *used(GIB, 1.0), *hosts(0.5), level(1.0, 100, 3), level(6.0, 120, 0, 4), *slow_disk(0.016)]
    values = {item.resource: dict(item.values) for item in findings(RunState().apply_all(records), SPAN)}

    assert values[Resource.MEMORY] == {"oom_kills": 0.0, "used_bytes": GIB, "cap_bytes": 4 * GIB}
    assert values[Resource.CPU] == {"cores": pytest.approx(1.0), "quota_cores": 2.0}
    assert values[Resource.HOST_CPU] == {"idle_share": pytest.approx(0.5), "cores": 2.0}
    assert values[Resource.APF] == {"seats_in_use": 120, "seats": 245, "queued": 3, "rejected": 4}
    assert values[Resource.ETCD_FSYNC]["p99_s"] == pytest.approx(0.016, rel=0.1)


def test_what_was_not_measured_is_not_found_and_has_no_figure() -> None:
    assert findings(RunState(), SPAN) == []
    (memory,) = findings(RunState().apply_all([killed(30.0)]), SPAN)
    assert dict(memory.values) == {"oom_kills": 1.0, "used_bytes": 4 * GIB}


def test_of_several_servers_and_levels_the_fullest_comes_first() -> None:
    second = "kube-apiserver-2"
    records = [
        limit(), limit(second), killed(30.0, second), *used(GIB, 0.5),
        apiserver(5.0, low=apf_level(seats_limit=10, seats_in_use=10, queued=1), high=apf_level(seats_limit=10, seats_in_use=9, queued=50)),
    ]  # fmt: skip
    each = findings(RunState().apply_all(records), SPAN)

    assert [second, "kube-apiserver"] == [item.subject for item in each if item.resource is Resource.MEMORY]
    assert ["low", "high"] == [item.subject for item in each if item.resource is Resource.APF]
