"""The rollback against a server that answers as told: attempts, completion, and agents that follow."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scaletest.core.journal import JournalFile
from scaletest.core.kubernetesapi import KubernetesApi
from scaletest.runner.attempts import ActionLog, Operator
from scaletest.runner.rollback import create_daemon_set, daemon_set_path, roll_back
from tests.serving import Answer, Serve

PATH = daemon_set_path("telemetry/agent")
GONE = (404, {"message": "not found"})


class Agents:
    """Remembers what it was told to keep."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.kept: list[int] = []

    def running(self) -> int:
        return self.count

    async def keep(self, count: int) -> None:
        self.kept.append(count)

    async def wait_for(self, count: int) -> None:
        assert self.kept[-1] <= count


class Rollback:
    def __init__(self, tmp_path: Path, served: Serve) -> None:
        self.path = tmp_path / "journal.jsonl"
        self.served = served
        self.agents = Agents(200)
        self.requests: list[tuple[str, str]] = []

    def run(self, answer: Answer, *, give_up: Callable[[], bool] = lambda: False) -> str:
        """Roll back until done, and return what was done; nothing when the operator gave up before that."""

        async def run() -> str:
            async with self.served(answer) as server:
                self.requests = server.requests
                journal = JournalFile(self.path, src="runner", clock_origin_s=0.0)
                log = ActionLog(journal, "deleteRollout")
                operator = Operator(lambda: server.access, log, timeout_s=5)
                rolling = roll_back(operator, log, "telemetry/agent", self.agents, every_s=0.01, pods_per_s=1000.0)
                task = asyncio.create_task(rolling)
                while not task.done() and not give_up():
                    await asyncio.wait([task], timeout=0.01)
                if not task.done():
                    task.cancel()
                (said,) = await asyncio.gather(task, return_exceptions=True)
                journal.close()
                return said if isinstance(said, str) else ""

        return asyncio.run(run())

    def attempts(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()]


@pytest.fixture
def rollback(tmp_path: Path, served: Serve) -> Rollback:
    return Rollback(tmp_path, served)


def test_a_rollback_deletes_looks_and_has_all_agents_stop_step_by_step(rollback: Rollback) -> None:
    said = rollback.run(lambda method, *_: (200, {}) if method == "DELETE" else GONE)

    assert "95 % of 200 agents stopped" in said
    assert rollback.agents.kept == list(range(190, -1, -10))
    assert rollback.requests[0] == ("DELETE", f"{PATH}?gracePeriodSeconds=0")
    assert {attempt["step"] for attempt in rollback.attempts()} == {"delete", "gone", "pods"}
    assert all(attempt["ok"] for attempt in rollback.attempts())


def test_a_refused_delete_is_tried_again_and_every_attempt_is_told(rollback: Rollback) -> None:
    refusals = iter([429, 429, 503])

    def answer(method: str, *_: Any) -> tuple[int, dict[str, str]]:
        return (next(refusals, 200), {"message": "too many"}) if method == "DELETE" else GONE

    rollback.run(answer)

    deletes = [(item["attempt"], item["outcome"]) for item in rollback.attempts() if item["step"] == "delete"]
    assert deletes == [(1, "http_429"), (2, "http_429"), (3, "http_503"), (4, "ok")]


def test_a_delete_that_was_done_without_an_answer_counts(rollback: Rollback) -> None:
    rollback.run(lambda *_: GONE)

    assert rollback.agents.kept[-1] == 0


def test_no_agent_stops_while_the_daemon_set_is_still_there(rollback: Rollback) -> None:
    said = rollback.run(lambda *_: (200, {}), give_up=lambda: len(rollback.requests) > 5)

    assert said == ""
    assert rollback.agents.kept == []
    assert {
        item["message"] for item in rollback.attempts() if item["step"] == "gone" and item["outcome"] == "http_200"
    } == {f"GET {PATH}: it is still there"}


def test_agents_stop_only_as_far_as_the_api_answers(rollback: Rollback) -> None:
    looks = iter([404] * 3)
    refused: list[int] = []

    def answer(method: str, *_: Any) -> tuple[int, dict[str, str]]:
        status = 200 if method == "DELETE" else next(looks, 503)
        refused.extend([status] if status == 503 else [])
        return status, {"message": "down"}

    said = rollback.run(answer, give_up=lambda: len(refused) > 3)

    assert said == ""
    assert rollback.agents.kept == [190, 180]


def test_the_daemon_set_is_applied_after_its_namespace_and_selects_no_node(served: Serve) -> None:
    async def run() -> list[tuple[str, str]]:
        async with served(lambda *_: (200, {})) as server, KubernetesApi(server.access) as api:
            await create_daemon_set(api, "telemetry/agent")
        return server.requests

    requests = asyncio.run(run())

    assert [(method, path.partition("?")[0]) for method, path in requests] == [
        ("PATCH", "/api/v1/namespaces/telemetry"),
        ("PATCH", PATH),
    ]


def test_without_agents_a_rollback_is_done_with_the_daemon_set(rollback: Rollback) -> None:
    rollback.agents = Agents(0)

    assert rollback.run(lambda *_: GONE).endswith("no agents were left")
    assert rollback.agents.kept == []
