"""A search put together: the curve, what gave out, the class past the knee, the laws."""

from __future__ import annotations

import math

import pytest

from scaletest.analysis.limiting import Resource
from scaletest.analysis.pastknee import Behaviour, Goodput
from scaletest.analysis.saturation import Saturation, analyse
from scaletest.analysis.state import RunState
from tests.analysis.searches import end, measured_search, search_info, start, steps


def found(*, returns: bool = True, room_up_to: float = 0.0) -> Saturation:
    records = measured_search(returns=returns, room_up_to=room_up_to)
    saturation = analyse(RunState().apply_all(records), search_info().profile)
    assert saturation is not None
    return saturation


def test_a_run_without_a_search_has_none() -> None:
    assert analyse(RunState(), {}) is None


def test_the_curve_has_what_was_measured_in_each_steady_part() -> None:
    at_100 = next(point for point in found().points if point.step.value == 100)

    assert 10 == pytest.approx(at_100.answers_per_s)
    assert 10.6e6 == pytest.approx(at_100.bytes_per_s)
    assert 1.06e6 == pytest.approx(at_100.answer_bytes)
    assert 0.3 == pytest.approx(at_100.p99_s, rel=0.02)
    assert 0.05 == pytest.approx(at_100.operator_p99_s)
    assert 1.0 == at_100.operator_success
    assert 0.243 == pytest.approx(at_100.cpu_cores, rel=0.05)
    assert () == at_100.kills


def test_growing_answers_are_compared_by_bytes() -> None:
    assert Goodput.BYTES is found().goodput


def test_what_gave_out_is_looked_for_at_the_smallest_load_that_failed() -> None:
    attribution = found().attribution

    assert attribution is not None
    assert 310 == attribution.value
    assert attribution.limit is not None
    assert Resource.CPU is attribution.limit.resource
    assert {Resource.MEMORY, Resource.CPU, Resource.APF} <= {item.resource for item in attribution.evidence}


@pytest.mark.parametrize(
    ("room_up_to", "at", "gave_out"),
    [
        (310, 340, True),
        (340, 375, True),  # past the knee
        (450, 310, False),  # what gives out at twice the load need not be what held it up here
    ],
)
def test_where_nothing_is_at_its_limit_yet_somewhat_heavier_loads_tell(
    room_up_to: float, at: float, *, gave_out: bool
) -> None:
    attribution = found(room_up_to=room_up_to).attribution

    assert attribution is not None
    assert (at, gave_out) == (attribution.value, attribution.limit is not None)


def test_operators_who_wait_past_the_knee_make_it_degraded() -> None:
    past = found().past

    assert past is not None
    assert Behaviour.DEGRADED is past.behaviour
    assert "operators wait 2.00 s" in past.reasons[0]


def test_a_control_plane_that_does_not_come_back_is_metastable() -> None:
    past = found(returns=False).past

    assert past is not None
    assert Behaviour.METASTABLE is past.behaviour


def test_the_agents_law_takes_capacity_and_sizes_from_the_curve() -> None:
    law = found().law

    assert law is not None
    assert 307 == pytest.approx(law.limit, rel=0.03)
    assert 10_600 == pytest.approx(law.bytes_per_agent, rel=0.01)
    assert "sqrt(" in law.formula


def test_growing_answers_follow_no_scalability_law_of_answers() -> None:
    assert found().usl is None


def test_a_search_that_has_only_begun_has_no_more_than_that() -> None:
    saturation = analyse(RunState().apply_all([start(), *steps((50, "held")), end(200.0, "out of time")]), {})

    assert saturation is not None
    assert (50, None) == (saturation.found.holds, saturation.found.fails)
    assert (None, None, None, None) == (saturation.attribution, saturation.past, saturation.law, saturation.usl)
    assert math.isnan(saturation.points[0].answers_per_s)
