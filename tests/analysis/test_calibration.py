"""The law of LIST cost by size, on points that follow it and on points that do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.analysis.calibration import PUBLISHED, ListCost, calibrate

SIZES = [1e5, 3e5, 1e6, 3e6, 1e7]


def test_the_published_table_keeps_its_own_law() -> None:
    found = calibrate(PUBLISHED)

    assert found.holds
    assert -0.9 == pytest.approx(found.slope, abs=0.005)
    assert 25.6e6 == pytest.approx(found.bytes_per_core_s, rel=0.01)
    assert 1.56 == pytest.approx(found.spread, abs=0.01)


@given(st.floats(-2.0, -0.1), st.floats(1e6, 1e9), st.permutations(SIZES))
def test_the_slope_is_that_of_the_points_in_whatever_order(slope: float, scale: float, sizes: list[float]) -> None:
    found = calibrate([ListCost(size, scale * size**slope, 2.0) for size in sizes])

    assert slope == pytest.approx(found.slope, abs=1e-6)
    assert SIZES == [cost.answer_bytes for cost in found.costs]
    assert found.holds == (abs(found.slope + 1) <= 0.2)


def test_a_server_that_answers_large_lists_as_often_as_small_ones_does_not_keep_the_law() -> None:
    found = calibrate([ListCost(size, 100, 1.0) for size in SIZES])

    assert not found.holds
    assert 100 == pytest.approx(found.spread)


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ([ListCost(1e5, 10, 1), ListCost(1e6, 1, 1)], "three sizes"),
        ([ListCost(1e5, 10, 1)] * 3, "three sizes"),
        ([ListCost(1e5, 10, 1), ListCost(1e6, 0, 1), ListCost(1e7, 1, 1)], "no answers"),
        ([ListCost(1e5, 10, 1), ListCost(1e6, 1, 0), ListCost(1e7, 1, 1)], "no CPU time"),
    ],
)
def test_what_cannot_be_fitted_is_refused(costs: list[ListCost], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        calibrate(costs)
