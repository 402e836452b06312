"""Standing watches: the measures over their events, reconnects and early ends, and a search in which they stand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from scaletest.analysis.evaluate import measure
from scaletest.analysis.pastknee import Goodput
from scaletest.analysis.saturation import analyse
from scaletest.analysis.state import RunState
from scaletest.analysis.validity import Grade, check_validity
from scaletest.core.journal import Record
from scaletest.profile.objectives import parse_objective
from tests.analysis.journals import driver, flow, hist, record, step
from tests.analysis.searches import end, search_info, start, steps


def run(*seconds: dict[str, Any], unit: str = "watches") -> RunState:
    """One record a second of a flow of 10 watches, with these steps."""
    records: list[Record] = [
        record("phase.start", 0.0, phase="one"),
        record("flow.start", 0.0, flow="standing", target=10, unit=unit),
        *(flow(second + 1.0, "standing", steps=item) for second, item in enumerate(seconds)),
        *(driver(float(t)) for t in range(len(seconds) + 1)),
        record("flow.stop", float(len(seconds)), flow="standing"),
        record("phase.end", float(len(seconds)), phase="one", reason="time"),
        record("driver.end", len(seconds) + 0.1, "driver", reason="asked"),
    ]
    return RunState().apply_all(records)


def value(state: RunState, subject: str) -> float:
    unit = "s" if "event_" in subject else ""
    return measure(state, parse_objective(f"{subject} < 1{unit}").subject).value


def test_events_reconnects_and_early_ends_add_up() -> None:
    state = run(
        {"w": step(events=10, reconnects=2, event_us=hist([3_000] * 9 + [90_000]), early_us=hist([400_000]))},
        {"w": step(events=5, reconnects=1, event_us=hist([5_000] * 5), early_us=hist([500_000] * 2))},
    )

    assert (15, 3, 3) == tuple(
        value(state, f"flow.standing.{name}") for name in ("events", "reconnects", "ended_early")
    )
    assert 3 == value(state, "flow.standing.w.reconnects")
    assert 0.09 == pytest.approx(value(state, "flow.standing.event_max"), rel=0.01)
    assert 0.003 == pytest.approx(value(state, "flow.standing.event_p50"), rel=0.01)


def test_watches_that_only_stand_have_no_events_and_no_latency() -> None:
    state = run({}, {})

    assert (0, 0, 0) == tuple(value(state, f"flow.standing.{name}") for name in ("events", "reconnects", "ended_early"))
    assert math.isnan(value(state, "flow.standing.event_p99"))


@pytest.mark.parametrize(("rollout", "checks"), [(None, 0), ("100/s", 1)])
def test_only_watches_that_are_begun_at_a_rate_can_be_late(rollout: str | None, checks: int) -> None:
    watchers = {"count": 10} | ({"rollout": rollout} if rollout else {})
    profile = {"flows": {"standing": {"watchers": watchers}}}
    found = [item for item in check_validity(run({}, {}), profile) if item.name == "rollout of standing"]

    assert [(Grade.GOOD, "100 watches/s, as asked")] * checks == [(item.grade, item.said) for item in found]


def test_where_watches_stand_a_search_counts_their_events_and_how_long_they_took() -> None:
    tried = steps((100, "held"), (200, "failed"), (200, "failed"), (100, "held"))
    seconds = [
        flow(t, "standing", steps={"w": step(events=1_000 if t < 160 else 2_000, event_us=hist([7_000]))})
        for t in range(111, 300)
    ]
    records = [
        record("flow.start", 0.0, flow="standing", target=10, unit="watches"),
        start(flows=["writes"], unit="/s"),
        *sorted([*tried, *seconds], key=lambda item: item["t"]),
        end(310.0),
    ]
    found = analyse(RunState().apply_all(records), search_info().profile)

    assert found is not None
    assert Goodput.EVENTS is found.goodput
    assert [1_000, 2_000] == pytest.approx([point.goodput_per_s(found.goodput) for point in found.points[:2]])
    assert 0.007 == pytest.approx(found.points[0].p99_s, rel=0.01)
    assert found.usl is None
