"""Each class past the knee by its rule, and which rule wins."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from scaletest.analysis.pastknee import Behaviour, Goodput, PastKnee, Return, Stage, classify

KNEE = Stage(
    factor=1.0, value=500, counted=True, goodput_per_s=100.0, memory_bytes=2e9, memory_cap_bytes=8e9,
    operator_success=1.0, operator_p99_s=0.4,
)  # fmt: skip
BACK = Return(250, recovered_after_s=4.0, waited_s=60.0, taken_back=True)


def past(**changes: object) -> list[Stage]:
    """Four stages like the knee, the one at twice the load with changes."""
    stages = [replace(KNEE, factor=factor, value=500 * factor) for factor in (1.25, 1.5, 2.0, 4.0)]
    stages[2] = replace(stages[2], **changes)  # type: ignore[arg-type]
    return stages


def found(stages: list[Stage], back: Return | None = BACK) -> PastKnee:
    result = classify(KNEE, stages, back, Goodput.ANSWERS)
    assert result is not None
    return result


def test_what_changes_nothing_is_graceful() -> None:
    assert Behaviour.GRACEFUL == found(past(goodput_per_s=91.0)).behaviour
    assert "91" in found(past(goodput_per_s=91.0)).reasons[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"goodput_per_s": 89.0}, "89 %"),
        ({"operator_success": 0.98}, "98 %"),
        ({"operator_p99_s": 1.01}, "1.01 s"),
        ({"operator_p99_s": math.inf}, "no answer"),
        ({"memory_bytes": 7.3e9}, "6.8"),
    ],
)
def test_what_gets_worse_is_degraded(changes: dict[str, float], said: str) -> None:
    result = found(past(**changes))

    assert Behaviour.DEGRADED == result.behaviour
    assert 1 == len(result.reasons)
    assert said in result.reasons[0]
    assert "2 ×" in result.reasons[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"goodput_per_s": 49.0}, "49 %"),
        ({"operator_success": 0.4}, "40 %"),
        ({"kills": ("kube-apiserver",)}, "kube-apiserver"),
        ({"kills": ("etcd",), "counted": False}, "etcd"),
    ],
)
def test_what_breaks_is_collapsed(changes: dict[str, object], said: str) -> None:
    result = found(past(**changes))

    assert Behaviour.COLLAPSED == result.behaviour
    assert said in result.reasons[0]


def test_what_stays_down_is_metastable_however_graceful_it_was() -> None:
    result = found(past(), replace(BACK, recovered_after_s=None))

    assert Behaviour.METASTABLE == result.behaviour
    assert "1m" in result.reasons[0] or "60" in result.reasons[0]


def test_a_load_that_could_not_be_taken_back_says_nothing_of_a_recovery() -> None:
    back = replace(BACK, recovered_after_s=None, taken_back=False)

    assert Behaviour.GRACEFUL == found(past(), back).behaviour
    assert Behaviour.DEGRADED == found(past(goodput_per_s=89.0), back).behaviour


def test_a_stage_that_the_generator_could_not_make_says_nothing_of_the_server() -> None:
    assert Behaviour.GRACEFUL == found(past(goodput_per_s=1.0, operator_success=0.1, counted=False)).behaviour


def test_what_was_not_measured_breaks_no_rule() -> None:
    unknown = {"operator_success": math.nan, "operator_p99_s": math.nan, "memory_cap_bytes": math.nan}
    assert Behaviour.GRACEFUL == found(past(**unknown)).behaviour


def test_goodput_of_growing_answers_is_told_in_bytes() -> None:
    knee = replace(KNEE, goodput_per_s=100e6)

    result = classify(knee, [replace(knee, factor=2.0, goodput_per_s=60e6)], BACK, Goodput.BYTES)

    assert result is not None
    assert "57.2 MiB/s" in result.reasons[0]


def test_without_stages_there_is_no_class() -> None:
    assert classify(KNEE, [], None, Goodput.ANSWERS) is None
    assert classify(KNEE, [replace(KNEE, factor=2.0, counted=False)], BACK, Goodput.ANSWERS) is None
