"""Churn: the pods that a watch saw, and the measures over them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from scaletest.analysis.evaluate import measure
from scaletest.analysis.state import RunState
from scaletest.profile.objectives import Subject
from tests.analysis.journals import flow, hist, step


def churn(startup_us: list[float], **more: Any) -> dict[str, Any]:
    counts = {"moved": 0, "pods": 10, "ready": 10, "pending": 0, "late": 0}
    return {**counts, "startup_us": hist(startup_us), "scheduling_us": hist(us / 2 for us in startup_us), **more}


def run(*seconds: dict[str, Any]) -> RunState:
    steps = {"create-job": step([3_000] * 10)}
    return RunState().apply_all(flow(at + 1.0, "churn", steps=steps, churn=item) for at, item in enumerate(seconds))


def value(state: RunState, name: str, span: tuple[float, float] | None = None) -> float:
    return measure(state, Subject("flow", "churn", None, None, name), span).value


def test_measures_are_those_of_the_records() -> None:
    state = run(churn([1e6] * 50, moved=12), churn([2e6] * 50, moved=8))

    assert 1.0 == pytest.approx(value(state, "pod_startup_p50"), rel=1e-3)
    assert 2.0 == pytest.approx(value(state, "pod_startup_p99"), rel=1e-3)
    assert 1.0 == pytest.approx(value(state, "pod_scheduling_p99"), rel=1e-3)
    assert 10.0 == value(state, "pods_moved")
    assert 8.0 == value(state, "pods_moved", (1.0, 2.0))
    # Requests are another matter.
    assert 0.003 == pytest.approx(value(state, "p99"), rel=1e-3)


def test_a_pod_that_was_late_is_infinitely_long() -> None:
    assert 1.0 == pytest.approx(value(run(churn([1e6] * 99, late=1)), "pod_startup_p99"), rel=1e-3)
    assert math.inf == value(run(churn([1e6] * 98, late=2)), "pod_startup_p99")
    assert math.inf == value(run(churn([], late=1)), "pod_startup_p50")


def test_what_was_not_seen_is_not_measured() -> None:
    assert math.isnan(value(run(churn([])), "pod_startup_p99"))
    assert math.isnan(value(run(churn([])), "pod_scheduling_p99"))
    agents = RunState().apply_all([flow(1.0, "churn", steps={"get": step([1_000])})])
    assert math.isnan(value(agents, "pod_startup_p99"))
