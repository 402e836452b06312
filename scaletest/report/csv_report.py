"""The series of runs as CSV: one line for each sample, as it was measured, with the words of the objectives.

Long form, which every spreadsheet, data frame and database reads: no column comes or goes with the profile.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Final

from scaletest.analysis.state import RunState
from scaletest.report.series_document import Series, all_series

__all__ = ["COLUMNS", "render_csv"]

COLUMNS: Final = ("run", "t_s", "phase", "subject", "measure", "unit", "value")


def render_csv(runs: Iterable[tuple[str, RunState]]) -> str:
    """Write the series of runs, given with their ids."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for run, state in runs:
        phases = [(phase.span, phase.name) for phase in state.phases]
        for series in all_series(state):
            writer.writerows(_rows(run, series, phases))
    return out.getvalue()


def _rows(
    run: str, series: Series, phases: list[tuple[tuple[float, float], str]]
) -> Iterable[tuple[str, str, str, str, str, str, str]]:
    for t_s, value in series.samples:
        phase = next((name for (start_s, end_s), name in phases if start_s <= t_s < end_s), "")
        yield run, f"{t_s:.3f}", phase, series.subject, series.measure, series.unit, f"{value:.9g}"
