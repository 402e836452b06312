"""Intervals of a flow and their totals."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.analysis.flows import FlowInterval, FlowSeries, PackedHistogram, is_good
from scaletest.core.histogram import Histogram
from tests.analysis.journals import flow, hist, step

VALUES = st.lists(st.integers(0, 10**7), max_size=30)


@given(st.lists(VALUES, max_size=6))
def test_packed_histograms_add_up_to_the_histogram_of_all_values(parts: list[list[int]]) -> None:
    total = Histogram()
    for values in parts:
        PackedHistogram(hist(values)).add_to(total)
    whole = Histogram()
    for value in (value for values in parts for value in values):
        whole.record(value)

    assert whole == total


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"d": [1], "c": [], "sum": 1, "min": 1, "max": 1},
        {"d": ["x"], "c": [1], "sum": 1, "min": 1, "max": 1},
        {"d": [-1], "c": [1], "sum": 1, "min": 1, "max": 1},
        {"d": [1], "c": [1], "sum": None, "min": 1, "max": 1},
    ],
)
def test_what_is_no_histogram_is_refused(data: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError, OverflowError)):
        PackedHistogram(data)


def _series(seconds: list[list[int]]) -> FlowSeries:
    series = FlowSeries()
    for second, values in enumerate(seconds):
        series.add(FlowInterval.parse(flow(second + 1.0, steps={"get": step(values)})))
    return series


@given(st.lists(VALUES, min_size=1, max_size=8), st.integers(0, 8))
def test_totals_asked_for_on_the_way_are_those_asked_for_at_the_end(seconds: list[list[int]], cut: int) -> None:
    asked_often = FlowSeries()
    for item in _series(seconds).intervals:
        asked_often.add(item)
        asked_often.totals()
        asked_often.totals((float(cut), math.inf))

    assert _series(seconds).totals() == asked_often.totals()
    assert _series(seconds).totals((float(cut), math.inf)) == asked_often.totals((float(cut), math.inf))


@given(st.lists(VALUES, min_size=1, max_size=8), st.integers(0, 8))
def test_neighbouring_spans_add_up_to_the_whole(seconds: list[list[int]], cut: int) -> None:
    series = _series(seconds)
    parts = [series.totals((-math.inf, float(cut))), series.totals((float(cut), math.inf))]
    whole = series.totals()

    assert whole.covered_s == sum(part.covered_s for part in parts)
    assert whole.steps["get"].requests == sum(part.steps["get"].requests for part in parts if part.steps)
    merged = Histogram.merged(part.steps["get"].latency_us for part in parts if part.steps)
    assert whole.steps["get"].latency_us == merged


def test_an_interval_belongs_to_the_span_of_its_middle() -> None:
    series = FlowSeries()
    series.add(FlowInterval.parse(flow(10.4, steps={"get": step([5])})))

    assert series.totals((9.0, 10.0)).steps["get"].requests == 1
    assert series.totals((10.0, 11.0)).steps == {}


def test_many_spans_do_not_keep_their_totals_for_ever() -> None:
    series = _series([[1], [2]])
    for index in range(200):
        assert series.totals((float(-index), math.inf)).steps["get"].requests == 2

    assert len(series._totals) <= 32


@pytest.mark.parametrize(
    ("outcome", "good"), [("200", True), ("201", True), ("429", False), ("timeout", False), ("2", False)]
)
def test_only_a_2xx_answer_is_good(outcome: str, good: bool) -> None:
    assert is_good(outcome) is good
