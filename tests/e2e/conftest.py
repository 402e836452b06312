"""What end-to-end tests share: the programs, and one control plane for the whole session.

Nothing is skipped: programs that are not on this machine are fetched or built, which takes minutes once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scaletest.controlplane import registry
from scaletest.controlplane.binaries import Binaries, TerminalProgress, locate_all
from scaletest.controlplane.cluster import ClusterRequest, KwokControlPlane, start_cluster
from scaletest.controlplane.host import read_host
from scaletest.controlplane.limits import default_limits, floor_bytes
from scaletest.core.processes import ProcessId
from scaletest.profile.schema import ControlPlaneSpec

RequestMaker = Callable[[str], ClusterRequest]


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    """Programs of the default versions."""
    spec = ControlPlaneSpec()
    return locate_all(spec.kubernetes, spec.etcd, progress=TerminalProgress())


@pytest.fixture(scope="session")
def state_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state directory of the session's own, in force for the whole session."""
    with pytest.MonkeyPatch.context() as patch:
        directory = tmp_path_factory.mktemp("state")
        patch.setenv("SCALETEST_STATE_DIR", str(directory))
        yield directory
        left = [str(cleaned) for cleaned in registry.clean_dead(also_alive=True)]
        assert [] == left


@pytest.fixture(scope="session")
def request_named(binaries: Binaries, state_dir: Path) -> RequestMaker:
    """Make requests for small clusters that end with this process."""
    assert state_dir.is_dir()
    host = read_host()

    def make(name: str) -> ClusterRequest:
        return ClusterRequest(
            name=name,
            spec=ControlPlaneSpec(),
            nodes=50,
            binaries=binaries,
            limits=default_limits(host),
            floor_bytes=floor_bytes(host),
            owner=ProcessId.current(),
        )

    return make


@pytest.fixture(scope="session")
def cluster(request_named: RequestMaker) -> Iterator[KwokControlPlane]:
    """An empty cluster; tests keep to namespaces and nodes of their own."""
    started = asyncio.run(start_cluster(request_named("e2e")))
    yield started
    asyncio.run(started.stop())
