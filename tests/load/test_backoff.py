from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.load.backoff import MAX_RETRIES, RESET_AFTER_S, Backoff, Retries, retry_wait_s
from scaletest.profile.schema import BackoffSpec

PLAIN = BackoffSpec.model_validate({"jitter": 0})


def test_waits_double_from_800_ms_to_30_s() -> None:
    backoff = Backoff(PLAIN)

    assert [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] == pytest.approx(
        [backoff.next_wait_s(0.0, 0.5) for _ in range(8)]
    )


def test_two_minutes_without_a_failure_start_it_again() -> None:
    backoff = Backoff(PLAIN)
    backoff.next_wait_s(0.0, 0.0)

    assert 1.6 == backoff.next_wait_s(RESET_AFTER_S, 0.0)
    assert 0.8 == backoff.next_wait_s(2 * RESET_AFTER_S + 0.1, 0.0)


@given(
    first=st.floats(0.01, 5), most=st.floats(5, 60), factor=st.floats(1, 4), jitter=st.floats(0, 2),
    failures=st.lists(st.tuples(st.floats(0, 119), st.floats(0, 0.999)), min_size=1, max_size=30),
)  # fmt: skip
def test_waits_stay_within_first_and_most_stretched_by_the_jitter(
    first: Any, most: Any, factor: Any, jitter: Any, failures: Any
) -> None:
    spec = BackoffSpec.model_validate(
        {"first": f"{first:.6f}s", "most": f"{most:.6f}s", "factor": factor, "jitter": jitter}
    )
    backoff, now_s = Backoff(spec), 0.0
    for gap_s, draw in failures:
        now_s += gap_s
        wait_s = backoff.next_wait_s(now_s, draw)
        assert spec.first_s - 1e-9 <= wait_s <= spec.most_s * (1 + jitter) + 1e-9


@pytest.mark.parametrize(
    ("status", "retry_after", "outcome", "began", "expected"),
    [
        (429, 1, "429", True, 1.0),
        (503, 7, "503", True, 7.0),
        (500, 0, "500", True, 0.0),
        (429, None, "429", True, None),
        (403, 1, "403", True, None),
        (None, None, "reset", False, 1.0),
        (None, None, "reset", True, None),
        (None, None, "cut_short", True, None),
        (None, None, "refused", False, None),
        (None, None, "timeout", False, None),
    ],
)
def test_only_what_client_go_retries_is_retried(
    status: Any, retry_after: Any, outcome: str, began: Any, expected: Any
) -> None:
    wait_s = retry_wait_s(
        PLAIN, status=status, retry_after_s=retry_after, answer_began=began, outcome=outcome, attempt=1
    )

    assert expected == wait_s


def test_after_ten_retries_the_back_off_takes_over() -> None:
    waits = [
        retry_wait_s(PLAIN, status=429, retry_after_s=1, answer_began=True, outcome="429", attempt=attempt)
        for attempt in range(1, MAX_RETRIES + 2)
    ]

    assert [1.0] * MAX_RETRIES + [None] == waits


def test_a_flow_may_ignore_retry_after() -> None:
    spec = BackoffSpec.model_validate({"honorRetryAfter": False})

    assert retry_wait_s(spec, status=429, retry_after_s=1, answer_began=True, outcome="429", attempt=1) is None


def waits_of(retries: Retries, status: int, count: int) -> list[float]:
    return [
        retries.wait_s(
            status=status, retry_after_s=1, answer_began=True, outcome=str(status), now_s=float(at), draw=0.0
        )
        for at in range(count)
    ]


def test_retries_follow_the_server_then_back_off_and_then_start_over() -> None:
    retries = Retries(PLAIN)

    assert [1.0] * MAX_RETRIES == waits_of(retries, 429, MAX_RETRIES)
    assert retries.is_retrying
    assert [PLAIN.first_s] == waits_of(retries, 429, 1)
    assert not retries.is_retrying
    assert [1.0] == waits_of(retries, 429, 1)


def test_a_success_gives_back_all_retries_but_not_the_back_off() -> None:
    retries = Retries(PLAIN)
    first, second = waits_of(retries, 403, 2)
    waits_of(retries, 429, MAX_RETRIES)
    retries.succeeded()

    assert not retries.is_retrying
    assert [1.0] * MAX_RETRIES == waits_of(retries, 429, MAX_RETRIES)
    assert second == PLAIN.factor * first < waits_of(retries, 403, 1)[0]
