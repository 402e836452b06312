from __future__ import annotations

import itertools
import math
import statistics
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.load.schedule import Pacer, RateCurve, RateSpan, Schedule, curve_of
from scaletest.profile.schema import ArrivalsSpec

RATES = st.floats(0.1, 1e5)
SPANS = st.lists(st.builds(RateSpan, RATES, RATES, st.floats(0.01, 1e4)), max_size=5)
CURVES = st.builds(RateCurve, SPANS, RATES)


def times(curve: RateCurve, count: int, *, poisson: bool, seed: int = 1) -> list[float]:
    schedule = Schedule(curve, 0.0, Random(seed), poisson=poisson)
    return [schedule.next_due_s() for _ in range(count)]


def per_bin(points: list[float], bin_s: float, end_s: float) -> list[int]:
    counts = [0] * int(end_s / bin_s)
    for point in points:
        if (index := int(point / bin_s)) < len(counts):
            counts[index] += 1
    return counts


@given(CURVES, st.floats(0, 1e5))
def test_time_and_count_are_each_others_inverse(curve: RateCurve, elapsed_s: float) -> None:
    count = curve.count_until(elapsed_s)

    assert math.isclose(elapsed_s, curve.time_of(count), rel_tol=1e-6, abs_tol=1e-6)
    assert math.isclose(count, curve.count_until(curve.time_of(count)), rel_tol=1e-9, abs_tol=1e-6)


@given(CURVES, st.lists(st.floats(0, 1e5), min_size=2, max_size=5))
def test_more_time_never_means_fewer_arrivals(curve: RateCurve, at: list[float]) -> None:
    counts = [curve.count_until(elapsed_s) for elapsed_s in sorted(at)]

    assert counts == sorted(counts)


@given(CURVES, st.booleans(), st.integers(0, 2**32))
def test_arrivals_are_due_in_order_and_never_before_the_start(curve: RateCurve, poisson: bool, seed: int) -> None:
    due = times(curve, 50, poisson=poisson, seed=seed)

    assert due == sorted(due)
    assert due[0] >= 0


def test_even_arrivals_have_equal_gaps() -> None:
    due = times(RateCurve((), 400.0), 400, poisson=False)

    assert [pytest.approx(0.0025)] * 399 == [later - earlier for earlier, later in itertools.pairwise(due)]
    assert 1.0 == pytest.approx(due[-1])


@pytest.mark.parametrize("seed", range(5))
def test_poisson_arrivals_have_the_statistics_of_a_poisson_process(seed: int) -> None:
    due = times(RateCurve((), 500.0), 20_000, poisson=True, seed=seed)
    counts = per_bin(due, 0.010, due[-1])
    gaps = [later - earlier for earlier, later in itertools.pairwise(due)]

    # Counts per bin: variance equals mean, within 3 standard errors, √(2 ÷ bins), of the ratio.
    ratio = statistics.variance(counts) / statistics.mean(counts)
    assert abs(ratio - 1) < 3 * math.sqrt(2 / len(counts))
    # Exponential gaps: mean and standard deviation are the same, and a share of 1 - 1/e is below them.
    assert 0.002 == pytest.approx(statistics.mean(gaps), rel=0.03)
    assert 0.002 == pytest.approx(statistics.stdev(gaps), rel=0.03)
    assert 1 - 1 / math.e == pytest.approx(sum(gap < 0.002 for gap in gaps) / len(gaps), abs=0.015)
    # Independent: neighbours do not correlate.
    assert abs(statistics.correlation(gaps[:-1], gaps[1:])) < 0.03


def test_a_ramp_has_the_rate_that_it_should_at_each_time_and_then_stays() -> None:
    spec = ArrivalsSpec.model_validate({"ramp": {"from": "100/s", "to": "300/s", "over": "10s"}})
    curve = curve_of(spec)
    counts = per_bin(times(curve, 4000, poisson=False), 1.0, 15.0)

    assert [100.0, 200.0, 300.0, 300.0] == [curve.rate_at(at) for at in (0, 5, 10, 99)]
    assert 2000 == pytest.approx(curve.count_until(10))
    expected = [110 + 20 * second for second in range(10)] + [300] * 5
    assert all(abs(count - want) <= 1 for count, want in zip(counts, expected, strict=True))


def test_steps_follow_each_other_and_the_last_stays() -> None:
    spec = ArrivalsSpec.model_validate({"steps": [{"rate": "10/s", "for": "2s"}, {"rate": "40/s", "for": "1s"}]})
    curve = curve_of(spec)

    assert [10.0, 40.0, 40.0] == [curve.rate_at(at) for at in (1, 2.5, 100)]
    assert [10, 10, 40, 40] == [round(curve.count_until(at + 1) - curve.count_until(at)) for at in range(4)]


def test_a_poisson_ramp_has_the_right_number_in_each_part() -> None:
    curve = RateCurve([RateSpan(100, 900, 20)], 900)
    counts = per_bin(times(curve, 12_000, poisson=True), 5.0, 20.0)

    for index, count in enumerate(counts):
        expected = curve.count_until(5 * index + 5) - curve.count_until(5 * index)
        assert abs(count - expected) < 4 * math.sqrt(expected)


def test_what_stands_for_many_arrivals_is_followed_by_as_long_a_gap() -> None:
    schedule = Schedule(RateCurve((), 10.0), 100.0, Random(1), poisson=False)

    assert [100.1, 125.1, 125.2] == pytest.approx([schedule.next_due_s(weight) for weight in (1, 250, 1)])


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan])
def test_a_rate_is_above_0_and_finite(rate: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        RateCurve((), rate)


@given(CURVES, st.integers(1, 5))
def test_even_arrivals_shared_by_processes_are_those_of_one(curve: RateCurve, of: int) -> None:
    shares = [Schedule(curve, 0.0, Random(1), poisson=False, share=(index, of)) for index in range(of)]

    assert times(curve, 6 * of, poisson=False) == sorted(share.next_due_s() for share in shares for _ in range(6))


def test_poisson_arrivals_shared_by_processes_have_the_rate_of_all() -> None:
    shares = [Schedule(RateCurve((), 100.0), 0.0, Random(index), poisson=True, share=(index, 4)) for index in range(4)]
    due = [share.next_due_s() for share in shares for _ in range(2_000)]

    assert 100.0 == pytest.approx(sum(point < 60 for point in due) / 60, rel=0.1)
    assert [100.0] * 4 == [share.rate_at(1.0) for share in shares]


def test_a_pacer_begins_what_is_due_a_part_of_it_at_a_time_and_knows_how_much_it_is_behind() -> None:
    now = [0.0]
    begun: list[tuple[float, float]] = []
    schedule = Schedule(RateCurve((), 100.0), 0.0, Random(1), poisson=False)
    pacer = Pacer(schedule, lambda due_s, now_s: begun.append((due_s, now_s)), lambda: now[0])

    assert 0.01 == pytest.approx(pacer.ring())
    assert [] == begun
    now[0] = 1.005
    assert (100, 100.0) == (pacer.behind(), pacer.rate_per_s())
    assert pacer.ring() < 1.005
    assert 0 < len(begun) < 100
    while pacer.ring() <= now[0]:
        pass
    assert 100 == len(begun)
    assert [1.005] * 100 == [now_s for _, now_s in begun]
    assert 0 == pacer.behind()
