from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller", "kwokctl")


def doctor(tmp_path: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the real command; nothing on the network is asked, for every binary is given by its path."""
    for name in COMPONENTS:
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho v1.37.2 3.6.16 0.8.0\n", encoding="utf-8")
        program.chmod(0o755)
    given = [part for name in COMPONENTS for part in ("--binary", f"{name}={tmp_path / name}")]
    directories = {"SCALETEST_CACHE_DIR": str(tmp_path / "cache"), "SCALETEST_STATE_DIR": str(tmp_path / "state")}
    return subprocess.run(
        [sys.executable, "-m", "scaletest", "doctor", *arguments, *given],
        capture_output=True, text=True, check=False, env={**os.environ, **directories, **environ},
    )  # fmt: skip


def test_every_check_is_a_line_and_the_exit_code_is_0_when_none_fails(tmp_path: Path) -> None:
    done = doctor(tmp_path, "smoke", "--format", "json")
    checks = json.loads(done.stdout)

    assert done.stderr == ""
    assert {check["name"] for check in checks} >= {"platform", "binaries", "memory", "open files", "leftovers"}
    failing = [check["name"] for check in checks if check["level"] == "fail"]
    assert done.returncode == (3 if failing else 0)


def test_what_fails_is_said_with_its_remedy_and_ends_in_3(tmp_path: Path) -> None:
    done = doctor(tmp_path, "smoke", "--set", "nodes=100000", COLUMNS="200")

    assert done.returncode == 3
    (memory,) = [line for line in done.stdout.splitlines() if "memory" in line and "fail" in line]
    assert "too little memory for 100,000 nodes" in memory
    assert "such nodes fit on this machine" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("smok",), "did you mean smoke?"),
        (("smoke", "--set", "nodez=1"), "nodez"),
        (("--set", "nodes=1"), "--set changes a profile, and none is named"),
        (("--binary", "etcd"), "etcd"),
    ],
)
def test_wrong_usage_ends_in_2_without_a_traceback(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = doctor(tmp_path, *arguments)

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
