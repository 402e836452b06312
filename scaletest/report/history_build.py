"""Build the document of a history."""

from __future__ import annotations

from collections.abc import Sequence

from scaletest.analysis.changes import SETTING, Setting
from scaletest.analysis.comparison import LeftOut
from scaletest.analysis.gating import said_amount
from scaletest.analysis.history import History, MetricHistory, MetricShift, Nearby
from scaletest.analysis.measures import RunMeasures
from scaletest.analysis.metrickinds import section_of
from scaletest.report import history_document as doc
from scaletest.report.comparison_build import said_change

__all__ = ["build_history"]


def build_history(
    found: Sequence[History], passed_over: Sequence[LeftOut] = (), setting: Setting = SETTING
) -> doc.HistoryDocument:
    """Return the document of the histories of some profiles."""
    return doc.HistoryDocument(
        schema_version=doc.HISTORY_SCHEMA_VERSION,
        setting=doc.HistorySetting(
            alpha=setting.alpha, mann_whitney=setting.mann_whitney, fewest_runs=setting.fewest_runs
        ),
        passed_over=[_left_out(item) for item in passed_over],
        profiles=[_profile(history) for history in found],
    )


def _left_out(item: LeftOut) -> doc.LeftOutRun:
    return doc.LeftOutRun(run=item.run, why=item.why)


def _profile(history: History) -> doc.ProfileHistory:
    return doc.ProfileHistory(
        profile=history.profile,
        runs=[
            doc.HistoryRun(id=run.id, directory=run.directory, started_at=run.started_at, versions=dict(run.versions))
            for run in history.runs
        ],
        left_out=[_left_out(item) for item in history.left_out],
        notes=list(history.notes),
        metrics=[_metric(item, history.runs) for item in history.metrics],
    )


def _metric(found: MetricHistory, runs: Sequence[RunMeasures]) -> doc.MetricHistoryReport:
    section, label = section_of(found.metric)
    known = [value for value in found.values if value is not None]
    return doc.MetricHistoryReport(
        metric=found.metric,
        section=section,
        label=label,
        unit=found.kind.unit,
        better=found.kind.better,
        scale=found.kind.scale.value,
        values=list(found.values),
        first_said=said_amount(found.kind, known[0]),
        last_said=said_amount(found.kind, known[-1]),
        shifts=[_shift(item, found, runs) for item in found.shifts],
        why=found.why,
    )


def _shift(item: MetricShift, found: MetricHistory, runs: Sequence[RunMeasures]) -> doc.ShiftReport:
    kind, shift, run = found.kind, item.shift, runs[item.run]
    return doc.ShiftReport(
        run=item.run,
        run_id=run.id,
        started_at=run.started_at,
        call=shift.call(kind),
        before=shift.before,
        after=shift.after,
        before_said=said_amount(kind, shift.before),
        after_said=said_amount(kind, shift.after),
        change=shift.change,
        change_said=said_change(kind, shift.change),
        p=shift.p,
        p_adjusted=shift.p_adjusted,
        nearby=[_nearby(near) for near in item.nearby],
    )


def _nearby(near: Nearby) -> doc.NearbyReport:
    item = near.difference
    return doc.NearbyReport(
        what=item.what.value, key=item.key, base=item.base, new=item.new, runs_after=near.runs_after,
        said=f"{item.what} {item.key}: {item.base}, then {item.new}{_apart(near.runs_after)}",
    )  # fmt: skip


def _apart(runs_after: int) -> str:
    if runs_after == 0:
        return ""
    runs = "1 run" if abs(runs_after) == 1 else f"{abs(runs_after)} runs"
    return f", {runs} {'later' if runs_after > 0 else 'earlier'}"
