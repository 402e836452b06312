"""A comparison document, as ``scaletest compare`` makes it."""

from __future__ import annotations

from typing import Any

from scaletest.report.comparison_document import (
    CandidateReport,
    ChangeReport,
    CheckReport,
    ComparedRun,
    ComparisonDocument,
    ComparisonVerdict,
    DifferenceReport,
    GateReport,
    SettingReport,
    SideReport,
)


def side(name: str) -> SideReport:
    run = ComparedRun(
        id=f"{name}-1",
        directory=None,
        started_at="2026-11-30T12:00:00+00:00",
        outcome="pass",
        counted=True,
        reason=None,
    )
    return SideReport(
        name=name, kind="runs", profile="smoke", runs=[run], versions={"kubernetes": "1.37.2"}, valid=True
    )


def change(metric: str, call: Any, **more: Any) -> ChangeReport:
    fields: dict[str, Any] = {
        "metric": metric, "section": "Flow agents", "label": "p99", "unit": "seconds", "better": "lower", "call": call, "why": None,
        "scale": "ratio", "base": 1.0, "new": 1.2, "base_said": "1.00 s", "new_said": "1.20 s", "change": 0.2, "low": 0.15,
        "high": 0.27, "change_said": "+20 %", "interval_said": "+15 % to +27 %", "least_said": "10 %", "samples": "blocks",
        "base_samples": 20, "new_samples": 20, "p": 0.001, "p_adjusted": 0.004,
    }  # fmt: skip
    return ChangeReport(**{**fields, **more})


def comparison(outcome: Any = "fail") -> ComparisonDocument:
    """One candidate, slower than its base in one of two metrics."""
    said = "1.20 s instead of 1.00 s: +20 % (+15 % to +27 %), allowed 10 %"
    check = CheckReport(rule="p99:10%", given_by="--fail", metric="flow.agents.p99", outcome=outcome, said=said)
    code = {"pass": 0, "fail": 99, "undecided": 4}[outcome]
    reasons = [] if outcome == "pass" else [f"flow.agents.p99: {said}"]
    candidate = CandidateReport(
        side=side("new"),
        differences=[DifferenceReport(what="versions", key="kubernetes", base="1.36", new="1.37")],
        notes=["one run each: samples are blocks of time"],
        changes=[change("flow.agents.p99", "worse"), change("flow.agents.p50", "same")],
        gate=GateReport(outcome=outcome, exit_code=code, reasons=reasons, checks=[check]),
    )
    return ComparisonDocument(
        schema_version=1,
        base=side("base"),
        setting=SettingReport(alpha=0.05, mann_whitney=0.05, seed=1, resamples=1000),
        candidates=[candidate],
        verdict=ComparisonVerdict(outcome=outcome, exit_code=code, reasons=reasons),
    )
