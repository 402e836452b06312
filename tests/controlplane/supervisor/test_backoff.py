from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.controlplane.plan import RestartBackoff
from scaletest.controlplane.supervisor.backoff import BackoffState, wait_before_restart_s


def test_the_default_waits_are_the_kubelets() -> None:
    waits = [wait_before_restart_s(RestartBackoff(), count) for count in range(8)]

    assert waits == [0, 10, 20, 40, 80, 160, 300, 300]


def test_a_component_that_ran_for_ten_minutes_starts_from_the_beginning() -> None:
    state = BackoffState(RestartBackoff())

    assert [state.after_exit(ran_s) for ran_s in (1, 1, 1, 599.9, 600, 1)] == [0, 10, 20, 40, 0, 10]


@given(st.integers(0, 10_000), st.floats(0.1, 100), st.floats(1, 5), st.floats(0.1, 1000))
def test_waits_never_shrink_and_never_pass_the_longest(
    count: int, first_s: float, factor: float, most_s: float
) -> None:
    policy = RestartBackoff(first_s, factor, most_s)
    wait_s, next_s = wait_before_restart_s(policy, count), wait_before_restart_s(policy, count + 1)

    assert 0 <= wait_s <= next_s <= most_s


@pytest.mark.parametrize("count", [-1, 0])
def test_the_first_restart_is_immediate(count: int) -> None:
    assert wait_before_restart_s(RestartBackoff(), count) == 0
