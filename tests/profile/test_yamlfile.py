from __future__ import annotations

import os
from pathlib import Path

import pytest

from scaletest.core.errors import ProfileError
from scaletest.profile.yamlfile import LARGEST_FILE_BYTES, parse_text, read_text, resolve_scalar
from tests.profile.samples import write


def first_problem(text: str) -> tuple[int | None, str]:
    with pytest.raises(ProfileError) as caught:
        parse_text(text, "p.yaml")
    problem = caught.value.problems[0]

    assert "p.yaml" == problem.file

    return problem.line, problem.what


def refused_file(path: Path) -> str:
    with pytest.raises(ProfileError) as caught:
        read_text(path)
    return str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["on", "off", "yes", "no", "y", "True", "NULL", "1e3", "0x10", "0o7", "010", "1_000", "12:30", "2026-01-01", ".inf",
     "+.5", "9" * 19, "<<", "1.2.3", "5s", "="],
)  # fmt: skip
def test_what_only_yaml_1_1_would_convert_stays_text(text: str) -> None:
    assert {"key": text} == parse_text(f"key: {text}", "p").data
    assert text == resolve_scalar(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("false", False), ("null", None), ("~", None), ("", None), ("0", 0), ("-7", -7), ("+7", 7),
     ("1.30", 1.3), (".5", 0.5), ("-0.25", -0.25), ("5.", 5.0)],
)  # fmt: skip
def test_the_scalars_of_json_are_values(text: str, value: object) -> None:
    data = parse_text(f"key: {text}", "p").data["key"]

    assert (type(value), value) == (type(data), data)
    assert (type(value), value) == (type(resolve_scalar(text)), resolve_scalar(text))


def test_quoted_scalars_are_text_whatever_they_look_like() -> None:
    assert ["1", "true", "null", ""] == parse_text("""["1", 'true', "null", '']""", "p").data


def test_every_key_and_item_has_its_line() -> None:
    document = parse_text("a: 1\nb:\n  - x\n  - {c: 1,\n     d: 2}\n", "p")

    assert 1 == document.line(("a",))
    assert 2 == document.line(("b",))
    assert 3 == document.line(("b", 0))
    assert 4 == document.line(("b", 1, "c"))
    assert 5 == document.line(("b", 1, "d"))


def test_a_path_that_is_not_there_has_the_line_of_its_nearest_part() -> None:
    document = parse_text("a: 1\nb:\n  c: 1\n", "p")

    assert 2 == document.line(("b", "missing", 3))
    assert 1 == document.line(("missing",))


def test_a_key_given_twice_names_both_lines() -> None:
    (problem,) = parse_text("a:\n  b: 1\n  c: 2\n  b: 3\n", "p.yaml").problems

    assert "p.yaml:4: a.b: the key is given twice, first in line 2" == str(problem)


def test_aliases_are_followed_and_their_values_are_separate() -> None:
    data = parse_text("a: &x {k: [1]}\nb: *x\n", "p").data
    data["a"]["k"].append(2)

    assert {"a": {"k": [1, 2]}, "b": {"k": [1]}} == data


def test_many_aliases_of_aliases_are_refused_and_not_expanded() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]

    assert "holds more than 50,000 values, aliases included" == first_problem("\n".join(levels))[1]


def test_an_alias_to_its_own_parent_is_refused() -> None:
    (problem,) = parse_text("a: &x [1, *x]\n", "p.yaml").problems

    assert "p.yaml:1: a.1: an alias to something that it is part of" == str(problem)


def test_merge_keys_and_tags_are_refused() -> None:
    document = parse_text("a: &x {k: 1}\nb: {<<: *x}\nc: !!int abc\nd: !mine 1\ne: !!set {x}\n", "p.yaml")

    assert [2, 3, 4, 5] == [problem.line for problem in document.problems]
    assert ["b.<<", "c", "d", "e"] == [problem.key for problem in document.problems]


def test_a_tag_never_makes_an_object() -> None:
    (problem,) = parse_text("a: !!python/object/apply:os.system ['true']\n", "p.yaml").problems

    assert "tags are not supported: python/object/apply:os.system" == problem.what


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: 1\n\tb: 2\n", 2, "tab"),
        ("a: 1\nb: c: d\n", 2, "': ' where none can be"),
        ("a: 1\nb 2\nc: 3\n", 3, "line without ': '"),
        ("a: [1, 2\nb: 3\n", 2, "bracket is not closed"),
        ("a: {b: 1\n", 2, "bracket is not closed"),
        ('a: "open\nb: 1\n', 3, "quote is opened and not closed"),
        ("a:\n  b: 1\n c: 2\n", 3, "wrong indentation"),
        ("a: *nothing\n", 1, "alias refers to no anchor"),
        ("a: @x\n", 1, "must be in quotes"),
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        ('a: "\\q"\n', 1, "unknown escape"),
        ("a: 1\nb: \x01\n", 2, "character that YAML does not allow (U+0001)"),
    ],
)
def test_a_syntax_error_has_its_line_and_a_plain_reason(text: str, line: int, said: str) -> None:
    found_line, what = first_problem(text)

    assert line == found_line
    assert said in what


def test_deep_nesting_is_refused() -> None:
    assert (3, "is nested too deeply: no profile is") == first_problem("a:\n- b\n- " + "[" * 20_000)
    assert "is nested too deeply: no profile is" == first_problem("- " * 5_000 + "x")[1]
    assert (2, "is nested too deeply: no profile is") == first_problem("a: 1\nb: " + "[" * 80 + "]" * 80)


def test_aliases_do_not_nest_deeper_than_text_may() -> None:
    levels = ["a0: &a0 [x]", *(f"a{i}: &a{i} [[[[[*a{i - 1}]]]]]" for i in range(1, 40))]

    assert "is nested too deeply: no profile is" == first_problem("\n".join(levels))[1]


def test_a_lone_surrogate_is_replaced() -> None:
    assert {"a\ufffd": "\ufffdx"} == parse_text('"a\\udfff": "\\ud800x"\n', "p").data


def test_a_key_that_is_a_list_is_refused() -> None:
    (problem,) = parse_text("? [a]\n: 1\n", "p.yaml").problems

    assert "a key must be text" in problem.what


def test_files_that_are_no_text_are_refused(tmp_path: Path) -> None:
    assert "is not UTF-8 (byte 0xe9)" in refused_file(Path(write(tmp_path, b"a: 1\nname: caf\xe9\n")))
    assert ":2: " in refused_file(Path(write(tmp_path, b"a: 1\nname: caf\xe9\n")))
    assert "is not a text file" in refused_file(Path(write(tmp_path, "name: x".encode("utf-16-le"))))
    assert "is not a text file" in refused_file(Path(write(tmp_path, bytes(range(256)))))
    assert "larger than 256 KiB" in refused_file(Path(write(tmp_path, b"#" * (LARGEST_FILE_BYTES + 1))))


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)

    assert "is a directory" in refused_file(tmp_path)
    assert "no such file" in refused_file(tmp_path / "none.yaml")
    assert "is no ordinary file" in refused_file(pipe)
    assert "cannot be read" in refused_file(loop)
    assert "cannot be read" in refused_file(tmp_path / ("x" * 300 + ".yaml"))
    assert "cannot be read" in refused_file(Path("a\0/b.yaml"))


def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path: Path) -> None:
    assert "name: x" == read_text(Path(write(tmp_path, b"\xef\xbb\xbfname: x")))
