"""Errors are short enough to be read, however many there are."""

from __future__ import annotations

from scaletest.core.errors import EXIT_CODE_MEANINGS, ExitCode, Problem, ProfileError


def test_a_problem_says_where_and_what() -> None:
    problem = Problem("is no rate", file="a.yaml", line=3, key="flows.x.rollout", hint="write 80/s")
    assert "a.yaml:3: flows.x.rollout: is no rate (write 80/s)" == str(problem)
    assert "is empty" == str(Problem("is empty"))


def test_only_the_first_problems_are_shown_and_the_others_counted() -> None:
    error = ProfileError([Problem(f"wrong {number}", file="a.yaml") for number in range(60)])
    lines = error.message.splitlines()
    assert 26 == len(lines)
    assert "… and 35 more" == lines[-1]
    assert 60 == len(error.problems)


def test_a_key_is_shown_on_one_line_and_not_without_end() -> None:
    text = str(Problem("unknown key", key="a\nb" + "x" * 5_000))
    assert text.startswith("a bx")
    assert len(text) < 130


def test_every_exit_code_has_a_meaning() -> None:
    assert set(ExitCode) == set(EXIT_CODE_MEANINGS)
