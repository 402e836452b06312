from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scaletest.runner.priority import Niceness, claim_niceness, give_back_niceness, niceness_of, priority_text


@pytest.mark.parametrize(
    ("driver", "probes", "control_plane", "cpu_by", "words"),
    [
        (0, 0, 5, "none", "run before the control plane: niceness 0 against 5"),
        (0, 0, 5, "cgroup_v1", "run before the control plane: half CPU weight for its cgroup v1, niceness 0 against 5"),
        (19, 0, 19, "none", "do NOT run before the control plane: niceness 19 against 19"),
        (0, 7, 5, "none", "do NOT run before the control plane: niceness 7 against 5"),
        (0, 0, 0, "cgroup_v2", "run before the control plane: half CPU weight for its cgroup v2, niceness 0 against 0"),
        (0, 0, None, "none", "not known"),
    ],
)
def test_it_is_said_who_runs_first_and_by_what(
    driver: int, probes: int, control_plane: int | None, cpu_by: str, words: str
) -> None:
    assert words in priority_text(driver=driver, probes=probes, control_plane=control_plane, cpu_by=cpu_by)


def test_niceness_is_that_of_a_process_that_is_there() -> None:
    command = ["nice", "-n", "3", sys.executable, "-c", "print('up', flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as nicer:
        assert nicer.stdout is not None
        nicer.stdout.readline()
        ended = subprocess.Popen(["true"])
        ended.wait()
        own = os.getpriority(os.PRIO_PROCESS, 0)

        assert own == niceness_of([None, ended.pid, os.getpid()])
        assert min(19, own + 3) == niceness_of([nicer.pid])
        assert niceness_of([None, ended.pid]) is None


def test_a_claim_is_given_back() -> None:
    niceness, autogroup = os.getpriority(os.PRIO_PROCESS, 0), _autogroup()
    before = claim_niceness()
    try:
        assert Niceness(niceness, autogroup) == before
        assert os.getpriority(os.PRIO_PROCESS, 0) <= niceness
        now = _autogroup()
        assert now == autogroup if now is None or autogroup is None else now <= autogroup
    finally:
        time.sleep(0.2)  # the kernel takes one change of a session's niceness in a tenth of a second
        give_back_niceness(before)
    assert (niceness, autogroup) == (os.getpriority(os.PRIO_PROCESS, 0), _autogroup())


def _autogroup() -> int | None:
    # Not there, or empty: the root session's processes have no group of their own.
    path = Path("/proc/self/autogroup")
    words = path.read_text().split() if path.exists() else []
    return int(words[-1]) if words else None
