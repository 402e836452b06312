"""Markdown for GitHub: text stays text, tables stay tables, limits are kept; the summary and annotations."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.report import markdown_text as md
from scaletest.report.github import MOST_ANNOTATIONS, SUMMARY_LIMIT, annotation_lines, tell_github
from scaletest.report.markdown import COMMENT_LIMIT, render_markdown
from scaletest.report.markdown_matrix import render_matrix_markdown
from scaletest.report.matrix_build import build_matrix
from tests.analysis.journals import record, run_info, small_run
from tests.analysis.outages import outage, outage_info
from tests.analysis.searches import measured_search, search_info
from tests.report.built import document
from tests.report.comparison_documents import comparison
from tests.report.matrices import calm_run, write_matrix


def cells(line: str) -> int:
    return len(re.findall(r"(?<!\\)\|", line)) - 1


def assert_sound(text: str) -> None:
    """Every table has rows of one length, and every folded part is closed."""
    width = None
    for line in text.splitlines():
        width = (width or cells(line)) if line.startswith("|") else None
        assert width is None or cells(line) == width, line
    assert text.count("<details>") == text.count("</details>")


def test_the_verdict_and_its_objectives_stand_open() -> None:
    text = render_markdown([document(small_run())])
    head = text.partition("<details>")[0]

    assert head.startswith("### ❌ smoke: fail\n")
    assert "| ❌ | `flow.agents.error_rate < 1%` | 4 % | 2,500 |" in head
    assert_sound(text)


@pytest.mark.parametrize("helps", [True, False])
def test_an_outage_is_told(*, helps: bool) -> None:
    text = render_markdown([document(outage(helps=helps), outage_info())])

    assert "<summary>Incident</summary>" in text
    assert_sound(text)


def test_a_search_has_its_answer_in_the_open() -> None:
    text = render_markdown([document(measured_search(), search_info())])

    assert "**Saturation** of `agents`" in text.partition("<details>")[0]
    assert_sound(text)


def test_a_comparison_comes_right_after_the_verdict() -> None:
    text = render_markdown([document(small_run())], comparison())

    assert text.index("### ❌ new against base: fail") < text.index("<details>")
    assert "| ❌ | `flow.agents.p99` | 1.00 s | 1.20 s | +20 % | +15 % to +27 % | 0.004 |" in text
    assert_sound(text)


def test_nothing_in_a_name_is_markup() -> None:
    hostile = "a|b\n<script>alert(1)</script> *x* `y` @somebody #12 [l](http://x)"
    info = run_info(profile={**run_info().profile, "name": hostile, "objectives": [f"flow.{hostile}.p99 < 1s"]})
    text = render_markdown([document(small_run(), info)])

    assert "<script>" not in text.replace("`", "").partition("| objective")[0]
    assert "@somebody" not in text.partition("| objective")[0]
    assert_sound(text)


@given(st.text(max_size=80))
def test_any_text_is_one_cell(text: str) -> None:
    for cell in (md.text(text), md.code(text)):
        row = md.table(["a", "b"], [(cell, "x")])[-1]
        assert len(row.splitlines()) == 1
        assert cells(row) == 2


@pytest.mark.parametrize("limit", [400, 2_000, 20_000, COMMENT_LIMIT])
def test_a_limit_is_kept_and_said(limit: int) -> None:
    documents = [document(outage(helps=False), outage_info())] * 30
    text = render_markdown(documents, limit=limit)

    assert len(text.encode()) <= limit
    assert "cut to fit" in text
    assert_sound(text)


def test_a_matrix_is_a_table_of_its_variants(tmp_path: Path) -> None:
    matrix = build_matrix(write_matrix(tmp_path / "m", {"none": [small_run()], "block": [calm_run()]}))
    text = render_matrix_markdown(matrix)

    assert "| none | block |" in text
    assert_sound(text)


def test_the_summary_is_appended_and_annotations_are_printed_where_the_variables_ask_for_them(tmp_path: Path) -> None:
    path, out = tmp_path / "summary.md", io.StringIO()
    path.write_text("of another command\n", encoding="utf-8")
    lines = annotation_lines([document(small_run())])
    tell_github("### told\n", lines, {"GITHUB_STEP_SUMMARY": str(path), "GITHUB_ACTIONS": "true"}, out)

    assert path.read_text(encoding="utf-8") == "of another command\n### told\n\n"
    assert (
        out.getvalue().splitlines()[0] == "::error title=scaletest smoke%3A fail::flow.agents.error_rate < 1%25: 4 %25"
    )


def test_nothing_happens_elsewhere() -> None:
    out = io.StringIO()
    tell_github("### told\n", ["::error::x"], {}, out)

    assert out.getvalue() == ""


def test_a_summary_that_would_be_too_long_is_left_out_and_said(tmp_path: Path) -> None:
    path, out = tmp_path / "summary.md", io.StringIO()
    path.write_bytes(b"x" * (SUMMARY_LIMIT - 5))
    tell_github("### told\n", [], {"GITHUB_STEP_SUMMARY": str(path)}, out)

    assert path.stat().st_size == SUMMARY_LIMIT - 5
    assert "no step summary" in out.getvalue()


def test_a_summary_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    out = io.StringIO()
    tell_github("### told\n", [], {"GITHUB_STEP_SUMMARY": str(tmp_path / "no" / "such")}, out)

    assert "No such file" in out.getvalue()


def test_annotations_keep_to_the_limit_of_a_step_and_to_one_line() -> None:
    objectives = [f"flow.agents.p99 < {index + 1}us" for index in range(40)]
    lines = annotation_lines(
        [document(small_run(), run_info(profile={**run_info().profile, "objectives": objectives}))]
    )

    assert len([line for line in lines if line.startswith("::error ")]) == MOST_ANNOTATIONS
    assert "31 more" in lines[MOST_ANNOTATIONS - 1]
    broken = document(
        [*small_run(finished=False), record("run.end", 50.0, status="error", reason="first\nsecond, 5 %")]
    )
    assert all("\n" not in line for line in annotation_lines([broken]))


def test_a_gate_that_failed_is_an_error_that_names_its_metric() -> None:
    assert any("flow.agents.p99" in line for line in annotation_lines([], comparison()) if line.startswith("::error"))
