"""Medians, ranges, and when variants are said to differ."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.analysis.compare import Summary, differ, ratio_of, summarize

values = st.floats(min_value=0, allow_nan=False)


def one(value: float) -> Summary:
    summary = summarize([value])
    assert summary is not None
    return summary


def of(*values_: float) -> Summary:
    summary = summarize(values_)
    assert summary is not None
    return summary


def test_what_was_never_measured_has_no_summary() -> None:
    assert summarize([]) is None
    assert summarize([math.nan]) is None


def test_runs_in_which_nothing_was_measured_are_left_out() -> None:
    assert Summary(2.0, 1.0, 3.0, 2) == summarize([3.0, math.nan, 1.0])


def test_a_median_of_infinite_values_is_no_nan() -> None:
    assert math.inf == of(math.inf, math.inf).median
    assert math.inf == of(1.0, math.inf).median


@given(st.lists(values, min_size=1))
def test_the_median_lies_within_the_range(several: list[float]) -> None:
    summary = of(*several)
    assert summary.low <= summary.median <= summary.high
    assert len(several) == summary.runs


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (one(1.0), one(1.0), False),
        (one(1.0), one(1.09), False),
        (one(1.0), one(1.2), True),
        (one(0.0), one(0.0), False),
        (one(0.0), one(3.0), True),
        (one(math.inf), one(math.inf), False),
        (one(2.0), one(math.inf), True),
        (of(1.0, 2.0, 9.0), of(8.0, 10.0, 12.0), False),
        (of(1.0, 2.0, 3.0), of(8.0, 10.0, 12.0), True),
    ],
)
def test_variants_differ_beyond_a_tenth_and_beyond_their_repeats(left: Summary, right: Summary, expected: bool) -> None:
    assert expected is differ([left, right])
    assert expected is differ([right, left])


@given(st.lists(values, min_size=1, max_size=5))
def test_a_variant_never_differs_from_itself(several: list[float]) -> None:
    assert not differ([of(*several), of(*several)])
    assert not differ([of(*several)])


def test_a_ratio_needs_numbers() -> None:
    assert 3.0 == ratio_of([one(2.0), one(6.0)])
    assert ratio_of([one(0.0), one(6.0)]) is None
    assert ratio_of([one(1.0), one(math.inf)]) is None
    assert ratio_of([]) is None
