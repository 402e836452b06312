"""Invalid profiles by the hundred: each is refused with its file (or ``--set``) and key, never with a traceback."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from scaletest.core.errors import ExitCode, UsageError
from scaletest.profile.loading import load_profile
from scaletest.profile.render import to_yaml
from scaletest.profile.schema import Profile
from tests.profile.mutations import INVALID, Mutation, valid_change
from tests.profile.samples import write

PER_CLASS = 25
CASES = [(kind, number) for kind in INVALID for number in range(PER_CLASS)]
LIBRARY_WORDS = re.compile(r"Input should|validation error|pydantic|Traceback|type=|<class|object at 0x", re.IGNORECASE)


def mutation(kind: str, number: int) -> Mutation:
    return INVALID[kind](Random(f"{kind} {number}"))


def check_message(message: str, path: str, made: Mutation) -> None:
    places = [path, *(f"--set {override.strip()}" for override in made.overrides)]

    assert [] == [line for line in message.splitlines() if not any(place in line for place in places)]
    assert made.key is None or made.key in message
    assert not LIBRARY_WORDS.search(message)


@pytest.mark.parametrize(("kind", "number"), CASES)
def test_an_invalid_profile_is_refused_with_file_and_key(tmp_path: Path, kind: str, number: int) -> None:
    made = mutation(kind, number)
    path = write(tmp_path, made.text)

    with pytest.raises(UsageError) as caught:
        load_profile(path, made.overrides)

    assert ExitCode.USAGE == caught.value.exit_code
    check_message(caught.value.message, path, made)


@pytest.mark.parametrize("number", range(100))
def test_a_valid_change_reads_back_as_the_same_profile(tmp_path: Path, number: int) -> None:
    text, overrides = valid_change(Random(number))
    loaded = load_profile(write(tmp_path, text), overrides)
    again = load_profile(write(tmp_path, to_yaml(loaded.resolved)))

    assert loaded.profile == Profile.model_validate(loaded.resolved)
    assert loaded.profile == again.profile
    assert loaded.resolved == again.resolved


@pytest.mark.parametrize(("kind", "number"), Random("command").sample(CASES, 20))
def test_the_command_ends_in_2_without_a_traceback(tmp_path: Path, kind: str, number: int) -> None:
    made = mutation(kind, number)
    path = write(tmp_path, made.text)
    sets = [argument for override in made.overrides for argument in ("--set", override)]
    ended = subprocess.run(
        [sys.executable, "-m", "scaletest", "profiles", "validate", path, *sets],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ExitCode.USAGE, "") == (ended.returncode, ended.stdout)
    assert ended.stderr.startswith("scaletest: ")
    *problems, count = ended.stderr.splitlines()
    assert count.endswith("found")
    check_message("\n".join(problems), path, made)
