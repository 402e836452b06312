from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.load.pacing import Rollout, TokenBucket, next_due_s

times = st.floats(0, 1e6)


def test_a_rollout_is_evenly_spaced() -> None:
    rollout = Rollout(100.0, 80.0)

    assert [100.0, 100.0125, 100.025, 187.4875] == [rollout.start_of_s(index) for index in (0, 1, 2, 6999)]


@given(rate=st.floats(0.1, 10_000), late=st.lists(st.floats(0, 0.5), min_size=1, max_size=60))
def test_a_rollout_is_never_early_and_catches_up_after_a_delay(rate: Any, late: Any) -> None:
    rollout, now_s = Rollout(5.0, rate), 5.0
    for started, delay_s in enumerate(late):
        now_s += rollout.wait_s(now_s, started)
        assert now_s >= rollout.start_of_s(started) - 1e-9
        now_s += delay_s
    # After all delays the number due depends on the time alone.
    due = sum(1 for index in range(len(late)) if rollout.start_of_s(index) <= now_s)
    assert all(rollout.wait_s(now_s, index) == 0 for index in range(due))


def test_a_rollout_needs_a_rate() -> None:
    with pytest.raises(ValueError, match="rate above 0"):
        Rollout(0.0, 0.0)


@given(
    previous=times,
    period=st.floats(0.001, 1e4),
    jitter=st.floats(0, 1),
    late=st.floats(0, 1e5),
    draw=st.floats(0, 0.999),
)
def test_a_periodic_step_is_due_within_its_jitter_and_never_in_the_past(
    previous: Any, period: Any, jitter: Any, late: Any, draw: Any
) -> None:
    now_s = previous + late

    due_s = next_due_s(previous, period, jitter, now_s, draw)

    assert due_s >= now_s
    earliest, latest = previous + period * (1 - jitter), previous + period * (1 + jitter)
    assert due_s == now_s or earliest - 1e-6 <= due_s <= latest + 1e-6


def test_a_period_counts_from_the_due_time_not_from_the_end_of_the_request() -> None:
    assert 160.0 == next_due_s(100.0, 60.0, 0.0, 103.7, 0.5)


def test_a_late_step_runs_once_at_once_and_missed_ones_are_dropped() -> None:
    assert 1000.0 == next_due_s(100.0, 60.0, 0.0, 1000.0, 0.5)
    assert 1060.0 == next_due_s(1000.0, 60.0, 0.0, 1000.5, 0.5)


@given(qps=st.floats(0.5, 100), burst=st.integers(1, 20), gaps=st.lists(st.floats(0, 3), min_size=1, max_size=50))
def test_a_bucket_never_lets_through_more_than_burst_plus_rate(qps: Any, burst: Any, gaps: Any) -> None:
    bucket, now_s = TokenBucket(qps, burst, 0.0), 0.0
    used: list[float] = []
    for gap_s in gaps:
        now_s += gap_s
        used.append(now_s + bucket.take(now_s))
    for first in range(len(used)):
        for last in range(first, len(used)):
            assert last - first + 1 <= burst + qps * (used[last] - used[first]) + 1 + 1e-6
    assert used == sorted(used)


def test_a_bucket_starts_full_and_then_keeps_its_rate() -> None:
    bucket = TokenBucket(10, 3, 0.0)

    assert [0, 0, 0, pytest.approx(0.1), pytest.approx(0.2)] == [bucket.take(0.0) for _ in range(5)]
