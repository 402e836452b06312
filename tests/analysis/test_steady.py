"""Warm-up and trends in simulated series."""

from __future__ import annotations

import math
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.analysis.steady import Direction, Series, Trend, settle, trend, warm_up

seeds = st.integers(0, 2**32)


def noise(seed: int, count: int, mean: float = 1.0, deviation: float = 0.1) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(mean, deviation) for _ in range(count)]


def timed(values: list[float], start_s: float = 100.0) -> list[tuple[float, float]]:
    return [(start_s + 0.5 + index, value) for index, value in enumerate(values)]


@settings(max_examples=50)
@given(seeds, st.integers(3, 25))
def test_a_warm_up_far_above_the_rest_is_dropped_and_little_more(seed: int, length: int) -> None:
    values = [3.0 + value for value in noise(seed, length)] + noise(seed + 1, 60)

    assert length <= warm_up(values) <= len(values) // 2 + 5


@settings(max_examples=50)
@given(seeds)
def test_a_decaying_warm_up_is_dropped_down_to_the_noise(seed: int) -> None:
    values = [value + 4 * math.exp(-index / 6) for index, value in enumerate(noise(seed, 90))]

    assert warm_up(values) >= 10


@given(st.integers(2, 200), st.floats(-1e6, 1e6))
def test_nothing_is_dropped_of_a_constant(count: int, value: float) -> None:
    assert warm_up([value] * count) == 0


@given(st.lists(st.floats(0, 1e9), max_size=150))
def test_at_most_half_is_dropped(values: list[float]) -> None:
    # Whole batches: half of the batches, and what is left over of the first.
    assert warm_up(values) <= len(values) / 2 + 5


def test_noise_alone_seldom_has_a_trend() -> None:
    alarms = sum(trend(noise(seed, 40, deviation=0.4), Direction.UP) is not Trend.NONE for seed in range(500))

    assert alarms <= 40


@settings(max_examples=50)
@given(seeds, st.integers(20, 120))
def test_a_queue_that_grows_is_seen(seed: int, count: int) -> None:
    growing = [value * (1 + 3 * index / count) for index, value in enumerate(noise(seed, count, deviation=0.05))]

    assert trend(growing, Direction.UP) is Trend.WORSE
    assert trend(growing, Direction.DOWN) is Trend.BETTER
    assert trend(growing[::-1], Direction.DOWN) is Trend.WORSE


def test_a_small_drift_is_no_trend_however_clear() -> None:
    assert trend([100 + index / 10 for index in range(60)], Direction.UP) is Trend.NONE


def test_the_longest_warm_up_of_all_series_counts() -> None:
    quick = Series(timed([9.0] * 5 + [1.0] * 55), Direction.UP)
    slow = Series(timed([0.0] * 20 + [80.0] * 40), Direction.DOWN)

    found = settle({"latency": quick, "throughput": slow}, (100.0, 160.0))

    assert found.settled
    assert 20 == found.dropped_s
    assert (120.0, 160.0) == found.span


def test_what_is_outside_the_span_has_no_say() -> None:
    values = Series(timed([50.0] * 30 + [1.0] * 30), Direction.UP)

    assert 0 == settle({"latency": values}, (130.0, 160.0)).dropped_s


def test_a_step_that_never_settles_is_said() -> None:
    latency = Series(timed([0.1 * index for index in range(60)]), Direction.UP)
    steady = Series(timed(noise(1, 60)), Direction.DOWN)

    found = settle({"latency": latency, "throughput": steady}, (100.0, 160.0))

    assert not found.settled
    assert ["latency"] == found.worsening
    assert found.dropped_s > 0


def test_an_improving_series_has_not_settled_but_does_not_get_worse() -> None:
    latency = Series(timed([10.0 - 0.1 * index for index in range(60)]), Direction.UP)

    found = settle({"latency": latency}, (100.0, 160.0))

    assert not found.settled
    assert [] == found.worsening


def test_seconds_without_an_answer_are_left_out() -> None:
    values = [1.0 if index % 3 else math.nan for index in range(60)]

    assert settle({"latency": Series(timed(values), Direction.UP)}, (100.0, 160.0)).settled


def test_too_few_samples_tell_nothing() -> None:
    found = settle({"latency": Series(timed([1.0] * 9), Direction.UP)}, (100.0, 109.0))

    assert not found.enough
    assert not found.settled
    assert (100.0, 109.0) == found.span
