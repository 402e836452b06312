"""The table of a matrix and its JSON: whole, with runs missing, killed or interrupted, with repeats."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from scaletest.cli.report import report
from scaletest.core.journal import Record
from scaletest.report.json_report import render_json
from scaletest.report.matrix_build import build_matrix, merged
from scaletest.report.matrix_document import CellReport, MatrixDocument, RowReport
from scaletest.report.matrix_table import render_matrix
from tests.analysis.journals import hist, record, run_info, small_run, write_run
from tests.analysis.outages import outage, outage_info
from tests.report.matrices import calm_run, killed_run, mixed_runs, write_matrix
from tests.report.schemas import valid


def built(directory: Path, runs: Mapping[str, Sequence[Sequence[Record] | None]], **more: Any) -> MatrixDocument:
    return build_matrix(write_matrix(directory / "matrix", runs, **more))


def row(document: MatrixDocument, measure: str, section: str | None = None) -> RowReport:
    return next(
        item for item in document.rows if item.measure == measure and (section is None or item.section == section)
    )


def said(document: MatrixDocument, measure: str, section: str | None = None) -> list[str]:
    return [cell.said for cell in row(document, measure, section).cells]


def mixed(tmp_path: Path) -> MatrixDocument:
    return built(tmp_path, mixed_runs())


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140, 200])
@pytest.mark.parametrize("count", [1, 2, 7, 20])
def test_the_table_keeps_within_the_terminal_and_shows_every_variant(tmp_path: Path, width: int, count: int) -> None:
    runs: dict[str, Sequence[Sequence[Record] | None]] = {
        f"value-number-{index}": [small_run() if index < 2 else None] for index in range(count)
    }
    text = render_matrix(built(tmp_path, runs), width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    heads = "".join(text.split("Run")[:-1]) if width >= 80 else text
    assert all(f"value-number-{index}" in heads for index in range(count))


def test_a_terminal_without_unicode_gets_ascii(tmp_path: Path) -> None:
    text = render_matrix(mixed(tmp_path), width=80, unicode=False)
    assert text.isascii()


def test_runs_that_are_missing_or_killed_are_said(tmp_path: Path) -> None:
    document = mixed(tmp_path)
    assert ["fail", "fail", "incomplete", "not run"] == said(document, "verdict")
    assert (130, 4, 2) == (document.verdict.exit_code, document.verdict.runs, document.verdict.finished)
    text = render_matrix(document, width=140)
    assert "lever=scale-down: killed at 28.3 s in phase rollout" in text
    assert "not run yet: lever=all-three" in text


def test_a_run_json_cut_short_makes_that_run_unreadable_and_no_other(tmp_path: Path) -> None:
    directory = write_matrix(tmp_path / "matrix", {"none": [small_run()], "apf": [small_run()]})
    (directory / "lever=apf" / "run.json").write_text('{"schema')
    document = build_matrix(directory)
    assert ["fail", "unreadable"] == said(document, "verdict")
    assert "4.00 GiB" == said(document, "memory, most")[0]
    assert 3 == document.verdict.exit_code


def test_a_run_that_goes_on_is_said(tmp_path: Path) -> None:
    directory = write_matrix(tmp_path / "matrix", {"none": [small_run()], "apf": [killed_run()]})
    os.utime(directory / "lever=apf" / "journal.jsonl")
    document = build_matrix(directory)
    assert ["fail", "running"] == said(document, "verdict")
    assert 130 == document.verdict.exit_code


def test_nothing_was_run_at_all(tmp_path: Path) -> None:
    document = built(tmp_path, {"none": [None], "apf": [None]})
    assert ["not run", "not run"] == said(document, "verdict")
    assert [("Run", "verdict")] == [(item.section, item.measure) for item in document.rows]
    assert "not run yet" in render_matrix(document, width=80)


def test_the_exit_code_is_the_worst(tmp_path: Path) -> None:
    assert 99 == built(tmp_path / "a", {"none": [small_run()], "apf": [calm_run()]}).verdict.exit_code
    assert 3 == built(tmp_path / "b", {"none": [small_run()], "apf": [killed_run()]}).verdict.exit_code


def with_lag(lag_ms: int) -> list[Record]:
    """The calm run with a load generator that is late by so much."""
    return [
        {**item, "lag_us": hist([1000 * lag_ms] * 100)} if item["kind"] == "driver" else item for item in calm_run()
    ]


def test_repeats_are_median_and_range(tmp_path: Path) -> None:
    document = built(
        tmp_path, {"none": [with_lag(2), with_lag(9), with_lag(4)], "apf": [with_lag(20), with_lag(30), with_lag(22)]}
    )
    lag = row(document, "event-loop lag p99")
    # Histograms keep two digits.
    assert [pytest.approx(0.004, rel=0.05), pytest.approx(0.022, rel=0.05)] == [cell.value for cell in lag.cells]
    assert "–" in (lag.cells[0].spread or "")
    assert lag.differs
    assert "3 fail" in render_matrix(document, width=100)


def test_ranges_that_overlap_are_not_marked(tmp_path: Path) -> None:
    document = built(tmp_path, {"none": [with_lag(2), with_lag(30)], "apf": [with_lag(20), with_lag(40)]})
    assert not row(document, "event-loop lag p99").differs


def test_invalid_and_cut_runs_of_a_variant_are_left_out_of_its_numbers(tmp_path: Path) -> None:
    runs = {"none": [with_lag(2), with_lag(500), killed_run()], "apf": [with_lag(2)] * 3}
    document = built(tmp_path, runs)
    none = document.variants[0]
    assert [True, False, False] == [run.counted for run in none.runs]
    assert ["fail", "invalid", "incomplete"] == [run.outcome for run in none.runs]
    assert 1 == row(document, "event-loop lag p99").cells[0].runs
    assert "1 fail, 1 invalid, 1 incomplete" == said(document, "verdict")[0]
    assert "its numbers are left out" in render_matrix(document, width=140)


def test_nothing_is_marked_because_of_a_run_that_was_cut_short(tmp_path: Path) -> None:
    document = built(tmp_path, {"none": [calm_run()], "apf": [killed_run()]})
    assert not row(document, "duration").differs
    assert row(document, "verdict").differs


def test_an_objective_whose_threshold_is_an_axis_has_one_row(tmp_path: Path) -> None:
    directory = write_matrix(tmp_path / "matrix", {"5": [None], "10": [None]}, key="nodes")
    for nodes in ("5", "10"):
        profile = {**run_info().profile, "objectives": [{"check": f"flow.agents.started >= {nodes}"}]}
        write_run(directory / f"nodes={nodes}", small_run(), run_info(profile=profile))
    objectives = [item for item in build_matrix(directory).rows if item.section == "Objectives"]
    assert ["flow.agents.started >= …"] == [item.measure for item in objectives]
    assert [1, 1] == [cell.holds for cell in objectives[0].cells]


def with_action(name: str, *, ok: bool, took_s: float) -> list[Record]:
    """The calm run, whose own action is another one."""
    said = {"ok": ok, "error": None if ok else "no answer", "duration_s": took_s}
    return [{**item, "action": name, **said} if item["kind"] == "action.end" else item for item in calm_run()]


def test_actions_say_whether_they_were_done_and_how_long_they_took(tmp_path: Path) -> None:
    runs = {
        "none": [with_action("deleteRollout", ok=False, took_s=40.0)],
        "apf": [with_action("deleteRollout", ok=True, took_s=2.5)],
        "block": [with_action("block", ok=True, took_s=0.1)],
    }
    document = built(tmp_path, runs)
    deleted = row(document, "deleteRollout", "Actions in after")
    assert [("40.0 s", 0), ("2.50 s", 1), ("–", None)] == [(cell.said, cell.holds) for cell in deleted.cells]
    assert deleted.differs
    assert ["–", "–", "100 ms"] == said(document, "block", "Actions in after")


def test_a_section_that_only_a_later_variant_has_stands_in_its_place(tmp_path: Path) -> None:
    without = [item for item in calm_run() if not item["kind"].startswith("action.")]
    document = built(tmp_path, {"none": [without], "apf": [calm_run()]})
    sections = list(dict.fromkeys(item.section for item in document.rows))
    assert ["Run", "Objectives", "Actions in after", "Flow agents"] == sections[:4]


@given(
    st.permutations("abcdef").flatmap(
        lambda whole: st.lists(
            st.sets(st.sampled_from(whole)).map(lambda part: [item for item in whole if item in part])
        )
    )
)
def test_merged_orders_have_everything_once_in_the_order_of_the_first(orders: list[list[str]]) -> None:
    result = merged(orders)
    assert sorted({item for order in orders for item in order}) == sorted(result)
    if orders:
        assert orders[0] == [item for item in result if item in orders[0]]


def locked_out_at(phase_s: float, *, recovers: bool) -> list[Record]:
    """The small run, whose lock-out lasts from 24 s to 30 s, with a phase ``lever`` that begins in it."""
    records = [item for item in small_run() if recovers or item["kind"] != "probe" or not item["ok"] or item["t"] < 26]
    extra = [
        record("phase.end", phase_s, phase="rollout", reason="time"),
        record("phase.start", phase_s, phase="lever"),
        record("phase.end", 32.0, phase="lever", reason="time"),
    ]
    kept = [item for item in records if not (item["kind"] == "phase.end" and item["phase"] == "rollout")]
    return sorted([*kept, *extra], key=lambda item: float(item["t"]))


def test_the_time_from_a_phase_to_the_first_good_answer_is_of_identities_locked_out_then(tmp_path: Path) -> None:
    runs = {"none": [locked_out_at(27, recovers=False)], "apf": [locked_out_at(27, recovers=True)], "x": [calm_run()]}
    document = built(tmp_path, runs)
    section = "Probe operator, system:masters"
    cells = row(document, "lever to good answer", section).cells
    assert ["never", "–"] == [cells[0].said, cells[2].said]
    assert 2 < (cells[1].value or 0) < 5
    assert row(document, "lever to good answer", section).differs
    names = {item.measure for item in document.rows if item.section == section}
    assert "baseline to good answer" not in names


def test_levers_are_compared_by_the_time_to_recovery_and_to_the_slo(tmp_path: Path) -> None:
    runs = {"none": [outage(lever="none", helps=False)], "block-agents": [outage()], "calm": [calm_run()]}
    document = built(tmp_path, runs, info=outage_info())

    assert ["19.0 s", "19.0 s", "never"] == said(document, "SLO breach after rollout", "Incident")
    assert ["never", "3.30 s", "–"] == said(document, "relief to recovered", "Incident")
    # The last request that fails is sent at 89.3 s: the first window without one begins at 90 s.
    assert ["never", "3.00 s", "–"] == said(document, "relief to SLO", "Incident")
    assert row(document, "relief to recovered").differs


def test_there_is_no_row_on_an_slo_that_no_profile_has(tmp_path: Path) -> None:
    document = built(tmp_path, {"none": [small_run()], "apf": [calm_run()]})

    assert "Incident" not in {item.section for item in document.rows}


def test_who_needs_no_recovery_has_recovered_already(tmp_path: Path) -> None:
    well = [item for item in outage() if not (item["kind"].startswith("probe") and not item["ok"])]
    document = built(tmp_path, {"block-agents": [well]}, info=outage_info())

    assert ["already"] == said(document, "relief to recovered")
    assert ["already"] == said(document, "relief to SLO")


def test_json_is_valid_by_the_schema_and_has_no_infinity(tmp_path: Path) -> None:
    data = valid(render_json(mixed(tmp_path)), "matrix")
    operator = next(item for item in data["rows"] if item["measure"] == "probe.operator.p99 < 1s")
    assert (None, "no answer", 0) == tuple(operator["cells"][0][key] for key in ("value", "said", "holds"))


def test_every_row_has_a_cell_for_every_variant(tmp_path: Path) -> None:
    document = mixed(tmp_path)
    for item in document.rows:
        assert len(document.variants) == len(item.cells)
        assert all(isinstance(cell, CellReport) and cell.said for cell in item.cells)


app = typer.Typer()
app.command()(report)


def test_the_report_command_prints_table_run_and_latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    directory = write_matrix(
        Path("results/20261130T120000Z-smoke-matrix"), {"none": [small_run()], "apf": [calm_run()]}
    )
    table = CliRunner().invoke(app, [str(directory)])
    assert (0, True) == (table.exit_code, table.output.startswith("\nMATRIX  smoke"))
    assert table.output == CliRunner().invoke(app, ["latest"]).output
    assert table.output == CliRunner().invoke(app, ["20261130T120000Z-smoke-matrix"]).output
    assert CliRunner().invoke(app, [str(directory / "lever=none")]).output.startswith("\nFAIL  smoke")
    assert 99 == CliRunner().invoke(app, ["latest", "--exit-code", "--format", "json"]).exit_code
