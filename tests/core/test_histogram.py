from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.core.histogram import Histogram, bucket_bounds, bucket_of

VALUES = st.integers(0, 10**12) | st.integers(0, 5_000) | st.integers(0, 60).map(lambda power: 1 << power)
SAMPLES = st.lists(VALUES, max_size=200)


def of(values: list[int]) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    return histogram


@given(VALUES)
def test_a_value_lies_within_its_bucket(value: int) -> None:
    low, high = bucket_bounds(bucket_of(value))

    assert low <= value <= high


@given(VALUES)
def test_a_bucket_is_at_most_a_thousandth_of_its_value_wide(value: int) -> None:
    low, high = bucket_bounds(bucket_of(value))

    assert (high - low) <= low / 1_000


@given(st.integers(0, 60_000))
def test_buckets_meet_without_gap_or_overlap(index: int) -> None:
    assert bucket_bounds(index)[1] + 1 == bucket_bounds(index + 1)[0]
    assert index == bucket_of(bucket_bounds(index)[0]) == bucket_of(bucket_bounds(index)[1])


@given(SAMPLES, SAMPLES)
def test_merging_gives_the_histogram_of_all_values(first: list[int], second: list[int]) -> None:
    assert of(first + second) == Histogram.merged([of(first), of(second)])
    assert Histogram.merged([of(second), of(first)]) == Histogram.merged([of(first), of(second)])


@given(SAMPLES.filter(bool), st.floats(0, 1))
def test_a_quantile_is_within_a_thousandth_of_the_exact_one(values: list[int], q: float) -> None:
    exact = sorted(values)[max(1, math.ceil(q * len(values))) - 1]

    assert abs(of(values).quantile(q) - exact) <= exact / 1_000


@given(SAMPLES.filter(bool), st.lists(st.floats(0, 1), min_size=2))
def test_quantiles_never_fall_as_the_share_grows(values: list[int], shares: list[float]) -> None:
    histogram = of(values)
    quantiles = [histogram.quantile(q) for q in sorted(shares)]

    assert sorted(quantiles) == quantiles


@given(SAMPLES.filter(bool))
def test_count_sum_mean_minimum_and_maximum_are_exact(values: list[int]) -> None:
    histogram = of(values)

    assert (len(values), sum(values), min(values), max(values)) == (
        histogram.count,
        histogram.total,
        histogram.minimum,
        histogram.maximum,
    )
    assert float(max(values)) == histogram.quantile(1.0)
    assert pytest.approx(sum(values) / len(values)) == histogram.mean


@given(SAMPLES)
def test_json_gives_the_histogram_back(values: list[int]) -> None:
    histogram = of(values)
    text = json.dumps(histogram.to_json())
    again = Histogram.from_json(json.loads(text))

    assert histogram == again
    assert (histogram.count, histogram.total) == (again.count, again.total)


def test_an_empty_histogram_has_no_quantile_and_no_mean() -> None:
    assert math.isnan(Histogram().quantile(0.5))
    assert math.isnan(Histogram().mean)


def test_a_negative_value_is_refused_and_changes_nothing() -> None:
    histogram = of([5])
    with pytest.raises(ValueError, match="no negative value"):
        histogram.record(-1)

    assert of([5]) == histogram


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan])
def test_a_share_beyond_0_and_1_is_refused(q: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        of([1]).quantile(q)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"d": [1], "c": [], "sum": 1, "min": 1, "max": 1},
        {"d": "x", "c": [], "sum": 0, "min": None, "max": None},
        {"d": [], "c": [], "sum": None, "min": None, "max": None},
        {"d": ["a"], "c": [1], "sum": 0, "min": 0, "max": 0},
        {"d": [1], "c": ["a"], "sum": 0, "min": 0, "max": 0},
        {"d": [1], "c": [-1], "sum": 0, "min": 0, "max": 0},
        {"d": [-1], "c": [1], "sum": 0, "min": 0, "max": 0},
        {"d": [5], "c": [1], "sum": 5, "min": None, "max": None},
        {"d": [5, 0], "c": [1, 1], "sum": 10, "min": 5, "max": 5},
    ],
)
def test_what_is_no_histogram_is_a_value_error(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="not a histogram"):
        Histogram.from_json(data)


@given(SAMPLES, st.lists(st.floats(0, 1), max_size=8))
def test_several_quantiles_in_one_pass_are_those_of_one_each(values: list[int], shares: list[float]) -> None:
    histogram, rising = of(values), sorted(shares)

    each = [histogram.quantile(q) for q in rising]
    assert all(
        one == other or (math.isnan(one) and math.isnan(other))
        for one, other in zip(each, histogram.quantiles(rising), strict=True)
    )
