"""The record of a cluster: what is known of it beside its processes, ``cluster.json`` in its directory."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from scaletest.controlplane.heartbeat import Heartbeat
from scaletest.controlplane.ports import LOOPBACK, PortRole
from scaletest.core.paths import clusters_dir
from scaletest.core.processes import ProcessId

__all__ = ["ClusterRecord"]

RECORD_SCHEMA: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRecord:
    """What is known of a cluster beside its processes."""

    name: str
    created_at: str
    """UTC, ISO 8601."""
    creator: ProcessId
    """The process that makes it; while that lives the cluster is being set up, whatever else is missing."""
    ports: dict[PortRole, int]
    versions: dict[str, str]
    """``kubernetes``, ``etcd``, ``kwok``."""
    heartbeat: Heartbeat
    added_servers: dict[str, int] = field(default_factory=dict)
    """Ports of further API servers by the name of their component (``kube-apiserver-2``)."""
    limits: dict[str, dict[str, Any]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    """Free text by key: what made the cluster, and for what."""
    ready_s: float | None = None
    """Seconds from the start to ready; None: not ready yet."""
    given_up: bool = False
    """Whether the start failed: what is left is there for its logs."""

    @property
    def in_the_making(self) -> bool:
        """Whether the process that makes it is still at it."""
        return self.ready_s is None and not self.given_up and self.creator.is_alive()

    @property
    def dir(self) -> Path:
        """The cluster's directory."""
        return clusters_dir() / self.name

    @property
    def servers(self) -> tuple[str, ...]:
        """URLs of the API servers, the first one first."""
        ports = (self.ports["kube-apiserver"], *self.added_servers.values())
        return tuple(f"https://{LOOPBACK}:{port}" for port in ports)

    @property
    def all_ports(self) -> tuple[int, ...]:
        """Every port that is the cluster's."""
        return (*self.ports.values(), *self.added_servers.values())

    @property
    def etcd_endpoint(self) -> str:
        """URL of etcd."""
        return f"http://{LOOPBACK}:{self.ports['etcd']}"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        plain = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        return {
            "schema_version": RECORD_SCHEMA,
            **plain,
            "creator": self.creator.to_json(),
            "heartbeat": self.heartbeat.to_json(),
            "servers": list(self.servers),
            "etcd_endpoint": self.etcd_endpoint,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ClusterRecord:
        """Read what ``to_json`` gave. Raises KeyError or TypeError for anything else."""
        known = {item.name: data[item.name] for item in dataclasses.fields(cls)}
        return cls(
            **{
                **known,
                "creator": ProcessId.from_json(data["creator"]),
                "heartbeat": Heartbeat.from_json(data["heartbeat"]),
            }
        )
