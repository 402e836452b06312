"""A comparison as parts of a Markdown report, and as JUnit cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from scaletest.report.comparison_document import CandidateReport, ChangeReport, CheckReport, ComparisonDocument
from scaletest.report.junit import Case
from scaletest.report.markdown_text import code, folded, table, text

__all__ = ["comparison_cases", "comparison_parts"]

_MARKS: Final = {"pass": "✅", "fail": "❌", "undecided": "⚠️"}
_CALLS: Final = {"worse": "❌", "better": "✅", "same": "~"}


def comparison_parts(document: ComparisonDocument) -> Iterator[list[str]]:
    """Yield what a comparison came to, and then, folded, every metric."""
    for candidate in document.candidates:
        yield list(_candidate(document, candidate))
    for candidate in document.candidates:
        if candidate.changes:
            yield folded(f"All {len(candidate.changes)} metrics: {candidate.side.name}", _table(candidate.changes))


def _candidate(document: ComparisonDocument, candidate: CandidateReport) -> Iterator[str]:
    gate = candidate.gate
    said = f"{_MARKS[gate.outcome]} " if gate else ""
    outcome = f": {gate.outcome}" if gate else ""
    yield f"### {said}{text(candidate.side.name)} against {text(document.base.name)}{outcome}"
    if gate and gate.reasons:
        yield ""
        yield from (f"- {text(reason)}" for reason in gate.reasons)
    told = [f"- {text(note)}" for note in candidate.notes]
    told += [
        f"- {item.what} {code(item.key)}: {text(item.base)} → {text(item.new)}" for item in candidate.differences[:10]
    ]
    if told:
        yield ""
        yield from told
    called = [item for item in candidate.changes if item.call != "same"]
    yield ""
    if called:
        yield from _table(called)
    else:
        yield f"No change is called in any of {len(candidate.changes)} metrics."


def _table(changes: list[ChangeReport]) -> list[str]:
    head = ("", "metric", "base", "new", "change", "95 % interval", "p")
    rows = [
        (
            _CALLS[item.call],
            code(item.metric),
            text(item.base_said),
            text(item.new_said),
            text(item.change_said),
            text(item.interval_said or ""),
            "" if item.p_adjusted is None else f"{item.p_adjusted:.3g}",
        )
        for item in changes
    ]
    return table(head, rows, left=2)


def comparison_cases(document: ComparisonDocument) -> list[tuple[str, list[Case]]]:
    """Return a named group of cases for each candidate that a gate was asked for: one for each rule and metric."""
    return [
        (f"{candidate.side.name} against {document.base.name}", [_case(check) for check in candidate.gate.checks])
        for candidate in document.candidates
        if candidate.gate is not None
    ]


_RESULTS: Final[dict[str, Literal["passed", "failed", "skipped"]]] = {
    "pass": "passed",
    "fail": "failed",
    "undecided": "skipped",
}


def _case(check: CheckReport) -> Case:
    detail = f"{check.metric}: {check.said}\nrule {check.rule}, given by {check.given_by}"
    return Case("gate", f"{check.metric} ({check.rule})", _RESULTS[check.outcome], check.said, detail)
