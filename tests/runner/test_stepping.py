"""Going from one load to the next on engines that only remember: pools with the agents on their nodes, then numbers and rates."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from scaletest.controlplane.cluster import KwokControlPlane
from scaletest.core.journal import JournalFile
from scaletest.fleet.fleet import FleetState
from scaletest.fleet.shrinking import ShrinkResult
from scaletest.load import protocol
from scaletest.load.fake import FakeDriver
from scaletest.observe.pprof import Capture
from scaletest.profile.schema import Profile
from scaletest.profile.stepping import step_change
from scaletest.runner.acting import Acting, Scene
from tests.runner.test_acting import ACCESS, Cluster


def profile(nodes: int = 4, count: int = 5, rate: str = "10/s") -> Profile:
    return Profile.model_validate(
        {
            "name": "p",
            "summary": "s",
            "fleet": {"pools": [{"name": "gpu", "nodes": nodes}]},
            "flows": {
                "each": {"agents": {"perNode": 2, "rollout": "1/s"}, "steps": [{"list": "pods"}]},
                "some": {"agents": {"count": count, "rollout": "7/s"}, "steps": [{"list": "pods"}]},
                "rate": {"arrivals": {"rate": rate}, "mix": [{"get": "/version"}]},
                "store": {"etcd": {"rate": rate, "operations": [{"op": "put"}]}},
            },
            "phases": [{"name": "a", "start": ["each", "some", "rate", "store"], "for": "1s"}],
            "objectives": ["host.cpu_idle > 0%"],
        }
    )


@dataclass
class Fleet:
    pools: dict[str, list[str]] = field(default_factory=lambda: {"gpu": [f"gpu-{number}" for number in range(4)]})

    is_stamped: bool = True

    @property
    def target(self) -> Any:
        return type("Target", (), {"access": ACCESS})

    async def grow(self, pool: str, by: int, _progress: object) -> list[str]:
        first = len(self.pools[pool])
        new = [f"gpu-{number}" for number in range(first, first + by)]
        self.pools[pool] += new
        return new

    async def erase(self, pool: str, by: int) -> list[str]:
        assert self.is_stamped
        return [self.pools[pool].pop() for _ in range(by)]

    async def shrink(self, pool: str, by: int, _progress: object, deleted: Counter[str]) -> ShrinkResult:
        assert not self.is_stamped
        gone = [self.pools[pool].pop() for _ in range(by)]
        deleted.update({"Node": by})
        return ShrinkResult(asked=by, nodes=gone, pods=0, leases=0)


async def no_capture(_capture: Capture) -> list[str]:
    raise NotImplementedError


def step_to(
    directory: Path,
    after: Profile,
    running: tuple[str, ...] = ("each", "some", "rate", "store"),
    fleet: Fleet | None = None,
) -> list[protocol.Command]:
    async def run() -> list[protocol.Command]:
        before, driver = profile(), FakeDriver()
        targets = {"each": 8, "some": 5, "rate": 16, "store": 1}
        scene = Scene(
            before, cast("KwokControlPlane", Cluster()), cast("FleetState", fleet or Fleet()), driver, {"system:masters": ACCESS},
            lambda _server: None, no_capture, targets={flow: targets[flow] for flow in running},
        )  # fmt: skip
        journal = JournalFile(directory / "journal.jsonl", src="runner", clock_origin_s=0.0)
        await Acting(scene).step_to(after, step_change(before, after), journal)
        journal.close()
        assert scene.profile is after
        return driver.commands

    return asyncio.run(run())


def test_a_pool_grows_and_its_new_nodes_get_their_agents(tmp_path: Path) -> None:
    # Those whose number does not follow the nodes hear of them too: their next agents stand there.
    new = ("gpu-4", "gpu-5")

    assert [protocol.SetTarget("each", 12, nodes=new), protocol.SetTarget("some", 5, nodes=new)] == step_to(
        tmp_path, profile(nodes=6)
    )


@pytest.mark.parametrize("is_stamped", [True, False])
def test_a_pool_shrinks_as_it_grew_and_the_agents_of_its_nodes_stop(tmp_path: Path, *, is_stamped: bool) -> None:
    fleet = Fleet(is_stamped=is_stamped)

    gone = ("gpu-3",)
    assert [protocol.SetTarget("each", 6, gone=gone), protocol.SetTarget("some", 5, gone=gone)] == step_to(
        tmp_path, profile(nodes=3), fleet=fleet
    )
    assert ["gpu-0", "gpu-1", "gpu-2"] == fleet.pools["gpu"]


def test_numbers_and_rates_change_as_flows_run(tmp_path: Path) -> None:
    commands = step_to(tmp_path, profile(count=9, rate="25/s"))

    assert [
        protocol.SetRate("rate", 25.0),
        protocol.SetTarget("some", 9, rollout_per_s=7.0),
        protocol.SetRate("store", 25.0),
    ] == commands


def test_a_flow_that_was_stopped_is_told_nothing(tmp_path: Path) -> None:
    assert [] == step_to(tmp_path, profile(nodes=6, count=9, rate="25/s"), running=())
