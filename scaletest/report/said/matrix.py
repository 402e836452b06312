"""What is said in the table of a matrix: how far variants are apart, and whether an objective holds in all runs."""

from __future__ import annotations

from typing import Final

from scaletest.report import glyphs
from scaletest.report.matrix_document import CellReport, MatrixReport, RowReport

__all__ = ["LEGEND", "REPEATS", "axes_text", "holds", "partly_text", "ratio_text"]

LEGEND: Final = (
    f"×N: the largest of all finished variants by the smallest; {glyphs.UNEQUAL}: unequal; blank: within a tenth of each other, "
    "or within the range of the repeats. No statistics: a single run of each proves little."
)
REPEATS: Final = "median, below it the range of the runs"


def axes_text(matrix: MatrixReport) -> str:
    """Say what is run: the values of each axis, and how often."""
    axes = "; ".join(f"{axis.key}: {', '.join(axis.values)}" for axis in matrix.axes)
    repeats = f"{matrix.repeat} runs{' each' if axes else ''}" if matrix.repeat > 1 else ""
    return ", ".join(part for part in (axes, repeats) if part)


def holds(cell: CellReport) -> bool:
    """Whether an objective holds in every run that counts."""
    return cell.holds is not None and cell.holds >= max(cell.runs, 1)


def partly_text(cell: CellReport) -> str | None:
    """Say in how many runs an objective holds, where it holds in some."""
    partly = cell.holds is not None and 0 < cell.holds < cell.runs
    return f"holds in {cell.holds} of {cell.runs}" if partly else None


def ratio_text(row: RowReport) -> str:
    """Write how far the variants are apart; nothing where they are not."""
    if not row.differs:
        return ""
    if row.ratio is None or row.ratio < 1.05:
        return glyphs.UNEQUAL
    return f"×{row.ratio:.1f}" if row.ratio < 10 else f"×{row.ratio:.0f}" if row.ratio < 1000 else "×>999"
