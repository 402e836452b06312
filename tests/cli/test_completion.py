"""Shell completion, through the protocol that the shells' scripts speak."""

from __future__ import annotations

import contextvars
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from scaletest.analysis.metrickinds import MEASURES
from scaletest.cli._completion import complete_for_bash
from scaletest.cli._formats import COMPARED, Format
from scaletest.cli.main import app
from scaletest.profile.actions import LEVERS
from scaletest.profile.builtin import built_in_profiles
from tests.analysis.journals import write_run
from tests.report.matrices import killed_run


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with two runs, a baseline, a cluster and a profile."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SCALETEST_STATE_DIR", str(tmp_path / "state"))
    for name in ("20261201T000000Z-smoke", "20261202T000000Z-smoke"):
        write_run(tmp_path / "results" / name, killed_run())
    baselines = tmp_path / ".scaletest" / "baselines"
    baselines.mkdir(parents=True)
    stored: dict[str, Any] = {"runs": [{"metrics": {"flow.telemetry.p99": {}}}]}
    (baselines / "main.json").write_text(json.dumps(stored), encoding="utf-8")
    (tmp_path / "state" / "clusters" / "ci").mkdir(parents=True)
    (tmp_path / "state" / "clusters" / "ci" / "cluster.json").touch()
    (tmp_path / "mine.yaml").write_text("parameters: {nodes: 5}\nflows: {own: {}}\n", encoding="utf-8")
    return tmp_path


def offered(line: str) -> list[str]:
    """Return what is offered for the last word of a line, which may be empty."""
    words = line.split(" ")
    environ = {"_SCALETEST_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = contextvars.copy_context().run(lambda: CliRunner().invoke(app, [], env=environ, prog_name="scaletest"))
    assert (0, None, "") == (done.exit_code, done.exception and repr(done.exception), done.stderr)
    return done.stdout.split()


RUNS = ["latest", "20261202T000000Z-smoke", "20261201T000000Z-smoke"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("run sm", ["smoke"]),
        ("run m", ["mine.yaml"]),
        ("run ", [*(profile.name for profile in built_in_profiles()), "mine.yaml"]),
        ("profiles validate smoke mi", ["mine.yaml"]),
        ("report ", RUNS),
        ("report latest 20261201", RUNS[2:]),
        ("open --results nowhere ", []),
        ("compare ", ["main", *RUNS]),
        ("compare main late", ["latest"]),
        ("gate smoke --baseline ", ["main"]),
        ("baseline show ", ["main"]),
        ("run smoke --cluster ", ["ci"]),
        ("cluster down ", ["ci"]),
        ("run openai-outage --size ", ["quick", "prepared", "control"]),
        ("run what-if-agent --variant own", ["own-node", "own-level"]),
        ("run what-if-agent --variant own-node,own", ["own-node,own-level"]),
        ("run smoke --set no", ["nodes="]),
        ("run --set nodes=7 smoke --set no", ["nodes="]),
        ("run mine.yaml --set flows.o", ["flows.own."]),
        ("run smoke --set fleet.v", ["fleet.via="]),
        ("run smoke --set fleet.via=", ["fleet.via=etcd", "fleet.via=api"]),
        ("run smoke --set fleet.pools.", ["fleet.pools.gpu."]),
        ("run smoke --set flows.telemetry.steps.own-pods.ev", ["flows.telemetry.steps.own-pods.every="]),
        ("run smoke --set fleet.pools.gpu.resources.", ["fleet.pools.gpu.resources.nvidia.com/gpu="]),
        ("run smoke --set controlPlane.limits.etcd.me", ["controlPlane.limits.etcd.memory="]),
        ("run openai-outage --set lever=", [f"lever={lever}" for lever in LEVERS]),
        ("run openai-outage --matrix lever=none,bl", ["lever=none,block-agents"]),
        ("run openai-outage --matrix le", ["lever="]),
        ("gate smoke --against ku", ["kubernetes="]),
        ("gate smoke --against etcd=3.6", ["etcd=3.6"]),
        ("gate smoke --against set:no", ["set:nodes="]),
        ("gate smoke --fail p9", ["p90:", "p99:"]),
        ("gate smoke --baseline main --fail flow", ["flow.telemetry.p99:"]),
        ("compare main latest --fail ", [*(f"{name}:" for name in MEASURES), "flow.telemetry.p99:"]),
        ("run smoke --report ", [f"{form}=" for form in Format]),
        ("run smoke --report=ht", ["html="]),
        ("compare main latest --report ", [f"{form}=" for form in COMPARED]),
        ("run smoke --report html=mi", ["html=mine.yaml"]),
        ("run smoke --report html=state/", ["html=state/clusters/"]),
        ("run smoke --format mark", ["markdown"]),
        ("run smoke --binary kube-s", ["kube-scheduler="]),
        ("run smoke --color ", ["auto", "always", "never"]),
        ("config show mirror", ["mirror.kubernetes", "mirror.etcd", "mirror.kwok"]),
        ("runs list --verdict in", ["invalid", "incomplete"]),
    ],
)  # fmt: skip
def test_names_and_keys_are_offered(line: str, expected: list[str]) -> None:
    assert expected == offered(f"scaletest {line}")


@pytest.mark.parametrize(
    "line",
    [
        "run nosuch --set ",
        "run home/none.yaml --size ",
        "run smoke --set nosuch.",
        "run smoke --set fleet.pools.9.",
        "run smoke --set fleet.via.",
        "run --set ",
        "run smoke --report html=none/",
        "gate smoke --against x=",
    ],
)
def test_what_is_not_there_offers_nothing(line: str) -> None:
    assert [] == offered(f"scaletest {line}")


def test_a_wrong_setting_or_profile_or_baseline_is_no_failure_of_a_completion(here: Path) -> None:
    (here / "mine.yaml").write_text("[", encoding="utf-8")
    assert [] == offered("scaletest run mine.yaml --set ")
    (here / ".scaletest" / "baselines" / "main.json").write_text("[", encoding="utf-8")
    assert [] == offered("scaletest gate smoke --baseline main --fail p9")
    (here / "home" / "scaletest").mkdir(parents=True)
    (here / "home" / "scaletest" / "config.toml").write_text("nosuch = 1", encoding="utf-8")
    assert [] == offered("scaletest report ")


def test_settings_say_where_runs_are(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "results").rename(here / "runs")
    assert [] == offered("scaletest report ")
    monkeypatch.setenv("SCALETEST_RESULTS", "runs")
    assert RUNS == offered("scaletest report ")


def in_bash(words: list[str], index: int) -> str | None:
    """Return what bash gets that has split a line into words; the whole words are echoed as what is offered."""
    environ = {"_SCALETEST_COMPLETE": "complete_bash", "COMP_WORDS": "\n".join(words), "COMP_CWORD": str(index)}

    def echo(given: Mapping[str, str]) -> None:
        words = given["COMP_WORDS"].split("\n")
        sys.stdout.write(words[int(given["COMP_CWORD"])] + "!")

    return complete_for_bash(environ, echo)


@pytest.mark.parametrize(
    ("words", "index", "expected"),
    [
        (["scaletest", "run", "sm"], 2, "sm!\n"),
        (["scaletest", "run", "x", "--set", "lever", "="], 5, "!\n"),
        (["scaletest", "run", "x", "--set", "lever", "=", "bl"], 6, "bl!\n"),
        (["scaletest", "gate", "x", "--against", "set", ":", "a", "=", "b"], 8, "b!\n"),
        (["scaletest", "run", "x", "--set", "a", "=", "b", "--size", "q"], 8, "q!\n"),
        (["scaletest", "run", "x", "--set", "a", "=", "b", ""], 7, "!\n"),
    ],
)
def test_bash_gets_what_stands_behind_its_last_break(words: list[str], index: int, expected: str) -> None:
    assert expected == in_bash(words, index)


def test_a_real_bash_completes_with_the_script_that_it_is_given(here: Path) -> None:
    program = f"#!{sys.executable}\nfrom scaletest.cli.main import main\nmain()\n"
    (here / "scaletest").write_text(program, encoding="utf-8")
    (here / "scaletest").chmod(0o755)
    script = """
        eval "$(_SCALETEST_COMPLETE=source_bash scaletest)"
        COMP_WORDS=(scaletest run openai-outage --set lever = b); COMP_CWORD=6
        _scaletest_completion scaletest; echo "${COMPREPLY[@]}"
        COMP_WORDS=(scaletest report ""); COMP_CWORD=2
        _scaletest_completion scaletest; echo "${COMPREPLY[@]}"
    """
    environ = {**os.environ, "PATH": f"{here}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, env=environ)

    assert (f"block-agents\n{' '.join(RUNS)}\n", "") == (done.stdout, done.stderr)


def test_help_and_completion_import_nothing_heavy() -> None:
    code = """
        import os, sys
        from scaletest.cli.main import app
        os.environ |= {"_SCALETEST_COMPLETE": sys.argv[1], "COMP_WORDS": "scaletest report ", "COMP_CWORD": "2"}
        try:
            app(["--help"], prog_name="scaletest")
        except SystemExit:
            print(*sys.modules)
    """
    # Typer itself takes pydantic to read the words before the one that is completed.
    for completing, light in (("", {"pydantic"}), ("complete_bash", set[str]())):
        command = [sys.executable, "-c", "\n".join(line[8:] for line in code.splitlines()), completing]
        modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()
        heavy = {"rich", "yaml", "asyncio", "scaletest.profile.schema", "scaletest.report", "scaletest.controlplane"}
        assert "scaletest.cli" in modules
        assert set() == (heavy | light) & set(modules)
