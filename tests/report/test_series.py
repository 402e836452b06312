"""Series of a run, on a grid and as CSV."""

from __future__ import annotations

import csv
import io
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.analysis.state import RunState
from scaletest.core.journal import Record
from scaletest.report.csv_report import COLUMNS, render_csv
from scaletest.report.downsampling import Grid, envelope, grid_of
from scaletest.report.lanes import MOST_LINES, lanes
from scaletest.report.series_document import Series, all_series
from tests.analysis.journals import GIB, flow, process, record, small_run, step

SAMPLES = st.lists(st.tuples(st.floats(0, 100), st.floats(-1e6, 1e6)), max_size=60).map(sorted)


def series_of(records: list[Record]) -> dict[str, Series]:
    return {f"{item.subject}.{item.measure}": item for item in all_series(RunState().apply_all(records))}


def test_series_have_the_words_of_the_objectives() -> None:
    found = series_of(small_run())

    for name in (
        "flow.agents.started", "flow.agents.list-pods.p99", "probe.operator[admin].latency", "probe.readiness.ready",
        "component.kube-apiserver.memory", "apf.global-default.queued", "etcd.fsync_p99", "host.available_memory", "generator.lag_p99",
    ):  # fmt: skip
        assert found[name].samples, name


def test_nothing_is_made_up_where_nothing_was_measured() -> None:
    memory = series_of(small_run())["component.kube-apiserver.memory"]
    times = [t_s for t_s, _ in memory.samples]

    assert not any(25.5 < t_s < 30.5 for t_s in times)
    assert all(math.isfinite(value) for _, value in memory.samples)


def test_an_interval_in_which_no_request_of_a_step_ended_had_a_rate_of_zero_and_no_latency() -> None:
    found = series_of([flow(1.0, steps={"list": step([1000] * 5)}), flow(2.0), flow(3.0, steps={"list": step([1000])})])

    assert found["flow.agents.list.good"].samples == [(1.0, 5.0), (2.0, 0.0), (3.0, 1.0)]
    assert found["flow.agents.list.p99"].samples == [(1.0, 0.001), (3.0, 0.001)]


@given(SAMPLES, st.integers(1, 50))
def test_an_envelope_keeps_the_least_and_the_most(samples: list[tuple[float, float]], slots: int) -> None:
    found = envelope(samples, grid_of(0.0, 100.0, slots=slots))
    known = [value for value in [*found.low, *found.high] if value is not None]
    values = [value for _, value in samples]

    assert (min(known, default=None), max(known, default=None)) == (
        min(values, default=None),
        max(values, default=None),
    )
    assert all(before < after for before, after in pairwise(found.slots))
    assert len(found.slots) <= slots


def test_a_silence_breaks_the_line_and_a_usual_distance_does_not() -> None:
    every_five_s = [(float(t), 1.0) for t in (0, 5, 10, 40, 45)]
    found = envelope(every_five_s, Grid(0.0, 1.0, 50))

    assert found.slots == [0, 5, 10, 11, 40, 45]
    assert found.high == [1.0, 1.0, 1.0, None, 1.0, 1.0]


def test_what_lies_outside_the_grid_is_left_out_and_its_end_is_inside() -> None:
    found = envelope([(-1.0, 9.0), (0.0, 1.0), (10.0, 2.0), (10.1, 9.0)], Grid(0.0, 1.0, 10))

    assert (found.slots[0], found.slots[-1]) == (0, 9)
    assert 9.0 not in found.high


def test_a_grid_is_never_finer_than_the_samples() -> None:
    assert grid_of(0.0, 10.5) == Grid(0.0, 10.5 / 11, 11)
    assert grid_of(0.0, 6_000.0).slot_s == 10.0
    assert grid_of(5.0, 5.0).slots == 1


def test_a_lane_has_its_largest_lines_and_says_how_many_it_left_out() -> None:
    many = [
        process(float(t), **{f"part_{index}": (index, index * GIB, float(t)) for index in range(1, 30)})
        for t in range(3)
    ]
    state = RunState().apply_all([record("phase.start", 0.0, phase="one"), *many])
    memory = next(lane for lane in lanes(state, all_series(state)) if lane.title == "Memory")

    assert len(memory.lines) == MOST_LINES
    assert memory.left_out == 29 - MOST_LINES
    assert "part-29" in [line.name for line in memory.lines]


def test_caps_are_bounds_of_their_lane() -> None:
    state = RunState().apply_all(small_run())
    memory = next(lane for lane in lanes(state, all_series(state)) if lane.title == "Memory")

    assert {bound.name: bound.value for bound in memory.bounds}["kube-apiserver"] == 4 * GIB


def test_csv_has_every_sample_with_its_phase() -> None:
    state = RunState().apply_all(small_run())
    rows = list(csv.DictReader(io.StringIO(render_csv([("run-1", state)]))))

    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == sum(len(series.samples) for series in all_series(state))
    memory = [row for row in rows if (row["subject"], row["measure"]) == ("component.kube-apiserver", "memory")]
    assert {row["phase"] for row in memory} >= {"baseline", "rollout", "after"}
    assert {row["unit"] for row in memory} == {"bytes"}
    assert float(memory[0]["value"]) == pytest.approx(1.078 * GIB, rel=1e-2)


def test_csv_keeps_names_that_have_commas_and_quotes_whole() -> None:
    state = RunState().apply_all([flow(1.0, 'a,"b"\nc', steps={"list": step([1000])})])
    rows = list(csv.DictReader(io.StringIO(render_csv([("r", state)]))))

    assert {row["subject"] for row in rows} == {'flow.a,"b"\nc', 'flow.a,"b"\nc.list'}
