"""Whole reports in the terminal against golden texts, with and without colours: see ``tests.report.golden`` on how to write them anew.

Of typical runs: one that passed, an outage, a search, a matrix, a comparison, a gate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pytest
from rich.cells import cell_len
from rich.text import Text

from scaletest.analysis.gating import parse_rule
from scaletest.core.journal import Record
from scaletest.core.rundir import RunInfo
from scaletest.report.comparison_build import build_comparison
from scaletest.report.comparison_table import render_comparison
from scaletest.report.matrix_build import build_matrix
from scaletest.report.matrix_table import render_matrix
from scaletest.report.sides import find_side
from scaletest.report.terminal import render
from tests.analysis.journals import record, run_info
from tests.analysis.outages import outage, outage_info
from tests.analysis.searches import measured_search, search_info
from tests.report.built import document
from tests.report.comparisons import write_runs
from tests.report.golden import check_golden
from tests.report.matrices import calm_run, mixed_runs, write_matrix

Render = Callable[..., str]

KINDS = ("passed", "outage", "search", "matrix", "comparison", "gate")


def passed() -> tuple[list[Record], RunInfo]:
    checks = ["flow.agents.error_rate < 5%", "probe.operator.p99 < 1s", "component.kube-apiserver.oom_kills == 0"]
    return calm_run(), run_info(profile={**run_info().profile, "objectives": checks})


def search() -> tuple[list[Record], RunInfo]:
    return [*measured_search(), record("run.end", 925.0, status="finished", reason="")], search_info()


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Render]:
    """How each is drawn; ``width``, ``unicode`` and ``colors`` are to be given."""
    results = tmp_path_factory.mktemp("results")
    write_runs(results, "before")
    write_runs(results, "after", slow=1.3, seed=50)
    sides = [find_side(f"{name}-*", results, results) for name in ("before", "after")]
    rules = [parse_rule("list-pods.p50:10%", "--fail"), parse_rule("memory:10%", "--fail")]
    matrix = build_matrix(write_matrix(results / "matrix", mixed_runs()))
    return {
        "passed": partial(render, document(*passed())),
        "outage": partial(render, document(outage(helps=False), outage_info())),
        "search": partial(render, document(*search())),
        "matrix": partial(render_matrix, matrix),
        "comparison": partial(render_comparison, build_comparison(sides[0], sides[1:])),
        "gate": partial(render_comparison, build_comparison(sides[0], sides[1:], rules)),
    }


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("kind", KINDS)
def test_the_report_reads_as_the_golden_text(forms: Mapping[str, Render], kind: str, width: int) -> None:
    plain, coloured = forms[kind](width=width), forms[kind](width=width, colors="standard")

    check_golden(f"{kind}-{width}.txt", plain)
    check_golden(f"{kind}-{width}.ansi", coloured)


@pytest.mark.parametrize("kind", KINDS)
def test_colours_change_nothing_but_colours(forms: Mapping[str, Render], kind: str) -> None:
    plain, coloured = forms[kind](width=100), forms[kind](width=100, colors="truecolor")

    assert "\x1b" not in plain
    assert "\x1b[" in coloured
    uncoloured = [line.rstrip() for line in Text.from_ansi(coloured).plain.splitlines()]
    assert [line for line in plain.splitlines() if line] == [line for line in uncoloured if line]


@pytest.mark.parametrize("width", [40, 60, 100, 200])
@pytest.mark.parametrize("kind", KINDS)
def test_no_line_is_wider_than_the_terminal(forms: Mapping[str, Render], kind: str, width: int) -> None:
    widest = max(forms[kind](width=width).splitlines(), key=cell_len)

    assert cell_len(widest) <= width, widest


@pytest.mark.parametrize("kind", KINDS)
def test_ascii_keeps_every_column_where_it_is(forms: Mapping[str, Render], kind: str) -> None:
    unicode, plain = forms[kind](width=100), forms[kind](width=100, unicode=False)

    assert plain.isascii()
    assert "?" not in plain.replace(" ?  ", "")
    assert [len(line) for line in unicode.splitlines()] == [len(line) for line in plain.splitlines()]
