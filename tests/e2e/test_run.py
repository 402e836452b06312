"""``scaletest run`` as its users meet it: to the report, interrupted, and killed at bad moments."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from scaletest.core.processes import ProcessId
from tests.e2e.runs import SCALETEST, SMALL, Place

pytestmark = pytest.mark.e2e


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def wait_until(condition: Callable[[], object], timeout_s: float = 90) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "waited in vain"
        time.sleep(0.1)


def in_phase(place: Place, phase: str) -> Callable[[], bool]:
    return lambda: any(r["kind"] == "phase.start" and r["phase"] == phase for r in place.journal())


def off_loopback_listeners(pids: list[int]) -> list[str]:
    """Listening sockets of these processes on any address but loopback."""
    inodes = set()
    for pid in pids:
        for fd in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                match = re.fullmatch(r"socket:\[(\d+)\]", str(fd.readlink()))
            except OSError:
                continue
            if match:
                inodes.add(match[1])
    bad = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            address, inode = fields[1].split(":")[0], fields[9]
            loopback = address.endswith("7F") if table == "tcp" else address == "00000000000000000000000001000000"
            if fields[3] == "0A" and inode in inodes and not loopback:
                bad.append(line)
    return bad


def test_smoke_passes_and_leaves_nothing_but_its_results(place: Place) -> None:
    with place.started("run", "smoke", *SMALL, "--output", str(place.run_dir), "--format", "json") as process:
        wait_until(in_phase(place, "steady"))
        listening = off_loopback_listeners(list(place.processes()))
        assert process.wait(timeout=120) == 0, place.said()
    assert [] == listening
    assert {} == place.processes()

    report = place.command("report", str(place.run_dir), "--format", "json")
    assert 0 == report.returncode, report.stderr
    assert "pass" == json.loads(report.stdout)["verdict"]["outcome"]
    assert "pass" == json.loads((place.run_dir / "verdict.json").read_text())["outcome"]
    text = place.command("report", str(place.run_dir)).stdout
    assert "PASS" in text.upper()

    secrets = [
        path
        for path in place.results.rglob("*")
        if path.is_file() and re.search(rb"PRIVATE KEY|BEGIN CERTIFICATE|eyJhbGciOi", path.read_bytes())
    ]
    assert [] == secrets


@pytest.mark.parametrize("phase", ["baseline", "rollout", "steady"])
def test_ctrl_c_keeps_the_results_and_ends_the_control_plane(place: Place, phase: str) -> None:
    with place.started("run", "smoke", *SMALL, "--output", str(place.run_dir)) as process:
        wait_until(in_phase(place, phase))
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130, place.said()
    assert {} == place.processes()
    assert "interrupted" == place.journal()[-1]["status"]
    report = place.command("report", str(place.run_dir))
    assert 0 == report.returncode
    assert "incomplete" in report.stdout.lower()


def test_ctrl_c_while_the_control_plane_starts(place: Place) -> None:
    with place.started("run", "smoke", *SMALL, "--output", str(place.run_dir)) as process:
        wait_until(lambda: any(r["kind"] == "component.start" for r in place.journal()))
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130, place.said()
    assert {} == place.processes()


COMPONENTS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"]
COMMANDS = {"driver": "scaletest.load", "supervisor": "scaletest.controlplane.supervisor"}
KILLS = int(os.environ.get("SCALETEST_KILLS", "2"))
"""Kills at random moments; the benchmark figure in the docs is of 20."""


def test_a_killed_component_is_restarted_and_told(place: Place) -> None:
    with place.started("run", "smoke", *SMALL, "--output", str(place.run_dir)) as process:
        wait_until(in_phase(place, "baseline"))
        for victim in COMPONENTS:
            _kill(place, victim, process.pid)
        process.wait(timeout=120)
    for victim in COMPONENTS:
        records = [r for r in place.journal() if r.get("component") == victim]
        first_exit = next(r for r in records if r["kind"] == "component.exit")
        assert signal.SIGKILL == first_exit["signal"]
        assert 2 <= len([r for r in records if r["kind"] == "component.start"])
    assert {} == place.processes()
    assert "killed" in place.command("report", str(place.run_dir)).stdout


@pytest.mark.parametrize(("victim", "code"), [("cli", -signal.SIGKILL), ("driver", 3), ("supervisor", 3)])
def test_kill_9_of_our_own_processes_leaves_nothing_running(place: Place, victim: str, code: int) -> None:
    with place.started("run", "smoke", *SMALL, "--output", str(place.run_dir)) as process:
        wait_until(in_phase(place, "rollout"))
        _kill(place, victim, process.pid)
        assert process.wait(timeout=120) == code, place.said()
    assert "incomplete" == _verdict_after(place)


@pytest.mark.parametrize("seed", range(KILLS))
def test_kill_9_of_anything_at_any_moment_loses_nothing_measured(place: Place, seed: int) -> None:
    rng = Random(seed)
    victim = rng.choice(["cli", *COMMANDS, *COMPONENTS])
    with place.started("run", "smoke", *SMALL, "--output", str(place.run_dir)) as process:
        time.sleep(rng.uniform(1, 22))
        _kill(place, victim, process.pid)
        before = len(place.journal())
        process.wait(timeout=150)
    _verdict_after(place)
    assert before <= len(place.journal())


def _kill(place: Place, victim: str, cli: int) -> None:
    """Kill a process of the run with SIGKILL; when it has not started yet, as soon as it has."""

    def target() -> int | None:
        if victim == "cli":
            return cli
        word = COMMANDS.get(victim, f"/{victim}/")
        # Of a supervisor and its guardian, which is its parent, the supervisor is the later one.
        return max((pid for pid, command in place.processes().items() if word in command), default=None)

    def is_over() -> bool:
        return any(record["kind"] == "run.end" for record in place.journal())

    wait_until(lambda: target() is not None or is_over())
    identity = ProcessId.of(target() or 0)
    if identity is not None:
        identity.send(signal.SIGKILL)


def _verdict_after(place: Place) -> str | None:
    """What the report says after a kill; nothing must run any more, at the latest after `scaletest clean`."""
    place.command("clean")
    wait_until(lambda: not place.processes(), timeout_s=20)
    if not (place.run_dir / "run.json").exists():
        return None
    report = place.command("report", str(place.run_dir), "--format", "json")
    assert 0 == report.returncode, report.stderr
    return str(json.loads(report.stdout)["verdict"]["outcome"])


def test_a_run_on_a_kept_cluster_leaves_it_up(place: Place) -> None:
    up = place.command("cluster", "up", "--name", "shared", "--nodes", "10")
    assert 0 == up.returncode, up.stderr
    try:
        for name in ("one", "two"):
            done = place.command(
                "run", "smoke", *SMALL, "--cluster", "shared", "--output", str(place.results / name)
            )  # fmt: skip
            assert 0 == done.returncode, done.stdout + done.stderr
        assert "shared" in place.command("cluster", "status").stdout
    finally:
        down = place.command("cluster", "down", "shared")
    assert 0 == down.returncode, down.stderr
    assert {} == place.processes()


def test_a_dry_run_starts_nothing(place: Place) -> None:
    done = place.command("run", "smoke", "--dry-run")
    assert 0 == done.returncode, done.stderr
    assert "50" in done.stdout
    assert not place.results.exists()
    assert {} == place.processes()


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["run", "smok"], 2, "smoke"),
        (["run", "smoke", "--set", "node=5"], 2, "nodes"),
        (["run", "smoke", "--set", "kubernetes=1.99"], 2, "1.37"),
        (["run", "smoke", "--output", "."], 2, "exists already"),
        (["run", "smoke", "--cluster", "nobody"], 2, "nobody"),
        (["run", "smoke", "--set", "controlPlane.limits.kube-apiserver.memory=400GiB"], 3, "GiB"),
        (["report", "nothing-here"], 2, "nothing-here"),
    ],
)
def test_a_mistake_is_one_clear_message(place: Place, argv: list[str], code: int, words: str) -> None:
    done = place.command(*argv)
    assert code == done.returncode, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert {} == place.processes()


def test_help_is_quick_to_import() -> None:
    code = (
        "import sys; from scaletest.cli import main; "
        "bad = [m for m in ('locust', 'gevent', 'kubernetes', 'aiohttp', 'aetcd', 'grpc') if m in sys.modules]; "
        "print(bad)"
    )

    done = subprocess.run([SCALETEST[0], "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == done.stdout.strip()


def test_agents_come_and_go_with_the_nodes_of_their_pool(place: Place) -> None:
    actions = [
        "phases.steady.do=[{grow: {pool: gpu, by: 6}}]",
        "phases.steady.for=4s",
        "phases.after.stop=[]",
        "phases.after.do=[{shrink: {pool: gpu, by: 4}}]",
        "phases.after.for=4s",
        "objectives=[probe.ready.ready == 12, flow.telemetry.started == 12, flow.telemetry.error_rate < 1%]",
    ]
    sets = [word for action in actions for word in ("--set", action)]
    done = place.command("run", "smoke", "--set", "nodes=10", *sets, "--output", str(place.run_dir))
    assert 0 == done.returncode, done.stdout + done.stderr
    ends = [record for record in place.journal() if record["kind"] == "action.end"]
    assert "6 nodes added to gpu" == ends[0]["detail"]
    assert re.fullmatch(
        r"4 machines of gpu ended with 4 agents \(\d connections closed, \d requests cut short\), "
        r"their nodes and 8 pods deleted",
        ends[1]["detail"],
    )
    gone = {"machines_ended": 4, "agents_stopped": 4, "nodes_deleted": 4, "pods_deleted": 8, "leases_deleted": 4}
    assert gone.items() <= ends[1]["proof"].items()
