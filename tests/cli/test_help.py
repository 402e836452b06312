"""Help: every command has the common options and ends with examples, and each example is a command line that there is."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from scaletest.cli.main import app
from scaletest.core.errors import ExitCode, UsageError
from scaletest.profile.builtin import built_in_profiles

ROOT = typer.main.get_command(app)
PAGES = Path(__file__).parents[2]
PROFILES = {profile.name for profile in built_in_profiles()}


def commands(command: Any = ROOT, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the names of every command that can be run."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path
        return
    for name in inner:
        yield from commands(inner[name], (*path, name))


def parse(line: str) -> tuple[str, dict[str, Any]]:
    """Parse a command line as the program does, and run nothing; return the command and its arguments."""
    words = [word for word in shlex.split(line, comments=True) if word != "$"]
    while "=" in words[0]:
        del words[0]
    assert "scaletest" == words.pop(0)
    if all(word.startswith("--") for word in words):
        # What these do, they do while they are parsed: --install-completion writes into the home directory.
        assert set(words) <= {name for parameter in ROOT.params for name in parameter.opts}
        return "scaletest", {}
    command: Any = ROOT
    context = ROOT.make_context("scaletest", words)
    rest = [*context._protected_args, *context.args]
    while hasattr(command, "commands"):
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, list(rest), parent=context)
        rest = [*context._protected_args, *context.args]
    return context.command_path, context.params


@pytest.mark.parametrize("path", list(commands()), ids=" ".join)
def test_help_ends_with_examples_that_are_command_lines(path: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*path, "--help"], prog_name="scaletest", terminal_width=200)
    text, _, examples = done.stdout.partition("\n  Examples:\n")
    lines = examples.rstrip("\n").splitlines()

    assert 1 <= len(lines) <= 3
    for option in ("--color", "--quiet", "--verbose", "--help"):
        assert f"{option} " in text
    for line in lines:
        assert len(line) < 80
        command, given = parse(line)
        assert f"scaletest {' '.join(path)}" == command
        profile = given.get("profile")
        assert profile is None or profile in PROFILES or profile.endswith(".yaml")


@pytest.mark.parametrize("path", list(commands()), ids=" ".join)
def test_help_names_arguments_in_capitals_and_types_of_lists_nowhere(path: tuple[str, ...]) -> None:
    text = CliRunner().invoke(app, [*path, "--help"], prog_name="scaletest", terminal_width=200).stdout
    usage = text.splitlines()[0].partition("[OPTIONS]")[2]

    assert usage == usage.upper()
    assert re.fullmatch(r"( (\[[A-Z]+\]|\{[A-Z]+\})(\.\.\.)?)*", usage), usage
    assert "<list[" not in text.partition("Options:")[2]


def test_the_list_of_commands_is_whole_and_the_exit_codes_are_all_there() -> None:
    text = CliRunner().invoke(app, ["--help"], prog_name="scaletest").stdout

    assert "..." not in text.partition("Commands:")[2]
    for code in ExitCode:
        assert re.search(rf"\b{int(code)}\s+[a-z]", text)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["run", "smoke", "--repeat", "many"], "'--repeat': 'many' must be a whole number"),
        (["runs", "prune", "--keep", "-1"], "'--keep': '-1' must be at least 0"),
        (["init", "--nodes", "99999999"], "'--nodes': '99999999' must be at most 20,000"),
        (["gate", "smoke", "--despite", "all"], "'--despite': 'all' is not one of 'profile', 'host'"),
        (
            ["compare", "a", "b", "--format", "html"],
            "'--format': 'html' is not one of 'text', 'json', 'markdown', 'junit'",
        ),
        (["--color", "blue", "clean"], "'--color': 'blue' is not one of 'auto', 'always', 'never'"),
    ],
)
def test_what_is_wrong_with_an_argument_is_said_in_our_words(argv: list[str], said: str) -> None:
    done = CliRunner().invoke(app, argv, prog_name="scaletest")

    assert 2 == done.exit_code
    assert said in done.stderr
    assert not re.search("Value error|Input should|valid integer", done.stderr)


def documented() -> list[tuple[str, str]]:
    """Return the command lines of the README and the guide, with the page of each."""
    found = []
    for page in (PAGES / "README.md", *sorted((PAGES / "docs" / "guide").glob("*.md"))):
        for block in re.findall(
            r"^```(?:sh|console|shell|bash)\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
        ):
            lines = re.sub(r"\\\n\s*", "", block).splitlines()
            found += [(page.name, line.partition(" | ")[0]) for line in lines if re.match(r"(\$ )?scaletest ", line)]
    return found


def test_command_lines_of_the_guide_are_command_lines() -> None:
    lines = documented()
    assert len(lines) > 50

    for page, line in lines:
        try:
            parse(line)
        except Exception as error:  # noqa: BLE001
            pytest.fail(f"{page}: {line}: {error}")


def test_a_mistake_in_the_settings_keeps_nobody_from_help(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.scaletest]\nnosuch = 1\nfail = [5]\n")
    run = [sys.executable, "-m", "scaletest", "run"]
    helped, refused = (
        subprocess.run([*run, word], cwd=tmp_path, capture_output=True, text=True, check=False)
        for word in ("--help", "smoke")
    )

    assert (0, 2) == (helped.returncode, refused.returncode)
    assert "Run a profile" in helped.stdout
    assert "pyproject.toml" in refused.stderr


def test_the_source_of_a_profile_can_be_copied() -> None:
    for name in ("smoke", "what-if-agent"):
        shown = CliRunner().invoke(app, ["profiles", "show", name, "--source"])
        assert (PAGES / "profiles" / f"{name}.yaml").read_text(encoding="utf-8") == shown.stdout
    refused = CliRunner().invoke(app, ["profiles", "show", "smoke", "--source", "--set", "nodes=9"])
    assert isinstance(refused.exception, UsageError)
