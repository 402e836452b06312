from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scaletest.controlplane.cleaning import clean_dead_cluster
from scaletest.controlplane.plan import Limits
from scaletest.controlplane.state import read_state
from scaletest.controlplane.supervisor import cgroups
from tests.controlplane.supervisor.toys import ToyCluster, wait_until


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[ToyCluster]:
    directory = tmp_path / "cluster"
    directory.mkdir()
    cluster = ToyCluster(directory, tmp_path)
    yield cluster
    if cluster.began:
        state = read_state(cluster.directory)
        if state is not None and state.supervisor.is_alive():
            state.supervisor.send(signal.SIGTERM)
            wait_until(lambda: not state.supervisor.is_alive(), timeout_s=40)
        clean_dead_cluster(cluster.directory)
        wait_until(lambda: cluster.leftovers() == [])


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that can own a cluster and be killed."""
    child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
    yield child
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGKILL)
    child.wait()


@pytest.fixture
def cgroups_allowed() -> None:
    """Skip where control groups cannot be used."""
    try:
        groups = cgroups.make_groups(f"scaletest-try-{os.getpid()}", {"x": Limits(64 << 20)})
    except cgroups.GroupsUnavailable as error:
        pytest.skip(f"control groups cannot be used here: {error}")
    cgroups.remove_groups(groups.directories())
