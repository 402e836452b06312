from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.profile.parameters import check_names, escape, substitute

STEP = ("flows", "f", "steps", 0, "name")


def fill(text: str, **parameters: Any) -> Any:
    result = substitute({"key": text}, parameters)

    assert [] == result.issues

    return result.data["key"]


def issue(data: dict[str, Any], **parameters: Any) -> str:
    (found,) = substitute(data, parameters).issues
    return f"{'.'.join(map(str, found.path))}: {found.what} ({found.hint})"


@pytest.mark.parametrize("value", [30, 0.5, True, "text", "1.30"])
def test_a_text_that_is_a_parameter_takes_its_value_with_its_type(value: object) -> None:
    filled = fill("{x}", x=value)

    assert (type(value), value) == (type(filled), filled)


@pytest.mark.parametrize(
    ("value", "written"), [(30, "30"), (0.5, "0.5"), (1e-7, "0.0000001"), (5.0, "5"), (True, "true"), ("a", "a")]
)
def test_within_a_text_a_value_is_written_out(value: object, written: str) -> None:
    assert f"at least {written} nodes" == fill("at least {x} nodes", x=value)


def test_doubled_braces_are_literal() -> None:
    assert "{x} } { {7}" == fill("{{x}} }} {{ {{{x}}}", x=7)


def test_the_run_time_word_is_left_alone_in_steps() -> None:
    data = {"flows": {"f": {"steps": [{"name": "{node}-{x}"}]}}}

    assert {"flows": {"f": {"steps": [{"name": "{node}-7"}]}}} == substitute(data, {"x": 7}).data


def test_the_run_time_word_means_nothing_elsewhere() -> None:
    assert "summary: {node} has a meaning only in the steps of a flow (None)" == issue({"summary": "{node}"})


def test_an_unknown_parameter_is_named_with_the_nearest() -> None:
    assert "key: unknown parameter {ndoes} (did you mean {nodes}?)" == issue({"key": "{ndoes}"}, nodes=1, rollout=2)
    assert "key: unknown parameter {zzz} (known: nodes, rollout)" == issue({"key": "{zzz}"}, nodes=1, rollout=2)
    assert "key: unknown parameter {zzz} (known: none)" == issue({"key": "{zzz}"})


@pytest.mark.parametrize("text", ["{", "}", "{}", "{ x }", "{x", "x}", "{1x}", "{{x}"])
def test_a_single_brace_is_an_issue(text: str) -> None:
    assert substitute({"key": text}, {"x": 1}).issues


def test_which_parameters_each_place_used_is_kept() -> None:
    result = substitute({"a": ["{x} {y} {x}", "none"], "b": "{y}"}, {"x": 1, "y": 2})

    assert {("a", 0): ("x", "y"), ("b",): ("y",)} == result.used
    assert {"x", "y"} == result.names


def test_parameters_themselves_and_keys_are_not_filled_in() -> None:
    data = {"parameters": {"x": "{x}"}, "b": {"{x}": 1}}

    assert data == substitute(data, {"x": 1}).data


@pytest.mark.parametrize("name", ["node", "name", "flows", "1x", "a b", "ä", "", "x" * 60])
def test_a_parameter_name_that_could_not_be_meant_is_an_issue(name: str) -> None:
    assert [("parameters", name)] == [found.path for found in check_names({name: 1})]


@pytest.mark.parametrize("value", ["{other}", "a{", "}"])
def test_the_value_of_a_parameter_holds_no_brace(value: str) -> None:
    assert check_names({"x": value})


def test_the_value_of_a_parameter_may_hold_the_run_time_word() -> None:
    assert [] == check_names({"x": "spec.nodeName={node}"})


@given(st.text(alphabet="{}node x", max_size=20))
def test_an_escaped_text_fills_in_as_itself(text: str) -> None:
    assert text == fill(escape(text, ("key",)))


@given(st.lists(st.sampled_from(["{node}", "a", "-", " "]), max_size=8).map("".join))
def test_an_escaped_step_keeps_its_run_time_words(text: str) -> None:
    escaped = escape(text, STEP)

    assert text == escaped
