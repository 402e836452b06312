"""When an operator is locked out, by examples and against the definition."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.analysis.lockouts import (
    UNFINISHED,
    Observation,
    clip,
    intersect,
    latency_quantile,
    lockouts,
    longest_s,
    recovered_s,
    ways_in,
)
from scaletest.analysis.series import Span


def good(sent_s: float, latency_s: float = 0.1) -> Observation:
    return Observation(sent_s, latency_s, ok=True)


def bad(sent_s: float, latency_s: float = 0.0, outcome: str = "refused") -> Observation:
    return Observation(sent_s, latency_s, ok=False, outcome=outcome)


def test_recovered_counts_from_the_first_request_after_the_last_failure_to_the_last_answer() -> None:
    assert recovered_s([good(1), bad(2), good(3), good(4, 0.5)], 1.0) == 1.5
    assert recovered_s([good(1), bad(2)], 1.0) == 0.0
    assert recovered_s([], 1.0) == 0.0


def test_a_slow_answer_is_no_recovery_and_a_request_under_way_is_no_failure() -> None:
    assert recovered_s([good(1), good(2, 3.0), good(6), good(7)], 1.0) == pytest.approx(1.1)
    assert recovered_s([good(1), good(2), bad(3, 9.0, UNFINISHED)], 1.0) == 1.1


def test_good_answers_alone_lock_nobody_out() -> None:
    assert lockouts([good(1), good(2), good(3)], 10.0) == []


def test_slow_good_answers_lock_nobody_out() -> None:
    assert lockouts([good(1, 19.9), good(21, 19.9)], 60.0) == []


def test_a_lock_out_lasts_from_the_last_good_answer_to_the_next() -> None:
    assert lockouts([good(1), bad(2), bad(3), good(4, 0.5)], 10.0) == [(1.1, 4.5)]


def test_a_time_out_counts_from_the_good_answer_before_it() -> None:
    assert lockouts([good(1), bad(2, 20.0, "timeout"), good(22.0, 0.5)], 60.0) == [(1.1, 22.5)]


def test_before_any_good_answer_it_begins_with_the_first_request() -> None:
    assert lockouts([bad(2), bad(3), good(4)], 10.0) == [(2, 4.1)]


def test_an_open_lock_out_lasts_to_the_end_of_the_measurement() -> None:
    assert lockouts([good(1), bad(2), bad(3)], 10.0) == [(1.1, 10.0)]


def test_a_good_answer_between_two_failures_parts_two_lock_outs() -> None:
    assert lockouts([good(1), bad(2), good(3), bad(4), good(5)], 10.0) == [(1.1, 3.1), (3.1, 5.1)]


def test_an_answer_that_overtakes_a_time_out_ends_the_lock_out() -> None:
    """Probes are sent on schedule: the request of second 3 is answered before that of second 2 times out."""
    assert lockouts([good(1), bad(2, 20.0, "timeout"), good(3), good(4)], 30.0) == [(1.1, 3.1)]


def test_a_request_cut_off_by_the_end_proves_nothing() -> None:
    assert lockouts([good(1), bad(2, 3.0, UNFINISHED)], 5.0) == []


def test_requests_sent_after_the_end_do_not_count() -> None:
    assert lockouts([good(1), bad(6)], 5.0) == []


def _locked_at(t_s: float, observations: list[Observation]) -> bool:
    """Whether an operator is locked out at a moment, by the words of the definition alone."""
    before = [item.answered_s for item in observations if item.ok and item.answered_s <= t_s]
    after = [item.answered_s for item in observations if item.ok and item.answered_s > t_s]
    last, following = max(before, default=-math.inf), min(after, default=math.inf)
    failed = [item.sent_s for item in observations if not item.ok and last <= item.sent_s < following]
    begun = last if math.isfinite(last) else min(failed, default=math.inf)
    return bool(failed) and begun <= t_s


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10), st.booleans()), max_size=12),
    st.integers(20, 45),
)
def test_lock_outs_are_the_moments_that_the_definition_says(answers: list[tuple[int, int, bool]], end_s: int) -> None:
    observations = [Observation(float(sent), float(latency), ok) for sent, latency, ok in answers if sent < end_s]
    spans = lockouts(observations, float(end_s))
    # Half seconds lie between the whole ones where something happens.
    moments = [half / 2 for half in range(2 * end_s)]

    expected = [t_s for t_s in moments if _locked_at(t_s, observations)]
    actual = [t_s for t_s in moments if any(start <= t_s < end for start, end in spans)]

    assert expected == actual
    assert spans == sorted(spans)


_SPANS = st.lists(st.tuples(st.integers(0, 10), st.integers(1, 10)), max_size=6)


def _ordered(steps: list[tuple[int, int]]) -> list[Span]:
    spans, t = [], 0
    for gap, length in steps:
        spans.append((float(t + gap), float(t + gap + length)))
        t += gap + length
    return spans


@given(_SPANS, _SPANS)
def test_an_intersection_holds_the_moments_of_both(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    one, other = _ordered(left), _ordered(right)
    both = intersect(one, other)

    def inside(t_s: float, spans: list[Span]) -> bool:
        return any(start <= t_s < end for start, end in spans)

    for half in range(260):
        assert inside(half / 2, both) == (inside(half / 2, one) and inside(half / 2, other))


def test_clipping_keeps_what_lies_within() -> None:
    assert clip([(1.0, 3.0), (5.0, 9.0)], (2.0, 6.0)) == [(2.0, 3.0), (5.0, 6.0)]


def test_the_longest_of_no_span_is_nothing() -> None:
    assert longest_s([]) == 0.0
    assert longest_s([(1.0, 3.0), (5.0, 9.0)]) == 4.0


def test_a_probe_that_fails_fast_does_not_look_fast() -> None:
    observations = [good(t, 0.1) for t in range(98)] + [bad(98), bad(99)]

    assert latency_quantile(observations, 0.5) == 0.1
    assert latency_quantile(observations, 0.98) == 0.1
    assert math.isinf(latency_quantile(observations, 0.99))


def test_a_request_cut_off_by_the_end_took_at_least_what_it_waited() -> None:
    assert latency_quantile([good(1, 0.1), bad(2, 5.0, UNFINISHED)], 1.0) == 5.0


def test_no_observation_has_no_latency() -> None:
    assert math.isnan(latency_quantile([], 0.5))


@pytest.mark.parametrize("q", [0.5, 0.9, 0.99, 1.0])
def test_a_quantile_is_one_of_the_observed_values(q: float) -> None:
    values = [0.3, 0.1, 0.2]

    assert latency_quantile([good(0, value) for value in values], q) in values


def test_a_server_that_is_added_is_no_way_in_before_it_is_there() -> None:
    first = [good(0), good(1), bad(2, 20.0, "timeout"), *(bad(at) for at in range(3, 50))]
    added = [good(at) for at in range(40, 50)]

    old, new = ways_in({"a": first, "b": added})

    assert lockouts(old, 50) == [(1.1, 50)]
    assert lockouts(new, 50) == [(1.1, 40.1)]
    assert intersect(lockouts(old, 50), lockouts(new, 50)) == [(1.1, 40.1)]


def test_servers_that_are_there_from_the_start_are_asked_each_for_itself() -> None:
    servers = {"a": [good(0), bad(1), good(2)], "b": [good(0.5), good(1.5)], "c": []}

    assert ways_in(servers) == [servers["a"], servers["b"]]
    assert ways_in({"a": servers["a"]}) == [servers["a"]]
    assert ways_in({}) == []
