"""Arrivals: totals of a pacer, the measures over them, and when they make a run invalid."""

from __future__ import annotations

import math
from typing import Any

import pytest

from scaletest.analysis.evaluate import measure
from scaletest.analysis.state import RunState
from scaletest.analysis.validity import Check, Grade, check_step, check_validity
from scaletest.core.journal import Record
from scaletest.profile.objectives import parse_objective
from tests.analysis.journals import driver, flow, hist, record, step


def arrivals(due: int = 100, *, lag_us: int = 500, **more: Any) -> dict[str, Any]:
    counts = {"rate_per_s": 100.0, "due": due, "sent": due, "dropped": 0, "behind": 0, "in_flight": 1, "waiting": 0}
    return {**counts, "lag_us": hist([lag_us] * due), **more}


def run(*seconds: dict[str, Any], steps: dict[str, Any] | None = None) -> RunState:
    """One record a second with these arrivals, and steps of 3 ms that took 1 ms from the send."""
    steps = steps or {"get": step([3_000] * 10, service_us=hist([1_000] * 10))}
    records: list[Record] = [
        record("phase.start", 0.0, phase="one"),
        record("flow.start", 0.0, flow="gets", target=16),
        *(flow(second + 1.0, "gets", steps=steps, arrivals=item) for second, item in enumerate(seconds)),
        *(driver(float(t)) for t in range(len(seconds) + 1)),
        record("flow.stop", float(len(seconds)), flow="gets"),
        record("phase.end", float(len(seconds)), phase="one", reason="time"),
        record("driver.end", len(seconds) + 0.1, "driver", reason="asked"),
    ]
    return RunState().apply_all(records)


def value(state: RunState, subject: str) -> float:
    return measure(state, parse_objective(f"{subject} < 1{_unit(subject)}").subject).value


def _unit(subject: str) -> str:
    return "s" if "lag" in subject or ".p" in subject or "service" in subject else "%" if "achieved" in subject else ""


def found(state: RunState, name: str, *objectives: str) -> Check:
    checks = check_validity(state, {"objectives": [{"check": text} for text in objectives]})
    return next(item for item in checks if item.name == f"{name} of gets")


def test_measures_are_those_of_the_records() -> None:
    state = run(arrivals(100), arrivals(300, dropped=4, lag_us=9_000))

    assert 4 == value(state, "flow.gets.dropped")
    assert 396 / 400 == value(state, "flow.gets.achieved")
    assert 0.009 == pytest.approx(value(state, "flow.gets.start_lag_p99"), rel=0.001)
    assert 0.003 == pytest.approx(value(state, "flow.gets.p99"), rel=0.001)
    assert 0.001 == pytest.approx(value(state, "flow.gets.service_p99"), rel=0.001)
    assert 0.001 == pytest.approx(value(state, "flow.gets.get.service_p50"), rel=0.001)


def test_arrivals_not_yet_begun_count_as_due_only_at_the_end() -> None:
    state = run(arrivals(90, behind=10), arrivals(100, behind=20))

    assert 190 / 210 == value(state, "flow.gets.achieved")


def test_agents_have_no_start_lag() -> None:
    state = RunState().apply_all([flow(1.0, "gets", steps={"get": step([5])})])

    assert math.isnan(value(state, "flow.gets.start_lag_p99"))
    assert math.isnan(value(state, "flow.gets.service_p99"))


@pytest.mark.parametrize(("lag_us", "grade"), [(9_500, Grade.GOOD), (10_500, Grade.BAD)])
def test_start_lag(lag_us: int, grade: Grade) -> None:
    check = found(run(*[arrivals(lag_us=lag_us)] * 6), "start lag")

    assert grade == check.grade
    assert (check.remedy is not None) == (grade is Grade.BAD)


@pytest.mark.parametrize(("behind", "grade"), [(2, Grade.GOOD), (4, Grade.BAD)])
def test_arrivals_never_begun_are_the_generators_fault(behind: int, grade: Grade) -> None:
    assert grade == found(run(*[arrivals()] * 5, arrivals(behind=behind)), "arrivals").grade


@pytest.mark.parametrize(("dropped", "grade"), [(2, Grade.GOOD), (4, Grade.BAD)])
def test_dropped_arrivals_are_load_that_was_not_offered(dropped: int, grade: Grade) -> None:
    state = run(*[arrivals()] * 5, arrivals(dropped=dropped, in_flight=200))

    check = found(state, "arrivals")

    assert grade == check.grade
    assert f"{dropped} dropped with 200 in flight" in check.said


def test_an_objective_about_dropped_arrivals_judges_them_instead() -> None:
    state = run(*[arrivals(dropped=50)] * 6)

    assert Grade.WARNING == found(state, "arrivals", "flow.gets.dropped < 1_000").grade
    assert Grade.BAD == found(state, "arrivals", "flow.other.dropped < 1_000").grade


def test_a_late_phase_does_not_hide_in_a_long_run() -> None:
    state = run(*[arrivals()] * 600, arrivals(lag_us=50_000))
    state.phases[0].end_s = 594.0
    state.apply(record("phase.start", 594.0, phase="late"))
    state.apply(record("phase.end", 601.0, phase="late", reason="time"))

    check = found(state, "start lag")

    assert Grade.BAD == check.grade
    assert "in phase late" in check.said


def test_a_closed_loop_has_no_schedule_to_keep() -> None:
    state = run(*[arrivals(rate_per_s=None, lag_us=90_000)] * 6)

    assert not [item for item in check_validity(state, {}) if "gets" in item.name]


def test_a_step_of_a_search_is_late_by_itself_and_its_drops_are_the_servers() -> None:
    state = run(*[arrivals()] * 6, *[arrivals(lag_us=50_000, dropped=50)] * 6)

    early = {item.name: item.grade for item in check_step(state, (0.0, 6.0))}
    late = {item.name: item.grade for item in check_step(state, (6.0, 12.0))}

    assert (Grade.GOOD, Grade.GOOD) == (early["start lag of gets"], early["arrivals of gets"])
    assert (Grade.BAD, Grade.WARNING) == (late["start lag of gets"], late["arrivals of gets"])


def test_a_malformed_record_is_counted_and_changes_nothing() -> None:
    state = RunState().apply_all([flow(1.0, "gets", arrivals={"due": "many"})])

    assert 1 == state.malformed["flow"]
    assert not state.flows


def refused(outcomes: dict[str, int]) -> RunState:
    return run(arrivals(), arrivals(), steps={"put": step([3_000] * 90, [1_000] * 10, outcomes)})


def space(checks: list[Check]) -> Check | None:
    return next((item for item in checks if item.name == "etcd space"), None)


def test_a_run_whose_etcd_has_no_space_is_not_told_as_its_rate() -> None:
    state = refused({"OK": 90, "NOSPACE": 10})
    check = space(check_validity(state, {}))

    assert check is not None
    assert Grade.BAD == check.grade
    assert check.said.startswith(
        "etcd's quota is used up (NOSPACE): from 0 s on it refused writes, 20 of 200 requests of gets;"
    )
    assert check.remedy is not None
    step_check = space(check_step(state, (0.0, 2.0)))
    assert step_check is not None
    assert Grade.BAD == step_check.grade


@pytest.mark.parametrize("objective", ["flow.gets.error_rate < 1%", "flow.gets.put.errors == 0"])
def test_where_an_objective_judges_the_errors_it_decides(objective: str) -> None:
    state = refused({"OK": 90, "NOSPACE": 10})
    check = space(check_validity(state, {"objectives": [{"check": objective}]}))

    assert check is not None
    assert Grade.WARNING == check.grade


def test_other_errors_of_etcd_say_nothing_of_its_space() -> None:
    state = refused({"OK": 90, "UNAVAILABLE": 10})

    assert space(check_validity(state, {})) is None
    assert 0.1 == pytest.approx(value(state, "flow.gets.error_rate"))


def test_the_busiest_process_of_the_generator_is_the_one_that_counts() -> None:
    def busy(cores: float) -> Check:
        workers = [
            [{"pid": pid, "rss_bytes": 1, "cpu_s": share * t} for pid, share in ((7, 0.2), (8, cores))]
            for t in range(31)
        ]
        records = [
            record("phase.start", 0.0, phase="one"),
            record("flow.start", 0.0, flow="gets", target=16),
            *(flow(float(t), "gets", steps={}, arrivals=arrivals()) for t in range(1, 31)),
            *(driver(float(t), workers=workers[t]) for t in range(31)),
        ]
        checks = check_validity(RunState().apply_all(records), {})
        return next(item for item in checks if item.name == "driver CPU")

    assert Grade.GOOD == busy(0.8).grade
    assert Grade.BAD == busy(0.95).grade
    assert "0.95 cores of load process 8" in busy(0.95).said
