"""Shares of a flow: parts add up, and what several processes counted is counted once."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from scaletest.core.histogram import Histogram
from scaletest.load.selfcheck import SelfChecks
from scaletest.load.shares import first, part, portions
from scaletest.load.statistics import StepStatistics
from scaletest.profile.arrivals import ArrivalsSpec


@given(whole=st.integers(0, 10_000), of=st.integers(1, 64))
def test_parts_lie_one_behind_the_other_and_add_up(whole: int, of: int) -> None:
    spans = [(first(whole, (index, of)), part(whole, (index, of))) for index in range(of)]

    assert (0, whole) == (spans[0][0], sum(count for _, count in spans))
    assert all(begin + count == follows for (begin, count), (follows, _) in pairwise(spans))
    assert max(count for _, count in spans) - min(count for _, count in spans) <= 1


@given(
    weights=st.lists(st.integers(0, 50), min_size=1, max_size=64), each=st.integers(0, 100), more=st.integers(0, 500)
)
def test_portions_follow_the_weights_and_add_up(weights: list[int], each: int, more: int) -> None:
    whole = each * sum(weights)
    divided = portions(whole + more, weights)

    assert whole + more == sum(divided)
    if sum(weights):
        assert [each * weight for weight in weights] == portions(whole, weights)
        exact = [(whole + more) * weight / sum(weights) for weight in weights]
        assert all(abs(got - wanted) < 1 for got, wanted in zip(divided, exact, strict=True))


def test_without_weights_everybody_gets_the_same() -> None:
    assert [3, 2, 2] == portions(7, [0, 0, 0])


def counted(outcome: str, latency_us: int) -> StepStatistics:
    step = StepStatistics(events=2, reconnects=1)
    step.record(outcome, latency_us, 100)
    step.service_us.record(latency_us)
    return step


def test_steps_are_read_back_and_added() -> None:
    whole = StepStatistics()
    for step in (counted("200", 1_000), counted("200", 3_000), counted("429", 7)):
        whole.merge(StepStatistics.from_json(step.to_json()))

    assert ({"200": 2, "429": 1}, 300, 6, 3) == (whole.outcomes, whole.bytes, whole.events, whole.reconnects)
    assert (2, 1, 3, 0) == tuple(
        item.count for item in (whole.latency_us, whole.failed_us, whole.service_us, whole.event_us)
    )


def check(lag_us: int, sockets: int, unread_share: float | None) -> dict[str, object]:
    lag = Histogram()
    lag.record(lag_us)
    return {"lag_us": lag.to_json(), "sockets": sockets, "unread_share": unread_share, "cpu_s": 1.0}


def test_of_several_processes_the_worst_counts() -> None:
    checks = SelfChecks()
    checks.add(7, check(10, 3, None))
    checks.add(7, check(5_000, 4, 0.5))
    checks.add(8, check(20, 5, 0.1))
    record = checks.with_others(check(30, 1, None))

    assert (10, 0.5, 1.0) == (record["sockets"], record["unread_share"], record["cpu_s"])
    lag = Histogram.from_json(record["lag_us"])
    assert 4 == lag.count
    assert 5_000 == pytest.approx(lag.quantile(1.0), rel=0.05)


def test_a_driver_without_other_processes_reports_itself() -> None:
    assert check(30, 1, None) == SelfChecks().with_others(check(30, 1, None))


@pytest.mark.parametrize("few", [{"connections": 2}, {"maxInFlight": 2}, {"objects": 2}])
def test_every_process_needs_something_of_everything(few: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match="fewer than 3 processes"):
        ArrivalsSpec.model_validate({"rate": "10/s", "processes": 3, **few})
