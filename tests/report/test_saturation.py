"""A search in the report: the answer first, in words; golden texts for the section."""

from __future__ import annotations

import pytest

from scaletest.analysis.saturation import analyse
from scaletest.core.journal import Record
from scaletest.report.document import Document, SaturationReport
from scaletest.report.json_report import render_json
from scaletest.report.matrix_measures import measures_of
from scaletest.report.terminal import render
from tests.analysis.searches import FOUND, end, measured_search, search_info, start, step, steps
from tests.report import built
from tests.report.golden import check_golden
from tests.report.schemas import valid


def document(records: list[Record]) -> Document:
    return built.document(records, search_info())


def told(*records: Record) -> SaturationReport:
    found = document(list(records)).saturation
    assert found is not None
    return found


@pytest.mark.parametrize("width", [80, 140])
def test_golden(width: int) -> None:
    text = render(document(measured_search(returns=False)), width=width)
    actual = text[text.index("Saturation") : text.index("\nStory")]

    check_golden(f"saturation_down-{width}.txt", actual)
    assert max(map(len, actual.splitlines())) <= width


def test_the_json_report_is_valid() -> None:
    data = valid(render_json(document(measured_search())), "report")

    assert (300, 310, "found") == tuple(data["saturation"][key] for key in ("capacity", "fails_at", "reason"))
    assert 16 == len(data["saturation"]["steps"])


def test_a_report_without_a_search_has_no_section() -> None:
    assert document([]).saturation is None
    assert "Saturation" not in render(document([]), width=80)


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (
            [*steps((50, "held"), (100, "held"), (100, "held"))],
            "Not saturated up to agents = 100. That is where the search ends",
        ),
        (
            [*steps((50, "failed"), (50, "failed"))],
            "Nothing held: agents = 50 already failed. That is where the search begins",
        ),
        (
            [*steps((50, "not counted"), (50, "not counted"))],
            "Nothing was found out about agents. The load generator could not make 50",
        ),
        (
            [*steps(*FOUND[:4]), end(400.0, "out of time")],
            "agents = 200 holds, 400 fails: an interval of 100 %. Not confirmed",
        ),
        ([*steps(*FOUND[:3])], "Not saturated up to agents = 200. The search was cut short."),
        ([], "Nothing was found out about agents. The search was cut short."),
    ],
)
def test_a_search_without_an_interval_is_said_plainly(records: list[Record], said: str) -> None:
    assert told(start(end=100.0 if "ends" in said else 20_000.0), *records).said.startswith(said)


def test_what_is_derived_is_called_so() -> None:
    tried = [(2_000, "held"), (4_000, "held"), (8_000, "held"), (9_000, "failed"), (8_000, "held"), (9_000, "failed")]
    records = [start(end=40_000.0, made_end=4_000.0, beyond="period"), *steps(*tried)]
    found = told(*records)

    assert (8_000, 4_000, "period") == (found.capacity, found.made_as_it_is, found.beyond)
    assert "That is derived (measured: 4,000 or more; beyond 4,000" in found.said
    assert [False, False, True, True, True, True] == [item.derived for item in found.steps]
    assert "8,000 derived" in render(document(records), width=100)


def test_contradictions_are_said() -> None:
    tried = [*FOUND, (300.0, "failed")]

    assert "1 step contradicts another" in told(start(), *steps(*tried)).said


def test_a_step_that_does_not_count_is_said_with_its_reason() -> None:
    records = [start(), *step(1, 50, "not counted", 110.0, reason="event-loop lag: p99 300 ms")]

    assert "50 did not count: event-loop lag: p99 300 ms" in render(document(records), width=120)


def test_a_matrix_has_what_a_search_found() -> None:
    run = built.loaded(measured_search(), search_info())

    rows = {
        item.name: item.value
        for item in measures_of(run, analyse(run.state, run.info.profile))
        if item.section == "Saturation"
    }

    assert 307 == pytest.approx(rows.pop("agents law (estimate)"), rel=0.03)
    assert {
        "agents that holds": 300, "agents that fails": 310, "search ended": "found", "gave out": "cpu", "past it": "degraded",
        "recovery": 3.5,
    } == rows  # fmt: skip
