"""The verdict as JUnit XML: a suite for each run, in it a case for each objective, and two on the run itself.

There is no standard; these are the elements and attributes that the readers of Jenkins, GitLab, GitHub actions and Azure agree on. An objective
that holds in a run that is invalid or was cut short is *skipped*: it proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal
from xml.etree import ElementTree as ET

from scaletest.report.document import Document, ObjectiveReport

__all__ = ["Case", "objective_cases", "render_junit"]

_NO_XML: Final = re.compile("[^\\t\\n\\r\\x20-\\uD7FF\\uE000-\\uFFFD\\U00010000-\\U0010FFFF]")
"""What XML 1.0 has no way to write."""

_WHOLE: Final = frozenset({"pass", "fail"})


@dataclass(frozen=True, slots=True)
class Case:
    """A test case; ``said`` is what there is to say of it, whatever it came to."""

    group: str
    name: str
    result: Literal["passed", "failed", "error", "skipped"]
    said: str
    detail: str = ""


def render_junit(documents: Sequence[Document], more: Iterable[tuple[str, Sequence[Case]]] = ()) -> str:
    """Write a suite for each run, and for each further named group of cases; ends in a newline."""
    root = ET.Element("testsuites", name="scaletest")
    suites = [_suite(root, _cases(document), document) for document in documents]
    suites += [_suite(root, list(cases), None, name) for name, cases in more]
    # No `skipped` here: the schema of Jenkins' xUnit plugin refuses a file with one.
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    root.set("time", f"{sum(document.run.duration_s for document in documents):.3f}")
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _cases(document: Document) -> list[Case]:
    return [_completed(document), _valid(document), *objective_cases(document)]


def _completed(document: Document) -> Case:
    if document.verdict.outcome == "incomplete":
        return Case(
            "run", "comes to its end", "error", document.verdict.reasons[0], "\n".join(document.verdict.reasons)
        )
    return Case("run", "comes to its end", "passed", "")


def _valid(document: Document) -> Case:
    bad = [f"{item.check}: {item.said}" for item in document.validity if item.grade == "bad"]
    remedies = [item.remedy for item in document.validity if item.grade == "bad" and item.remedy]
    said = "\n".join(f"{item.check}: {item.said}" for item in document.validity)
    if bad:
        return Case("run", "is a valid measurement", "error", bad[0], "\n".join([*bad, *remedies]))
    return Case("run", "is a valid measurement", "passed" if document.validity else "skipped", said)


def objective_cases(document: Document) -> list[Case]:
    """Return a case for each objective of a run."""
    return [_objective(item, document.verdict.outcome) for item in document.objectives]


def _objective(item: ObjectiveReport, outcome: str) -> Case:
    samples = f" (of {item.samples:,})" if item.samples else ""
    said = f"{item.said}{samples}"
    if not item.holds:
        return Case("objective", item.objective, "failed", said, f"{item.objective}\nmeasured: {said}")
    if outcome not in _WHOLE:
        return Case("objective", item.objective, "skipped", f"{said}, but the run is {outcome}")
    return Case("objective", item.objective, "passed", said)


def _suite(root: ET.Element, cases: Sequence[Case], document: Document | None, name: str = "") -> ET.Element:
    suite = ET.SubElement(root, "testsuite", name=_clean(document.run.profile if document else name))
    counts = {"failures": "failed", "errors": "error", "skipped": "skipped"}
    suite.set("tests", str(len(cases)))
    for attribute, result in counts.items():
        suite.set(attribute, str(sum(case.result == result for case in cases)))
    suite.set("time", f"{document.run.duration_s if document else 0:.3f}")
    if document is not None:
        suite.set("timestamp", _clean(document.run.started_at[:19]))
        _properties(suite, document)
    for case in cases:
        # Objectives are judged once, at the end: all time is the run's, and the first case has it.
        time_s = document.run.duration_s if document is not None and case is cases[0] else 0.0
        _case(suite, case, f"{suite.get('name')}.{case.group}", time_s)
    return suite


def _properties(suite: ET.Element, document: Document) -> None:
    run, verdict = document.run, document.verdict
    properties = ET.SubElement(suite, "properties")
    told = {
        "run": run.id, "directory": run.directory, "verdict": verdict.outcome, "exit_code": str(verdict.exit_code),
        "nodes": str(run.nodes), **{f"version.{name}": version for name, version in run.versions.items()},
    }  # fmt: skip
    for name, value in told.items():
        ET.SubElement(properties, "property", name=_clean(name), value=_clean(value))


def _case(suite: ET.Element, case: Case, group: str, time_s: float) -> None:
    element = ET.SubElement(suite, "testcase", classname=group, name=_clean(case.name), time=f"{time_s:.3f}")
    match case.result:
        case "failed":
            failure = ET.SubElement(element, "failure", message=_clean(case.said), type=case.group)
            failure.text = _clean(case.detail or case.said)
        case "error":
            error = ET.SubElement(element, "error", message=_clean(case.said), type=case.group)
            error.text = _clean(case.detail or case.said)
        case "skipped":
            ET.SubElement(element, "skipped", message=_clean(case.said))
        case "passed":
            if case.said:
                ET.SubElement(element, "system-out").text = _clean(case.said)


def _clean(text: str) -> str:
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)
