"""The table of a matrix as Markdown."""

from __future__ import annotations

from typing import Final

from scaletest.report.markdown import COMMENT_LIMIT, MARKS
from scaletest.report.markdown_text import cut, folded, table, text
from scaletest.report.matrix_document import CellReport, MatrixDocument, RankingReport, RowReport
from scaletest.report.ranking import rank_factor
from scaletest.report.said.matrix import axes_text, holds, ratio_text

__all__ = ["render_matrix_markdown"]

_OPEN: Final = frozenset({"Run", "Objectives"})
"""Sections that stand open; all others are folded."""


def render_matrix_markdown(document: MatrixDocument, *, limit: int = COMMENT_LIMIT) -> str:
    """Write the variants beside each other, in at most ``limit`` bytes."""
    matrix, verdict = document.matrix, document.verdict
    head = [
        f"### Matrix {text(matrix.profile)}",
        "",
        text(f"{axes_text(matrix)}; {verdict.finished} of {verdict.runs} runs finished"),
    ]
    sections = list(dict.fromkeys(row.section for row in document.rows))
    parts = [head, *([_ranking(document.ranking)] if document.ranking is not None else [])]
    for section in sections:
        lines = _table(document, [row for row in document.rows if row.section == section], section)
        parts.append(lines if section in _OPEN else folded(section, lines))
    return cut(parts, limit)


def _ranking(ranking: RankingReport) -> list[str]:
    rows = [
        (
            text(rank.label),
            text(rank.said),
            rank_factor(rank, ranking),
            text(rank.gave_out or ""),
            rank.past or "",
            "<br>".join(text(line) for line in [rank.summary or "", *rank.notes] if line),
        )
        for rank in ranking.ranks
    ]
    return table(
        (text(f"N* of {ranking.parameter} {ranking.unit}"), "", "×", "gave out", "past it", "what it is"), rows
    )


def _table(document: MatrixDocument, rows: list[RowReport], section: str) -> list[str]:
    names = [text(" ".join(variant.values.values()) or variant.name) for variant in document.variants]
    cells = [(text(row.measure), *(_cell(cell) for cell in row.cells), ratio_text(row)) for row in rows]
    return table((text(section), *names, "×"), cells)


def _cell(cell: CellReport) -> str:
    spread = f" ({cell.spread})" if cell.spread else ""
    mark = "" if cell.holds is None else f" {MARKS['pass' if holds(cell) else 'fail']}"
    return f"{text(cell.said + spread)}{mark}"
