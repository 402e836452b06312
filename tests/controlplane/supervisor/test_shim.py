from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from scaletest.controlplane.supervisor import shim
from scaletest.core.processes import ProcessId


@pytest.fixture
def awkward(tmp_path: Path) -> Path:
    directory = tmp_path / "it's $HOME; a place"
    directory.mkdir()
    return directory


def run(
    awkward: Path, *args: str, env: dict[str, str] | None = None, **options: int
) -> subprocess.CompletedProcess[str]:
    binary = awkward / "real binary"
    binary.write_text(
        '#!/bin/sh\necho "$$ $# ${GOMAXPROCS:-none}"; for arg in "$@"; do echo "[$arg]"; done\ncat /proc/$$/stat\n'
    )
    binary.chmod(0o755)
    script = shim.shim_script(
        binary=str(binary),
        run_prefix=awkward / "c",
        procs_files=[awkward / "cgroup.procs"],
        max_procs=options.get("max_procs"),
        nicer_by=options.get("nicer_by", 0),
    )
    shim.write_shim(awkward / "shim", script)
    return subprocess.run(
        [awkward / "shim", *args],
        capture_output=True,
        text=True,
        check=False,
        cwd=awkward,
        env={"PATH": os.environ["PATH"], **(env or {})},
    )


def test_the_binary_runs_in_the_same_process_with_the_same_arguments(awkward: Path) -> None:
    args = ["--a=b c", "", "it's", "two\nlines", "*"]

    done = run(awkward, *args)

    pid, count, _ = done.stdout.splitlines()[0].split()
    assert int(count) == 5
    for arg in args:
        assert f"[{arg}]" in done.stdout
    assert (awkward / "cgroup.procs").read_text() == f"{pid}\n"
    recorded = shim.read_pid(awkward, "c")
    start_ticks = done.stdout.splitlines()[-1].rpartition(") ")[2].split()[19]
    assert recorded == ProcessId(int(pid), int(start_ticks))
    assert done.stderr == ""


def test_what_a_restart_needs_is_recorded(awkward: Path) -> None:
    run(awkward, "--a=b c", "", env={"LINES": "one\ntwo", "EMPTY": "", "EQUAL": "a=b"})

    invocation = shim.read_invocation(awkward, "c")

    assert invocation.args == ("--a=b c", "")
    assert invocation.cwd == str(awkward)
    assert {key: invocation.env[key] for key in ("LINES", "EMPTY", "EQUAL")} == {
        "LINES": "one\ntwo",
        "EMPTY": "",
        "EQUAL": "a=b",
    }


def test_no_arguments_stay_none(awkward: Path) -> None:
    assert run(awkward).stdout.split()[1] == "0"
    assert shim.read_invocation(awkward, "c").args == ()


def test_asking_for_the_version_makes_no_component(awkward: Path) -> None:
    done = run(awkward, "--version")

    assert "[--version]" in done.stdout
    assert shim.read_pid(awkward, "c") is None


def test_the_number_of_threads_is_set_unless_it_is_given(awkward: Path) -> None:
    assert run(awkward, max_procs=3).stdout.split()[2] == "3"
    assert run(awkward, env={"GOMAXPROCS": "7"}, max_procs=3).stdout.split()[2] == "7"


def test_a_group_that_cannot_be_joined_stops_it(awkward: Path) -> None:
    (awkward / "cgroup.procs").mkdir()

    done = run(awkward, "serve")

    assert (done.returncode, done.stdout) == (125, "")
    assert f"scaletest: cannot join {awkward / 'cgroup.procs'}" in done.stderr


def test_a_pid_that_is_not_written_completely_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "c.pid").write_text("12 3")

    assert shim.read_pid(tmp_path, "c") is None


@pytest.mark.parametrize("nicer_by", [0, 3])
def test_the_binary_is_nicer_in_the_same_process(awkward: Path, nicer_by: int) -> None:
    done = run(awkward, "it's", nicer_by=nicer_by)

    pid = int(done.stdout.split()[0])
    niceness = int(done.stdout.splitlines()[-1].rpartition(") ")[2].split()[16])
    assert niceness == min(19, os.getpriority(os.PRIO_PROCESS, 0) + nicer_by)
    recorded = shim.read_pid(awkward, "c")
    assert recorded is not None
    assert recorded.pid == pid
