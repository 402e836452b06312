"""Errors are short enough to be read, however many there are."""

from __future__ import annotations

import errno
import os

import pytest

from scaletest.core.errors import (
    EXIT_CODE_MEANINGS,
    EnvironmentProblem,
    ExitCode,
    Problem,
    ProfileError,
    UsageError,
    of_the_machine,
    refused,
)


def test_a_problem_says_where_and_what() -> None:
    problem = Problem("is no rate", file="a.yaml", line=3, key="flows.x.rollout", hint="write 80/s")
    assert "a.yaml:3: flows.x.rollout: is no rate (write 80/s)" == str(problem)
    assert "is empty" == str(Problem("is empty"))


def test_only_the_first_problems_are_shown_and_the_others_counted() -> None:
    error = ProfileError([Problem(f"wrong {number}", file="a.yaml") for number in range(60)])
    lines = error.message.splitlines()
    assert 26 == len(lines)
    assert "  … and 35 more" == lines[-1]
    assert 60 == len(error.problems)


def test_a_key_is_shown_on_one_line_and_not_without_end() -> None:
    text = str(Problem("unknown key", key="a\nb" + "x" * 5_000))
    assert text.startswith("a bx")
    assert len(text) < 130


def test_every_exit_code_has_a_meaning() -> None:
    assert set(ExitCode) == set(EXIT_CODE_MEANINGS)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EMFILE, errno.EAGAIN, errno.ENOMEM])
def test_what_the_system_refuses_is_an_environment_problem_with_the_place_and_a_hint(number: int) -> None:
    problem = of_the_machine(OSError(number, os.strerror(number), "/somewhere"))

    assert problem is not None
    assert ExitCode.ENVIRONMENT == problem.exit_code
    assert f"/somewhere: {os.strerror(number)}" == problem.message
    assert problem.hint


def test_a_refusal_without_a_place_says_what_was_refused() -> None:
    problem = of_the_machine(OSError(errno.EMFILE, "Too many open files"))
    assert problem is not None
    assert "Too many open files" == problem.message
    assert of_the_machine(MemoryError()) is not None
    assert of_the_machine(RuntimeError("can't start new thread")) is not None


@pytest.mark.parametrize(
    "error", [FileNotFoundError(2, "No such file"), RuntimeError("x"), KeyError("x"), OSError("x")]
)
def test_a_bug_of_ours_is_no_problem_of_the_machine(error: Exception) -> None:
    assert of_the_machine(error) is None


def test_what_was_given_is_not_poured_out_whole() -> None:
    error = UsageError(f"{'x' * 9_000}: no such file\n{'y ' * 9_000}", hint="z" * 9_000)
    first, second = error.message.splitlines()

    assert first.startswith("xxx")
    assert first.endswith("…" + "x" * 59 + ": no such file")
    assert len(second) < 3_100
    assert len(error.hint or "") < 200
    assert error.message == UsageError(error.message).message


@pytest.mark.parametrize("length", [5, 100, 300])
def test_a_name_that_people_can_read_is_said_whole(length: int) -> None:
    assert "x" * length == UsageError("x" * length).message


@pytest.mark.parametrize("number", [errno.ENAMETOOLONG, errno.ELOOP])
def test_a_name_that_no_system_takes_is_the_users(number: int) -> None:
    problem = of_the_machine(OSError(number, os.strerror(number), "somewhere"))

    assert isinstance(problem, UsageError)
    assert problem.message.startswith("somewhere: ")


@pytest.mark.parametrize(
    ("number", "kind", "message"),
    [
        (errno.EEXIST, UsageError, "x: cannot be made: one of its parents is a file"),
        (errno.ENOTDIR, UsageError, "x: cannot be made: one of its parents is a file"),
        (errno.ENOENT, UsageError, f"x: cannot be made: {os.strerror(errno.ENOENT)}"),
        (errno.EACCES, EnvironmentProblem, f"x: cannot be made: {os.strerror(errno.EACCES)}"),
        (errno.ENOSPC, EnvironmentProblem, f"x: cannot be made: {os.strerror(errno.ENOSPC)}"),
    ],
)
def test_what_cannot_be_made_has_the_hint_of_its_option(number: int, kind: type[Exception], message: str) -> None:
    problem = refused(OSError(number, os.strerror(number), "/else"), "x: cannot be made", hint="Name another: --there")

    assert kind is type(problem)
    assert (message, "Name another: --there") == (problem.message, problem.hint)
