"""JUnit XML of every form, read by junitparser, and held to the rules of Jenkins."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped, TestSuite

from scaletest.cli._formats import Format
from scaletest.cli._reports import read_subject, render
from scaletest.core.journal import Record
from scaletest.report.document import Document
from scaletest.report.junit import Case, render_junit
from scaletest.report.markdown_comparison import comparison_cases
from tests.analysis.journals import driver, record, run_info, small_run
from tests.report.built import document
from tests.report.comparison_documents import comparison
from tests.report.junit_schema import problems
from tests.report.matrices import calm_run, mixed_runs, write_matrix


def parsed(*documents: Document, more: Any = ()) -> ET.Element:
    """Read a text as XML, after Jenkins and junitparser would have taken it too."""
    text = render_junit(documents, more)
    assert text.startswith("<?xml ")
    root = ET.fromstring(text)
    assert problems(root) == []
    read = JUnitXml.fromstring(text.encode())
    assert counts(read) == counts_of_cases(read)
    for suite in read:
        assert (suite.tests, suite.failures, suite.errors, suite.skipped) == counts_of_cases([suite])
    return root


def counts(read: JUnitXml) -> tuple[int, int, int, int]:
    """Tests, failures and errors as they are written at the top, where there is no place for what was skipped."""
    return read.tests, read.failures, read.errors, sum(suite.skipped for suite in read)


def counts_of_cases(suites: Iterable[TestSuite]) -> tuple[int, int, int, int]:
    cases = [case for suite in suites for case in suite]
    kinds = [result for case in cases for result in case.result]
    assert all(len(case.result) <= 1 for case in cases)
    of = {kind: sum(isinstance(result, kind) for result in kinds) for kind in (Failure, Error, Skipped)}
    return len(cases), of[Failure], of[Error], of[Skipped]


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


@pytest.mark.parametrize(
    ("records", "tests"),
    [
        (small_run(), (5, 3, 0, 0)),
        (calm_run(), (5, 1, 0, 0)),
        (small_run(finished=False), (5, 3, 1, 0)),
        (small_run()[:30], (5, 1, 1, 2)),
        ([], (5, 3, 1, 0)),
        (
            [item if item["kind"] != "driver" else driver(item["t"], [500_000] * 100) for item in calm_run()],
            (5, 1, 1, 2),
        ),
        ([*small_run()[:200], record("run.end", 30.0, status="interrupted", reason="SIGINT")], (5, 3, 1, 0)),
    ],
    ids=["failed", "passed", "killed", "killed early", "nothing", "invalid", "interrupted"],
)
def test_a_run_that_came_to_anything_is_read(records: list[Record], tests: tuple[int, ...]) -> None:
    read = JUnitXml.fromstring(render_junit([document(records)]).encode())

    parsed(document(records))
    assert counts(read) == tests


def test_of_a_matrix_every_run_that_was_begun_is_a_suite(tmp_path: Path) -> None:
    directory = write_matrix(tmp_path / "matrix", mixed_runs())
    text = render([read_subject(directory)], Format.JUNIT)
    read = JUnitXml.fromstring(text.encode())

    assert problems(ET.fromstring(text)) == []
    assert [suite.name for suite in read] == ["smoke", "smoke", "smoke"]
    assert counts(read) == counts_of_cases(read)
    assert read.errors == 1


@pytest.mark.parametrize(
    ("outcome", "tests"), [("pass", (1, 0, 0, 0)), ("fail", (1, 1, 0, 0)), ("undecided", (1, 0, 0, 1))]
)
def test_a_gate_is_read(outcome: str, tests: tuple[int, ...]) -> None:
    compared = comparison(outcome)
    read = JUnitXml.fromstring(render_junit([], comparison_cases(compared)).encode())

    parsed(more=comparison_cases(compared))
    assert counts(read) == tests


def test_a_comparison_without_rules_has_no_case() -> None:
    (candidate,) = comparison().candidates
    compared = comparison().model_copy(update={"candidates": [candidate.model_copy(update={"gate": None})]})

    assert results(parsed(more=comparison_cases(compared))) == {}


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


@given(
    st.text(st.characters() | st.characters(categories=["Cc", "Cs", "Cn"]), max_size=60),
    st.sampled_from(["passed", "failed", "error", "skipped"]),
)
def test_any_text_is_written_so_that_a_parser_reads_it(text: str, result: Any) -> None:
    root = parsed(more=[(text, [Case("gate", text, result, text, text), Case("gate", "other", "passed", text)])])
    (suite,) = root.findall("testsuite")

    if text.isprintable():
        assert suite.findall("testcase")[0].get("name") == suite.get("name") == text


def test_any_text_of_a_run_is_written_so_that_a_parser_reads_it() -> None:
    odd = "\x00\x08 ]]> <b> & \ud800 \ufffe \r\n\t\x1b[31m"
    info = run_info(id=odd, versions={odd: odd}, profile={**run_info().profile, "name": odd, "objectives": [odd]})
    root = parsed(document(small_run(), info))

    assert "\N{REPLACEMENT CHARACTER}[31m" in str(root.findall("testsuite")[0].get("name"))


def test_the_rules_of_jenkins_can_be_broken() -> None:
    wrong = '<testsuites skipped="1" time="1.2.3"><testsuite name="a" tests="x" failures="0"><case/></testsuite>text</testsuites>'

    assert len(problems(ET.fromstring(wrong))) == 6
