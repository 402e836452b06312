"""When a change is called: simulated runs, equal and changed, and samples that prove nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest

from scaletest.analysis.changes import SETTING, Change, compare_metrics
from scaletest.analysis.metrickinds import Metric
from tests.analysis.gate_series import LARGE, SLOW, simulated

QUICK = replace(SETTING, resamples=100)


def one(base: list[float], new: list[float], metric: str = "flow.a.p50", blocks: int = 0) -> Change:
    """Compare single values; with ``blocks`` each run has so many blocks around its value."""

    def runs(values: list[float]) -> list[dict[str, Metric]]:
        shapes = [tuple(value * (1 + 0.01 * (index % 3)) for index in range(blocks)) for value in values]
        return [{metric: Metric(value, shape)} for value, shape in zip(values, shapes, strict=True)]

    (change,) = compare_metrics(runs(base), runs(new))
    return change


def called(seed: int, runs: int, factors: dict[str, float] | None = None, **more: float) -> set[str]:
    rng = Random(seed)
    base, new = simulated(rng, runs, **more), simulated(rng, runs, factors=factors, **more)  # type: ignore[arg-type]
    return {change.metric for change in compare_metrics(base, new, QUICK) if change.call(QUICK) != "same"}


def test_equal_runs_call_hardly_any_change_over_all_metrics() -> None:
    assert sum(bool(called(seed, 5)) for seed in range(20)) <= 1


def test_a_fifth_slower_and_more_objects_are_found() -> None:
    assert sum(bool(called(seed, 8, SLOW) & set(SLOW)) for seed in range(10)) >= 9
    assert sum("component.kube-apiserver.memory" in called(seed, 6, LARGE) for seed in range(10)) >= 9


def test_single_runs_call_no_change_that_runs_make_among_themselves() -> None:
    assert sum(bool(called(seed, 1, blocks=20, wild=0.0)) for seed in range(20)) <= 1
    tripled = dict.fromkeys(SLOW, 3.0)
    assert sum(bool(called(seed, 1, tripled, blocks=20, wild=0.0)) for seed in range(5)) == 5


def test_a_tick_of_cpu_more_or_less_is_no_change_however_many_times_it_is() -> None:
    """Seen of kwok-controller in 20 equal runs: one to three ticks of 10 ms in 11 s."""
    idle, busy = [0.0009, 0.0009, 0.0010, 0.0009, 0.0009], [0.0018, 0.0018, 0.0019, 0.0018, 0.0018]
    assert one(idle, busy, "component.kwok-controller.cpu").call(SETTING) == "same"
    assert one([0.0, *idle], [0.0, *busy], "component.kwok-controller.cpu").call(SETTING) == "same"
    lasting = [0.10, 0.101, 0.099, 0.10, 0.10]
    assert one(lasting, [1.15 * cores for cores in lasting], "component.etcd.cpu").call(SETTING) == "same"
    assert one(lasting, [1.25 * cores for cores in lasting], "component.etcd.cpu").call(SETTING) == "worse"


def test_the_same_runs_give_the_same_numbers() -> None:
    rng = Random(5)
    base, new = simulated(rng, 5), simulated(rng, 5)
    assert compare_metrics(base, new) == compare_metrics(base, new)


def test_a_change_is_a_ratio_with_its_interval() -> None:
    change = one([1.00, 1.02, 0.98, 1.01], [1.21, 1.19, 1.20, 1.22])
    assert change.change == pytest.approx(0.20, abs=0.01)
    assert 0.15 < change.low < change.change < change.high < 0.25
    assert ("runs", 4, 4) == (change.samples, change.base_samples, change.new_samples)
    assert "worse" == change.call(SETTING)
    assert "better" == one([1.21, 1.19, 1.20, 1.22], [1.00, 1.02, 0.98, 1.01]).call(SETTING)


def test_which_way_is_worse_follows_from_the_metric() -> None:
    assert "worse" == one([100.0, 101, 99, 100], [80.0, 81, 79, 80], "search.capacity").call(SETTING)
    assert "better" == one([100.0, 101, 99, 100], [80.0, 81, 79, 80], "component.etcd.cpu").call(SETTING)


def test_a_sure_change_that_is_small_is_not_called() -> None:
    change = one([1.0, 1.001, 0.999, 1.0], [1.06, 1.061, 1.059, 1.06])
    assert change.is_significant(SETTING)
    assert "same" == change.call(SETTING)


def test_one_wild_run_neither_calls_nor_hides_a_change() -> None:
    calm = [1.00, 1.02, 0.98, 1.01, 0.99, 1.00]
    assert "same" == one(calm, [1.01, 0.99, 1.00, 1.02, 0.98, 9.0]).call(SETTING)
    assert "worse" == one([*calm[:5], 1.6], [1.21, 1.19, 1.20, 1.22, 1.18, 1.21]).call(SETTING)


def test_three_runs_are_too_few_without_blocks_of_time() -> None:
    change = one([1.0, 1.1, 0.9], [2.0, 2.1, 1.9])
    assert "too few samples: 3 and 3 runs, 4 each are wanted" == change.why
    assert "same" == change.call(SETTING)
    assert math.isnan(change.low)


def test_blocks_of_single_runs_are_samples() -> None:
    change = one([1.0], [3.0], blocks=12)
    assert ("blocks", 12, 12) == (change.samples, change.base_samples, change.new_samples)
    assert "worse" == change.call(SETTING)
    assert "same" == one([1.0], [1.2], blocks=12).call(SETTING)


def test_counts_are_compared_by_their_difference() -> None:
    name = "component.etcd.restarts"
    assert "worse" == one([0.0] * 5, [1.0, 1, 2, 1, 1], name).call(SETTING)
    assert "same" == one([0.0] * 5, [0.0, 0, 1, 0, 0], name).call(SETTING)
    equal = one([0.0] * 5, [0.0] * 5, name)
    assert equal.constant
    assert "same" == equal.call(SETTING)


def test_no_answer_in_most_runs_is_worse_than_any_latency() -> None:
    good = [1.0, 1.1, 0.9, 1.0, 1.05]
    lost = one(good, [math.inf] * 5)
    assert ("worse", math.inf) == (lost.call(SETTING), lost.change)
    assert "better" == one([math.inf] * 5, good).call(SETTING)
    assert "same" == one(good, [1.0, 1.1, 0.9, 1.0, math.inf]).call(SETTING)
    assert "same" == one([math.inf] * 5, [math.inf] * 5).call(SETTING)


def test_a_ratio_needs_values_above_0() -> None:
    change = one([0.0, 1, 1, 1], [1.0, 1, 1, 1])
    assert "0 in a sample: there is no ratio" == change.why


def test_metrics_that_only_one_side_has_are_left_out() -> None:
    assert [] == compare_metrics([{"flow.a.p50": Metric(1.0)}], [{"flow.b.p50": Metric(1.0)}])
    assert [] == compare_metrics(
        [{"flow.a.of_a_newer_version": Metric(1.0)}], [{"flow.a.of_a_newer_version": Metric(2.0)}]
    )
