"""The figures of the last seconds, held against what the final report measures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.analysis.evaluate import measure
from scaletest.analysis.lockouts import lockouts
from scaletest.analysis.state import RunState
from scaletest.profile.objectives import Subject
from scaletest.report.live_figures import (
    RECENT_S,
    component_now,
    flow_now,
    locked_since_s,
    own_now,
    probe_now,
)
from tests.analysis.journals import GIB, SERVER, flow, probe, process, record, small_run, step


def state_of_small_run(until_s: float) -> RunState:
    return RunState().apply_all(item for item in small_run() if item["t"] <= until_s)


@pytest.mark.parametrize("now_s", [18.0, 21.0, 24.0, 28.0, 33.0, 39.0])
def test_a_flow_is_measured_as_by_the_final_report_over_the_last_seconds(now_s: float) -> None:
    state = state_of_small_run(now_s)
    span = (now_s - RECENT_S, now_s)
    flow = flow_now(state, "agents", now_s)

    def reported(name: str) -> float:
        return measure(state, Subject("flow", "agents", None, None, name), span).value

    assert reported("rate") == flow.rate_per_s
    assert reported("error_rate") == flow.failed_share
    assert reported("p50") == flow.p50_s
    assert reported("p99") == flow.p99_s


def test_a_flow_that_is_silent_has_gauges_and_no_figures() -> None:
    state = RunState().apply_all([flow(10.0, started=4, target=9, connected=3, steps={"list": step([1000])})])

    now = flow_now(state, "agents", 20.0)

    assert (4, 9, 3) == (now.started, now.target, now.connected)
    assert (None, None, None, None) == (now.rate_per_s, now.failed_share, now.p99_s, now.bytes_per_s)


def test_failures_are_counted_by_outcome_most_frequent_first() -> None:
    outcomes = {"200": 5, "429": 2, "timeout": 7, "201": 1, "reset": 0}
    state = RunState().apply_all([flow(10.0, steps={"list": step(outcomes=outcomes)})])

    assert [("timeout", 7), ("429", 2)] == list(flow_now(state, "agents", 10.0).failed.items())


@given(
    requests=st.lists(st.tuples(st.floats(0, 60), st.floats(0.001, 20), st.booleans()), min_size=1, max_size=40),
    more_s=st.floats(0.001, 30),
)
def test_a_lock_out_is_that_of_the_final_report(requests: list[tuple[float, float, bool]], more_s: float) -> None:
    ordered = sorted(requests, key=lambda item: item[0] + item[1])
    records = [probe(sent, latency, outcome="ok" if ok else "timeout") for sent, latency, ok in ordered]
    state = RunState().apply_all(records)
    now_s = max(sent + latency for sent, latency, _ in requests) + more_s

    spans = lockouts(state.probes["operator"]["system:masters", SERVER], now_s)

    expected = max((start for start, end in spans if end >= now_s), default=None)
    assert expected == locked_since_s(state, "operator", "system:masters", now_s)


def test_with_two_servers_an_identity_is_locked_out_when_both_lock_it_out() -> None:
    other = "https://127.0.0.1:30002"
    state = RunState().apply_all([
        probe(1.0), probe(1.0, server=other), probe(2.0, outcome="refused"), probe(2.0, 0.3, server=other),
    ])  # fmt: skip
    now = probe_now(state, "operator", "system:masters", 3.0)
    assert now is not None
    assert (None, 1.0, 0.3) == (now.locked_since_s, now.success_rate, now.p99_s)
    assert now.silent_s == pytest.approx(0.7)

    state.apply(probe(3.0, outcome="refused", server=other))
    now = probe_now(state, "operator", "system:masters", 4.0)
    assert now is not None
    assert now.locked_since_s == pytest.approx(2.3)


def test_a_probe_that_has_never_asked_shows_nothing() -> None:
    assert probe_now(RunState(), "operator", "admin", 5.0) is None


def test_a_component_is_down_when_it_has_ended_or_is_not_among_the_processes() -> None:
    state = RunState().apply_all([
        process(1.0, etcd=(1, GIB, 1.0), kube_apiserver=(2, 2 * GIB, 1.0)),
        process(2.0, etcd=(1, GIB, 1.5), kube_apiserver=(2, 3 * GIB, 2.0)),
    ])  # fmt: skip
    alive = component_now(state, "kube-apiserver", 2.0, 2.0)
    assert (False, 3 * GIB, 1.0) == (alive.down, alive.memory_bytes, alive.cores)

    state.apply(record("component.exit", 2.5, component="kube-apiserver", reason="oom"))
    ended = component_now(state, "kube-apiserver", 2.0, 2.6)
    assert (True, None, 1) == (ended.down, ended.memory_bytes, ended.oom_kills)

    state.apply(record("component.start", 2.7, component="kube-apiserver", restart=1))
    assert not component_now(state, "kube-apiserver", 2.0, 2.8).down
    state.apply(process(3.0, etcd=(1, GIB, 2.0)))
    assert component_now(state, "kube-apiserver", 3.0, 3.1).down
    assert component_now(state, "kube-apiserver", 3.0, 3.1).restarts == 1


def test_the_harness_shows_its_own_use() -> None:
    own = own_now(state_of_small_run(30.0), 30.0)

    assert ["driver", "cli"] == list(own.processes)
    assert own.processes["cli"][1] == pytest.approx(0.02)
    assert own.lag_p99_s is not None
    assert own.available_bytes is not None
