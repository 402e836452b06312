"""When an SLO was broken first, and from when on it held to the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.analysis.slo import WINDOW_S, SloHistory, slo_histories
from scaletest.analysis.state import RunState
from tests.analysis.journals import flow, probe, record, step

P99: Mapping[str, Any] = {"slo": {"operator": "probe.operator.p99 < 1s"}}


def run(good: list[bool], *, end_s: float | None = None) -> RunState:
    """A run of probes, one a second from 0.5 s on."""
    length_s = float(len(good)) if end_s is None else end_s
    return RunState().apply_all([
        record("phase.start", 0.0, phase="one"),
        *(probe(index + 0.5, 0.0, outcome="ok" if ok else "timeout") for index, ok in enumerate(good)),
        record("phase.end", length_s, phase="one", reason="time"),
    ])  # fmt: skip


def only(state: RunState, profile: Mapping[str, Any] = P99) -> SloHistory:
    (history,) = slo_histories(state, profile)
    return history


def test_it_is_broken_when_the_window_ends_and_holds_from_its_begin() -> None:
    history = only(run([True] * 20 + [False] * 5 + [True] * 20))

    # The first bad request is sent at 20.5 s, the last at 24.5 s: the first window without one begins at 25 s.
    assert (21.0, 25.0) == (history.broken_s, history.holds_from_s)


def test_it_never_holds_when_the_last_window_has_a_failure() -> None:
    history = only(run([True] * 20 + [False] + [True] * 5))

    assert (21.0, None) == (history.broken_s, history.holds_from_s)


def test_one_that_is_never_broken_holds_from_the_begin() -> None:
    assert (None, 0.0) == (only(run([True] * 30)).broken_s, only(run([True] * 30)).holds_from_s)


def test_what_is_not_measured_breaks_nothing_and_mends_nothing() -> None:
    silent = only(run([], end_s=30))
    assert (None, None, False) == (silent.broken_s, silent.holds_from_s, silent.measured)

    broken = only(run([True] * 5 + [False] * 5, end_s=60))
    assert (6.0, None) == (broken.broken_s, broken.holds_from_s)


def test_without_a_phase_there_is_no_window() -> None:
    assert not only(RunState().apply_all([probe(1.0)])).measured


@pytest.mark.parametrize(
    "profile", [{}, {"slo": None}, {"slo": []}, {"slo": {"odd": "flow.a.karma > 3", "none": None}}]
)
def test_a_profile_without_an_slo_that_is_understood_has_no_history(profile: Mapping[str, Any]) -> None:
    assert slo_histories(run([True] * 3), profile) == []


def test_flows_are_followed_too() -> None:
    records = [record("phase.start", 0.0, phase="one")]
    records += [
        flow(float(t), steps={"get": step([100] * (9 if 20 <= t < 30 else 10), [100] * (20 <= t < 30))})
        for t in range(1, 51)
    ]
    records.append(record("phase.end", 50.0, phase="one", reason="time"))
    history = only(RunState().apply_all(records), {"slo": {"errors": "flow.agents.error_rate < 5%"}})

    # Six of the ten intervals of a window with one failure in ten are 6 %, five are 5 %.
    assert (24.0, 25.0) == (history.broken_s, history.holds_from_s)


def test_a_long_run_is_followed_in_windows_that_touch() -> None:
    good = [True] * 7300
    good[4000] = False
    history = only(run(good))

    assert history.broken_s is not None
    assert 4000.5 < history.broken_s <= 4000.5 + WINDOW_S + 0.2
    assert history.holds_from_s is not None
    assert 4000.5 < history.holds_from_s <= 4000.5 + WINDOW_S + 0.2


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_everything_sent_from_then_on_is_good_and_nothing_before_the_breach_is_not(good: list[bool]) -> None:
    history = only(run(good))
    bad_s = [index + 0.5 for index, ok in enumerate(good) if not ok]

    assert (history.broken_s is None) == (not bad_s)
    if history.broken_s is not None:
        assert history.broken_s - 1 <= bad_s[0] < history.broken_s
    if history.holds_from_s is not None:
        assert not [sent_s for sent_s in bad_s if sent_s >= history.holds_from_s]
    elif bad_s:
        assert bad_s[-1] >= len(good) - WINDOW_S
