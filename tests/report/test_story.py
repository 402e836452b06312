"""What happened, in a line each."""

from __future__ import annotations

from typing import Any

import pytest

from scaletest.analysis.state import RunState
from scaletest.report.story import tell, tell_event
from tests.analysis import searches
from tests.analysis.journals import GIB, MIB, flow, nodes, probe, record


@pytest.mark.parametrize(
    ("kind", "fields", "level", "text"),
    [
        ("run.end", {"status": "finished", "reason": ""}, "info", "run finished"),
        ("run.end", {"status": "host_guard", "reason": "2 GiB left"}, "bad", "run host guard: 2 GiB left"),
        ("cluster.ready", {"seconds": 3.5}, "info", "control plane ready after 3.50 s"),
        ("cluster.end", {"reason": "owner_gone"}, "bad", "control plane ended: owner gone"),
        ("fleet.seeded", {"via": "etcd", "nodes": 7000, "pods": 20000, "seconds": 2.1}, "info", "seeded 7,000 nodes, 20,000 pods via etcd in 2.10 s"),
        ("fleet.ready", {"nodes": 7000, "seconds": 9.0}, "good", "7,000 nodes Ready after 9.00 s"),
        ("flow.start", {"flow": "a", "target": 7000}, "info", "flow a starts: 7,000 agents"),
        ("flow.stop", {"flow": "a"}, "info", "flow a stops"),
        ("action.start", {"action": "grow", "detail": {"pool": "gpu", "by": 5}}, "info", "action grow pool gpu, by 5"),
        ("action.end", {"action": "grow", "detail": "done it", "ok": True, "error": None, "duration_s": 0.5}, "good", "action grow done in 500 ms: done it"),
        ("action.end", {"action": "grow", "detail": "", "ok": False, "error": "no answer", "duration_s": 20.0}, "bad", "action grow failed after 20.0 s: no answer"),
        ("component.start", {"component": "etcd", "pid": 2, "restart": 2}, "warning", "etcd started, restart 2"),
        ("component.exit", {"component": "etcd", "reason": "oom", "peak_rss_bytes": 2 * GIB, "cap_bytes": 2 * GIB}, "bad", "etcd killed out of memory at 2.00 GiB (cap 2.00 GiB)"),
        ("component.exit", {"component": "etcd", "reason": "exit", "code": 1}, "bad", "etcd ended with code 1"),
        ("component.exit", {"component": "etcd", "reason": "signal", "signal": 9}, "bad", "etcd ended with signal 9"),
        ("component.backoff", {"component": "etcd", "wait_s": 20.0}, "warning", "etcd restarts in 20.0 s (back-off)"),
        ("host.guard", {"available_bytes": 100 * MIB, "floor_bytes": GIB}, "bad", "host guard: 100 MiB of memory available, floor 1.00 GiB"),
        ("driver.end", {"reason": "signal"}, "info", "load driver ended: signal"),
        ("search.step.start", {"step": 3, "load": "400", "why": "ramp"}, "info", "step 3: load 400 (ramp)"),
        ("search.step.end", {"step": 3, "load": "400", "outcome": "held", "reason": ""}, "good", "step 3, load 400, held"),
        ("search.step.end", {"step": 3, "load": "4/s", "outcome": "failed", "reason": "p99: 2 s"}, "bad", "step 3, load 4/s, failed: p99: 2 s"),
        ("search.step.end", {"step": 3, "load": "4", "outcome": "not counted", "reason": "lag"}, "warning", "step 3, load 4, does not count: lag"),
        ("note", {"level": "warning", "text": "look:"}, "warning", "look:"),
        ("run.end", {"status": "error", "reason": "etcd died; its log:\n{...}\n{...}"}, "bad", "run error: etcd died; its log"),
    ],
)  # fmt: skip
def test_what_an_event_says(kind: str, fields: dict[str, Any], level: str, text: str) -> None:
    assert tell_event(record(kind, 1.0, **fields)) == (level, text)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("component.start", {"component": "etcd", "pid": 1, "restart": 0}),
        ("component.backoff", {"component": "etcd", "wait_s": 0.0}),
        ("cluster.end", {"reason": "asked"}),
        ("probe", {}),
        ("of.the.future", {}),
    ],
)
def test_what_is_not_worth_a_line(kind: str, fields: dict[str, Any]) -> None:
    assert tell_event(record(kind, 1.0, **fields)) is None


@pytest.mark.parametrize(
    "kind", ["component.exit", "component.backoff", "host.guard", "component.start", "cluster.ready"]
)
def test_a_malformed_event_is_told_all_the_same(kind: str) -> None:
    fields = {
        "reason": "oom",
        "peak_rss_bytes": "x",
        "wait_s": "x",
        "available_bytes": "x",
        "restart": "x",
        "seconds": "x",
    }

    assert tell_event(record(kind, 1.0, **fields)) is not None


def lines(*records: dict[str, Any]) -> list[str]:
    return [f"{line.t_s:g} {line.text}" for line in tell(RunState().apply_all(list(records)))]


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("time", "phase one: 5.00 s"),
        ("condition", "phase one: 5.00 s, until its condition held"),
        ("at_most", "phase one: 5.00 s, its condition never held"),
        ("cut", "phase one: 5.00 s, cut short"),
    ],
)
def test_a_phase_says_how_long_it_was_and_why_it_ended(reason: str, text: str) -> None:
    phase = [record("phase.start", 1.0, phase="one"), record("phase.end", 6.0, phase="one", reason=reason)]

    assert lines(*phase) == [f"1 {text}"]


def test_lock_outs_are_told_from_both_ends() -> None:
    told = lines(probe(1.0, 0.0), probe(2.0, 0.0, outcome="refused"), probe(4.0, 0.0), record("x", 9.0))

    assert told == ["1 operator locked out as system:masters for 3.00 s", "4 operator answered again as system:masters"]


def test_an_open_lock_out_lasts_to_the_end() -> None:
    told = lines(probe(1.0, 0.0), probe(2.0, 0.0, outcome="refused"), record("x", 9.0))

    assert told == ["1 operator locked out as system:masters for 8.00 s, to the end"]


def test_spells_of_nodes_not_ready_are_told_once_each() -> None:
    told = lines(nodes(1.0, 10), nodes(2.0, 8, 2), nodes(3.0, 5, 5), nodes(4.0, 10), nodes(5.0, 9, 1))

    assert told == [
        "2 readiness: 5 of 10 nodes not Ready at worst, until 4.0 s",
        "5 readiness: 1 of 10 nodes not Ready at worst, to the end",
    ]


def test_the_end_of_a_rollout_is_told() -> None:
    told = lines(flow(1.0, target=20, started=10), flow(2.0, target=20, started=20), flow(3.0, target=20, started=20))

    assert told == ["2 flow agents: all 20 agents started"]


def test_the_flows_of_a_search_s_steps_are_not_told_one_by_one() -> None:
    flows = [record("flow.start", 50.0, flow="agents", target=50), record("flow.stop", 160.0, flow="agents")]
    state = RunState().apply_all([searches.start(), *flows, *searches.steps((50, "held"), (100, "failed"))])

    texts = [line.text for line in tell(state)]

    assert "flow agents starts: 50 agents" in texts
    assert "flow agents stops" not in texts
    assert "step 2, load 100, failed" in texts
