"""Spans, counters that restart, bucket quantiles, sustained levels."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.analysis.series import bucket_quantile, contains, counter_increases, resample, sustained


def test_neighbouring_spans_share_no_sample() -> None:
    assert contains((1.0, 2.0), 1.0)
    assert not contains((1.0, 2.0), 2.0)
    assert contains((2.0, 3.0), 2.0)


@given(st.lists(st.lists(st.integers(0, 1000), min_size=1, max_size=6), min_size=1, max_size=5))
def test_increases_of_a_counter_add_up_to_what_all_its_lives_counted(lives: list[list[int]]) -> None:
    """A counter's lives each begin at 0; every restart is visible by a smaller value of one of the counters."""
    looks: list[dict[str, float]] = []
    for number, increments in enumerate(lives):
        total = 0
        for increment in increments:
            total += increment
            # `life` falls at each restart, as some counter of a busy server always does.
            looks.append({"counted": total, "life": len(lives) - number})
    seen = looks[0]["counted"]
    for previous, current in itertools.pairwise(looks):
        seen += counter_increases(previous, current)["counted"]

    assert seen == sum(sum(increments) for increments in lives)


def test_one_counter_that_shrank_restarts_them_all() -> None:
    assert counter_increases({"a": 5, "b": 1}, {"a": 2, "b": 3}) == {"a": 2, "b": 3}


def test_a_counter_that_vanished_restarts_them_all() -> None:
    assert counter_increases({"a": 5, "b": 1}, {"b": 3}) == {"b": 3}


def test_a_counter_that_appears_counts_from_zero() -> None:
    assert counter_increases({"a": 5}, {"a": 6, "b": 3}) == {"a": 1, "b": 3}


def test_a_bucket_quantile_is_linear_within_its_bucket() -> None:
    counts = {0.001: 0.0, 0.002: 50.0, 0.004: 100.0, math.inf: 100.0}

    assert bucket_quantile(0.5, counts) == pytest.approx(0.002)
    assert bucket_quantile(0.75, counts) == pytest.approx(0.003)


def test_a_quantile_above_all_finite_bounds_is_the_highest_of_them() -> None:
    assert bucket_quantile(0.99, {0.001: 10.0, 0.002: 10.0, math.inf: 100.0}) == 0.002


@pytest.mark.parametrize("counts", [{}, {0.1: 0.0, math.inf: 0.0}])
def test_no_observation_has_no_quantile(counts: dict[float, float]) -> None:
    assert math.isnan(bucket_quantile(0.5, counts))


@given(st.lists(st.integers(0, 50), min_size=1, max_size=12), st.integers(1, 99))
def test_a_bucket_quantile_lies_within_the_bucket_of_the_exact_one(parts: list[int], percent: int) -> None:
    total, counts = 0, {}
    for index, part in enumerate(parts):
        total += part
        counts[float(index + 1)] = float(total)
    if total == 0:
        return
    rank = percent / 100 * total
    exact = next(bound for bound, count in counts.items() if count >= rank and count > 0)

    assert exact - 1 <= bucket_quantile(percent / 100, counts) <= exact


def _sustained_by_definition(samples: list[tuple[float, float]], for_s: float) -> float:
    levels = [
        min(value for _, value in samples[first : last + 1])
        for first in range(1, len(samples))
        for last in range(first, len(samples))
        if samples[last][0] - samples[first - 1][0] >= for_s
    ]
    return max(levels, default=math.nan)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 9)), max_size=25), st.integers(1, 12))
def test_sustained_is_the_largest_minimum_of_all_long_enough_windows(steps: list[tuple[int, int]], for_s: int) -> None:
    t, samples = 0, []
    for length, value in steps:
        t += length
        samples.append((float(t), float(value)))

    expected, actual = _sustained_by_definition(samples, for_s), sustained(samples, for_s)

    assert expected == actual or (math.isnan(expected) and math.isnan(actual))


def test_a_short_spike_is_not_sustained() -> None:
    samples = [(float(t), 1.0 if t in {5, 6} else 0.1) for t in range(20)]

    assert sustained(samples, 5.0) == 0.1


def test_resampling_keeps_the_spike_of_a_slot() -> None:
    values = resample([(0.0, 1.0), (0.4, 9.0), (1.2, 2.0)], (0.0, 3.0), 3)

    assert values[:2] == [9.0, 2.0]
    assert math.isnan(values[2])
