"""Rank test, Student's t, Holm and the bootstrap, against published values and by brute force."""

from __future__ import annotations

import itertools
import math
import statistics
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.analysis.statistic import (
    block_length,
    bootstrap_error,
    holm,
    mann_whitney_p,
    t_quantile,
    t_two_sided_p,
)

small = st.lists(st.integers(0, 5).map(float), min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([1, 2, 3, 4], [5, 6, 7, 8], 2 / 70),
        ([1, 2, 3], [4, 5, 6], 2 / 20),
        ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 2 / 252),
        ([1, 1], [1, 1], 1.0),
        ([], [1.0], 1.0),
    ],
)
def test_the_rank_test_is_exact_for_few_samples(left: list[float], right: list[float], expected: float) -> None:
    assert mann_whitney_p(left, right) == pytest.approx(expected)


@given(small, small)
@settings(max_examples=60)
def test_the_rank_test_counts_all_ways_to_split_the_samples(left: list[float], right: list[float]) -> None:
    pooled = [*left, *right]
    ranks = [sum(other < value for other in pooled) + (pooled.count(value) + 1) / 2 for value in pooled]
    mean = len(left) * (len(pooled) + 1) / 2
    distance = abs(sum(ranks[: len(left)]) - mean)
    ways = list(itertools.combinations(ranks, len(left)))
    expected = sum(abs(sum(way) - mean) >= distance - 1e-9 for way in ways) / len(ways)

    assert mann_whitney_p(left, right) == pytest.approx(expected)
    assert mann_whitney_p(right, left) == pytest.approx(expected)


def test_the_rank_test_of_many_samples_is_near_the_exact_one() -> None:
    rng = Random(1)
    left, right = [rng.gauss(0, 1) for _ in range(12)], [rng.gauss(0.8, 1) for _ in range(12)]
    exact = mann_whitney_p(left, right)
    # The same order of ranks, each sample twice as often and a hair apart.
    many = mann_whitney_p([*left, left[0] + 1e-9], right)
    assert many == pytest.approx(exact, abs=0.05)


@pytest.mark.parametrize(
    ("df", "p", "t"),
    [(1, 0.05, 12.706), (4, 0.05, 2.776), (8, 0.01, 3.355), (14, 0.001, 4.140), (30, 0.05, 2.042), (1e30, 0.05, 1.960), (math.inf, 0.05, 1.960)],
)  # fmt: skip
def test_quantiles_of_t_are_those_of_the_tables(df: float, p: float, t: float) -> None:
    assert t_quantile(p, df) == pytest.approx(t, abs=0.0006)
    assert t_two_sided_p(t, df) == pytest.approx(p, rel=0.002)


def test_t_knows_its_ends() -> None:
    assert 1.0 == t_two_sided_p(0.0, 5)
    assert 0.0 == t_two_sided_p(math.inf, 5)
    assert 1.0 == t_two_sided_p(math.nan, 5)


def test_holm_adjusts_step_by_step() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert [] == holm([])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_lies_between_the_p_and_bonferroni(ps: list[float]) -> None:
    for p, adjusted in zip(ps, holm(ps), strict=True):
        assert p <= adjusted <= min(1.0, len(ps) * p) + 1e-12 or adjusted <= 1.0
        assert adjusted >= p


def test_the_bootstrap_of_runs_has_the_error_of_the_mean() -> None:
    values = [1.0, 1.2, 0.9, 1.1, 1.05]
    expected = statistics.stdev(values) / math.sqrt(5)
    assert bootstrap_error(values, 1, 4000, Random(1)) == pytest.approx(expected, rel=0.05)
    assert 0.0 == bootstrap_error([1.0], 1, 100, Random(1))


def correlated(rng: Random, count: int, rho: float) -> list[float]:
    state, values = rng.gauss(0, 1), []
    for _ in range(count):
        state = rho * state + math.sqrt(1 - rho * rho) * rng.gauss(0, 1)
        values.append(state)
    return values


def test_blocks_keep_the_autocorrelation_that_single_values_lose() -> None:
    rng = Random(3)
    series = [correlated(rng, 40, 0.7) for _ in range(60)]
    true = statistics.stdev([statistics.fmean(values) for values in series])
    blocks = statistics.fmean(bootstrap_error(values, block_length(values), 200, rng) for values in series)
    single = statistics.fmean(bootstrap_error(values, 1, 200, rng) for values in series)
    assert single < 0.45 * true
    # Of 40 values the blocks know a part of it only (Lahiri 2003, ch. 5); the assumed spread between runs is larger.
    assert blocks > 0.6 * true


def test_the_length_of_blocks_follows_the_autocorrelation() -> None:
    rng = Random(2)
    free, bound = correlated(rng, 30, 0.0), correlated(rng, 30, 0.95)
    assert block_length(free) <= 6 <= block_length(bound) <= 10
    assert 1 == block_length([])
    assert 1 == block_length([1.0, 1.0])


@given(st.floats(1e-6, 0.9), st.floats(1, 200))
@settings(max_examples=60)
def test_a_quantile_is_exceeded_with_its_chance(p: float, df: float) -> None:
    assert t_two_sided_p(t_quantile(p, df), df) == pytest.approx(p, rel=1e-6)
