"""Actions of a phase: the order in which they begin, what the journal tells of them, and that they end with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from scaletest.core.errors import ClusterError
from scaletest.core.journal import JournalFile
from scaletest.profile.actions import Action
from scaletest.profile.schema import Profile
from scaletest.runner.actions import Actions
from scaletest.runner.attempts import ActionLog

Script = dict[str, Callable[[ActionLog], Awaitable[str]]]


def profile(*actions: dict[str, Any]) -> Profile:
    return Profile.model_validate(
        {
            "name": "p",
            "summary": "s",
            "flows": {"t": {"agents": {"count": 1, "rollout": "1/s"}, "steps": [{"list": "pods"}]}},
            "phases": [{"name": "a", "start": ["t"], "for": "1s"}, {"name": "b", "do": list(actions), "for": "1s"}],
            "objectives": ["host.cpu_idle > 0%"],
        }
    )


class Acting:
    """Does each action as its script says."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.begun: list[str] = []

    async def act(self, action: Action, log: ActionLog) -> str:
        self.begun.append(action.name)
        return await self.script[action.name](log) if action.name in self.script else f"{action.name} done"


def play(tmp_path: Path, acting: Acting, *actions: dict[str, Any], meanwhile: float = 0.05) -> list[dict[str, Any]]:
    async def run() -> None:
        journal = JournalFile(tmp_path / "journal.jsonl", src="runner", clock_origin_s=0.0)
        under_way = Actions(acting, profile(*actions), journal)
        try:
            await under_way.begin(1)
            journal.append("begun")
            await asyncio.sleep(meanwhile)
        finally:
            await under_way.end()
            journal.close()

    asyncio.run(run())
    return [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]


BLOCK = {"block": {"flow": "t"}}
DELETE = {"deleteRollout": {"flow": "t"}}


async def _forever(_log: ActionLog) -> str:
    await asyncio.sleep(600)
    return "never"


async def _shortly(_log: ActionLog) -> str:
    await asyncio.sleep(0.01)
    return "deleted"


async def _fail(_log: ActionLog) -> str:
    msg = "it is down"
    raise ClusterError(msg)


def told(records: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(record["kind"], record.get("action", "")) for record in records]


def test_the_phase_goes_on_while_a_background_action_is_under_way(tmp_path: Path) -> None:
    records = play(tmp_path, Acting({"deleteRollout": _shortly}), DELETE, BLOCK)

    assert told(records) == [
        ("action.start", "deleteRollout"),
        ("action.start", "block"),
        ("action.end", "block"),
        ("begun", ""),
        ("action.end", "deleteRollout"),
    ]
    assert (records[-1]["ok"], records[-1]["detail"]) == (True, "deleted")


def test_actions_begin_in_the_order_of_the_profile(tmp_path: Path) -> None:
    acting = Acting({"deleteRollout": _forever})

    play(tmp_path, acting, DELETE, BLOCK, {"thaw": {"component": "etcd"}})

    assert acting.begun == ["deleteRollout", "block", "thaw"]


def test_what_is_not_done_when_the_phase_ends_has_failed_and_says_what_it_was_told(tmp_path: Path) -> None:
    async def in_vain(log: ActionLog) -> str:
        log.tried("delete", ok=False, outcome="timeout", message="no answer within 20 s", latency_s=20.0, server="s")
        return await _forever(log)

    *_, attempt, _begun, end = play(tmp_path, Acting({"deleteRollout": in_vain}), DELETE)

    assert (attempt["kind"], attempt["attempt"], attempt["outcome"]) == ("action.try", 1, "timeout")
    assert (end["ok"], end["attempts"]) == (False, 1)
    assert end["error"].endswith("the latest failure, in 1 attempts: no answer within 20 s")


def test_an_action_that_fails_keeps_no_other_from_beginning(tmp_path: Path) -> None:
    records = play(
        tmp_path, Acting({"block": _fail, "deleteRollout": _fail}), DELETE, BLOCK, {"thaw": {"component": "etcd"}}
    )

    ends = {record["action"]: (record["ok"], record["error"]) for record in records if record["kind"] == "action.end"}
    assert ends == {"deleteRollout": (False, "it is down"), "block": (False, "it is down"), "thaw": (True, None)}


def test_what_lasts_as_long_as_a_phase_is_taken_back_at_its_end(tmp_path: Path) -> None:
    async def slow(log: ActionLog) -> str:
        async def undo() -> str:
            return "as before"

        log.undo = undo
        return "slow"

    records = play(tmp_path, Acting({"slowDisk": slow}), {"slowDisk": {"delay": "20ms"}})

    assert told(records)[1:3] == [("action.end", "slowDisk"), ("begun", "")]
    assert records[-1]["text"] == "slowDisk ends with its phase: as before"


def test_a_lever_is_told_around_its_actions(tmp_path: Path) -> None:
    acting = Acting({})

    records = play(tmp_path, acting, {"lever": "block-agents"}, {"lever": "none"})

    assert acting.begun == ["block"]
    assert [record["detail"] for record in records if record.get("action") == "lever"] == [
        "block-agents",
        "block-agents: block",
        "none",
        "none: nothing is done",
    ]


def test_a_bug_in_a_background_action_is_raised_when_the_phase_ends(tmp_path: Path) -> None:
    async def break_down(_log: ActionLog) -> str:
        nothing: dict[str, str] = {}
        return nothing["missing"]

    with pytest.raises(KeyError, match="missing"):
        play(tmp_path, Acting({"deleteRollout": break_down}), DELETE)
