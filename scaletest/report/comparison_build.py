"""Build the document of a comparison from runs, baselines and the rules of a gate."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Final

from scaletest.analysis.changes import SETTING, Change, Setting
from scaletest.analysis.comparison import Comparison, RunSet, compare
from scaletest.analysis.gating import Check, Despite, Gate, Rule, decide, said_amount
from scaletest.analysis.measures import RunMeasures
from scaletest.analysis.metrickinds import MetricKind, Scale, section_of
from scaletest.analysis.verdict import worst
from scaletest.core.errors import ExitCode
from scaletest.report import comparison_document as doc

__all__ = ["build_comparison", "document_of"]

_WORST: Final[tuple[doc.GateOutcome, ...]] = ("fail", "undecided", "pass")


def build_comparison(
    base: RunSet,
    candidates: Sequence[RunSet],
    rules: Sequence[Rule] = (),
    *,
    despite: Collection[Despite] = (),
    setting: Setting = SETTING,
) -> doc.ComparisonDocument:
    """Compare each candidate with the base, and hold the rules against it; without rules there is no gate.

    Raises UsageError for a rule about a metric that neither side has.
    """
    compared = [compare(base, candidate, setting) for candidate in candidates]
    gates = [decide(item, rules, despite=despite, setting=setting) if rules else None for item in compared]
    return document_of(compared, gates, setting)


def document_of(
    compared: Sequence[Comparison], gates: Sequence[Gate | None], setting: Setting = SETTING
) -> doc.ComparisonDocument:
    """Return the document of comparisons with one base, and of the gate of each."""
    reports = [_candidate(item, gate, setting) for item, gate in zip(compared, gates, strict=True)]
    outcomes = [report.gate.outcome for report in reports if report.gate is not None]
    several = len(reports) > 1
    return doc.ComparisonDocument(
        schema_version=doc.COMPARISON_SCHEMA_VERSION,
        base=_side(compared[0].base),
        setting=doc.SettingReport(
            alpha=setting.alpha, mann_whitney=setting.mann_whitney, seed=setting.seed, resamples=setting.resamples
        ),
        candidates=reports,
        verdict=doc.ComparisonVerdict(
            outcome=min(outcomes, key=_WORST.index, default=None),
            exit_code=int(_exit_code([gate for gate in gates if gate is not None])),
            reasons=[
                f"{report.side.name}: {reason}" if several else reason
                for report in reports
                if report.gate is not None
                for reason in report.gate.reasons
            ],
        ),
    )


def _exit_code(gates: Sequence[Gate]) -> ExitCode:
    codes = [gate.exit_code for gate in gates]
    # A regression that was found is found, whatever cannot be told of another candidate.
    return ExitCode.FAILED if ExitCode.FAILED in codes else worst(codes)


def _side(side: RunSet) -> doc.SideReport:
    counted = side.counted
    return doc.SideReport(
        name=side.name,
        kind="baseline" if side.is_baseline else "runs",
        profile=str(counted[0].profile.get("name")),
        runs=[_run(run, counted=run in counted) for run in side.runs],
        versions=dict(counted[0].versions),
        valid=side.valid,
    )


def _run(run: RunMeasures, *, counted: bool) -> doc.ComparedRun:
    return doc.ComparedRun.model_validate(
        {
            "id": run.id,
            "directory": run.directory,
            "started_at": run.started_at,
            "outcome": run.outcome,
            "counted": counted,
            "reason": run.reason,
        }
    )


def _candidate(compared: Comparison, gate: Gate | None, setting: Setting) -> doc.CandidateReport:
    return doc.CandidateReport(
        side=_side(compared.new),
        differences=[
            doc.DifferenceReport(what=item.what.value, key=item.key, base=item.base, new=item.new)
            for item in compared.differences
        ],
        notes=[*compared.notes, *_lost(compared.lost)],
        changes=[_change(change, setting) for change in compared.changes],
        gate=None if gate is None else _gate(gate),
    )


def _lost(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    shown = ", ".join(names[:4])
    return [f"measured in base only: {shown}{f' and {len(names) - 4} more' if len(names) > 4 else ''}"]


def _change(change: Change, setting: Setting) -> doc.ChangeReport:
    kind = change.kind
    section, label = section_of(change.metric)
    return doc.ChangeReport(
        metric=change.metric,
        section=section,
        label=label,
        unit=kind.unit,
        better=kind.better,
        call=change.call(setting),
        why=change.why,
        scale=kind.scale.value,
        base=change.base,
        new=change.new,
        base_said=said_amount(kind, change.base),
        new_said=said_amount(kind, change.new),
        change=change.change,
        low=change.low,
        high=change.high,
        change_said=said_change(kind, change.change),
        interval_said=_interval(change),
        least_said=said_change(kind, kind.least_change(change.base)).lstrip("+"),
        samples=change.samples,
        base_samples=change.base_samples,
        new_samples=change.new_samples,
        p=change.p,
        p_adjusted=change.p_adjusted,
    )


def said_change(kind: MetricKind, change: float) -> str:
    """Write a change for people: +21 %, +1.2 points (of shares), −3.00 s; ``lost`` and ``back`` where one side has no answer."""
    if math.isnan(change):
        return "–"
    if math.isinf(change):
        return "lost" if change > 0 else "back"
    sign = "−" if change < 0 else "+" if change > 0 else ""
    if kind.scale is Scale.RATIO or kind.unit == "share":
        percent = abs(change) * 100
        # A thousand times as much is no percentage that anybody reads.
        if kind.scale is Scale.RATIO and change >= 9:
            return f"×{change + 1:.3g}"
        digits = f"{percent:.1f}" if percent < 9.95 else f"{percent:.0f}"
        sign = "" if digits == "0.0" else sign
        return f"{sign}{digits} {'points' if kind.unit == 'share' else '%'}"
    return f"{sign}{said_amount(kind, abs(change))}"


def _interval(change: Change) -> str | None:
    if math.isnan(change.low) or change.constant or math.isinf(change.change):
        return None
    return f"{said_change(change.kind, change.low)} to {said_change(change.kind, change.high)}"


def _gate(gate: Gate) -> doc.GateReport:
    checks = [
        doc.CheckReport(
            rule=check.rule.text,
            given_by=check.rule.given_by,
            metric=check.metric,
            outcome=check.outcome,
            said=_said(check),
        )
        for check in gate.checks
    ]
    wanted = "fail" if gate.outcome == "fail" else "undecided"
    unclear = [f"{item.metric}: {item.said}" for item in checks if item.outcome == wanted]
    reasons = [*gate.kept] if gate.kept else [] if gate.outcome == "pass" else list(dict.fromkeys(unclear))
    return doc.GateReport(
        outcome=gate.outcome, exit_code=int(gate.exit_code), reasons=reasons or _nothing(gate), checks=checks
    )


def _nothing(gate: Gate) -> list[str]:
    return [] if gate.outcome == "pass" else ["no metric could be compared"]


def _said(check: Check) -> str:
    change = check.change
    if change is None:
        return check.why or "not measured"
    kind = change.kind
    values = f"{said_amount(kind, change.new)} after {said_amount(kind, change.base)}"
    interval = _interval(change)
    spread = f" ({interval})" if interval else ""
    # The allowed amount on the side on which it is worse.
    allowed = said_change(kind, check.allowed).lstrip("+")
    said = f"{values}: {said_change(kind, change.change)}{spread}, allowed {allowed} worse"
    return f"{said}; {check.why}" if check.why else said
