from __future__ import annotations

import errno
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.core.histogram import Histogram
from scaletest.load.http1 import MalformedAnswer
from scaletest.load.outcomes import AnswerCutShort, PeerClosed, RequestTimedOut, is_success, outcome_of_error
from scaletest.load.statistics import MOST_STEPS, SAMPLES_PER_OUTCOME, FlowStatistics, step_name

requests = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["200", "201", "429", "timeout"]), st.integers(0, 10**8)),
    max_size=40,
)


@given(requests, st.integers(0, 40))
def test_intervals_add_up_to_the_whole(made: list[tuple[str, str, int]], cut: int) -> None:
    whole, parts = FlowStatistics(), FlowStatistics()
    taken = []
    for index, (step, outcome, latency_us) in enumerate(made):
        if index == cut:
            taken.append(parts.take())
        for statistics in (whole, parts):
            statistics.step(step).record(outcome, latency_us, 10)
    taken.append(parts.take())

    for step, data in whole.take()["steps"].items():
        pieces = [part["steps"][step] for part in taken if step in part["steps"]]
        assert data["bytes"] == sum(piece["bytes"] for piece in pieces)
        for outcome, count in data["outcomes"].items():
            assert count == sum(piece["outcomes"].get(outcome, 0) for piece in pieces)
        for key in ("latency_us", "failed_us"):
            assert Histogram.from_json(data[key]) == Histogram.merged(Histogram.from_json(p[key]) for p in pieces)


def test_good_and_failed_answers_have_their_own_histograms() -> None:
    statistics = FlowStatistics()
    statistics.step("s").record("200", 5, 100)
    statistics.step("s").record("503", 7, 10)
    statistics.step("s").record("cut_short", None, 0)

    step = statistics.take()["steps"]["s"]

    assert {"200": 1, "503": 1, "cut_short": 1} == step["outcomes"]
    assert (110, 1, 1) == (
        step["bytes"],
        Histogram.from_json(step["latency_us"]).count,
        Histogram.from_json(step["failed_us"]).count,
    )


def test_an_interval_without_requests_has_no_steps() -> None:
    statistics = FlowStatistics()
    statistics.step("s")

    assert {"steps": {}, "exceptions": 0} == statistics.take()


def test_only_a_few_samples_of_each_kind_are_wanted() -> None:
    statistics = FlowStatistics()

    wanted = [statistics.wants_sample("s", "429") for _ in range(SAMPLES_PER_OUTCOME + 2)]

    assert [True] * SAMPLES_PER_OUTCOME + [False] * 2 == wanted
    assert statistics.wants_sample("s", "500")


def test_too_many_names_are_counted_together() -> None:
    statistics = FlowStatistics()
    for index in range(MOST_STEPS + 50):
        statistics.step(f"s{index}").record("200", 1, 1)

    steps = statistics.take()["steps"]

    assert MOST_STEPS + 1 == len(steps)
    assert {"200": 50} == steps["other"]["outcomes"]


@pytest.mark.parametrize(
    ("name", "step"),
    [("/api/v1/pods", "api-v1-pods"), ("GET /x?a=b.c", "GET-x-a-b-c"), ("/", "root"), ("ok_1", "ok_1")],
)
def test_names_of_requests_become_names_that_objectives_can_write(name: str, step: str) -> None:
    assert step == step_name(name)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (RequestTimedOut(), "timeout"),
        (TimeoutError(errno.ETIMEDOUT, "kernel"), "timeout"),
        (ConnectionRefusedError(), "refused"),
        (ConnectionResetError(), "reset"),
        (BrokenPipeError(), "reset"),
        (PeerClosed(), "reset"),
        (ssl.SSLEOFError(), "reset"),
        (ssl.SSLZeroReturnError(), "reset"),
        (OSError(errno.EBADF, "closed"), "reset"),
        (AnswerCutShort(), "cut_short"),
        (MalformedAnswer(), "malformed"),
        (ssl.SSLCertVerificationError(), "tls"),
        (ssl.SSLError(1, "alert"), "tls"),
        (OSError(errno.EADDRNOTAVAIL, "no port"), "error"),
        (OSError(errno.EMFILE, "no descriptor"), "error"),
    ],
)
def test_errors_have_their_outcomes(error: BaseException, outcome: str) -> None:
    assert outcome == outcome_of_error(error)


def test_only_2xx_is_a_success() -> None:
    assert [True, True, False, False, False] == [is_success(o) for o in ("200", "204", "304", "429", "2fast")]
