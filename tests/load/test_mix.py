from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from scaletest.load.mix import next_class


def mixed(users: int, weights: dict[str, float], fixed: dict[str, int]) -> dict[str, int]:
    counts = Counter(dict.fromkeys(weights, 0))
    for _ in range(users):
        counts[next_class(counts, weights, fixed)] += 1
    return dict(counts)


def test_fixed_counts_come_first_and_the_rest_goes_by_weight() -> None:
    assert {"a": 2, "b": 6, "c": 2} == mixed(10, {"a": 5, "b": 3, "c": 1}, {"a": 2})


def test_with_nothing_but_fixed_counts_users_beyond_them_are_of_the_first_class() -> None:
    assert {"a": 4, "b": 1} == mixed(5, {"a": 1, "b": 1}, {"a": 1, "b": 1})


@given(weights=st.lists(st.integers(1, 9), min_size=1, max_size=5), rounds=st.integers(1, 20))
def test_shares_are_exact_after_whole_rounds(weights: list[int], rounds: int) -> None:
    named = {f"c{index}": float(weight) for index, weight in enumerate(weights)}

    assert {name: weight * rounds for name, weight in named.items()} == mixed(sum(weights) * rounds, named, {})
