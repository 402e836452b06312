"""What the live view remembers: the trail of each second, and events that no single record tells."""

from __future__ import annotations

import pytest

from scaletest.core.journal import Record
from scaletest.report.live_state import LiveState
from tests.analysis.journals import flow, hist, probe, process, record, small_run, step
from tests.report.live_run import profile


def fed(records: list[Record]) -> LiveState:
    live = LiveState(profile())
    for item in records:
        live.apply(item)
    return live


def test_the_trail_has_one_value_for_every_second_from_the_first_phase_on() -> None:
    live = fed([item for item in small_run() if item["t"] <= 40.0])

    assert len(live.trail.requests_per_s) == 33
    assert live.trail.requests_per_s[:10] == [None] * 10
    assert live.trail.requests_per_s[20] == 20.0
    assert live.trail.latency_p99_s[20] is None
    assert live.trail.api_server_memory_bytes[20] is None
    assert live.trail.requests_per_s[-1] == 150.0


def test_reports_that_come_unevenly_leave_no_gap() -> None:
    times = [11.0, 11.99, 13.01, 14.0, 15.02, 15.98]
    reports = [flow(t, steps={"list": step([1000] * 10)}) for t in times]
    ticks = [process(float(t), etcd=(1, 1.0, 1.0)) for t in range(11, 17)]
    live = fed(sorted([record("phase.start", 10.0, phase="baseline"), *reports, *ticks], key=lambda item: item["t"]))

    assert live.trail.requests_per_s == [10.0] * 6


def test_lock_outs_and_complete_rollouts_are_told_once() -> None:
    told = [(event.level, event.text) for event in fed(small_run()).events]

    assert told.count(("good", "flow agents: all 50 agents started")) == 1
    assert told.count(("bad", "operator locked out as admin since 24.2 s")) == 1
    assert told.count(("good", "operator answered again as admin after 6.00 s")) == 1
    assert [text for _, text in told if text.startswith("phase")] == ["phase baseline", "phase rollout", "phase after"]


def test_a_late_time_out_is_told_as_the_lock_out_that_it_was() -> None:
    live = fed([
        record("phase.start", 1.0, phase="baseline"), probe(2.0), probe(3.0, 20.0, outcome="timeout"),
        process(24.0, etcd=(1, 1.0, 1.0)),
    ])  # fmt: skip

    assert live.events[-1].text == "operator locked out as system:masters since 2.0 s"


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"t": 12.0},
        {"kind": "flow", "t": "x"},
        {"kind": "flow", "t": 12.0, "flow": "agents", "steps": 3},
        {"kind": "process", "t": 12.0, "processes": None},
        {"kind": "probe", "t": 12.0, "probe": "operator", "latency_us": hist([1])},
        {"kind": "note", "t": 12.0},
    ],
)
def test_a_malformed_record_changes_no_figure(broken: Record) -> None:
    live = fed([record("phase.start", 10.0, phase="baseline"), broken, process(13.0, etcd=(1, 1.0, 1.0))])

    assert live.trail.requests_per_s == [None] * 3
