"""Laws recover the coefficients that made their points."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.analysis.fits import AgentsLaw, UslFit, agents_law, fit_answer_bytes, fit_usl, least_squares

LOADS = [50.0, 100.0, 200.0, 400.0, 800.0, 1_600.0]


def usl(per_client: float, contention: float, coherence: float) -> UslFit:
    return UslFit(per_client, contention, coherence, ())


@settings(max_examples=50)
@given(st.floats(0.001, 1e4), st.floats(0, 0.5), st.floats(0, 1e-3))
def test_a_curve_without_noise_is_recovered(per_client: float, contention: float, coherence: float) -> None:
    law = usl(per_client, contention, coherence)

    fit = fit_usl([(load, law.throughput(load)) for load in LOADS])

    assert fit is not None
    for load in (1, 75, 3_000):
        assert law.throughput(load) == pytest.approx(fit.throughput(load), rel=1e-6)
    assert fit.worst_residual < 1e-6


def test_the_peak_of_a_noisy_curve_is_found_within_a_fifth() -> None:
    law, rng = usl(2.0, 0.001, 2e-6), random.Random(7)
    points = [(load, law.throughput(load) * rng.gauss(1, 0.03)) for load in LOADS * 3]

    fit = fit_usl(points)

    assert fit is not None
    assert law.peak_load == pytest.approx(fit.peak_load, rel=0.2)
    assert law.peak == pytest.approx(fit.peak, rel=0.1)
    assert 0.005 < fit.worst_residual < 0.15


def test_a_straight_line_never_bends() -> None:
    fit = fit_usl([(load, 0.1 * load) for load in LOADS])

    assert fit is not None
    assert fit.peak > 1e6 * 0.1


def test_a_plateau_is_contention() -> None:
    fit = fit_usl([(1, 10), (10, 52.6), (100, 91.7), (1_000, 99.1)])

    assert fit is not None
    assert 0.1 == pytest.approx(fit.contention, rel=0.02)
    assert 100 == pytest.approx(fit.peak, rel=0.05)


@pytest.mark.parametrize("points", [[], [(1, 1), (2, 2)], [(5, 1), (5, 2), (5, 3)], [(1, 0), (2, 0), (3, 0)]])
def test_too_little_fits_no_curve(points: list[tuple[float, float]]) -> None:
    assert fit_usl(points) is None


def test_agents_that_list_what_stands_on_their_nodes_follow_the_square_root() -> None:
    # shared figures: 5 API servers of 330 MB/s, 30 s, 10 pods of 4 KB on every node.
    law = AgentsLaw(5, 330e6, 30.0, 0.0, 40_000.0)

    assert 1_112 == pytest.approx(law.limit, abs=1)
    assert law.limit / 2 == pytest.approx(AgentsLaw(5, 330e6 / 4, 30.0, 0.0, 40_000.0).limit)
    assert "sqrt(" in law.formula


def test_agents_on_a_fixed_fleet_follow_the_line() -> None:
    law = AgentsLaw(1, 139e6, 60.0, 62.7e6, 0.0)

    assert 139e6 * 60 / 62.7e6 == pytest.approx(law.limit)
    assert law.limit / 4 == pytest.approx(AgentsLaw(1, 139e6 / 4, 60.0, 62.7e6, 0.0).limit)
    assert "√" not in law.formula


@given(st.floats(1e3, 1e9), st.floats(0, 1e8), st.floats(0, 1e6), st.floats(0.1, 1_000))
def test_at_the_limit_demand_is_the_capacity(capacity: float, fixed: float, grows: float, period_s: float) -> None:
    if fixed + grows < 1:
        return
    law = AgentsLaw(2, capacity, period_s, fixed, grows)

    limit = law.limit

    assert 2 * capacity == pytest.approx(limit * (fixed + grows * limit) / period_s, rel=1e-9)


def test_the_law_takes_sizes_as_measured() -> None:
    law = agents_law(
        [(load, 1_000_000 + 9_300 * load) for load in LOADS], servers=1, capacity_bytes_per_s=100e6, period_s=10.0
    )

    assert law is not None
    assert 1_000_000 == pytest.approx(law.fixed_bytes)
    assert 9_300 == pytest.approx(law.bytes_per_agent)
    assert max(abs(item.relative) for item in law.residuals) < 1e-9


def test_answers_that_do_not_grow_are_fixed() -> None:
    sizes = [(load, 5e6 * (1.001 if index % 2 else 0.999)) for index, load in enumerate(LOADS)]

    fitted = fit_answer_bytes(sizes)

    assert fitted is not None
    assert 5e6 == pytest.approx(fitted[0], rel=0.01)
    assert fitted[1] * 1_600 < 0.01 * 5e6


def test_no_answer_gives_no_law() -> None:
    assert agents_law([], servers=1, capacity_bytes_per_s=1e6, period_s=1) is None
    assert agents_law([(1, 1)], servers=1, capacity_bytes_per_s=math.nan, period_s=1) is None


def test_one_load_gives_a_fixed_size() -> None:
    fitted = fit_answer_bytes([(100, 2_000)])

    assert fitted is not None
    assert 2_000 == pytest.approx(fitted[0])
    assert 0 == fitted[1]


def test_columns_that_depend_on_each_other_have_no_solution() -> None:
    assert least_squares([[1, 2, 3], [2, 4, 6]], [1, 2, 3]) is None
