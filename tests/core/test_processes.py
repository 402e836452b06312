from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from scaletest.core.processes import ProcessId, children_of, end_processes, start_time_ticks

Spawn = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Start Python code in a child that has said ``ready``."""
    children: list[subprocess.Popen[str]] = []

    def start(code: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", "import os, signal, subprocess, sys, time\n" + code],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        children.append(child)
        assert child.stdout is not None
        assert "ready" == child.stdout.readline().strip()
        return child

    yield start
    for child in children:
        child.kill()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


SLEEPS = "print('ready', flush=True); time.sleep(600)"
IGNORES_TERM = "signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPS


def identified(child: subprocess.Popen[str]) -> ProcessId:
    process = ProcessId.of(child.pid)
    assert process is not None
    return process


def test_a_running_process_is_known_and_an_ended_one_is_not(spawn: Spawn) -> None:
    child = spawn(SLEEPS)
    process = identified(child)

    assert process.is_alive()

    child.kill()
    child.wait()

    assert not process.is_alive()
    assert ProcessId.of(child.pid) is None


def test_a_zombie_counts_as_gone(spawn: Spawn) -> None:
    child = spawn(SLEEPS)
    process = identified(child)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert start_time_ticks(child.pid) is None
    assert not process.is_alive()
    assert not process.send(signal.SIGTERM)


def test_a_recycled_pid_is_never_signalled(spawn: Spawn) -> None:
    child = spawn(SLEEPS)
    earlier = replace(identified(child), start_ticks=identified(child).start_ticks - 1)

    assert not earlier.is_alive()
    assert not earlier.send(signal.SIGKILL)
    assert [] == end_processes([earlier], grace_s=0.1)
    assert child.poll() is None


def test_the_name_of_a_process_may_hold_spaces_and_parentheses(spawn: Spawn) -> None:
    child = spawn("open('/proc/self/comm', 'w').write(') R (x) 1'); " + SLEEPS)

    assert identified(child).is_alive()
    assert child.pid in children_of(os.getpid())


def test_descendants_are_found_at_any_depth(spawn: Spawn) -> None:
    inner = "import time; time.sleep(600)"
    child = spawn(f"p = subprocess.Popen([sys.executable, '-c', {inner!r}]); print('ready', flush=True); p.wait()")
    grandchildren = children_of(child.pid)

    assert 1 == len(grandchildren)
    assert {child.pid, *grandchildren} <= set(children_of(os.getpid()))

    os.kill(grandchildren[0], signal.SIGKILL)
    child.wait(timeout=60)


def test_processes_are_ended_by_sigterm(spawn: Spawn) -> None:
    child = spawn(SLEEPS)

    assert [] == end_processes([identified(child)], grace_s=30)
    assert -signal.SIGTERM == child.wait(timeout=60)


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(spawn: Spawn) -> None:
    child = spawn(IGNORES_TERM)

    assert [] == end_processes([identified(child)], grace_s=0.2)
    assert -signal.SIGKILL == child.wait(timeout=60)


def test_a_frozen_process_is_ended(spawn: Spawn) -> None:
    child = spawn(SLEEPS)
    child.send_signal(signal.SIGSTOP)

    assert [] == end_processes([identified(child)], grace_s=30)
    assert -signal.SIGTERM == child.wait(timeout=60)


def test_many_processes_are_ended_together(spawn: Spawn) -> None:
    children = [spawn(IGNORES_TERM) for _ in range(3)]
    begun_s = time.monotonic()

    assert [] == end_processes([identified(child) for child in children], grace_s=2.0)
    # One grace for all of them, not one each: three in a row would take six seconds.
    assert time.monotonic() - begun_s < 5.9


def test_json_gives_the_identity_back() -> None:
    process = ProcessId.current()

    assert process == ProcessId.from_json(process.to_json())
    assert os.getpid() == process.pid


def test_a_pid_that_cannot_be_has_no_start_time() -> None:
    assert start_time_ticks(2**22 + 5) is None
