"""The ranking of a matrix of searches: sorted, with lower bounds and derived figures told apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scaletest.core.journal import Record
from scaletest.report.json_report import render_json
from scaletest.report.markdown_matrix import render_matrix_markdown
from scaletest.report.matrix_build import build_matrix
from scaletest.report.matrix_document import MatrixDocument, RankingReport, RankReport
from scaletest.report.matrix_table import render_matrix
from scaletest.report.page.render import render_matrix_page
from tests.analysis.journals import flow, record, setup_records, small_run
from tests.analysis.journals import step as journal_step
from tests.analysis.searches import end, measured_search, search_info, start, steps
from tests.report.golden import check_golden
from tests.report.matrices import write_matrix
from tests.report.schemas import valid

SUMMARIES = {
    "as-it-is": "LISTs all pods every 10 s with resourceVersion=0, as informers do, in JSON.",
    "quorum": "Asks without a resourceVersion, for what is newest.",
    "own-node": "Asks only for the pods of its own node (fieldSelector spec.nodeName).",
    "rarely": "Asks every 60 s.",
    "watch-list": "Asks for a watch that sends the state first (sendInitialEvents), to its end, each time.",
    "protobuf": "Asks for protobuf.",
    "pages": "Asks for pages of 100.",
}
DERIVING: dict[str, Any] = {"made_end": 4_000.0, "beyond": "period", "end": 20_000.0}
OUTGROWN = [(50, "held"), (450, "held"), (4_000, "held"), (12_000, "held"), (20_000, "failed"), (15_000, "failed"), (12_000, "held"), (15_000, "failed")]  # fmt: skip


def searched(*tried: tuple[float, str], reason: str = "found", answers_per_s: int = 0, **space: Any) -> list[Record]:
    """A run that came to its end, with a search of these steps, each with so many answers a second."""
    records = [*setup_records(), record("phase.start", 90.0, phase="search"), start(**space), *steps(*tried)]
    t = 110.0 + 50 * len(tried)
    for number in range(len(tried)):
        answers = {"list-pods": journal_step([300_000] * 10 * answers_per_s)}
        if answers_per_s:
            records.append(flow(135.0 + 50 * number, steps=answers, interval_s=10.0))
    return over([*records, end(t, reason)], t)


def over(records: list[Record], t: float) -> list[Record]:
    ends = [
        record("phase.end", t + 1, phase="search", reason="done"),
        record("run.end", t + 2, status="finished", reason=""),
    ]
    return [*records, *ends]  # fmt: skip


def whole() -> list[Record]:
    return over([item for item in measured_search() if item["kind"] != "phase.end"], 1_000.0)


def built(tmp_path: Path, runs: Mapping[str, Sequence[Sequence[Record] | None]]) -> MatrixDocument:
    info = search_info()
    profile = dict(info.profile) | {
        "name": "what-if-agent",
        "parameters": {"period": "10s"},
        "variants": {name: {"summary": SUMMARIES[name]} for name in runs if name in SUMMARIES},
        "objectives": [{"check": "search.capacity >= 50", "abort": False, "delay": "0s"}],
    }
    info = replace(info, profile=profile)
    return build_matrix(write_matrix(tmp_path / "matrix", runs, key="variant", info=info, profile=profile))


def ranking(tmp_path: Path, **runs: Sequence[Record] | None) -> RankingReport:
    found = built(tmp_path, {name.replace("_", "-"): [records] for name, records in runs.items()}).ranking
    assert found is not None
    return found


def rank(tmp_path: Path, **runs: Sequence[Record] | None) -> RankReport:
    """The rank of the last of these runs."""
    *_, last = runs
    return next(item for item in ranking(tmp_path, **runs).ranks if item.label == last.replace("_", "-"))


def everything(tmp_path: Path) -> MatrixDocument:
    runs: dict[str, Sequence[Sequence[Record] | None]] = {
        "as-it-is": [whole()],
        "quorum": [searched((50, "held"), (150, "failed"), (90, "held"), (110, "failed"), (90, "held"), (110, "failed"))],
        "own-node": [searched(*OUTGROWN, answers_per_s=1_200, **DERIVING)],
        "rarely": [searched((50, "held"), (450, "held"), (1_350, "held"), (1_350, "held"), reason="out of time")],
        "watch-list": [searched((50, "failed"), (50, "failed"), reason="never held")],
        "pages": [small_run()],
        "protobuf": [None],
    }  # fmt: skip
    return built(tmp_path, runs)


@pytest.mark.parametrize("width", [80, 140])
def test_the_ranking_reads_as_the_golden_text(tmp_path: Path, width: int) -> None:
    text = render_matrix(everything(tmp_path), width=width)

    check_golden(f"ranking-{width}.txt", text)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_the_ranking_keeps_within_the_terminal(tmp_path: Path, width: int) -> None:
    assert max(map(len, render_matrix(everything(tmp_path), width=width).splitlines())) <= width


def test_the_json_keeps_the_published_schema(tmp_path: Path) -> None:
    valid(render_json(everything(tmp_path)), "matrix")


def test_the_largest_comes_first_and_what_was_not_searched_last(tmp_path: Path) -> None:
    found = everything(tmp_path).ranking
    assert found is not None
    assert ["own-node", "rarely", "as-it-is", "quorum", "watch-list", "pages", "protobuf"] == [
        item.label for item in found.ranks
    ]
    assert ("agents", "as-it-is") == (found.parameter, found.reference)


def test_a_found_interval_is_compared_with_the_first_variant(tmp_path: Path) -> None:
    quorum = searched((50, "held"), (150, "failed"), (130, "held"), (150, "failed"), (130, "held"))
    found = rank(tmp_path, as_it_is=whole(), quorum=quorum)

    assert "130 – 150" == found.said
    assert (130, 150, False) == (found.capacity, found.fails_at, found.derived)
    assert found.factor == pytest.approx(130 / 300)
    assert [] == found.notes


def test_what_is_derived_is_said_beside_the_lower_bound_that_was_measured(tmp_path: Path) -> None:
    found = rank(tmp_path, as_it_is=whole(), own_node=searched(*OUTGROWN, answers_per_s=1_200, **DERIVING))

    assert (12_000, 4_000, 15_000, True) == (found.capacity, found.made_as_it_is, found.fails_at, found.derived)
    assert "≥ 4,000" == found.said
    assert ["derived: 12,000 – 15,000 (40 ×), from 1,200 answers/s × 10s at 4,000"] == found.notes
    assert found.measured_factor == pytest.approx(4_000 / 300)


def test_a_search_that_found_no_end_is_a_lower_bound_with_its_reason(tmp_path: Path) -> None:
    held = [(50, "held"), (100, "held"), (100, "held")]
    found = rank(tmp_path, as_it_is=whole(), own_node=searched(*held, end=100.0, reason="never failed"))

    assert ("≥ 100", None) == (found.said, found.fails_at)
    assert ["nothing failed: the search ends there"] == found.notes


def test_a_variant_whose_lightest_load_fails_is_less_than_that_and_says_why(tmp_path: Path) -> None:
    records = searched((50, "failed"), (50, "failed"), reason="never held")
    for item in records:
        if item["kind"] == "search.step.end":
            item["reason"] = "flow.agents.error_rate < 1%: 100 %"
    found = rank(tmp_path, as_it_is=whole(), watch_list=records)

    assert ("< 50", None, None) == (found.said, found.capacity, found.factor)
    assert ["the lightest load failed: flow.agents.error_rate < 1%: 100 %"] == found.notes


def test_where_no_resource_is_at_its_limit_what_did_not_hold_is_said(tmp_path: Path) -> None:
    records = searched((50, "held"), (100, "failed"))
    for item in records:
        if item["kind"] == "search.step.end" and item["outcome"] == "failed":
            item["reason"] = "flow.agents.error_rate < 1%: 8 %"
    found = rank(tmp_path, as_it_is=whole(), own_level=records)

    assert ["at 100: flow.agents.error_rate < 1%: 8 %"] == found.notes
    assert "none at its limit" == found.gave_out
    assert [] == rank(tmp_path / "other", as_it_is=whole()).notes


def test_of_repeats_the_median_counts_and_the_interval_spans_all(tmp_path: Path) -> None:
    runs = [searched((value, "held"), (2 * value, "failed")) for value in (100, 120, 90)]
    document = built(tmp_path, {"as-it-is": runs, "quorum": [None, None, None]})
    assert document.ranking is not None
    first = document.ranking.ranks[0]

    assert (100, 90, 240, 3) == (first.capacity, first.low, first.fails_at, first.runs)
    assert "90 – 240" == first.said


def test_without_the_first_variant_there_are_no_factors(tmp_path: Path) -> None:
    found = rank(tmp_path, as_it_is=None, quorum=searched((50, "held"), (100, "failed")))

    assert (50, None) == (found.capacity, found.factor)


def test_a_shorter_period_is_the_heavier_load(tmp_path: Path) -> None:
    space: dict[str, Any] = {"parameter": "period", "unit": "s", "start": 10.0, "end": 0.1, "whole": False}
    found = ranking(
        tmp_path,
        as_it_is=searched((10, "held"), (4, "failed"), **space),
        quorum=searched((10, "held"), (2, "held"), (1, "failed"), **space),
    )

    assert [("quorum", "2s – 1s"), ("as-it-is", "10s – 4s")] == [(item.label, item.said) for item in found.ranks]
    assert [5.0, 1.0] == pytest.approx([item.factor for item in found.ranks])


def test_searches_for_different_things_are_not_ranked(tmp_path: Path) -> None:
    other = searched((50, "held"), (100, "failed"), parameter="nodes")

    assert built(tmp_path, {"as-it-is": [whole()], "quorum": [other]}).ranking is None


def test_a_matrix_without_searches_has_no_ranking(tmp_path: Path) -> None:
    document = built(tmp_path, {"a": [small_run()], "b": [None]})

    assert document.ranking is None
    assert "N*" not in render_matrix(document, width=80)


def test_what_fits_beside_each_other_is_shown_so_as_well(tmp_path: Path) -> None:
    few = built(tmp_path, {"as-it-is": [whole()], "quorum": [searched((50, "held"), (100, "failed"))]})

    assert "agents that holds" in render_matrix(few, width=140)


def test_the_ranking_stands_in_the_page_and_in_markdown(tmp_path: Path) -> None:
    document = everything(tmp_path)
    assert document.ranking is not None
    page, markdown = render_matrix_page(document), render_matrix_markdown(document)

    for rank in document.ranking.ranks:
        for text in (page, markdown):
            assert re.search(
                rf"{re.escape(rank.label)}\W.*{re.escape(rank.said.split()[0])}", text.replace("\\", "")
            ), rank
