"""Builders of synthetic journals: single records, a small run with everything in it, and a big one.

Shared by the tests of analysis and report, and by ``benchmarks/report.py``. All figures are fixed or drawn from a seeded
generator, so that the same call gives the same journal on every machine.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from scaletest.core.histogram import Histogram
from scaletest.core.journal import JOURNAL_NAME, Record
from scaletest.core.rundir import RunInfo, write_run_info

GIB = 2**30
MIB = 2**20

SERVER = "https://127.0.0.1:30001"


def record(kind: str, t: float, /, src: str = "runner", **fields: Any) -> Record:
    return {"v": 1, "t": round(t, 4), "kind": kind, "src": src, **fields}


def hist(values_us: Iterable[float]) -> dict[str, object]:
    histogram = Histogram()
    for value in values_us:
        histogram.record(round(value))
    return histogram.to_json()


def step(
    ok_us: Iterable[float] = (), failed_us: Iterable[float] = (), outcomes: Mapping[str, int] | None = None, **more: Any
) -> dict[str, Any]:
    ok, failed = list(ok_us), list(failed_us)
    counted = dict(outcomes) if outcomes is not None else {"200": len(ok)} | ({"429": len(failed)} if failed else {})
    return {
        "outcomes": counted, "bytes": 1000 * len(ok), "latency_us": hist(ok), "failed_us": hist(failed),
        "connect_us": hist([]), **more,
    }  # fmt: skip


def flow(t: float, name: str = "agents", *, steps: Mapping[str, Any] | None = None, **more: Any) -> Record:
    fields = {"interval_s": 1.0, "target": 10, "started": 10, "connected": 10, "blocked": False, **more}
    return record("flow", t, "driver", flow=name, steps=dict(steps or {}), **fields)


def probe(sent: float, latency: float = 0.01, *, outcome: str = "ok", **more: Any) -> Record:
    fields = {"probe": "operator", "identity": "system:masters", "server": SERVER, **more}
    return record(
        "probe", sent + latency,
        sent_t=sent, late_s=0.001, latency_s=latency, ok=outcome == "ok", outcome=outcome,
        status=200 if outcome == "ok" else None, reason=None, **fields,
    )  # fmt: skip


def nodes(sent: float, ready: int, not_ready: int = 0, *, ok: bool = True) -> Record:
    counts = (ready, not_ready, ready + not_ready) if ok else (None, None, None)
    return record(
        "probe.nodes", sent + 0.02,
        probe="readiness", identity="system:masters", server=SERVER, sent_t=sent, late_s=0.001, latency_s=0.02, ok=ok,
        status=200 if ok else None, outcome="ok" if ok else "timeout", reason=None,
        ready=counts[0], not_ready=counts[1], total=counts[2],
    )  # fmt: skip


def process(t: float, /, **processes: tuple[int, float, float]) -> Record:
    """Processes as ``name_with_underscores=(pid, rss_bytes, cpu_s)``."""
    samples = {
        name.replace("_", "-"): {"pid": pid, "rss_bytes": int(rss), "cpu_s": cpu}
        for name, (pid, rss, cpu) in processes.items()
    }
    return record("process", t, processes=samples)


def host(
    t: float, available: float = 12 * GIB, *, busy: float = 0.0, idle: float = 0.0, steal: float = 0.0, **more: Any
) -> Record:
    return record(
        "host", t,
        available_bytes=int(available), total_bytes=24 * GIB, cores=2,
        cpu_busy_s=busy, cpu_idle_s=idle, cpu_steal_s=steal, **more,
    )  # fmt: skip


def apf_level(**fields: Any) -> dict[str, Any]:
    return {
        "seats_limit": 100,
        "seats_in_use": 1,
        "executing": 1,
        "queued": 0,
        "dispatched": 0,
        "rejected": {},
        **fields,
    }


def apiserver(
    t: float, *, server: str = SERVER, requests: Mapping[str, int] | None = None, inflight: Mapping[str, int] | None = None,
    go: Mapping[str, Any] | None = None, watch_cache: Mapping[str, float] | None = None, **levels: Any,
) -> Record:  # fmt: skip
    """A scrape; without ``go`` and ``watch_cache`` one as journals of version 0.1 have it."""
    apf = {name.replace("_", "-"): level for name, level in levels.items()}
    parts: dict[str, Any] = {"go": go, "watch_cache": watch_cache}
    return record(
        "metrics.apiserver", t,
        server=server, latency_s=0.03, apf=apf, inflight=dict(inflight or {"mutating": 1, "read_only": 3}),
        memory_bytes=GIB, requests=dict(requests or {}), **{key: value for key, value in parts.items() if value is not None},
    )  # fmt: skip


SLI_LE_S = [
    0.05,
    0.1,
    0.2,
    0.4,
    0.6,
    0.8,
    1.0,
    1.25,
    1.5,
    2.0,
    3.0,
    4.0,
    5.0,
    6.0,
    8.0,
    10.0,
    15.0,
    20.0,
    30.0,
    45.0,
    60.0,
]
REQUEST_LE_S = [0.005, 0.025, *SLI_LE_S]
WAIT_LE_S = [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0]


def counted(values_s: Iterable[float], le_s: list[float]) -> list[int]:
    """Observations as a ``metrics.latency`` record has them: bucket and count in turns."""
    counts = Counter(bisect_left(le_s, value_s) for value_s in values_s)
    return [part for item in sorted(counts.items()) for part in item]


def latency(
    t: float,
    sli: Mapping[str, Iterable[float]] | None = None,
    request: Mapping[str, Iterable[float]] | None = None,
    *,
    server: str = SERVER,
    wait: Mapping[str, Iterable[float]] | None = None,
) -> Record:
    """Latencies in seconds by kind of call; ``wait`` by priority level."""
    families = {"sli": (SLI_LE_S, sli), "request": (REQUEST_LE_S, request), "wait": (WAIT_LE_S, wait)}
    return record(
        "metrics.latency", t,
        server=server,
        families={
            name: {"le_s": le_s, "grown": {call: counted(values_s, le_s) for call, values_s in calls.items()}}
            for name, (le_s, calls) in families.items()
            if calls
        },
    )  # fmt: skip


def etcd(t: float, fsync: Mapping[float, int], commit: Mapping[float, int] | None = None, **more: Any) -> Record:
    def part(counts: Mapping[float, int]) -> dict[str, Any]:
        finite = [[bound, count] for bound, count in sorted(counts.items()) if math.isfinite(bound)]
        return {"count": max(counts.values(), default=0), "sum_s": 0.0, "buckets": finite}

    fields = {"db_bytes": 50 * MIB, "db_in_use_bytes": 40 * MIB, "puts": 0, **more}
    return record(
        "metrics.etcd", t, server="http://127.0.0.1:30002", fsync=part(fsync), commit=part(commit or {}), **fields
    )


def driver(t: float, lag_us: Iterable[float] = (500,) * 100, **more: Any) -> Record:
    fields = {"interval_s": 1.0, "cpu_s": 0.3 * t, "rss_bytes": 200 * MIB, "sockets": 10, "unread_share": 0.0, **more}
    return record("driver", t, "driver", lag_us=hist(lag_us), **fields)


def run_info(**more: Any) -> RunInfo:
    fields: dict[str, Any] = {
        "id": "20261130T120000Z-smoke",
        "profile": {
            "name": "smoke",
            "summary": "Fifty nodes, one agent on each.",
            "controlPlane": {"kubernetes": "1.37", "apiServers": 1},
            "fleet": {"pools": [{"name": "default", "nodes": 50, "podsPerNode": 2}]},
            "flows": {"agents": {"agents": {"perNode": 1, "rollout": "10/s"}, "identity": "serviceAccount:telemetry/agent", "steps": [{"list": "pods"}, {"get": "nodes", "name": "{node}", "label": "get-node"}]}},
            "objectives": [
                {"check": "flow.agents.error_rate < 1%", "abort": False, "delay": "0s"},
                {"check": "probe.operator.p99 < 1s", "abort": False, "delay": "0s"},
                {"check": "component.kube-apiserver.oom_kills == 0", "abort": False, "delay": "0s"},
            ],
        },
        "started_at": "2026-11-30T12:00:00.000+00:00",
        "clock_origin_s": 1000.0,
        "versions": {"kubernetes": "1.37.2", "etcd": "3.6.16", "kwok": "0.8.0", "scaletest": "0.1.0", "python": "3.11.9"},
        "host": {"cores": 2, "memory_bytes": 24 * GIB, "kernel": "6.1.0"},
        "argv": ["scaletest", "run", "smoke"],
        "facts": {"heartbeats": "5 times rarer than a kubelet's (factor 5)"},
    }  # fmt: skip
    return RunInfo(**{**fields, **more})


LIMITED = {"etcd": 2 * GIB, "kube-apiserver": 4 * GIB, "kube-controller-manager": GIB}


def setup_records() -> list[Record]:
    limits = [
        record(
            "component.limit", 0.1, "supervisor",
            component=name, memory_bytes=cap, cpu_cores=1.5 if name == "kube-apiserver" else None,
            memory_by="cgroup_v2", cpu_by="cgroup_v2" if name == "kube-apiserver" else "none",
        )
        for name, cap in LIMITED.items()
    ]  # fmt: skip
    starts = [
        record("component.start", 0.2, "supervisor", component=name, pid=100 + index, restart=0)
        for index, name in enumerate(LIMITED)
    ]
    return [
        record("run.start", 0.0, profile="smoke", cluster="run-1", argv=["scaletest", "run", "smoke"]),
        *limits,
        *starts,
        record("cluster.ready", 4.0, "supervisor", seconds=3.9),
        record("fleet.seeded", 5.0, via="etcd", nodes=50, pods=100, objects={"nodes": 50, "pods": 100}, seconds=0.4),
        record("fleet.ready", 6.0, nodes=50, seconds=1.0),
        record("driver.ready", 6.5, "driver", pid=200),
    ]


def second_of_small_run(t: float, *, down: bool) -> list[Record]:
    """One second of the small run: an API server that is killed at 25 s and back at 31 s."""
    after = t >= 31
    memory = GIB + 80 * MIB * (t - 7) if not after else GIB
    cpu = 0.5 * (t - 7) if not after else 0.5 * (t - 31)
    processes: dict[str, tuple[int, float, float]] = {
        "etcd": (100, 300 * MIB, 0.1 * t),
        "kube_controller_manager": (102, 150 * MIB, 0.05 * t),
        "driver": (200, 180 * MIB, 0.2 * t),
        "cli": (99, 80 * MIB, 0.02 * t),
    }
    if not down:
        processes["kube_apiserver"] = (101 if not after else 111, memory, cpu)
    started = max(0, min(50, int(10 * (t - 17))))
    records = [
        host(t, 12 * GIB - memory, busy=0.9 * t, idle=1.09 * t, steal=0.005 * t),
        process(t, **processes),
        probe(t - 0.9, 0.02 + 0.002 * (t - 7)) if not down else probe(t - 0.9, 0.001, outcome="refused"),
        probe(t - 0.8, 0.03, identity="admin")
        if not down
        else probe(t - 0.8, 0.001, outcome="refused", identity="admin"),
        nodes(t - 0.7, 50 if t < 34 else 48, 0 if t < 34 else 2) if not down else nodes(t - 0.7, 0, ok=False),
        driver(t, [300 + 10 * t] * 98 + [4000 + 100 * t] * 2, sockets=started),
    ]
    if t > 17:
        connects = [3_000.0] * min(10, max(0, int(10 * (t - 17)))) if started < 50 or t == 22 else []
        listed = [20_000 + 300 * index for index in range(started)] if not down else []
        refused = [] if not down else [200.0] * 20
        records.append(
            flow(
                t, target=50, started=started, connected=started if not down else 0,
                steps={
                    "list-pods": step(
                        listed, refused, {"200": len(listed)} if not down else {"refused": 20}, bytes=3_000_000 * len(listed),
                        connect_us=hist(connects),
                    ),
                    "get-node": step([2_000 + index for index in range(2 * started)] if not down else []),
                },
            )
        )  # fmt: skip
    return records


def scrapes_of_small_run(t: float, *, down: bool) -> list[Record]:
    if down:
        return [record("metrics.gap", t, target="kube-apiserver", server=SERVER, outcome="refused", reason=None)]
    life = t if t < 31 else t - 31
    return [
        apiserver(
            t,
            requests={"LIST 200": int(100 * life), "GET 200": int(200 * life)},
            global_default=apf_level(seats_limit=120, seats_in_use=40, queued=12, dispatched=int(100 * life), rejected={"time-out": int(life)}),
            exempt=apf_level(seats_limit=0, seats_in_use=1, dispatched=int(2 * life)),
        ),
        latency(
            t,
            {"LIST pods cluster": [0.3] * 90 + [0.7] * 10, "GET nodes resource": [0.001] * 100, "PUT leases.coordination.k8s.io resource": [0.01] * 50, "PATCH nodes/status resource": [0.02] * 8 + [1.7] * 2, "POST widgets.scaletest.dev resource": [2.5] * 3},
            {"LIST pods cluster": [0.3] * 70 + [12.0] * 30, "GET nodes resource": [0.001] * 100, "PUT leases.coordination.k8s.io resource": [0.01] * 50, "PATCH nodes/status resource": [0.02] * 8 + [2.7] * 2, "POST widgets.scaletest.dev resource": [2.5] * 3},
            wait={"global-default": [0.0] * 70 + [11.0] * 30},
        ) if t >= 20 else latency(t),
        etcd(t, {0.001: int(90 * t), 0.002: int(99 * t), 0.004: int(100 * t)}, {0.002: int(50 * t), 0.008: int(60 * t)}, puts=int(30 * t)),
    ]  # fmt: skip


def small_run(*, finished: bool = True) -> list[Record]:
    """Return forty seconds in three phases: rollout, an out-of-memory kill, a lock-out, recovery, two nodes NotReady."""
    records = setup_records()
    happenings = [
        record("phase.start", 7.0, phase="baseline"),
        record("phase.end", 17.0, phase="baseline", reason="time"),
        record("phase.start", 17.01, phase="rollout"),
        record("flow.start", 17.02, flow="agents", target=50),
        record("component.exit", 25.1, "supervisor", component="kube-apiserver", pid=101, reason="oom", code=None, signal=9, peak_rss_bytes=4 * GIB, cap_bytes=4 * GIB),
        record("component.backoff", 25.1, "supervisor", component="kube-apiserver", wait_s=0.0),
        record("component.start", 25.2, "supervisor", component="kube-apiserver", pid=111, restart=1),
        record("flow.sample", 26.0, "driver", flow="agents", step="list-pods", outcome="refused", status=None, reason="ConnectionRefusedError", message=None, node="default-00007"),
        record("phase.end", 32.0, phase="rollout", reason="condition"),
        record("phase.start", 32.01, phase="after"),
        record("action.start", 32.02, action="grow", detail={"pool": "default", "by": 10}),
        record("action.end", 32.5, action="grow", detail="10 nodes added", ok=True, error=None, duration_s=0.48),
        record("note", 33.0, level="warning", text="heartbeats of 2 nodes are late"),
        record("phase.end", 40.0, phase="after", reason="time"),
        record("flow.stop", 40.05, flow="agents"),
    ]  # fmt: skip
    for second in range(8, 41):
        t = second - 0.01 if second == 40 else float(second)
        down = 25 < second < 31
        records += second_of_small_run(t, down=down)
        if second % 5 == 0:
            records += scrapes_of_small_run(t, down=down)
    records += happenings
    records.sort(key=lambda item: item["t"])
    if finished:
        records.append(record("driver.end", 40.1, "driver", reason="asked"))
        records.append(record("cluster.end", 41.0, "supervisor", reason="asked"))
        records.append(record("run.end", 41.5, status="finished", reason=""))
    return records


def big_run(*, nodes_count: int = 7_000, minutes: float = 10, seed: int = 1) -> list[Record]:
    """Return the journal of a run of many agents: 80 started each second, LISTs once a minute, a GET every 10 s each."""
    rng = Random(seed)
    records = setup_records()
    end_s = 30 + round(60 * minutes)
    records += [
        record("phase.start", 10.0, phase="baseline"),
        record("phase.end", 30.0, phase="baseline", reason="time"),
        record("phase.start", 30.0, phase="load"),
        record("flow.start", 30.0, flow="agents", target=nodes_count),
    ]
    for second in range(10, end_s + 1):
        t = float(second)
        started = max(0, min(nodes_count, 80 * (second - 30)))
        apf = {
            f"level-{index}": apf_level(dispatched=100 * second, rejected={"time-out": second}) for index in range(8)
        }
        records += [
            host(t, busy=1.2 * t, idle=0.8 * t),
            process(t, **{f"component_{index}": (300 + index, GIB + index, 0.2 * t) for index in range(8)}),
            *(
                probe(t - 0.5, rng.lognormvariate(-4, 0.5), identity=identity)
                for identity in ("system:masters", "admin", "on-call")
            ),
            nodes(t - 0.4, nodes_count),
            driver(t, [rng.lognormvariate(6, 0.8) for _ in range(100)], sockets=started),
        ]
        if started:
            lists = [rng.lognormvariate(11.5, 0.6) for _ in range(started // 60)]
            gets = [rng.lognormvariate(8.5, 0.6) for _ in range(started // 10)]
            steps = {"list-pods": step(lists, [800.0] * 5), "get-node": step(gets)}
            records.append(flow(t, target=nodes_count, started=started, connected=started, steps=steps))
        if second % 5 == 0:
            requests = {f"VERB{index} 200": 50 * second for index in range(30)}
            record_ = apiserver(t, requests=requests)
            record_["apf"] = apf
            bounds = {0.001 * 2**index: (index + 1) * 10 * second for index in range(14)}
            calls = {f"GET things{index}.apps resource": [0.001, 0.06, 0.3] for index in range(60)}
            records += [record_, latency(t, calls, calls), etcd(t, bounds, bounds)]
    records += [
        record("flow.stop", end_s, flow="agents"),
        record("phase.end", end_s, phase="load", reason="time"),
        record("driver.end", end_s + 0.1, "driver", reason="asked"),
        record("run.end", end_s + 1, status="finished", reason=""),
    ]
    return records


def write_run(directory: Path, records: Iterable[Record], info: RunInfo | None = None) -> Path:
    """Write a run directory and return it."""
    directory.mkdir(parents=True)
    write_run_info(directory, info or run_info(id=directory.name))
    lines = (json.dumps(item, separators=(",", ":"), ensure_ascii=False) + "\n" for item in records)
    (directory / JOURNAL_NAME).write_text("".join(lines), encoding="utf-8")
    return directory
