"""What the command does when the world ends around it: streams closed, full or read by nobody; signals before a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scaletest.cli.main import refuse_empty
from scaletest.core.errors import UsageError

VERSIONS = {
    "etcd": "etcd Version: 3.6.16",
    "kube-apiserver": "Kubernetes v1.37.2",
    "kube-controller-manager": "Kubernetes v1.37.2",
    "kube-scheduler": "Kubernetes v1.37.2",
    "kwok-controller": "kwok version v0.8.0",
    "kwokctl": "kwokctl version v0.8.0",
}
SCALETEST = f"{sys.executable} -m scaletest"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["report", ""], "the argument behind report is empty"),
        (["compare", "a", ""], "the argument behind a is empty"),
        (["gate", "smoke", "--baseline", ""], "the argument behind --baseline is empty"),
        (["run", "smoke", "--output="], "--output is empty"),
        ([""], "the argument behind scaletest is empty"),
    ],
)
def test_an_empty_argument_is_told_as_such(words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        refuse_empty(words)

    assert message == caught.value.message


def test_arguments_that_are_not_empty_are_taken() -> None:
    refuse_empty(["run", "smoke", "--set", "x=", "--set=x=", "--format=json", "-"])


def shell(command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, env={**os.environ, **environ}
    )


@pytest.mark.parametrize(
    ("command", "unbuffered"),
    [("profiles list", "1"), ("profiles list", ""), ("profiles show smoke", ""), ("run smoke --dry-run", "")],
)
def test_a_full_disk_under_standard_output_is_the_environments_fault(command: str, unbuffered: str) -> None:
    done = shell(f"{SCALETEST} {command} > /dev/full", PYTHONUNBUFFERED=unbuffered)

    assert done.returncode == 3
    assert (
        "scaletest: standard output: No space left on device\n  Make room where it goes, or send it elsewhere.\n"
        == done.stderr
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_failure(closed: str) -> None:
    done = shell(f"{SCALETEST} profiles list {closed}")

    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.parametrize("command", ["profiles list", "profiles show smoke"])
def test_a_reader_that_goes_away_is_no_failure(command: str) -> None:
    done = shell(f"{SCALETEST} {command} | true; exit ${{PIPESTATUS[0]}}")

    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.parametrize("words", ["{}", "report {}", "report latest --format {}"])
def test_what_was_given_is_not_poured_onto_the_terminal(words: str) -> None:
    done = shell(f"{SCALETEST} {words.format('x' * 5_000)}")

    assert done.returncode == 2
    assert "xxx" in done.stderr
    assert len(done.stderr) < 800
    assert "Traceback" not in done.stderr


def test_a_state_directory_that_cannot_be_made_is_said_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    given = ""
    for name, version in VERSIONS.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho {version}\n", encoding="utf-8")
        program.chmod(0o755)
        given += f" --binary {name}={program}"

    done = shell(f"{SCALETEST} cluster up --nodes 5{given}", SCALETEST_STATE_DIR=str(tmp_path / "file" / "x"))

    assert done.returncode == 3
    assert f"scaletest: {tmp_path / 'file'}" in done.stderr
    assert "SCALETEST_STATE_DIR" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_before_the_run_begins_ends_in_130(tmp_path: Path, signum: signal.Signals) -> None:
    program, begun = tmp_path / "etcd", tmp_path / "begun"
    program.write_text(f"#!/bin/sh\ntouch {begun}\nexec sleep 8\n", encoding="utf-8")
    program.chmod(0o755)
    scaletest = [sys.executable, "-m", "scaletest", "run", "smoke", "--output", str(tmp_path / "run")]
    # A shell's background jobs ignore SIGINT, and so would what these tests start.
    listening = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", listening, *scaletest, "--binary", f"etcd={program}"]

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        deadline_s = time.monotonic() + 60
        while not begun.exists():
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
        run.send_signal(signum)
        _, said = run.communicate()

    assert 130 == run.returncode
    assert "Traceback" not in said
    assert not (tmp_path / "run").exists()


def test_no_text_from_a_file_steers_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text('name: "a\\e[2J\\u202e"\n', encoding="utf-8")
    done = shell(f"cd {tmp_path} && {SCALETEST} profiles validate p.yaml")

    assert done.returncode == 2
    assert "p.yaml:1: name: " in done.stderr
    assert not {"\x1b", "\u202e"} & set(done.stderr)


@pytest.mark.parametrize(("terminal", "there"), [(False, True), (True, False)])
def test_a_document_is_handed_over_as_it_is_but_to_a_terminal(terminal: bool, there: bool) -> None:
    command = f"{SCALETEST} profiles show smoke --set summary=a\u202e --format json"
    done = shell(f"script -qec '{command}' /dev/null" if terminal else command)

    assert done.returncode == 0, done.stdout + done.stderr
    assert there == ("\u202e" in done.stdout)
    assert there != ("a\ufffd" in done.stdout)
