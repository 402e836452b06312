"""What objectives and the verdict see of a search."""

from __future__ import annotations

import math
from typing import Any

import pytest

from scaletest.analysis.evaluate import measure
from scaletest.analysis.state import RunState
from scaletest.analysis.validity import Check, Grade, check_step, check_validity
from scaletest.core.journal import Record
from scaletest.profile.objectives import parse_objective
from tests.analysis import searches
from tests.analysis.journals import driver, flow, record

BACK = searches.step(
    12, 150, "held", 750.0, stage="back", factor=0.5, why="back", recovered_after_s=3.5, waited_s=120.0
)


def run(*records: Record) -> RunState:
    return RunState().apply_all([record("phase.start", 0.0, phase="one"), *records])


def value(text: str, *records: Record) -> float:
    return measure(run(*records), parse_objective(text).subject).value


def found(*more: Record) -> list[Record]:
    return [searches.start(), *searches.steps(*searches.FOUND), searches.end(700.0), *more]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("search.capacity >= 1", 300),
        ("search.fails_at >= 1", 310),
        ("search.width < 5%", 310 / 300 - 1),
        ("search.recovery < 1m", 3.5),
    ],
)
def test_a_search_is_measured(text: str, expected: float) -> None:
    assert expected == pytest.approx(value(text, *found(*BACK)))


def test_what_never_failed_has_a_capacity_and_no_failure() -> None:
    records = [searches.start(end=100.0), *searches.steps((50, "held"), (100, "held"), (100, "held"))]

    assert 100 == value("search.capacity >= 1", *records)
    assert math.isnan(value("search.fails_at >= 1", *records))


def test_what_never_held_has_no_capacity_and_says_why() -> None:
    state = run(searches.start(), *searches.steps((50, "failed"), (50, "failed")))
    measured = measure(state, parse_objective("search.capacity >= 1").subject)

    assert math.isnan(measured.value)
    assert "never held" in (measured.why_nan or "")


def test_no_recovery_is_not_measured() -> None:
    back = searches.step(12, 150, "failed", 750.0, stage="back", factor=0.5, why="back", waited_s=120.0)

    assert math.isnan(value("search.recovery < 1m", *found(*back)))


def checks(records: list[Record], profile: dict[str, Any] | None = None) -> dict[str, Check]:
    return {item.name: item for item in check_validity(run(*records), profile or {})}


def test_a_search_whose_steps_all_count_is_valid() -> None:
    assert Grade.GOOD is checks(found())["search"].grade


def test_a_step_that_does_not_count_is_said_and_invalidates_nothing() -> None:
    tried = [*searches.FOUND[:3], (400.0, "not counted"), *searches.FOUND[3:]]
    check = checks([searches.start(), *searches.steps(*tried), searches.end(800.0)])["search"]

    assert Grade.WARNING is check.grade
    assert "1 of 12 steps" in check.said
    assert "400" in check.said


def test_a_search_that_ends_at_the_generator_s_limit_is_invalid() -> None:
    records = [searches.start(), *searches.steps((50, "not counted"), (50, "not counted")), searches.end(300.0)]

    assert Grade.BAD is checks(records)["search"].grade


def test_a_generator_that_lags_in_a_step_makes_no_run_invalid() -> None:
    slow = [driver(float(t), lag_us=[500_000] * 10) for t in range(120, 150)]
    records = [
        record("flow.start", 90.0, flow="agents", target=10),
        *(flow(float(t)) for t in range(91, 150)),
        *(driver(float(t)) for t in range(90, 100)),
        *found(),
        *slow,
    ]
    state = run(*records)

    whole = {item.name: item.grade for item in check_validity(state, {})}
    step = {item.name: item.grade for item in check_step(state, (120.0, 150.0))}

    assert Grade.GOOD is whole["event-loop lag"]
    assert Grade.BAD is step["event-loop lag"]


def test_a_second_before_the_search_is_too_little_to_judge_the_generator_by() -> None:
    records = [
        record("flow.start", 98.5, flow="agents", target=10),
        flow(99.5),
        driver(99.0, lag_us=[500_000] * 10),
        *found(),
    ]
    state = RunState().apply_all([record("phase.start", 98.0, phase="one"), *records])

    assert "event-loop lag" not in {item.name for item in check_validity(state, {})}
