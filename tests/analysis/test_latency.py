"""Histograms of the servers over spans and in windows, against a direct computation."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.analysis.latency import WINDOW_STEP_S, LatencyMetrics
from scaletest.analysis.series import EVER, quantile_over_time
from scaletest.analysis.state import RunState
from scaletest.core.journal import Record
from tests.analysis.journals import SLI_LE_S, latency, record

CALL = "LIST pods cluster"
_LATENCIES = st.lists(st.floats(0.0001, 90.0), max_size=40)


def of(*records: Record) -> LatencyMetrics:
    return RunState().apply_all(records).latency


def direct_quantile(q: float, values_s: Sequence[float]) -> float:
    """A quantile by the words of PromQL's documentation, from the observations themselves."""
    rank = q * len(values_s)
    bound = next((le_s for le_s in SLI_LE_S if sum(value <= le_s for value in values_s) >= rank), None)
    if bound is None:
        return SLI_LE_S[-1]
    low = max((le_s for le_s in SLI_LE_S if le_s < bound), default=0.0)
    below = sum(value <= low for value in values_s)
    inside = sum(low < value <= bound for value in values_s)
    return low + (bound - low) * (rank - below) / inside


@given(_LATENCIES.filter(bool), st.sampled_from([0.5, 0.9, 0.99]))
def test_a_quantile_is_interpolated_as_promql_does(values_s: list[float], q: float) -> None:
    found = of(latency(1.0, {CALL: values_s})).families["sli"].within(EVER)[CALL]

    assert found.quantile_s(q) == pytest.approx(direct_quantile(q, values_s))
    assert found.count == len(values_s)


@given(_LATENCIES.filter(bool))
def test_a_quantile_lies_in_the_bucket_of_the_observation_that_it_stands_for(values_s: list[float]) -> None:
    exact = sorted(values_s)[math.ceil(0.99 * len(values_s)) - 1]
    found = of(latency(1.0, {CALL: values_s})).families["sli"].within(EVER)[CALL].quantile_s(0.99)

    bucket = bisect_left(SLI_LE_S, exact)
    low = SLI_LE_S[bucket - 1] if bucket else 0.0
    assert low <= found <= (SLI_LE_S[bucket] if bucket < len(SLI_LE_S) else SLI_LE_S[-1]) * (1 + 1e-9)


@given(st.lists(st.tuples(st.integers(0, 100), _LATENCIES), max_size=12), st.integers(0, 100), st.integers(0, 100))
def test_a_span_has_what_was_counted_in_it(parts: list[tuple[int, list[float]]], one: int, other: int) -> None:
    span = (float(min(one, other)), float(max(one, other)))
    metrics = of(*(latency(float(t), {CALL: values}) for t, values in sorted(parts, key=lambda part: part[0])))

    expected = [value for t, values in parts if span[0] <= t < span[1] for value in values]
    for _ in range(2):
        found = metrics.families["sli"].within(span).get(CALL)
        assert (found.count if found else 0) == len(expected)


def test_the_servers_are_added_up() -> None:
    metrics = of(latency(1.0, {CALL: [0.3]}, server="https://a"), latency(1.5, {CALL: [0.3, 0.7]}, server="https://b"))

    assert metrics.families["sli"].within(EVER)[CALL].count == 3


_SCRAPES = st.lists(st.tuples(st.integers(1, 120), _LATENCIES), min_size=1, max_size=12)


@given(_SCRAPES)
def test_windows_are_what_a_look_at_each_of_them_finds(gaps: list[tuple[int, list[float]]]) -> None:
    parts: list[tuple[float, list[float]]] = []
    for gap, values in gaps:
        parts.append(((parts[-1][0] if parts else 0.0) + gap, values))
    metrics = LatencyMetrics()
    for t, values in parts:
        metrics.add(latency(t, {CALL: values}))
        metrics.families["sli"].windows(0.99, EVER, -math.inf)  # asked for all the time, as a condition does

    expected: list[float] = []
    end_s = math.ceil(parts[0][0] / WINDOW_STEP_S) * WINDOW_STEP_S
    while end_s <= parts[-1][0]:
        inside = [value for t, values in parts if end_s - 300 <= t < end_s for value in values]
        if inside:
            expected.append(direct_quantile(0.99, inside))
        end_s += WINDOW_STEP_S
    found = metrics.families["sli"].windows(0.99, EVER, -math.inf).get(CALL, [])
    assert found == pytest.approx(expected)


def test_windows_that_begin_before_the_measurement_are_left_out() -> None:
    family = of(*(latency(t, {CALL: [0.01]}) for t in range(5, 421, 5))).families["sli"]

    assert len(family.windows(0.99, (0.0, math.inf), 100.0)[CALL]) == 3  # those that end at 400, 410 and 420 s
    assert len(family.windows(0.99, (0.0, 405.0), 100.0)[CALL]) == 1
    assert family.windows(0.99, (0.0, math.inf), 200.0) == {}


@pytest.mark.parametrize(
    ("values", "expected"), [([], math.nan), ([3.0], 3.0), ([2.0, 1.0], 1.99), (list(range(101)), 99.0)]
)
def test_a_quantile_over_time_lies_between_its_neighbours(values: list[float], expected: float) -> None:
    assert quantile_over_time(0.99, values) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    "families",
    [
        {"sli": {"le_s": [1.0], "grown": {CALL: [2, 1]}}},
        {"sli": {"le_s": [1.0], "grown": {CALL: [0]}}},
        {"sli": {"le_s": [1.0], "grown": {CALL: [0, -1]}}},
        {"sli": {"grown": {}}},
        None,
    ],
)
def test_a_malformed_record_changes_nothing(families: object) -> None:
    state = RunState().apply_all([latency(1.0, {CALL: [0.1]}), record("metrics.latency", 2.0, families=families)])

    assert state.malformed["metrics.latency"] == 1
    assert state.latency.families["sli"].within(EVER)[CALL].count == 1
    assert state.latency.times_s == [1.0]


def test_another_servers_buckets_are_malformed() -> None:
    other = record("metrics.latency", 2.0, families={"sli": {"le_s": [1.0], "grown": {CALL: [0, 1]}}})

    assert RunState().apply_all([latency(1.0, {CALL: [0.1]}), other]).malformed["metrics.latency"] == 1
