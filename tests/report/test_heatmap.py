"""The heat map of latencies."""

from __future__ import annotations

import pytest

from scaletest.analysis.state import RunState
from scaletest.report.heatmap import ROWS_PER_DECADE, heatmaps
from tests.analysis.journals import flow, small_run, step


def test_every_good_answer_is_in_one_cell() -> None:
    state = RunState().apply_all(small_run())
    found = heatmaps(state, (7.0, 40.0))
    totals = state.flows["agents"].totals((7.0, 40.0)).steps

    assert {item.step: item.count for item in found} == {name: step.good for name, step in totals.items()}
    for item in found:
        assert sum(sum(column.counts) for column in item.columns) == item.count


def test_percentiles_of_a_column_are_of_all_its_answers_and_not_of_percentiles() -> None:
    state = RunState().apply_all([
        flow(1.0, steps={"list": step([1_000] * 99)}), flow(2.0, steps={"list": step([500_000])}),
    ])  # fmt: skip
    (found,) = heatmaps(state, (0.0, 2.0), columns=1)
    (column,) = found.columns

    assert column.quantiles_s == pytest.approx([0.001, 0.001, 0.001, 0.5], rel=1e-3)


def test_rows_are_equal_steps_of_a_logarithm() -> None:
    state = RunState().apply_all([flow(1.0, steps={"list": step([10, 100, 1_000, 10_000])})])
    (found,) = heatmaps(state, (0.0, 1.0))
    (column,) = found.columns
    filled = [column.first_row + index for index, count in enumerate(column.counts) if count]

    assert filled == [ROWS_PER_DECADE * decade for decade in (1, 2, 3, 4)]


def test_the_distribution_tells_no_share_that_so_few_answers_cannot_tell_apart() -> None:
    state = RunState().apply_all([flow(1.0, steps={"list": step(range(1_000, 1_100))})])
    (found,) = heatmaps(state, (0.0, 1.0))
    shares = [share for share, _ in found.spectrum]

    assert max(share for share in shares if share < 1) == pytest.approx(0.99)
    assert found.spectrum[-1][1] == pytest.approx(0.001099)
    assert [value for _, value in found.spectrum] == sorted(value for _, value in found.spectrum)


def test_a_flow_without_a_good_answer_has_none() -> None:
    assert heatmaps(RunState().apply_all([flow(1.0, steps={"list": step([], [100])})]), (0.0, 1.0)) == []
