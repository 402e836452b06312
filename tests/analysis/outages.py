"""Journals of outages: a rollout that kills the API server, a rollback that fails, a lever that helps or does not.

Five phases, 20 to 60 s each: baseline 7–27, rollout 27–57, rollback 57–87, relief 87–147, after 147–157. The API server is
killed at 45 and 65 s, and away for 10 and for 25 s; where the lever does not help it is killed again at 95 s, away for 30 s, and at 130 s for good.
"""

from __future__ import annotations

from typing import Any

from scaletest.core.journal import Record
from scaletest.core.rundir import RunInfo
from tests.analysis.journals import (
    GIB,
    driver,
    flow,
    host,
    nodes,
    probe,
    process,
    record,
    run_info,
    setup_records,
    step,
)

IDENTITIES = ("system:masters", "admin", "on-call")
HELPED = ((45.0, 55.0), (65.0, 90.0))
HELPLESS = (*HELPED[:1], (65.0, 90.0), (95.0, 125.0), (130.0, 999.0))
PHASES = (("baseline", 7.0), ("rollout", 27.0), ("rollback", 57.0), ("relief", 87.0), ("after", 147.0))
END_S = 157.0
LEASE_TAIL = "E1130 leaderelection.go:340] failed to renew lease\nE1130 controllermanager.go:316] leaderelection lost"


def outage_info(**more: Any) -> RunInfo:
    """The run.json of an outage, with an SLO."""
    profile = {
        **run_info().profile,
        "slo": {"operator": "probe.operator.p99 < 1s"},
        "objectives": [{"check": "probe.operator.recovered >= 10s"}],
        **more,
    }
    return run_info(profile=profile)


def outage(*, lever: str | None = "block-agents", helps: bool = True, rollout: bool = True) -> list[Record]:
    """Return the journal of an outage; ``lever`` None pulls none and tells none."""
    away = HELPED if helps else HELPLESS
    records = [*setup_records(), *_phases(), *_exits(away), *_actions(lever, helps=helps)]
    if rollout:
        records.append(record("flow.start", 27.02, flow="telemetry", target=50))
        records.append(record("flow.sample", 46.0, "driver", flow="telemetry", step="list", outcome="refused"))
    for second in range(8, int(END_S) + 1):
        records += _second(float(second), away, rollout=rollout)
    records.sort(key=lambda item: float(item["t"]))
    return [*records, record("run.end", END_S + 1, status="finished", reason="")]


def _phases() -> list[Record]:
    ends = [*(start_s for _, start_s in PHASES[1:]), END_S]
    records = []
    for (name, start_s), end_s in zip(PHASES, ends, strict=True):
        records.append(record("phase.start", start_s, phase=name))
        records.append(record("phase.end", end_s - 0.005, phase=name, reason="time"))
    return records


def _exits(away: tuple[tuple[float, float], ...]) -> list[Record]:
    records = []
    for index, (from_s, to_s) in enumerate(away, start=1):
        records.append(
            record(
                "component.exit", from_s, "supervisor", component="kube-apiserver", pid=100 + index, reason="oom", code=None,
                signal=9, peak_rss_bytes=4 * GIB, cap_bytes=4 * GIB,
            )
        )  # fmt: skip
        if to_s < END_S:
            records.append(
                record(
                    "component.start",
                    to_s - 1,
                    "supervisor",
                    component="kube-apiserver",
                    pid=101 + index,
                    restart=index,
                )
            )
    lost = {"component": "kube-controller-manager", "pid": 102, "reason": "exit", "code": 1, "signal": None}
    records.append(record("component.exit", 60.0, "supervisor", **lost, log_tail=LEASE_TAIL))
    records.append(
        record("component.start", 60.2, "supervisor", component="kube-controller-manager", pid=202, restart=1)
    )
    return records


def _actions(lever: str | None, *, helps: bool) -> list[Record]:
    rollback = {"action": "deleteRollout"}
    asked = {"flow": "telemetry", "identity": "system:masters"}
    failed = "not done when its phase ended, 30 s after it began; the latest failure, in 6 attempts: connection refused"
    gone = "accepted after 3.1 s, gone after 3.2 s, 95 % of 50 agents stopped after 13.4 s"
    records = [
        record("action.start", 57.01, **rollback, detail=asked),
        record("action.end", 86.99, **rollback, detail="", ok=False, error=failed, duration_s=29.99),
        record("action.start", 87.02, **rollback, detail=asked),
    ]
    if helps:
        records.append(record("action.end", 100.0, **rollback, detail=gone, ok=True, error=None, duration_s=12.98))
    else:
        records.append(record("action.end", 146.99, **rollback, detail="", ok=False, error=failed, duration_s=59.98))
    if lever is not None:
        records.append(record("action.start", 87.005, action="lever", detail=lever))
        if lever == "block-agents":
            records.append(record("action.start", 87.006, action="block", detail={"flow": "telemetry"}))
            records.append(
                record(
                    "action.end",
                    87.01,
                    action="block",
                    detail="50 connections closed",
                    ok=True,
                    error=None,
                    duration_s=0.004,
                )
            )
        told = "block" if lever == "block-agents" else "nothing is done"
        records.append(
            record("action.end", 87.015, action="lever", detail=f"{lever}: {told}", ok=True, error=None, duration_s=0.0)
        )
    return records


def _second(t: float, away: tuple[tuple[float, float], ...], *, rollout: bool) -> list[Record]:
    down = any(from_s < t <= to_s for from_s, to_s in away)
    processes: dict[str, tuple[int, float, float]] = {
        "etcd": (100, GIB / 4, 0.1 * t),
        "driver": (200, GIB / 8, 0.2 * t),
    }
    if not down:
        processes["kube_apiserver"] = (101, 1.5 * GIB, 0.5 * t)
    records = [
        host(t, busy=0.9 * t, idle=1.1 * t),
        process(t, **processes),
        driver(t),
        nodes(t - 0.7, 40 if 70 < t < 110 else 50, 10 if 70 < t < 110 else 0, ok=not down),
    ]
    for index, identity in enumerate(IDENTITIES):
        sent_s = t - 0.9 + index / 10
        records.append(
            probe(sent_s, 0.001, outcome="refused", identity=identity) if down else probe(sent_s, identity=identity)
        )
    if rollout and t > 27:
        started = min(50, int(5 * (t - 27)))
        steps = {
            "list": step(
                [] if down else [20_000] * 5, [200] * 5 if down else [], {"refused": 5} if down else {"200": 5}
            )
        }
        records.append(flow(t, "telemetry", target=50, started=started, connected=0 if down else started, steps=steps))
    return records
