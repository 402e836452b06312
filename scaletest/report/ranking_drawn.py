"""The ranking of a matrix of searches in the terminal: a line of figures for each variant, and what it is below them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.padding import Padding
from rich.text import Text

from scaletest.report import drawing
from scaletest.report.glyphs import NOTHING
from scaletest.report.matrix_document import RankingReport, RankReport
from scaletest.report.ranking import rank_factor
from scaletest.report.saturation_drawn import PAST_STYLES

__all__ = ["draw_ranking"]

_HEAD: Final = ("", "N*", "×", "gave out", "past it")
_RIGHT: Final = (False, True, True, False, False)
_GAP: Final = "  "
_LONGEST_LABEL: Final = 30


def draw_ranking(ranking: RankingReport) -> Iterator[drawing.Drawn]:
    """Draw the variants, the largest N* first."""
    unit = f" ({ranking.unit})" if ranking.unit else ""
    yield drawing.title(f"N* of {ranking.parameter}{unit}", "the largest load that holds – the smallest that fails")
    yield drawing.line(f"It holds while {' and '.join(ranking.holds)}.", "dim")
    rows = [_cells(rank, ranking) for rank in ranking.ranks]
    widths = [min(max(map(len, column)), _LONGEST_LABEL) for column in zip(_HEAD, *rows, strict=True)]
    yield drawing.line(_aligned(_HEAD, widths).rstrip(), "dim")
    for rank, cells in zip(ranking.ranks, rows, strict=True):
        text = Text(_aligned(cells, widths).rstrip())
        text.highlight_words([cells[0]], "bold")
        if rank.past in PAST_STYLES:
            text.highlight_words([rank.past], PAST_STYLES[rank.past])
        yield drawing.line(text)
        for note in rank.notes:
            yield _below(note)
        if rank.summary is not None:
            yield _below(rank.summary, "dim")
    yield drawing.line(f"×: N* by that of {ranking.reference}.", "dim")


def _cells(rank: RankReport, ranking: RankingReport) -> tuple[str, ...]:
    return rank.label, rank.said, rank_factor(rank, ranking) or NOTHING, rank.gave_out or NOTHING, rank.past or NOTHING


def _aligned(cells: tuple[str, ...], widths: list[int]) -> str:
    return _GAP.join(
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, _RIGHT, strict=True)
    )


def _below(text: str, style: str = "") -> Padding:
    return Padding(Text(text, style=style, overflow="fold"), (0, 0, 0, 6))
