"""Predictions about API Priority and Fairness (``benchmarks/apf.py``): each can come out confirmed, and refuted."""

from __future__ import annotations

import math
from typing import Any

import pytest

from benchmarks.apf import DEFAULT_LEVELS, PREDICTIONS, Level, Prediction, seats, table
from scaletest.analysis.state import RunState
from scaletest.core.journal import Record
from tests.analysis.journals import GIB, apf_level, apiserver, flow, hist, probe, process, record

PHASES = {"quiet": (0.0, 10.0), "flood": (10.0, 40.0), "level": (40.0, 75.0)}
NEIGHBOUR, SAME = "serviceAccount:telemetry/neighbour", "serviceAccount:telemetry/wide"


def state(*records: Record, **phases: tuple[float, float]) -> RunState:
    spans = phases or PHASES
    begins = [record("phase.start", begin, phase=name) for name, (begin, _) in spans.items()]
    ends = [record("phase.end", end, phase=name, reason="time") for name, (_, end) in spans.items()]
    limit: dict[str, Any] = {"memory_bytes": 4 * GIB, "cpu_cores": 2.0, "memory_by": "cgroup_v2", "cpu_by": "cgroup_v2"}
    run = RunState()
    run.apply_all([*begins, *ends, record("component.limit", 0.0, component="kube-apiserver", **limit), *records])
    return run


def low(t: float, limit: int, in_use: int, queued: int, executing: int, **rejected: int) -> Record:
    reasons = {name.replace("_", "-"): count for name, count in rejected.items()}
    level = apf_level(seats_limit=limit, seats_in_use=in_use, queued=queued, executing=executing, rejected=reasons)
    return apiserver(t, workload_low=level)


def wide(*, first: tuple[int, int] = (56, 5), later: tuple[int, int] = (368, 36)) -> list[Record]:
    (few, at_first), (many, at_once) = first, later
    begin = [low(float(t), few, 10 * at_first, 490, at_first) for t in range(11, 20)]
    return begin + [low(float(t), many, 10 * at_once, 464, at_once, time_out=t) for t in range(20, 40)]


def asked(identity: str, begin: int, end: int, latency_s: float, outcome: str = "ok") -> list[Record]:
    return [probe(float(t), latency_s, outcome=outcome, identity=identity) for t in range(begin, end)]


def cores(used: float) -> list[Record]:
    return [process(float(t), kube_apiserver=(1, GIB, used * t)) for t in range(0, 76, 2)]


def agents_level(executing: int, rejected: int) -> list[Record]:
    return [
        apiserver(float(t), scaletest_agents=apf_level(executing=executing, rejected={"concurrency-limit": rejected * t}))
        for t in range(41, 75)
    ]  # fmt: skip


def killed() -> Record:
    fields: dict[str, Any] = {"reason": "oom", "code": None, "signal": 9, "peak_rss_bytes": GIB, "cap_bytes": GIB}
    return record("component.exit", 20.0, component="kube-apiserver", **fields)


def churn(t: float, startup_s: float) -> Record:
    pods = {"moved": 0, "pods": 10, "ready": 10, "pending": 0, "late": 0}
    return flow(t, "churn", churn={**pods, "startup_us": hist([startup_s * 1e6]), "scheduling_us": hist([1e4])})


def controllers(outside_s: float, inside_s: float) -> RunState:
    return state(churn(15.0, outside_s), churn(30.0, inside_s), outside=(10.0, 20.0), inside=(25.0, 40.0))


GONE = [probe(float(t), 0.01, outcome="refused" if 20 <= t < 26 else "ok") for t in range(10, 40)]

BY_SHARES, AT_ONCE, NARROW, BY_LENGTH, WIDE, CONTROLLERS, QUEUES, CPU, MEMORY, OWN_LEVEL = PREDICTIONS

CASES: list[tuple[Prediction, RunState, bool]] = [
    (BY_SHARES, state(*wide(first=(245, 24))), True),
    (BY_SHARES, state(*wide()), False),
    (AT_ONCE, state(*wide()), True),
    (AT_ONCE, state(*wide(first=(245, 24))), False),
    (AT_ONCE, state(*wide(later=(300, 30))), False),
    (AT_ONCE, state(*wide(later=(368, 20))), False),
    (NARROW, state(low(15.0, 368, 368, 300, 368), low(16.0, 368, 368, 299, 368, queue_full=9)), True),
    (NARROW, state(low(15.0, 368, 368, 301, 368), low(16.0, 368, 368, 299, 368, queue_full=9)), False),
    (NARROW, state(low(15.0, 368, 368, 300, 368), low(16.0, 368, 368, 300, 368, time_out=9)), False),
    (BY_LENGTH, state(low(15.0, 370, 370, 300, 37), low(16.0, 370, 370, 300, 37, queue_full=9)), True),
    (BY_LENGTH, state(*wide()), False),
    (WIDE, state(*wide()), True),
    (WIDE, state(low(15.0, 370, 370, 300, 37), low(16.0, 370, 370, 300, 37, queue_full=9)), False),
    (WIDE, state(low(15.0, 370, 370, 400, 37)), False),
    (CONTROLLERS, controllers(0.4, 12.0), True),
    (CONTROLLERS, controllers(0.4, 0.5), False),
    (CONTROLLERS, controllers(9.0, 12.0), False),
    (QUEUES, state(*asked("system:masters", 10, 40, 0.01), *asked(SAME, 10, 40, 15.0, "http_429"), *cores(0.5)), True),
    (QUEUES, state(*asked("system:masters", 10, 40, 1.5), *asked(SAME, 10, 40, 15.0, "http_429"), *cores(0.5)), False),
    (QUEUES, state(*asked("system:masters", 10, 40, 0.01), *asked(SAME, 10, 40, 0.01), *cores(0.5)), False),
    (QUEUES, state(*asked("system:masters", 10, 40, 0.01), *asked(SAME, 10, 40, 9.0), *cores(1.9)), False),
    (CPU, state(*asked("system:masters", 10, 40, 4.0), *cores(1.9)), True),
    (CPU, state(*asked("system:masters", 10, 40, 0.4), *cores(1.9)), False),
    (CPU, state(*asked("system:masters", 10, 40, 4.0), *cores(1.0)), False),
    (MEMORY, state(*GONE, killed()), True),
    (MEMORY, state(*GONE), False),
    (MEMORY, state(*[p for t in range(10, 40) for p in (probe(t, 0.01), probe(t + 0.5, 0.01))], killed()), False),
    (OWN_LEVEL, state(*asked(NEIGHBOUR, 10, 40, 6.0), *asked(NEIGHBOUR, 64, 75, 0.01), *agents_level(1, 9)), True),
    (OWN_LEVEL, state(*asked(NEIGHBOUR, 10, 40, 0.1), *asked(NEIGHBOUR, 64, 75, 0.01), *agents_level(1, 9)), False),
    (OWN_LEVEL, state(*asked(NEIGHBOUR, 10, 40, 6.0), *asked(NEIGHBOUR, 64, 75, 2.0), *agents_level(1, 9)), False),
    (OWN_LEVEL, state(*asked(NEIGHBOUR, 10, 40, 6.0), *asked(NEIGHBOUR, 64, 75, 0.01), *agents_level(4, 9)), False),
]  # fmt: skip


@pytest.mark.parametrize(("prediction", "run", "confirmed"), CASES)
def test_a_prediction_is_confirmed_or_refuted_by_its_figures(
    prediction: Prediction, run: RunState, *, confirmed: bool
) -> None:
    seen = prediction.look(run)

    assert confirmed == seen.confirmed, seen.measured


def test_each_prediction_can_come_out_either_way() -> None:
    for prediction in PREDICTIONS:
        assert {True, False} == {confirmed for item, _, confirmed in CASES if item is prediction}


@pytest.mark.parametrize("prediction", PREDICTIONS)
def test_nothing_measured_confirms_nothing(prediction: Prediction) -> None:
    phases = {**PHASES, "outside": (10.0, 20.0), "inside": (25.0, 40.0)}

    assert not prediction.look(state(*cores(0.1), **phases)).confirmed


def test_seats_of_a_quiet_cluster_are_those_that_an_api_server_reported() -> None:
    # docs/captures/outage-report-140.txt: 1.31.4, with the on-call level; most seats of each level, none of which was busy long enough to borrow.
    levels: dict[str, Any] = {**DEFAULT_LEVELS, "scaletest-on-call": Level(10, 0)}
    quiet = {name: item.quiet for name, item in seats(levels).items()}

    assert (53, 53, 53, 26) == tuple(
        quiet[name] for name in ("workload-low", "global-default", "scaletest-on-call", "catch-all")
    )


def test_seats_by_shares_are_rounded_up() -> None:
    nominal = {name: item.nominal for name, item in seats().items()}

    assert {"workload-low": 245, "global-default": 49, "catch-all": 13}.items() <= nominal.items()
    assert all(nominal[name] == math.ceil(600 * level.shares / 245) for name, level in DEFAULT_LEVELS.items())


def test_the_table_marks_what_came_out_otherwise_than_known() -> None:
    run = state(*wide())

    assert "NOT AS KNOWN" not in table([(item, item.look(run)) for item in (BY_SHARES, AT_ONCE, BY_LENGTH, WIDE)])
    assert "NOT AS KNOWN" in table([(NARROW, NARROW.look(run))])
