"""The document of a comparison, its JSON and its table."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from scaletest.analysis.gating import parse_rule
from scaletest.core.errors import RunDirectoryError
from scaletest.report.comparison_build import build_comparison
from scaletest.report.comparison_document import ComparisonDocument
from scaletest.report.comparison_table import render_comparison
from scaletest.report.json_report import render_json
from scaletest.report.sides import find_side, read_runs
from tests.report.comparisons import write_runs
from tests.report.matrices import calm_run, killed_run, write_matrix
from tests.report.schemas import valid


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("results")
    write_runs(directory, "before")
    write_runs(directory, "after", slow=1.3, seed=50)
    return directory


@pytest.fixture(scope="module")
def document(results: Path) -> ComparisonDocument:
    base, new = (find_side(f"{name}-*", results, results) for name in ("before", "after"))
    return build_comparison(
        base, [new], [parse_rule("list-pods.p50:10%", "--fail"), parse_rule("memory:10%", "--fail")]
    )


def test_json_is_valid_by_the_published_schema(document: ComparisonDocument) -> None:
    data = valid(render_json(document), "comparison")
    assert data["verdict"]["exit_code"] == 99


def test_a_regression_is_named_with_its_size(document: ComparisonDocument) -> None:
    (candidate,) = document.candidates
    change = next(item for item in candidate.changes if item.metric == "flow.agents.list-pods.p50")
    assert ("worse", "Flow agents", "list-pods.p50") == (change.call, change.section, change.label)
    assert change.change == pytest.approx(0.3, abs=0.06)
    assert candidate.gate is not None
    assert ["flow.agents.list-pods.p50"] == [item.metric for item in candidate.gate.checks if item.outcome == "fail"]
    assert document.verdict.reasons[0].startswith("flow.agents.list-pods.p50: ")
    assert "allowed 10 % worse" in document.verdict.reasons[0]


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_says_the_gate_first_and_fits(document: ComparisonDocument, width: int) -> None:
    text = render_comparison(document, width=width)
    lines = text.splitlines()
    assert lines[1].startswith("FAIL  after-*  against  before-*")
    assert max(map(len, lines)) <= width
    assert ("95 % interval" in text) is (width >= 100)
    row = next(line for line in lines if line.lstrip().startswith("list-pods.p50"))
    assert row.endswith("worse")
    assert "oom_kills" not in text
    render_comparison(document, width=width, unicode=False).encode("ascii")


def test_without_rules_there_is_no_gate(results: Path) -> None:
    base, new = (find_side(f"{name}-*", results, results) for name in ("before", "after"))
    compared = build_comparison(base, [new, base])
    assert (None, 0) == (compared.verdict.outcome, compared.verdict.exit_code)
    assert 2 == len(compared.candidates)
    assert not any(change.call != "same" for change in compared.candidates[1].changes)


def test_killed_runs_are_left_out_and_said(results: Path, tmp_path: Path) -> None:
    matrix = write_matrix(tmp_path / "matrix", {"none": [calm_run(), killed_run(), calm_run()]})
    side = read_runs(matrix)
    compared = build_comparison(find_side("before-*", results, results), [side])
    assert [True, False, True] == [run.counted for run in compared.candidates[0].side.runs]
    assert "1 of 3 runs left out" in compared.candidates[0].notes[0]


def test_a_matrix_of_several_variants_is_no_side(tmp_path: Path) -> None:
    matrix = write_matrix(tmp_path / "matrix", {"none": [calm_run()], "shrink": [calm_run()]})
    with pytest.raises(RunDirectoryError, match=r"a matrix of 2 variants: lever=none, lever=shrink$"):
        read_runs(matrix)


@pytest.mark.parametrize("repeat", [1, 2])
def test_the_runs_of_one_variant_are_named_so_that_no_other_is_meant(tmp_path: Path, repeat: int) -> None:
    counts = ["100", "1000", "10000", "1", "2"]
    matrix = write_matrix(tmp_path / "a matrix", {count: [calm_run()] * repeat for count in counts}, key="objects")
    with pytest.raises(RunDirectoryError, match=r"of 5 variants: objects=100, .*, objects=1, …$") as refused:
        read_runs(matrix)
    (reference,) = shlex.split((refused.value.hint or "").partition(": ")[2])
    runs = find_side(reference, tmp_path, tmp_path).runs

    assert repeat == len(runs)
    assert all(run.id.removesuffix("-r1").removesuffix("-r2") == "objects=100" for run in runs)


def test_a_pattern_that_matches_nothing_and_a_directory_of_something_else_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="matches no run directory"):
        find_side("none-*", tmp_path, tmp_path)
    (tmp_path / "other").mkdir()
    with pytest.raises(RunDirectoryError, match="no run directory"):
        find_side(str(tmp_path / "other"), tmp_path, tmp_path)
