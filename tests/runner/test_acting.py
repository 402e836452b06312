"""What actions say that they did: the figures of whoever did it, whether or not it was done in the end."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from scaletest.controlplane.cluster import KwokControlPlane
from scaletest.core.access import ApiAccess, Credential
from scaletest.core.errors import ClusterError
from scaletest.core.journal import JournalFile
from scaletest.fleet.fleet import FleetState
from scaletest.fleet.shrinking import ShrinkResult
from scaletest.load.fake import FakeDriver
from scaletest.load.protocol import FlowChanged, SetServers, SetTarget
from scaletest.observe.pprof import Capture
from scaletest.profile.actions import Action
from scaletest.profile.schema import Profile
from scaletest.runner.acting import Acting, Scene
from scaletest.runner.actions import Actions
from scaletest.runner.attempts import ActionLog
from tests.serving import Answer, Serve

PROFILE = Profile.model_validate(
    {
        "name": "p",
        "summary": "s",
        "fleet": {"pools": [{"name": "gpu", "nodes": 4}]},
        "flows": {"t": {"agents": {"perNode": 1, "rollout": "1/s"}, "steps": [{"list": "pods"}]}},
        "phases": [{"name": "a", "start": ["t"], "for": "1s"}],
        "objectives": ["host.cpu_idle > 0%"],
    }
)
ACCESS = ApiAccess(("https://127.0.0.1:1",), Path("ca"), Credential("masters"))


@dataclass
class Fleet:
    """Deletes as many nodes a call as it is told to; then it hangs."""

    deletes: list[int] = field(default_factory=list)
    pools: dict[str, list[str]] = field(default_factory=lambda: {"gpu": [f"gpu-{number}" for number in range(4)]})

    @property
    def target(self) -> Any:
        return type("Target", (), {"access": ACCESS})

    async def shrink(self, pool: str, by: int, _progress: object, deleted: Counter[str]) -> ShrinkResult:
        if not self.deletes:
            await asyncio.sleep(600)
        count = self.deletes.pop(0)
        gone = [self.pools[pool].pop() for _ in range(count)]
        deleted.update({"Node": count, "Pod": 2 * count, "Lease": count})
        return ShrinkResult(asked=by, nodes=gone, pods=2 * count, leases=count)


@dataclass
class Cluster:
    """Adds API servers, as many as it is told to."""

    most: int = 9
    servers: tuple[str, ...] = ("https://127.0.0.1:1",)

    class supervisor:  # noqa: N801 - an attribute of the cluster
        """Does nothing to components."""

        kill = freeze = thaw = restart = None

    async def add_api_server(self) -> str:
        if len(self.servers) >= self.most:
            msg = "no port is free"
            raise ClusterError(msg)
        self.servers = (*self.servers, f"https://127.0.0.1:{len(self.servers) + 1}")
        return self.servers[-1]


class Stage:
    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path / "journal.jsonl"
        self.fleet = Fleet()
        self.cluster = Cluster()
        self.access = {"system:masters": ACCESS}
        self.changes: FlowChanged | None = None
        self.driver: FakeDriver | None = None
        self.captured: list[Capture] = []
        self.missing: list[str] = []

    async def capture(self, capture: Capture) -> list[str]:
        self.captured.append(capture)
        return self.missing

    async def do(self, action: dict[str, Any], within_s: float) -> None:
        self.driver = driver = FakeDriver()
        driver.changes = self.changes
        scene = Scene(
            PROFILE, cast("KwokControlPlane", self.cluster), cast("FleetState", self.fleet), driver, self.access,
            lambda _server: None, self.capture, targets={"t": 4}, started={"t": 4},
        )  # fmt: skip
        acting = Acting(scene)

        class Acts:
            async def act(self, action: Action, log: ActionLog) -> str:
                return await acting.do(action, log)

        phase = PROFILE.phases[0].model_copy(update={"do": [Action.model_validate(action)]})
        journal = JournalFile(self.path, src="runner", clock_origin_s=0.0)
        actions = Actions(Acts(), PROFILE.model_copy(update={"phases": [phase]}), journal)
        await actions.begin(0)
        await asyncio.sleep(within_s)
        await actions.end()
        journal.close()

    def act(self, action: dict[str, Any], within_s: float = 0.02) -> dict[str, Any]:
        """Do an action for so long, and return its ``action.end``."""
        asyncio.run(self.do(action, within_s))
        records = [json.loads(line) for line in self.path.read_text().splitlines()]
        (end,) = [record for record in records if record["kind"] == "action.end"]
        return cast("dict[str, Any]", end)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_block_says_what_the_driver_closed(stage: Stage) -> None:
    stage.changes = FlowChanged("t", 0, 7, 5)

    end = stage.act({"block": {"flow": "t"}})

    assert "network path cut for 4 agents of t: 7 connections closed, 5 requests cut short" == end["detail"]
    assert {"connections_closed": 7, "requests_cut_short": 5} == end["proof"]


def test_shrink_says_what_ended_at_once_and_what_the_api_deleted(stage: Stage) -> None:
    stage.changes = FlowChanged("t", 3, 6, 2)
    stage.fleet.deletes = [3]

    end = stage.act({"shrink": {"pool": "gpu", "by": 3}})

    said = "3 machines of gpu ended with 3 agents (6 connections closed, 2 requests cut short), their nodes and 6 pods deleted"
    assert (True, said) == (end["ok"], end["detail"])
    assert {
        "machines_ended": 3, "agents_stopped": 3, "connections_closed": 6, "requests_cut_short": 2,
        "nodes_deleted": 3, "pods_deleted": 6, "leases_deleted": 3,
    } == end["proof"]  # fmt: skip


def test_a_scale_down_that_its_phase_cuts_short_says_how_far_it_came(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scaletest.runner.acting.EVERY_S", 0.0)
    stage.changes = FlowChanged("t", 4, 4, 4)
    stage.fleet.deletes = [1, 2]

    end = stage.act({"shrink": {"pool": "gpu", "by": 4}})

    assert not end["ok"]
    assert (
        "; 4 machines ended with 4 agents (4 connections closed, 4 requests cut short); "
        "3 of 4 nodes and 6 pods deleted from gpu" in end["error"]
    )
    assert {"machines_ended": 4, "agents_stopped": 4, "nodes_deleted": 3, "pods_deleted": 6}.items() <= end[
        "proof"
    ].items()


def test_added_servers_are_counted_and_given_to_the_flows(stage: Stage) -> None:
    end = stage.act({"addApiServers": {"count": 2}})

    assert {"servers_added": 2, "servers": 3} == end["proof"]
    assert stage.driver is not None
    assert SetServers("t", stage.cluster.servers) == stage.driver.commands[-1]


def test_what_was_added_before_an_error_is_told(stage: Stage) -> None:
    stage.cluster.most = 2

    end = stage.act({"addApiServers": {"count": 2}})

    assert (False, "no port is free") == (end["ok"], end["error"])
    assert {"servers_added": 1, "servers": 2} == end["proof"]


def applied(refused: Callable[[str], bool]) -> Answer:
    def answer(_method: str, path: str, _body: Any) -> tuple[int, dict[str, Any]]:
        return (429, {"message": "too many"}) if refused(path) else (200, {})

    return answer


@pytest.mark.parametrize("refused", [False, True])
def test_flow_control_counts_the_objects_that_the_api_took(stage: Stage, served: Serve, *, refused: bool) -> None:
    async def run() -> None:
        async with served(applied(lambda path: refused and "flowschemas" in path)) as server:
            stage.access["system:masters"] = server.access
            await stage.do({"applyFlowControl": {}}, 0.5)

    asyncio.run(run())
    records = [json.loads(line) for line in stage.path.read_text().splitlines()]
    end = records[-1]

    accepted = len({r["step"] for r in records if r["kind"] == "action.try" and r["ok"]})
    assert accepted == end["proof"]["objects_accepted"]
    assert (end["ok"], accepted == end["proof"]["objects_asked"]) == (not refused, not refused)
    if refused:
        assert f"{accepted} of {end['proof']['objects_asked']} objects accepted" in end["error"]
        assert "too many" in end["error"]


def test_a_driver_that_was_told_to_shrink_knows_the_nodes(stage: Stage) -> None:
    stage.fleet.deletes = [2]

    stage.act({"shrink": {"pool": "gpu", "by": 2}})

    assert stage.driver is not None
    assert [SetTarget("t", 2, gone=("gpu-2", "gpu-3"))] == stage.driver.commands


def test_profiles_that_were_captured_are_counted(stage: Stage) -> None:
    end = stage.act({"captureProfiles": {"seconds": 3}})

    assert [Capture("capture-1", 3)] == stage.captured
    assert end["ok"]
    assert {"profiles_captured": 3} == end["proof"]
    assert "3 profiles captured, of 3 s of CPU" == end["detail"]


def test_a_profile_that_is_missing_fails_the_action_and_is_told(stage: Stage) -> None:
    stage.missing = ["cpu of https://127.0.0.1:1: timeout"]
    end = stage.act({"captureProfiles": {}})

    assert not end["ok"]
    assert {"profiles_captured": 2} == end["proof"]
    assert "2 of 3 profiles captured; cpu of https://127.0.0.1:1: timeout" == end["error"]
