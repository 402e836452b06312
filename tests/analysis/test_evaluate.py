"""Every measure, what it is over a span, and that what was never measured meets no objective."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from scaletest.analysis.evaluate import check, holds, lockouts_of, measure
from scaletest.analysis.state import RunState
from scaletest.core.journal import Record
from scaletest.profile.objectives import MEASURES, Dimension, Subject, parse_objective
from tests.analysis.journals import (
    GIB,
    MIB,
    apf_level,
    apiserver,
    driver,
    etcd,
    flow,
    host,
    latency,
    nodes,
    probe,
    process,
    record,
    step,
)

PHASE = [record("phase.start", 0.0, phase="only"), record("phase.end", 100.0, phase="only", reason="time")]


def value(text: str, *records: Record, span: tuple[float, float] | None = None) -> float:
    subject = parse_objective(f"{text} >= {'0/s' if text.endswith('.rate') else 0}").subject
    return measure(RunState().apply_all([*PHASE, *records]), subject, span).value


FLOW = [
    flow(1.0, started=5, connected=4, steps={"list": step([1_000_000] * 98, [10] * 2, bytes=500), "get": step([2_000_000] * 100)}),
    flow(2.0, started=9, connected=8, steps={"list": step(), "get": step()}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("flow.agents.list.p50", 1.0),
        ("flow.agents.get.p99", 2.0),
        ("flow.agents.max", 2.0),
        ("flow.agents.p90", 2.0),
        ("flow.agents.p95", 2.0),
        ("flow.agents.p999", 2.0),
        ("flow.agents.list.mean", 1.0),
        ("flow.agents.list.error_rate", 0.02),
        ("flow.agents.error_rate", 0.01),
        ("flow.agents.requests", 200.0),
        ("flow.agents.list.requests", 100.0),
        ("flow.agents.errors", 2.0),
        ("flow.agents.rate", 100.0),
        ("flow.agents.list.bytes", 500.0),
        ("flow.agents.started", 9.0),
        ("flow.agents.connected", 8.0),
        ("flow.agents.most_started", 9.0),
    ],
)
def test_flow(text: str, expected: float) -> None:
    assert expected == pytest.approx(value(text, *FLOW), rel=1e-3)


def test_latencies_of_a_flow_are_of_good_answers_alone() -> None:
    assert math.isnan(value("flow.agents.p99", flow(1.0, steps={"list": step([], [5] * 10)})))
    assert value("flow.agents.error_rate", flow(1.0, steps={"list": step([], [5] * 10)})) == 1.0


PROBES = [
    *(probe(float(t), 0.1) for t in range(10)),
    *(probe(float(t), 0.2, identity="admin") for t in range(9)),
    probe(9.0, 5.0, outcome="timeout", identity="admin"),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("probe.operator[system:masters].p99", 0.1),
        ("probe.operator[system:masters].max", 0.1),
        ("probe.operator[admin].p90", 0.2),
        ("probe.operator[admin].p99", math.inf),
        ("probe.operator.p99", math.inf),
        ("probe.operator.p50", 0.2),
        ("probe.operator[admin].p95", math.inf),
        ("probe.operator[admin].p999", math.inf),
        ("probe.operator[admin].mean", 0.2),
        ("probe.operator.success_rate", 0.9),
        ("probe.operator[system:masters].success_rate", 1.0),
        ("probe.operator.observations", 10.0),
        ("probe.operator.locked_out", 100.0 - 8.2),
        ("probe.operator[system:masters].locked_out", 0.0),
        ("probe.operator[system:masters].recovered", 9.1),
        ("probe.operator.recovered", 0.0),
    ],
)
def test_probe(text: str, expected: float) -> None:
    assert expected == pytest.approx(value(text, *PROBES))


def test_agents_that_have_stopped_count_among_the_most_that_there_were() -> None:
    records = [flow(1.0, started=5), flow(2.0, started=9), flow(3.0, started=0)]

    assert value("flow.agents.started", *records) == 0.0
    assert value("flow.agents.most_started", *records) == 9.0


def test_recovered_is_of_the_worst_identity_at_its_best_server() -> None:
    masters = [probe(float(t), 0.1, server="a") for t in range(10)]
    masters += [probe(float(t), 0.0, server="b", outcome="refused") for t in range(10)]
    admin = [probe(float(t), 0.1 if t >= 6 else 1.5, server="a", identity="admin") for t in range(10)]

    assert value("probe.operator.recovered", *masters) == pytest.approx(9.1)
    assert value("probe.operator.recovered", *masters, *admin) == pytest.approx(3.1)


def test_readiness_is_the_latest_count() -> None:
    counts = [nodes(1.0, 10), nodes(3.0, 7, 3), nodes(2.0, 10), nodes(4.0, 0, ok=False)]

    assert value("probe.readiness.ready", *counts) == 7
    assert value("probe.readiness.not_ready", *counts) == 3
    assert value("probe.readiness.success_rate", *counts) == 0.75


def test_an_operator_with_two_servers_uses_the_better_one() -> None:
    """A is down from 10 to 40, B from 30 to 60: nobody answers from 30 to 40."""
    records = []
    for t in range(100):
        for server, down in (("a", 10 <= t < 40), ("b", 30 <= t < 60)):
            records.append(probe(float(t), 0.0 if down else 0.5, server=server, outcome="refused" if down else "ok"))
    state = RunState().apply_all([*PHASE, *records])

    assert lockouts_of(state, "operator", "system:masters") == [(29.5, 40.5)]
    assert value("probe.operator.locked_out", *records) == 11.0
    assert value("probe.operator.success_rate", *records) == 0.7


def test_a_lock_out_counts_within_the_span_looked_at() -> None:
    records = [probe(1.0, 0.0), probe(2.0, 0.0, outcome="refused"), probe(50.0, 0.0)]

    assert value("probe.operator.locked_out", *records) == 49.0
    assert value("probe.operator.locked_out", *records, span=(0.0, 10.0)) == 9.0


def test_a_server_that_froze_at_the_end_does_not_look_fast() -> None:
    records = [
        *(probe(float(t), 0.1) for t in range(10)),
        *(probe(10.0 + t, 15.0 - t, outcome="unfinished") for t in range(10)),
    ]

    assert value("probe.operator.p99", *records) == 15.0
    assert value("probe.operator.success_rate", *records) == 1.0


COMPONENT = [
    process(1.0, kube_apiserver=(1, GIB, 10.0)),
    process(2.0, kube_apiserver=(1, 2 * GIB, 11.5)),
    record("component.exit", 2.5, "supervisor", component="kube-apiserver", pid=1, reason="oom", peak_rss_bytes=3 * GIB),
    record("component.start", 2.6, "supervisor", component="kube-apiserver", pid=2, restart=1),
    process(3.0, kube_apiserver=(2, MIB, 0.5)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("component.kube-apiserver.memory", 3 * GIB),
        ("component.kube-apiserver.cpu", 1.0),
        ("component.kube-apiserver.restarts", 1.0),
        ("component.kube-apiserver.oom_kills", 1.0),
    ],
)
def test_component(text: str, expected: float) -> None:
    assert expected == value(text, *COMPONENT)


def test_a_component_without_trouble_has_none_and_one_never_seen_is_not_measured() -> None:
    assert value("component.kube-apiserver.restarts", *COMPONENT[:2]) == 0.0
    assert math.isnan(value("component.kube-scheduler.restarts", *COMPONENT))
    limit = record("component.limit", 0.1, "supervisor", component="etcd", memory_bytes=1)
    assert math.isnan(value("component.etcd.oom_kills", limit))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("generator.lag_p99", 0.002),
        ("generator.cpu", 0.5),
        ("generator.memory", 300.0),
        ("generator.unread_share", 0.2),
    ],
)
def test_generator(text: str, expected: float) -> None:
    drivers = [driver(float(t), [1000] * 90 + [2000] * 10, unread_share=0.9 if t == 20 else 0.2) for t in range(30)]
    drivers += [process(float(t), driver=(1, 300 - t, 0.5 * t)) for t in range(30)]

    assert expected == pytest.approx(value(text, *drivers), rel=1e-3)


def test_host() -> None:
    hosts = [host(float(t), 10 * GIB - t, busy=0.5 * t, idle=1.5 * t) for t in range(10)]

    assert value("host.available_memory", *hosts) == 10 * GIB - 9
    assert value("host.cpu_idle", *hosts) == 0.75


def test_apf() -> None:
    scrapes = [
        apiserver(1.0, exempt=apf_level(seats_in_use=3, queued=1, rejected={"time-out": 1}, dispatched=10)),
        apiserver(2.0, exempt=apf_level(seats_in_use=9, queued=7, rejected={"time-out": 3, "queue-full": 5}, dispatched=20)),
        apiserver(3.0, exempt=apf_level(seats_in_use=2, queued=2, rejected={"time-out": 1}, dispatched=2)),
    ]  # fmt: skip

    assert value("apf.exempt.rejected", *scrapes) == 2 + 5 + 1
    assert value("apf.exempt.queued", *scrapes) == 7
    assert value("apf.exempt.seats", *scrapes) == 9
    assert math.isnan(value("apf.exempt.rejected", scrapes[0]))


def test_etcd() -> None:
    scrapes = [etcd(1.0, {0.001: 0, 0.002: 0}, {0.01: 0}), etcd(2.0, {0.001: 0, 0.002: 100}, {0.01: 100}, db_bytes=9)]

    assert value("etcd.fsync_p99", *scrapes) == pytest.approx(0.00199)
    assert value("etcd.commit_p99", *scrapes) == pytest.approx(0.0099)
    assert value("etcd.db_size", *scrapes) == 50 * MIB


NAMELESS = {"generator", "host", "etcd", "search"}


def subject_of(scope: str, name: str) -> Subject:
    if scope == "sli":
        return Subject(scope, None if name == "slo_violations" else "mutating", None, None, name)
    return Subject(scope, None if scope in NAMELESS else "x", None, None, name)


ALL = [subject_of(scope, name) for scope, names in MEASURES.items() for name in names]


@pytest.mark.parametrize("subject", ALL, ids=str)
def test_what_was_never_measured_says_why_and_meets_no_objective(subject: Subject) -> None:
    for records in ([], PHASE, [*PHASE, *FLOW, *PROBES]):
        measured = measure(RunState().apply_all(records), subject)

        assert math.isnan(measured.value)
        assert measured.samples == 0
        assert measured.why_nan
    for op in ("<", "<=", ">", ">=", "==", "!="):
        threshold = {Dimension.DURATION: "1s", Dimension.SHARE: "1%", Dimension.BYTES: "1GiB", Dimension.RATE: "1/s"}
        objective = parse_objective(f"{subject} {op} {threshold.get(subject.dimension, '1')}")
        assert not holds(objective, RunState().apply_all(PHASE))


@pytest.mark.parametrize("subject", ALL, ids=str)
def test_a_span_without_samples_is_not_measured(subject: Subject) -> None:
    names = {"flow": "agents", "probe": "operator", "component": "kube-apiserver", "apf": "exempt"}
    named = replace(subject, name=names.get(subject.scope, subject.name))
    records = [
        *PHASE,
        *FLOW,
        *PROBES,
        *COMPONENT,
        apiserver(1.0, exempt=apf_level()),
        etcd(1.0, {}),
        latency(1.0, {"PUT leases.coordination.k8s.io resource": [0.1]}),
        driver(1.0),
        host(1.0),
    ]

    measured = measure(RunState().apply_all(records), named, (200.0, 300.0))

    assert math.isnan(measured.value)
    assert measured.why_nan


def test_a_wrong_name_is_answered_with_what_there_is() -> None:
    state = RunState().apply_all([*PHASE, *FLOW, *PROBES])

    def why(text: str) -> str | None:
        return measure(state, parse_objective(text).subject).why_nan

    assert why("flow.agent.p99 < 1s") == "flow agent did nothing in this run; measured were: agents"
    assert why("flow.agents.lists.p99 < 1s") == "no step lists in flow agents; measured were: get, list"
    assert (
        why("probe.operator[me].p99 < 1s") == "probe operator did not ask as me; measured were: admin, system:masters"
    )


def test_a_condition_looks_at_the_span_of_its_phase() -> None:
    records = [flow(1.0, started=50, steps={}), flow(11.0, started=7, steps={})]
    state = RunState().apply_all([record("phase.start", 0.0, phase="one"), *records])
    condition = parse_objective("flow.agents.started >= 50")

    assert not holds(condition, state)
    assert holds(condition, state, (0.0, 10.0))
    assert not holds(condition, state, (10.0, math.inf))


def test_an_objective_of_another_version_is_not_met() -> None:
    result = check("flow.agents.karma > 3", None, RunState())

    assert not result.holds
    assert result.measured.why_nan == "not understood by this version of scaletest"
