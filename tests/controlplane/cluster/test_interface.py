"""The real and the fake control plane are the same to those who use one."""

from __future__ import annotations

import asyncio
from pathlib import Path

from scaletest.controlplane.cluster import KwokControlPlane
from scaletest.controlplane.heartbeat import heartbeat_for
from scaletest.controlplane.interface import ComponentInfo, ControlPlane, FakeControlPlane
from scaletest.controlplane.ports import PORT_ROLES
from scaletest.controlplane.record import ClusterRecord
from scaletest.core.processes import ProcessId


def real() -> KwokControlPlane:
    return KwokControlPlane(
        ClusterRecord(
            name="c1",
            created_at="2026-11-30T20:00:00+00:00",
            creator=ProcessId.current(),
            ports={role: 21_000 + number for number, role in enumerate(PORT_ROLES)},
            versions={"kubernetes": "1.37.2", "etcd": "3.6.16", "kwok": "0.8.0"},
            heartbeat=heartbeat_for(nodes=0, cores=2, factor=1),
        )
    )


def test_both_are_control_planes(tmp_path: Path) -> None:
    planes: list[ControlPlane] = [FakeControlPlane(tmp_path), real()]

    assert ["fake", "c1"] == [plane.name for plane in planes]
    assert "https://127.0.0.1:21002" == planes[1].servers[0]
    assert "http://127.0.0.1:21000" == planes[1].etcd_endpoint


def test_the_fake_answers_and_remembers_what_it_was_asked(tmp_path: Path) -> None:
    plane = FakeControlPlane(tmp_path, running=[ComponentInfo("etcd", 7, "http://127.0.0.1:1/metrics")])

    async def use() -> tuple[str, list[str]]:
        await plane.attach(tmp_path / "journal.jsonl", 1.5)
        access = await plane.access("admin")
        nodes = await plane.node_credentials(["n1", "n2"])
        await plane.stop()
        return access.credential.identity, [credential.identity for credential in nodes]

    assert ("admin", ["node:n1", "node:n2"]) == asyncio.run(use())
    assert ((tmp_path / "journal.jsonl", 1.5), True) == (plane.attached, plane.stopped)
    assert [7] == [component.pid for component in plane.components()]
