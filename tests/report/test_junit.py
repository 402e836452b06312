"""JUnit XML, read by a real parser."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from scaletest.report.document import Document
from scaletest.report.junit import Case, render_junit
from scaletest.report.markdown_comparison import comparison_cases
from tests.analysis.journals import driver, record, run_info, small_run
from tests.report.built import document
from tests.report.comparison_documents import comparison


def parsed(*documents: Document, more: Any = ()) -> ET.Element:
    text = render_junit(documents, more)
    assert text.startswith("<?xml ")
    return ET.fromstring(text)


def results(root: ET.Element) -> dict[str, str]:
    found = {}
    for case in root.iter("testcase"):
        child = next((item.tag for item in case if item.tag != "system-out"), "passed")
        found[str(case.get("name"))] = child
    return found


def test_each_objective_is_a_case_and_the_run_has_two() -> None:
    root = parsed(document(small_run()))

    assert results(root) == {
        "comes to its end": "passed", "is a valid measurement": "passed", "flow.agents.error_rate < 1%": "failure",
        "probe.operator.p99 < 1s": "failure", "component.kube-apiserver.oom_kills == 0": "failure",
    }  # fmt: skip
    failure = root.find(".//testcase[@name='flow.agents.error_rate < 1%']/failure")
    assert failure is not None
    assert failure.get("message") == "4 % (of 2,500)"


def test_counts_are_those_of_the_cases() -> None:
    root = parsed(document(small_run()), document(small_run(finished=False)))

    for suite in root.findall("testsuite"):
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases))
        assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
        assert suite.get("errors") == str(len(suite.findall("testcase/error")))
        assert suite.get("skipped") == str(len(suite.findall("testcase/skipped")))
    assert root.get("tests") == str(len(list(root.iter("testcase"))))
    assert root.get("errors") == "1"


def test_an_objective_that_holds_in_an_invalid_run_proves_nothing() -> None:
    slow = [item if item["kind"] != "driver" else driver(item["t"], [500_000] * 100) for item in small_run()]
    info = run_info(profile={**run_info().profile, "objectives": ["flow.agents.error_rate < 50%"]})
    found = results(parsed(document(slow, info)))

    assert found["is a valid measurement"] == "error"
    assert found["flow.agents.error_rate < 50%"] == "skipped"


def test_a_run_that_was_killed_is_an_error() -> None:
    root = parsed(document([record("phase.start", 1.0, phase="one")]))

    assert results(root)["comes to its end"] == "error"


def test_each_rule_of_a_gate_is_a_case_that_names_its_metric() -> None:
    root = parsed(document(small_run()), more=comparison_cases(comparison()))
    suite = root.find("testsuite[@name='new against base']")

    assert suite is not None
    assert results(suite) == {"flow.agents.p99 (p99:10%)": "failure"}


@given(st.text(max_size=60))
def test_any_text_is_written_so_that_a_parser_reads_it(text: str) -> None:
    cases = [Case("gate", text, "failed", text, text), Case("gate", "other", "passed", text)]
    root = parsed(more=[(text, cases)])
    (suite,) = root.findall("testsuite")

    assert suite.get("tests") == "2"
    if text.isprintable():
        assert suite.findall("testcase")[0].get("name") == text
