"""Build the report on a matrix from its directory alone: also while runs are missing, were killed, or are going on.

A variant's numbers are those of its runs that passed or failed. Only when it has none, the invalid ones count, and only when it has
none of those either, the ones that were cut short: numbers of different worth are never mixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from scaletest.analysis.compare import Summary, differ, ratio_of, summarize
from scaletest.analysis.saturation import Saturation, analyse
from scaletest.analysis.verdict import worst
from scaletest.core.errors import ExitCode, RunDirectoryError
from scaletest.core.matrixdir import MatrixInfo, RunEntry, VariantEntry, read_matrix_info
from scaletest.core.rundir import RUN_INFO_NAME
from scaletest.core.texts import encodable
from scaletest.core.units import format_bytes, format_count, format_duration, format_share
from scaletest.report import matrix_document as doc
from scaletest.report.glyphs import NOTHING
from scaletest.report.matrix_measures import Key, Measure, measures_of
from scaletest.report.ranking import Searched, rank
from scaletest.report.rundir import load_run

__all__ = ["build_matrix", "merged"]

_WORTH: Final = (("pass", "fail"), ("invalid",), ("incomplete",))

_VERDICT: Final[Key] = ("Run", "verdict")

_STATUS_WORDS: Final = {"waiting": "not run", "running": "running", "unreadable": "unreadable"}

_FORMATS: Final[Mapping[str, Callable[[float], str]]] = {
    "count": format_count,
    "share": format_share,
    "seconds": format_duration,
    "bytes": format_bytes,
    "per_second": lambda value: f"{format_count(value)}/s",
    "cores": lambda value: f"{value:.2f} cores",
}


@dataclass(slots=True)
class _Run:
    entry: RunEntry
    report: doc.MatrixRunReport
    measures: dict[Key, Measure] = field(default_factory=dict)
    found: Saturation | None = None


@dataclass(frozen=True, slots=True)
class _Variant:
    entry: VariantEntry
    runs: list[_Run]
    counted: list[_Run]


def build_matrix(directory: Path) -> doc.MatrixDocument:
    """Build the report on a matrix. Raises RunDirectoryError when the directory is none."""
    info = read_matrix_info(directory)
    # One run at a time: a long one takes tens of megabytes while it is looked at.
    runs = [_run(directory, entry) for entry in info.runs]
    variants = [_variant(entry, [run for run in runs if run.entry.variant == entry.name]) for entry in info.variants]
    return doc.MatrixDocument(
        schema_version=doc.MATRIX_REPORT_SCHEMA_VERSION,
        matrix=_matrix(directory, info),
        verdict=_verdict(runs),
        variants=[_variant_report(variant) for variant in variants],
        ranking=_ranking(info, variants),
        rows=_rows(variants),
    )


def _matrix(directory: Path, info: MatrixInfo) -> doc.MatrixReport:
    return doc.MatrixReport(
        id=info.id,
        directory=encodable(str(directory)),
        profile=str(info.profile.get("name", info.reference)),
        summary=str(info.profile.get("summary", "")),
        started_at=info.started_at,
        axes=[doc.AxisReport(key=axis.key, values=axis.values) for axis in info.axes],
        repeat=info.repeat,
        overrides=info.overrides,
        limits=info.limits,
    )


def _verdict(runs: Sequence[_Run]) -> doc.MatrixVerdict:
    codes = [ExitCode(run.report.exit_code) for run in runs if run.report.exit_code in set(ExitCode)]
    if any(run.report.status in {"waiting", "running"} for run in runs):
        codes.append(ExitCode.INTERRUPTED)
    finished = sum(run.report.status == "finished" for run in runs)
    return doc.MatrixVerdict(exit_code=int(worst(codes)), runs=len(runs), finished=finished)


def _run(directory: Path, entry: RunEntry) -> _Run:
    run_dir = directory / entry.directory
    if not (run_dir / RUN_INFO_NAME).exists():
        return _Run(entry, _not_begun(entry))
    try:
        loaded = load_run(run_dir)
    except RunDirectoryError as error:
        return _Run(entry, _report(entry, "unreadable", None, ExitCode.ENVIRONMENT, [error.message]))
    verdict = loaded.verdict
    status = "finished" if verdict.outcome.value != "incomplete" else "incomplete"
    if loaded.journal.growing:
        status = "running"
    report = _report(entry, status, verdict.outcome.value, verdict.exit_code, verdict.reasons)
    found = analyse(loaded.state, loaded.info.profile)
    return _Run(entry, report, {item.key: item for item in measures_of(loaded, found)}, found)


def _ranking(info: MatrixInfo, variants: Sequence[_Variant]) -> doc.RankingReport | None:
    searched = [
        Searched(variant.entry, [run.found for run in variant.counted if run.found is not None])
        for variant in variants
    ]  # fmt: skip
    return rank(info, searched)


def _not_begun(entry: RunEntry) -> doc.MatrixRunReport:
    if entry.status == "incomplete" and entry.exit_code is not None:
        return _report(entry, "incomplete", "incomplete", entry.exit_code, [entry.message or "ended before it began"])
    return _report(entry, "waiting", None, None, [])


def _report(
    entry: RunEntry, status: str, outcome: str | None, exit_code: int | None, reasons: Sequence[str]
) -> doc.MatrixRunReport:
    return doc.MatrixRunReport.model_validate(
        {
            "directory": entry.directory,
            "repeat": entry.repeat,
            "status": status,
            "outcome": outcome,
            "exit_code": None if exit_code is None else int(exit_code),
            "reasons": list(reasons),
            "counted": False,
        }
    )


def _variant(entry: VariantEntry, runs: list[_Run]) -> _Variant:
    for outcomes in _WORTH:
        counted = [run for run in runs if run.measures and run.report.outcome in outcomes]
        if counted:
            return _Variant(entry, runs, counted)
    return _Variant(entry, runs, [])


def _variant_report(variant: _Variant) -> doc.VariantReport:
    counted = {run.entry.directory for run in variant.counted}
    return doc.VariantReport(
        name=variant.entry.name,
        values=variant.entry.values,
        runs=[
            run.report.model_copy(update={"counted": run.entry.directory in counted})
            for run in variant.runs
        ],
    )  # fmt: skip


def _rows(variants: Sequence[_Variant]) -> list[doc.RowReport]:
    found: dict[Key, list[Measure]] = {}
    orders: list[list[Key]] = []
    for variant in variants:
        for run in variant.counted:
            orders.append(list(run.measures))
            for key, item in run.measures.items():
                found.setdefault(key, []).append(item)
    hidden = {key for key, items in found.items() if items[0].only_if_any and all(item.value == 0 for item in items)}
    keys = [
        (section, name)
        for section in merged([section for section, _ in order] for order in orders)
        for name in merged([name for of, name in order if of == section] for order in orders)
        if (section, name) not in hidden
    ]
    if _VERDICT not in keys:
        keys.insert(0, _VERDICT)
    return [_row(variants, key, found.get(key, [])) for key in keys]


def merged(orders: Iterable[Sequence[str]]) -> list[str]:
    """Merge orders: what a later one adds stands behind what it has before it."""
    result: list[str] = []
    for order in orders:
        at = 0
        for item in dict.fromkeys(order):
            if item in result:
                at = result.index(item) + 1
            else:
                result.insert(at, item)
                at += 1
    return result


def _row(variants: Sequence[_Variant], key: Key, items: Sequence[Measure]) -> doc.RowReport:
    if key == _VERDICT:
        cells, unit = [_verdict_cell(variant) for variant in variants], "text"
    else:
        unit = items[0].unit
        cells = [_cell([run.measures[key] for run in variant.counted if key in run.measures]) for variant in variants]
    differs, ratio = _difference(variants, key, cells, unit)
    labels = {item.label for item in items}
    label = labels.pop() if len(labels) == 1 else None
    return doc.RowReport.model_validate(
        {
            "section": key[0],
            "measure": label or key[1],
            "unit": unit,
            "cells": cells,
            "differs": differs,
            "ratio": ratio,
        }
    )


def _difference(
    variants: Sequence[_Variant], key: Key, cells: Sequence[doc.CellReport], unit: str
) -> tuple[bool, float | None]:
    if unit == "text":
        return len({cell.said for cell in cells if cell.said != NOTHING}) > 1, None
    # What was cut short or measured wrongly is shown, but nothing is concluded from it.
    whole = [variant.counted[0].report.outcome in _WORTH[0] if variant.counted else False for variant in variants]
    known = [
        summary
        for variant, is_whole in zip(variants, whole, strict=True)
        if is_whole
        and (summary := _summary([run.measures[key] for run in variant.counted if key in run.measures])) is not None
    ]
    held = {
        cell.holds == cell.runs
        for cell, is_whole in zip(cells, whole, strict=True)
        if is_whole and cell.holds is not None and cell.runs
    }
    return differ(known) or len(held) > 1, ratio_of(known) if len(known) > 1 else None


def _summary(items: Sequence[Measure]) -> Summary | None:
    return summarize(item.value for item in items if not isinstance(item.value, str))


def _verdict_cell(variant: _Variant) -> doc.CellReport:
    """Say what all runs of a variant came to, the counted and the others."""
    reports = [run.report for run in variant.runs]
    ended = ("finished", "incomplete")
    words = [report.outcome or "" if report.status in ended else _STATUS_WORDS[report.status] for report in reports]
    said = ", ".join(f"{words.count(word)} {word}" if len(words) > 1 else word for word in dict.fromkeys(words))
    return doc.CellReport(value=None, low=None, high=None, runs=len(words), holds=None, said=said, spread=None)


def _cell(items: Sequence[Measure]) -> doc.CellReport:
    if items and isinstance(items[0].value, str):
        said = ", ".join(dict.fromkeys(str(item.value) for item in items))
        return doc.CellReport(value=None, low=None, high=None, runs=len(items), holds=None, said=said, spread=None)
    holds = [item.holds for item in items if item.holds is not None]
    held = sum(holds) if holds else None
    summary = _summary(items)
    if summary is None:
        said = "not measured" if holds else NOTHING
        return doc.CellReport(value=None, low=None, high=None, runs=0, holds=held, said=said, spread=None)
    low, high = _said(items[0], summary.low), _said(items[0], summary.high)
    return doc.CellReport(
        value=summary.median,
        low=summary.low,
        high=summary.high,
        runs=summary.runs,
        holds=held,
        said=_said(items[0], summary.median),
        spread=None if summary.low == summary.high else f"{low}–{high}",
    )


def _said(item: Measure, value: float) -> str:
    if math.isinf(value):
        return item.infinite
    if value == 0 and item.zero is not None:
        return item.zero
    return _FORMATS[item.unit](value)
