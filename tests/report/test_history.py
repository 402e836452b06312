"""The document of a history, its JSON, its table and its Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaletest.analysis.history import histories
from scaletest.core.errors import RunDirectoryError
from scaletest.report.baselines import save_baseline
from scaletest.report.history_build import build_history
from scaletest.report.history_document import HistoryDocument
from scaletest.report.history_runs import find_runs
from scaletest.report.history_table import render_history
from scaletest.report.json_report import render_json
from scaletest.report.markdown_history import render_history_markdown
from scaletest.report.sides import find_side, read_run
from tests.analysis.test_history import at_the_best_place
from tests.report.histories import write_nights
from tests.report.matrices import calm_run, write_matrix
from tests.report.schemas import valid

METRIC = "flow.agents.list-pods.p50"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("results")
    write_nights(directory)
    return directory


@pytest.fixture(scope="module")
def document(results: Path) -> HistoryDocument:
    found = find_runs((), results, results)
    wanted = {METRIC, "flow.agents.rate", "component.etcd.memory"}
    return build_history(histories(found.runs, at_the_best_place, lambda name: name in wanted), found.passed_over)


def test_json_is_valid_by_the_published_schema_and_names_the_run(document: HistoryDocument) -> None:
    data = valid(render_json(document), "history")
    (profile,) = data["profiles"]
    assert (19, 1) == (len(profile["runs"]), len(profile["left_out"]))
    metric = next(item for item in profile["metrics"] if item["metric"] == METRIC)
    (shift,) = metric["shifts"]
    assert ("20261113T031700Z-smoke", "worse") == (shift["run_id"], shift["call"])
    assert profile["runs"][shift["run"]]["id"] == shift["run_id"]
    assert pytest.approx(0.4, abs=0.06) == shift["change"]
    assert [("kubernetes", 0)] == [(near["key"], near["runs_after"]) for near in shift["nearby"]]


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_tells_shifts_by_run_and_fits(document: HistoryDocument, width: int) -> None:
    text = render_history(document, width=width)
    assert all(len(line) <= width for line in text.splitlines())
    assert "19 runs, 2026-11-01 03:17 UTC to 2026-11-20 03:17 UTC" in text
    assert "left out: 20261106T031700Z-smoke is incomplete" in text
    since = text[text.index("Since 2026-11-13 03:17 UTC") :]
    assert "versions kubernetes: '1.36.2', then '1.37.2'" in since
    assert since.index("✗  " + METRIC) < since.index("over time")
    assert "3 metrics, 1 with a shift" in text


def test_the_table_has_an_ascii_form(document: HistoryDocument) -> None:
    assert render_history(document, width=80, unicode=False).isascii()


def test_markdown_has_the_shifts_open_and_all_metrics_folded(document: HistoryDocument) -> None:
    text = render_history_markdown(document)
    head, _, folded = text.partition("<details>")
    assert f"| ❌ | `{METRIC}` | 2026-11-13 03:17 UTC, `20261113T031700Z-smoke` | versions kubernetes:" in head
    assert "`flow.agents.rate`" in folded
    assert len(render_history_markdown(document, limit=600).encode()) <= 600


def test_what_is_no_run_that_counts_is_passed_over_and_said(tmp_path: Path) -> None:
    write_nights(tmp_path, range(1))
    write_matrix(tmp_path / "a-matrix", {"none": [calm_run()]})
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "run.json").write_text("{}")
    (going_on,) = write_nights(tmp_path, range(1, 2))
    (going_on / "journal.jsonl").touch()
    found = find_runs((), tmp_path, tmp_path)
    assert ["20261101T031700Z-smoke"] == [run.id for run in found.runs]
    said = {item.run: item.why for item in found.passed_over}
    assert {"a-matrix", "foreign", "20261102T031700Z-smoke"} == set(said)
    assert "going on" == said["20261102T031700Z-smoke"]
    assert "passed over: foreign: its run.json is of another program" in render_history(
        build_history(histories(found.runs, at_the_best_place), found.passed_over), width=100
    )


def test_where_there_is_no_run_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="holds no run"):
        find_runs((), tmp_path, tmp_path)
    with pytest.raises(RunDirectoryError, match="holds no run"):
        find_runs((), tmp_path / "nowhere", tmp_path)


def test_a_pattern_may_be_of_baselines(tmp_path: Path) -> None:
    for number, directory in enumerate(write_nights(tmp_path / "results", range(3), killed=None)):
        save_baseline(tmp_path / "nightly" / f"{number}.json", [read_run(directory)], "2026-12-01T12:00:00+00:00")
    side = find_side(f"{tmp_path}/nightly/*.json", tmp_path, tmp_path)
    assert 3 == len(side.runs)
    assert {None} == {run.directory for run in side.runs}
    (tmp_path / "nightly" / "torn.json").write_text("{")
    again = find_runs((f"{tmp_path}/nightly/*.json",), tmp_path, tmp_path)
    assert 3 == len(again.runs)
    (passed_over,) = again.passed_over
    assert f"{tmp_path}/nightly/torn.json" == passed_over.run
    assert passed_over.why.startswith("line 1: cut short or no JSON")
    with pytest.raises(RunDirectoryError, match="matches no baseline"):
        find_side(f"{tmp_path}/daily/*.json", tmp_path, tmp_path)
