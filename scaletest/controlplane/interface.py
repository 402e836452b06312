"""What the rest of scaletest sees of a control plane, and a fake one for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from scaletest.controlplane.heartbeat import Heartbeat, heartbeat_for
from scaletest.controlplane.plan import Limits
from scaletest.core.access import ApiAccess, Credential

__all__ = ["ComponentInfo", "ControlPlane", "FakeControlPlane"]


@dataclass(frozen=True, slots=True)
class ComponentInfo:
    """A component as it is now."""

    name: str
    pid: int | None
    """None: it does not run; it may be waiting to be restarted."""
    metrics_url: str
    """Prometheus text; ``https`` URLs take any credential of the cluster and its CA."""
    restarts: int = 0


class ControlPlane(Protocol):
    """A control plane that serves."""

    @property
    def name(self) -> str:
        """Name of the cluster."""

    @property
    def dir(self) -> Path:
        """Directory of the cluster, 0700."""

    @property
    def servers(self) -> tuple[str, ...]:
        """URLs of all API servers."""

    @property
    def etcd_endpoint(self) -> str:
        """URL of etcd, for clients and for its metrics."""

    @property
    def versions(self) -> dict[str, str]:
        """Full versions: ``kubernetes``, ``etcd``, ``kwok``."""

    @property
    def heartbeat(self) -> Heartbeat:
        """The heartbeat of the fake nodes."""

    @property
    def limits(self) -> dict[str, Limits]:
        """Limits by component."""

    @property
    def logs_dir(self) -> Path:
        """One log per component, ``NAME.log``."""

    @property
    def kubeconfig(self) -> Path:
        """For the user's kubectl."""

    def components(self) -> list[ComponentInfo]:
        """Return the components as they are now: after a restart with another pid."""

    async def access(self, identity: str) -> ApiAccess:
        """Return how to reach the API servers as an identity. Raises ValueError, ClusterError."""

    async def node_credentials(self, names: Sequence[str]) -> list[Credential]:
        """Return a credential for each of the named nodes."""

    async def attach(self, journal: Path, clock_origin_s: float) -> None:
        """Have what happens to the components written into a run's journal, given by its absolute path."""

    async def detach(self) -> None:
        """Stop that."""

    async def stop(self, *, logs_to: Path | None = None) -> None:
        """End the control plane and remove everything of it; ``logs_to`` gets the components' logs."""


@dataclass
class FakeControlPlane:
    """Answers without any process behind it; remembers what was asked."""

    dir: Path
    name: str = "fake"
    servers: tuple[str, ...] = ("https://127.0.0.1:1",)
    etcd_endpoint: str = "http://127.0.0.1:1"
    versions: dict[str, str] = field(default_factory=lambda: {"kubernetes": "0.0.0", "etcd": "0.0.0", "kwok": "0.0.0"})
    heartbeat: Heartbeat = field(default_factory=lambda: heartbeat_for(nodes=0, cores=1, factor=1))
    limits: dict[str, Limits] = field(default_factory=dict)
    running: list[ComponentInfo] = field(default_factory=list)
    attached: tuple[Path, float] | None = None
    stopped: bool = False

    @property
    def logs_dir(self) -> Path:
        """A directory that need not exist."""
        return self.dir / "logs"

    @property
    def kubeconfig(self) -> Path:
        """A file that need not exist."""
        return self.dir / "kubeconfig"

    def components(self) -> list[ComponentInfo]:
        """Return ``running``."""
        return list(self.running)

    async def access(self, identity: str) -> ApiAccess:
        """Return an access whose files need not exist."""
        return ApiAccess(self.servers, self.dir / "ca.crt", Credential(identity, token_file=self.dir / "token"))

    async def node_credentials(self, names: Sequence[str]) -> list[Credential]:
        """Return credentials whose files need not exist."""
        return [Credential(f"node:{name}", self.dir / f"{name}.crt", self.dir / "node.key") for name in names]

    async def attach(self, journal: Path, clock_origin_s: float) -> None:
        """Remember the journal."""
        self.attached = (journal, clock_origin_s)

    async def detach(self) -> None:
        """Forget the journal."""
        self.attached = None

    async def stop(self, *, logs_to: Path | None = None) -> None:  # noqa: ARG002
        """Remember that it was stopped."""
        self.stopped = True
