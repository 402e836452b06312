"""Level shifts in a series of runs: found where they are, and not where there are none."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from random import Random
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.analysis.changepoints import Shift, find_shifts, why_untold
from scaletest.analysis.metrickinds import MetricKind, kind_of
from scaletest.analysis.segments import load_segmenter
from scaletest.core.errors import EnvironmentProblem
from tests.analysis.series_of_runs import noisy

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 14), reason="ruptures refuses this Python")


def kind(name: str = "flow.telemetry.p50") -> MetricKind:
    found = kind_of(name)
    assert found is not None
    return found


def shifts(values: Sequence[float], name: str = "flow.telemetry.p50", *, series: int = 1) -> list[Shift]:
    return find_shifts(kind(name), values, load_segmenter(), series=series)


@pytest.mark.parametrize("spread", [0.05, 0.10, 0.20])
@pytest.mark.parametrize("wild", [0.0, 0.05])
def test_at_most_a_twentieth_of_pure_noise_has_a_shift(spread: float, wild: float) -> None:
    rng = Random(1211)
    alarms = sum(bool(shifts(noisy(rng, [1.0] * rng.randint(20, 40), spread, wild=wild))) for _ in range(200))
    assert alarms <= 10


@pytest.mark.parametrize(("wild", "series", "least"), [(0.0, 1, 190), (0.0, 40, 185), (0.05, 1, 180)])
def test_a_step_of_a_fifth_is_found_within_two_runs(wild: float, series: int, least: int) -> None:
    rng = Random(1211)
    found = 0
    for _ in range(200):
        count = rng.randint(20, 40)
        at = rng.randint(4, count - 4)
        values = noisy(rng, [1.0] * at + [1.2] * (count - at), 0.05, wild=wild)
        found += any(abs(shift.at - at) <= 2 for shift in shifts(values, series=series))
    assert found >= least


def test_a_shift_says_levels_and_direction() -> None:
    values = noisy(Random(1), [0.010] * 12 + [0.015] * 12, 0.02)
    (shift,) = shifts(values)
    assert 12 == shift.at
    assert pytest.approx(0.010, rel=0.02) == shift.before
    assert pytest.approx(0.015, rel=0.02) == shift.after
    assert pytest.approx(0.5, abs=0.05) == shift.change
    assert shift.p < 0.001 > shift.p_adjusted
    assert "worse" == shift.call(kind())
    assert "better" == shifts([1 / value for value in values])[0].call(kind())
    assert "better" == shifts(values, "flow.telemetry.rate")[0].call(kind("flow.telemetry.rate"))


def test_what_is_too_small_to_matter_is_no_shift() -> None:
    rng = Random(2)
    assert [] == shifts(noisy(rng, [1.0] * 20 + [1.08] * 20, 0.005))
    assert [20] == [shift.at for shift in shifts(noisy(rng, [1.0] * 20 + [1.13] * 20, 0.005))]


def test_a_level_that_goes_and_comes_back_is_two_shifts() -> None:
    found = shifts(noisy(Random(3), [1.0] * 10 + [1.4] * 8 + [1.0] * 10, 0.03))
    assert [10, 18] == [shift.at for shift in found]
    assert found[0].change > 0 > found[1].change


@pytest.mark.parametrize("place", [0, 1, 7, 14])
def test_one_wild_run_is_no_shift_and_hides_none(place: int) -> None:
    values = noisy(Random(4), [1.0] * 15 + [1.3] * 15, 0.03)
    values[place] *= 5
    (shift,) = shifts(values)
    assert abs(shift.at - 15) <= 2
    assert pytest.approx(0.3, abs=0.08) == shift.change


@pytest.mark.parametrize("value", [0.01, 1.0])
def test_runs_that_are_all_the_same_have_none(value: float) -> None:
    assert [] == shifts([value] * 20)
    assert [] == shifts([0.0] * 20, "component.etcd.restarts")


def test_shares_and_counts_shift_by_their_difference() -> None:
    rng = Random(5)
    rates = [0.001 + rng.random() * 0.001 for _ in range(10)] + [0.03 + rng.random() * 0.002 for _ in range(10)]
    (shift,) = shifts(rates, "flow.telemetry.error_rate")
    assert 10 == shift.at
    assert pytest.approx(0.0295, abs=0.002) == shift.change
    assert [8] == [shift.at for shift in shifts([0.0] * 8 + [2.0] * 8, "component.etcd.restarts")]


def test_answers_that_stop_coming_are_a_shift() -> None:
    values = [*noisy(Random(6), [0.05] * 10, 0.05), *[math.inf] * 8]
    (shift,) = shifts(values)
    assert (10, math.inf, math.inf) == (shift.at, shift.after, shift.change)
    assert pytest.approx(0.05, rel=0.05) == shift.before


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], "too few runs: 0, 8 are wanted"),
        ([1.0] * 7, "too few runs: 7, 8 are wanted"),
        ([1.0] * 8, None),
        ([0.0] * 8, "0 in a sample: there is no ratio"),
    ],
)
def test_why_nothing_can_be_told(values: list[float], said: str | None) -> None:
    assert said == why_untold(kind(), values)


def test_a_shift_in_the_last_runs_is_told_after_four_of_them() -> None:
    level = [1.0] * 16 + [1.5] * 4
    assert [] == shifts(noisy(Random(7), level[:17], 0.03))
    assert [16] == [shift.at for shift in shifts(noisy(Random(7), level, 0.03))]


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), factor=st.floats(1e-3, 1e3), count=st.integers(8, 30), step=st.floats(0.5, 2))
def test_the_unit_does_not_matter(seed: int, factor: float, count: int, step: float) -> None:
    values = noisy(Random(seed), [1.0] * (count // 2) + [step] * (count - count // 2), 0.05)
    plain, scaled = shifts(values), shifts([value * factor for value in values])
    assert [shift.at for shift in plain] == [shift.at for shift in scaled]
    assert [pytest.approx(shift.change) for shift in plain] == [shift.change for shift in scaled]


def test_without_the_library_people_are_told_how_to_get_it() -> None:
    def missing(name: str) -> ModuleType:
        raise ModuleNotFoundError(name)

    with pytest.raises(EnvironmentProblem, match="which is not installed") as caught:
        load_segmenter(missing)
    assert "pip install 'scaletest[history]'" in str(caught.value.hint)
