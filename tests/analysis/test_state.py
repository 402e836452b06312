"""Folding records: in any chunks, in any interleaving of writers, with broken ones among them."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.analysis.evaluate import measure
from scaletest.analysis.state import RunState
from scaletest.analysis.verdict import judge
from scaletest.core.journal import Record
from scaletest.profile.objectives import parse_objective
from tests.analysis.journals import (
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
    run_info,
    small_run,
    step,
)

SMALL = small_run()

SUBJECTS = [
    parse_objective(text).subject
    for text in (
        "flow.agents.p99 < 1s", "flow.agents.list-pods.rate > 1/s", "probe.operator.locked_out < 1s", "probe.operator.p50 < 1s",
        "component.kube-apiserver.cpu < 1", "component.kube-apiserver.memory < 1GiB", "generator.lag_p99 < 1s",
        "apf.global-default.rejected < 1", "etcd.fsync_p99 < 1s", "host.cpu_idle > 1%", "probe.readiness.not_ready < 1",
    )
]  # fmt: skip


def known(state: RunState) -> dict[str, Any]:
    values = {str(subject): repr(measure(state, subject)) for subject in SUBJECTS}
    return {
        **values,
        "records": state.records,
        "phases": state.phases,
        "verdict": repr(judge(run_info(), state).reasons),
    }


@given(st.integers(0, len(SMALL)))
@settings(max_examples=25, deadline=None)
def test_a_journal_read_in_two_parts_says_what_it_says_in_one(cut: int) -> None:
    state = RunState().apply_all(SMALL[:cut])
    known(state)
    state.apply_all(SMALL[cut:])

    assert known(RunState().apply_all(SMALL)) == known(state)


@given(st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_the_interleaving_of_writers_does_not_matter(random: Any) -> None:
    """Each writer's own lines keep their order; between writers any order of lines can happen."""
    writers = {src: [item for item in SMALL if item["src"] == src] for src in ("runner", "supervisor", "driver")}
    mixed: list[Record] = []
    while any(writers.values()):
        src = random.choice([name for name, lines in writers.items() if lines])
        mixed.append(writers[src].pop(0))

    assert known(RunState().apply_all(SMALL)) == known(RunState().apply_all(mixed))


def test_unknown_kinds_and_fields_are_passed_over() -> None:
    state = RunState().apply_all([record("from.the.future", 1.0, x=1), probe(2.0, brightness=3)])

    assert state.records == 2
    assert state.malformed.total() == 0
    assert len(state.probes["operator"]["system:masters", "https://127.0.0.1:30001"]) == 1


@pytest.mark.parametrize(
    "broken",
    [
        record("probe", 1.0),
        record("flow", 1.0, flow="agents"),
        record("flow", 1.0, flow="agents", interval_s=1, steps={"a": {"outcomes": 3}}),
        record("process", 1.0, processes={"etcd": {}}),
        record("phase.end", 1.0, phase="never-begun"),
        record("metrics.apiserver", 1.0, apf={"exempt": None}),
        record("metrics.etcd", 1.0, fsync={"buckets": [[1]]}),
        record("driver", 1.0, interval_s=1.0),
        record("host", 1.0),
        record("component.exit", 1.0, component="etcd", reason="oom", peak_rss_bytes="much"),
        record("probe", 1.0, probe="p", sent_t=1.0, latency_s="fast", ok=True),
        record("phase.end", 1.0, phase=None),
        {"v": 1, "t": None, "kind": "note"},
        {"v": 1, "kind": "note"},
    ],
)
def test_a_malformed_record_is_counted_and_changes_nothing(broken: Record) -> None:
    state_with, state_without = RunState().apply_all([*SMALL, broken]), RunState().apply_all(SMALL)

    assert state_with.malformed == {broken["kind"]: 1}
    assert {**known(state_without), "records": len(SMALL) + 1} == {
        **known(state_with),
        "verdict": known(state_without)["verdict"],
    }


IMPOSSIBLE = [-1, -0.5, math.nan, math.inf, 1e300, 10**300, "5", True, []]


@pytest.mark.parametrize("value", IMPOSSIBLE, ids=lambda value: str(value)[:6])
@pytest.mark.parametrize(
    ("whole", "keys"),
    [
        (probe(1.0), ("t",)),
        (probe(1.0), ("sent_t",)),
        (probe(1.0), ("latency_s",)),
        (nodes(1.0, 5), ("ready",)),
        (flow(2.0, steps={"get": step([5])}), ("interval_s",)),
        (flow(2.0, steps={"get": step([5])}), ("started",)),
        (flow(2.0, steps={"get": step([5])}), ("steps", "get", "bytes")),
        (flow(2.0, steps={"get": step([5])}), ("steps", "get", "outcomes", "200")),
        (flow(2.0, steps={"get": step([5])}), ("steps", "get", "latency_us", "sum")),
        (flow(2.0, steps={"get": step([5])}), ("steps", "get", "latency_us", "max")),
        (flow(2.0, steps={"get": step([5])}), ("steps", "get", "latency_us", "d")),
        (process(1.0, etcd=(1, 2, 3.0)), ("processes", "etcd", "rss_bytes")),
        (process(1.0, etcd=(1, 2, 3.0)), ("processes", "etcd", "cpu_s")),
        (host(1.0), ("available_bytes",)),
        (host(1.0), ("cpu_idle_s",)),
        (driver(1.0), ("interval_s",)),
        (driver(1.0), ("sockets",)),
        (apiserver(1.0, requests={"GET 200": 5}), ("requests", "GET 200")),
        (apiserver(1.0, exempt=apf_level(queued=3)), ("apf", "exempt", "queued")),
        (latency(1.0, {"GET nodes resource": [0.1]}), ("families", "sli", "le_s", 0)),
        (etcd(1.0, {0.001: 5}), ("puts",)),
        (etcd(1.0, {0.001: 5}), ("fsync", "buckets", 0, 1)),
    ],
    ids=lambda item: item["kind"] if isinstance(item, dict) else ".".join(map(str, item)),
)
def test_a_number_that_cannot_be_makes_its_record_malformed(whole: Record, keys: tuple[Any, ...], value: Any) -> None:
    damaged = copy.deepcopy(whole)
    place: Any = damaged
    for key in keys[:-1]:
        place = place[key]
    if place[keys[-1]] == [5] and value == []:
        value = [2**40]  # No list where there is one: a bucket beyond all.
    place[keys[-1]] = value
    # An empty value is none, where there may be none.
    optional = keys[-1] in {"started", "bytes", "sockets", "queued", "puts"} and value == []
    state = RunState().apply_all([whole, damaged])

    assert RunState().apply_all([whole]).malformed == {}
    assert ({} if optional else {whole["kind"]: 1}) == state.malformed


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, 10**300, {"deep": json.loads("[" * 100 + "]" * 100)}],
    ids=["nan", "inf", "big", "deep"],
)
def test_what_is_told_as_it_is_holds_nothing_that_cannot_be_told(value: Any) -> None:
    state = RunState().apply_all([record("action.end", 1.0, action="grow", detail={"added": value}, ok=True)])

    assert state.malformed == {"action.end": 1}
    assert state.events == []


def test_the_line_of_the_first_malformed_record_is_kept() -> None:
    state = RunState()
    state.apply(probe(1.0), 1)
    state.apply(record("probe", 1.0), 7)
    state.apply(record("flow", 1.0), 9)

    assert state.first_malformed_line == 7


JUNK = st.one_of(st.none(), st.integers(-5, 5), st.text(max_size=3), st.just([]), st.just({}), st.just(float("nan")))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_junk_in_any_field_never_breaks_the_fold(data: st.DataObject) -> None:
    records = copy.deepcopy(SMALL)
    for _ in range(data.draw(st.integers(1, 5))):
        item = data.draw(st.sampled_from(records))
        place: Any = item
        key = data.draw(st.sampled_from([name for name in item if name not in {"v", "t", "kind"}]))
        while isinstance(place[key], dict) and place[key] and data.draw(st.booleans()):
            place = place[key]
            key = data.draw(st.sampled_from(list(place)))
        place[key] = data.draw(JUNK)

    known(RunState().apply_all(records))


def test_the_measured_time_leaves_set_up_and_tear_down_out() -> None:
    state = RunState().apply_all(SMALL)

    assert state.measured == (7.0, 40.0)
    assert state.end_s == 40.0
    assert state.last_t_s == 41.5


def test_a_phase_that_lasts_is_open() -> None:
    state = RunState().apply_all([record("phase.start", 1.0, phase="only"), probe(5.0, 0.5)])

    assert state.current_phase is not None
    assert state.current_phase.name == "only"
    assert state.measured == (1.0, float("inf"))
    assert state.end_s == 5.5


def test_a_started_flow_that_is_started_again_runs() -> None:
    state = RunState().apply_all(
        [
            record("flow.start", 1.0, flow="a", target=1),
            record("flow.stop", 2.0, flow="a"),
            record("flow.start", 3.0, flow="a", target=1),
        ]
    )

    assert state.flow_starts_s == {"a": 1.0}
    assert state.flow_stops_s == {}


def test_cpu_of_a_restarted_component_counts_both_lives() -> None:
    state = RunState().apply_all(
        [
            process(1.0, etcd=(10, 100, 50.0)),
            process(2.0, etcd=(10, 100, 51.0)),
            process(3.0),
            process(4.0, etcd=(11, 100, 0.5)),
            process(5.0, etcd=(11, 100, 1.5)),
        ]
    )

    assert state.components["etcd"].process.mean_cores((0.0, 9.0)) == (1.0 + 0.5 + 1.0) / 4


def test_a_tree_that_lost_a_child_used_no_negative_cpu() -> None:
    state = RunState().apply_all(
        [
            process(1.0, driver=(10, 100, 5.0)),
            process(2.0, driver=(10, 100, 3.0)),
            process(3.0, driver=(10, 100, 4.0)),
        ]
    )

    assert state.components["driver"].process.mean_cores((0.0, 9.0)) == 0.5


def test_failed_answers_are_kept_a_few_of_each_kind() -> None:
    sample = {"flow": "a", "step": "s", "status": 429, "reason": "TooManyRequests", "message": None, "node": None}
    many = [record("flow.sample", float(t), "driver", outcome="429", **sample) for t in range(100)]
    other = record("flow.sample", 200.0, "driver", outcome="timeout", **{**sample, "status": None})
    state = RunState().apply_all([*many, other])

    assert [item.outcome for item in state.flow_samples] == ["429"] * 5 + ["timeout"]


def test_skipped_probes_say_nothing_of_the_server() -> None:
    state = RunState().apply_all([probe(1.0), probe(2.0, 0.0, outcome="skipped")])

    assert state.probe_skips == {"operator": 1}
    assert len(state.probes["operator"]["system:masters", "https://127.0.0.1:30001"]) == 1


def test_nodes_that_could_not_be_counted_are_a_failed_probe_and_no_count() -> None:
    state = RunState().apply_all([nodes(1.0, 5), nodes(2.0, 0, ok=False)])

    assert [item.ready for item in state.node_counts["readiness"]] == [5]
    assert len(state.probes["readiness"]["system:masters", "https://127.0.0.1:30001"]) == 2


def test_lost_records_are_added_up_from_all_writers() -> None:
    state = RunState().apply_all(
        [
            record("driver.end", 1.0, reason="asked", lost_records=2),
            record("run.end", 2.0, status="finished", reason="", lost_records=1),
        ]
    )

    assert state.lost_records == 3


def test_applying_a_second_of_a_big_run_is_cheap() -> None:
    """A runner that follows a run of thousands of agents applies some ten records a second."""
    state = RunState()
    for second in range(1, 61):
        state.apply(flow(float(second), steps={"get": step(range(1000, 100_000, 100))}))
        state.flows["agents"].totals()
        state.flows["agents"].totals((10.0, float("inf")))

    assert state.flows["agents"].totals().steps["get"].requests == 60 * 990
