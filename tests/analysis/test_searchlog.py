"""Folding the records of a search."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from scaletest.analysis.search import Outcome, Reason
from scaletest.analysis.searchlog import SearchLog, StepKind, apply_search
from scaletest.core.journal import Record
from tests.analysis import searches


def fold(records: Iterable[Record]) -> SearchLog:
    log = None
    for record in records:
        log = apply_search(log, record)
    assert log is not None
    return log


def test_a_search_that_ended_has_its_interval() -> None:
    log = fold([searches.start(), *searches.steps(*searches.FOUND), searches.end(700.0)])

    found = log.conclusion

    assert (300, 310, Reason.FOUND) == (found.holds, found.fails, found.reason)
    assert found.confirmed
    assert [300, 300] == [step.value for step in log.at(300)]
    assert (120.0, 150.0) == log.steps[0].steady


def test_a_search_that_was_cut_has_what_it_found_so_far() -> None:
    begun, _ = searches.step(4, 400, "held", 300.0)
    log = fold([searches.start(), *searches.steps(*searches.FOUND[:3]), begun])

    found = log.conclusion

    assert (200, None, Reason.CUT) == (found.holds, found.fails, found.reason)
    assert log.steps[-1].outcome is None
    assert 3 == len(log.of_kind(StepKind.SEARCH))


def test_a_search_out_of_time_says_so() -> None:
    log = fold([searches.start(), *searches.steps(*searches.FOUND[:4]), searches.end(300.0, "out of time")])

    assert Reason.OUT_OF_TIME is log.conclusion.reason
    assert (200, 400) == (log.conclusion.holds, log.conclusion.fails)


def test_steps_past_the_knee_and_back_are_no_trials() -> None:
    past = searches.step(12, 600, "failed", 700.0, stage="past", factor=2.0, why="past")
    back = searches.step(
        13, 150, "held", 750.0, stage="back", factor=0.5, why="back", recovered_after_s=3.5, waited_s=120.0
    )
    log = fold([searches.start(), *searches.steps(*searches.FOUND), *past, *back])

    assert len(searches.FOUND) == len(log.trials)
    assert [600] == [step.value for step in log.of_kind(StepKind.PAST)]
    assert 3.5 == log.of_kind(StepKind.BACK)[0].recovered_after_s


def test_what_does_not_count_is_kept_with_its_reason() -> None:
    log = fold([searches.start(), *searches.step(1, 50, "not counted", 110.0, health=["event-loop lag"], reason="lag")])

    assert Outcome.NOT_COUNTED is log.trials[0].outcome
    assert ("event-loop lag",) == log.steps[0].health
    assert [] == log.at(50)


@pytest.mark.parametrize("kind", ["search.step.start", "search.step.end", "search.end"])
def test_records_before_the_start_are_malformed(kind: str) -> None:
    with pytest.raises(ValueError, match=r"without search\.start"):
        apply_search(None, {"kind": kind, "t": 1.0})


def test_an_end_without_its_step_is_malformed() -> None:
    _, ended = searches.step(7, 50, "held", 110.0)

    with pytest.raises(ValueError, match="step 7"):
        fold([searches.start(), ended])
