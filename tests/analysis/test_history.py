"""Histories: which runs and metrics are in them, and what else changed at a shift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scaletest.analysis.history import History, histories, in_time_order
from scaletest.analysis.measures import RunMeasures, metric_of

P50 = "flow.telemetry.p50"


def a_run(number: int, *, p50: float = 0.01, restarts: float = 0.0) -> RunMeasures:
    return RunMeasures(
        id=f"run-{number}",
        directory=f"results/run-{number}",
        started_at=f"2026-11-{1 + number:02}T03:00:00+00:00",
        outcome="pass",
        reason=None,
        profile={"name": "smoke"},
        host={"cores": 2},
        versions={"kubernetes": "1.36.2"},
        limits={},
        steady_phase="steady",
        metrics={P50: metric_of(p50), "component.etcd.restarts": metric_of(restarts)},
    )


def at_the_best_place(values: Sequence[float], _penalty: float, shortest: int) -> list[int]:
    """A segmenter that finds one step, where the neighbours are furthest apart."""
    places = range(shortest, len(values) - shortest + 1)
    return [max(places, key=lambda at: abs(values[at] - values[at - 1]))]


def history(runs: Sequence[RunMeasures]) -> History:
    (found,) = histories(runs, at_the_best_place)
    return found


def test_runs_are_in_time_order_and_each_is_there_once() -> None:
    runs = [a_run(3), a_run(1), a_run(2)]
    of_a_baseline = replace(a_run(1), directory=None)
    assert [runs[1], runs[2], runs[0]] == in_time_order([*runs, of_a_baseline])
    odd = replace(a_run(0), id="odd", started_at="once")
    assert "odd" == in_time_order([*runs, odd])[0].id


def test_a_shift_comes_with_its_run_and_with_what_changed_then() -> None:
    runs = [a_run(number, p50=0.010 if number < 9 else 0.015) for number in range(18)]
    runs = [replace(run, versions={"kubernetes": "1.37.2"}) if index >= 9 else run for index, run in enumerate(runs)]
    runs = [replace(run, host={"cores": 4}) if index >= 8 else run for index, run in enumerate(runs)]
    runs = [replace(run, limits={"etcd": 1}) if index >= 13 else run for index, run in enumerate(runs)]
    p50, restarts = history(runs).metrics
    (shift,) = p50.shifts
    assert (9, 9, 0.010, 0.015) == (
        shift.run,
        shift.shift.at,
        round(shift.shift.before, 6),
        round(shift.shift.after, 6),
    )
    assert [(0, "kubernetes"), (-1, "cores")] == [(near.runs_after, near.difference.key) for near in shift.nearby]
    assert () == restarts.shifts


def test_invalid_and_cut_short_runs_are_left_out_and_said() -> None:
    runs = [a_run(number, p50=0.010 if number < 9 else 0.015) for number in range(18)]
    runs[4] = replace(runs[4], outcome="invalid", reason="the driver was late")
    runs[12] = replace(runs[12], outcome="incomplete", reason="killed")
    found = history(runs)
    assert 16 == len(found.runs) == len(found.metrics[0].values)
    assert ["run-4 is invalid (the driver was late)", "run-12 is incomplete (killed)"] == [
        item.why for item in found.left_out
    ]
    assert "run-9" == found.runs[found.metrics[0].shifts[0].run].id


def test_a_metric_that_some_runs_lack_has_gaps_and_keeps_its_place() -> None:
    runs = [a_run(number, p50=0.010 if number < 9 else 0.015) for number in range(18)]
    lacking = {"component.etcd.restarts": metric_of(0.0)}
    runs = [replace(run, metrics=lacking) if index in {0, 10} else run for index, run in enumerate(runs)]
    p50 = next(metric for metric in history(runs).metrics if metric.metric == P50)
    assert [0, 10] == [index for index, value in enumerate(p50.values) if value is None]
    assert [9] == [shift.run for shift in p50.shifts]


def test_few_runs_have_no_verdict() -> None:
    p50, _ = history([a_run(number) for number in range(7)]).metrics
    assert ((), "too few runs: 7, 8 are wanted") == (p50.shifts, p50.why)


def test_steady_metrics_are_of_the_runs_that_are_steady_in_the_commonest_phase() -> None:
    runs = [a_run(number) for number in range(10)]
    runs = [replace(run, steady_phase="rollout") if index in {2, 3} else run for index, run in enumerate(runs)]
    found = history(runs)
    p50, restarts = found.metrics
    assert 8 == sum(value is not None for value in p50.values)
    assert 10 == sum(value is not None for value in restarts.values)
    assert "8 runs that are steady in steady; others: 2 in rollout" in found.notes[0]


def test_each_profile_has_a_history_of_its_own_and_metrics_can_be_chosen() -> None:
    others = [replace(a_run(number), id=f"other-{number}", profile={"name": "other"}) for number in range(3)]
    runs = [a_run(number) for number in range(1, 4)]
    found = histories([*runs, *others], at_the_best_place, lambda name: name == P50)
    assert ["other", "smoke"] == [item.profile for item in found]
    assert [[P50], [P50]] == [[metric.metric for metric in item.metrics] for item in found]


def test_runs_none_of_which_counts_have_no_metric() -> None:
    found = history([replace(a_run(1), outcome="invalid")])
    assert ((), (), 1) == (found.runs, found.metrics, len(found.left_out))
