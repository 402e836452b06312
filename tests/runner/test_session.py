"""A run's order, conditions, cuts and records, with engines that only remember."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from scaletest.core.errors import ClusterError, EnvironmentProblem, ExitCode
from scaletest.core.journal import JournalFile
from scaletest.profile.loading import load_profile
from scaletest.report.rundir import load_run
from scaletest.runner.engines import FakeEngines, Lost
from scaletest.runner.session import RunOptions, RunResult, execute

PROFILE = """
name: tiny
summary: For tests.
flows:
  load: {agents: {count: 2, rollout: 10/s}, steps: [{list: pods}]}
phases:
  - {name: first, for: 100ms}
  - {name: second, start: [load], until: "flow.load.started >= 2", atMost: 5s}
  - {name: third, stop: [load], for: 100ms}
objectives:
  - {check: "host.available_memory > 1GiB", abort: true}
"""


def flow_record(started: int) -> dict[str, Any]:
    return {"flow": "load", "interval_s": 0.0, "target": 2, "started": started, "connected": 0, "steps": {}}


async def _host(journal: JournalFile, available_bytes: int = 8 << 30) -> None:
    journal.append(
        "host",
        available_bytes=available_bytes,
        total_bytes=16 << 30,
        cores=2,
        cpu_busy_s=1.0,
        cpu_idle_s=1.0,
        cpu_steal_s=0.0,
    )


async def _agents_start(journal: JournalFile, _lost: Lost) -> None:
    await _host(journal)
    journal.append("flow", **flow_record(2))


class Scenario:
    """One run of the tiny profile with fake engines."""

    def __init__(self, tmp_path: Path) -> None:
        self.directory = tmp_path / "run"
        path = tmp_path / "tiny.yaml"
        path.write_text(PROFILE)
        self.loaded = load_profile(str(path))
        self.engines = FakeEngines(script={"start_flow load": _agents_start})
        self.seen: list[str] = []

    def run(self) -> RunResult:
        options = RunOptions(run_dir=self.directory, argv=["run", "tiny"], host={"cores": 2})
        return asyncio.run(
            execute(self.loaded, options, self.engines, lambda record: self.seen.append(str(record["kind"])))
        )

    def journal(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.directory / "journal.jsonl").read_text().splitlines()]

    def end(self) -> tuple[str, str]:
        last = self.journal()[-1]
        assert "run.end" == last["kind"]
        return last["status"], last["reason"]

    def phase_ends(self) -> list[tuple[str, str]]:
        return [(r["phase"], r["reason"]) for r in self.journal() if r["kind"] == "phase.end"]


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return Scenario(tmp_path)


def test_phases_follow_each_other_and_a_condition_ends_one_early(scenario: Scenario) -> None:
    scenario.run()
    assert ["start", "start_flow load", "stop_flow load", "stop"] == scenario.engines.calls
    assert [("first", "time"), ("second", "condition"), ("third", "time")] == scenario.phase_ends()
    assert ("finished", "") == scenario.end()


def test_every_record_is_handed_on_once_and_in_order(scenario: Scenario) -> None:
    scenario.run()
    assert [record["kind"] for record in scenario.journal()] == scenario.seen


def test_a_condition_never_met_ends_at_most(scenario: Scenario) -> None:
    scenario.loaded = load_profile(
        str(scenario.loaded.path), ["phases.second.until=flow.load.started >= 3", "phases.second.atMost=300ms"]
    )
    scenario.run()
    assert ("second", "at_most") == scenario.phase_ends()[1]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_phase_ends_the_run_in_order(scenario: Scenario, signum: signal.Signals) -> None:
    async def interrupt(_journal: JournalFile, _lost: Lost) -> None:
        os.kill(os.getpid(), signum)

    scenario.engines.script["start_flow load"] = interrupt
    result = scenario.run()
    assert ExitCode.INTERRUPTED is result.verdict.exit_code
    assert ("interrupted", signum.name) == scenario.end()
    assert "stop" == scenario.engines.calls[-1]
    assert ("second", "cut") == scenario.phase_ends()[-1]


def test_a_signal_while_engines_start_still_stops_them(scenario: Scenario) -> None:
    async def interrupt(_journal: JournalFile, _lost: Lost) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(30)

    scenario.engines.script["start"] = interrupt
    result = scenario.run()
    assert ExitCode.INTERRUPTED is result.verdict.exit_code
    assert ["start", "stop"] == scenario.engines.calls


@pytest.mark.parametrize(
    ("status", "code"), [(status, ExitCode.ENVIRONMENT) for status in ("host_guard", "cluster_lost", "driver_lost")]
)
def test_what_is_lost_cuts_the_run(scenario: Scenario, status: str, code: ExitCode) -> None:
    async def lose(_journal: JournalFile, lost: Lost) -> None:
        lost(status, "gone")
        await asyncio.sleep(30)

    scenario.engines.script["start_flow load"] = lose
    assert code is scenario.run().verdict.exit_code
    assert (status, "gone") == scenario.end()


def test_an_abort_objective_that_does_not_hold_ends_the_run_as_failed(scenario: Scenario) -> None:
    async def starve(journal: JournalFile, _lost: Lost) -> None:
        await _host(journal, available_bytes=1 << 20)

    scenario.engines.script["start_flow load"] = starve
    scenario.loaded = load_profile(str(scenario.loaded.path), ["phases.second.atMost=20s"])
    result = scenario.run()
    assert ExitCode.FAILED is result.verdict.exit_code
    status, reason = scenario.end()
    assert "aborted" == status
    assert "host.available_memory" in reason


def test_a_failed_start_is_raised_and_recorded(scenario: Scenario) -> None:
    async def fail(_journal: JournalFile, _lost: Lost) -> None:
        msg = "no etcd"
        raise ClusterError(msg)

    scenario.engines.script["start"] = fail
    with pytest.raises(ClusterError, match="no etcd"):
        scenario.run()
    assert ("error", "no etcd") == scenario.end()
    assert ["start", "stop"] == scenario.engines.calls


def test_what_the_machine_refuses_ends_the_run_as_a_problem_of_the_environment(scenario: Scenario) -> None:
    async def fail(_journal: JournalFile, _lost: Lost) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/state")

    scenario.engines.script["start"] = fail
    with pytest.raises(EnvironmentProblem, match="/state: No space left on device"):
        scenario.run()
    assert ("error", "/state: No space left on device") == scenario.end()
    assert ExitCode.ENVIRONMENT == scenario.journal()[-1]["exit_code"]


def test_a_run_whose_logs_find_no_space_keeps_its_end_and_verdict(scenario: Scenario) -> None:
    async def full(_journal: JournalFile, _lost: Lost) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "run/logs/etcd.log")

    scenario.engines.script["stop"] = full
    scenario.run()
    assert ("finished", "") == scenario.end()
    notes = [record["text"] for record in scenario.journal() if record["kind"] == "note"]
    assert ["the logs of the components are not all here: run/logs/etcd.log: No space left on device"] == notes
    assert (scenario.directory / "verdict.json").is_file()


def test_a_run_whose_verdict_finds_no_space_is_judged_all_the_same(scenario: Scenario) -> None:
    async def fill(_journal: JournalFile, _lost: Lost) -> None:
        (scenario.directory / "verdict.json").mkdir()

    scenario.engines.script["stop"] = fill
    result = scenario.run()
    assert ("finished", "") == scenario.end()
    assert load_run(scenario.directory).verdict == result.verdict


def test_a_run_whose_directory_takes_no_more_files_still_ends_with_its_reason(scenario: Scenario) -> None:
    async def fill(_journal: JournalFile, _lost: Lost) -> None:
        # A directory in the way of a file stands for a disk that takes none: it refuses root too.
        for name in ("run.json", "verdict.json"):
            (scenario.directory / name).unlink(missing_ok=True)
            (scenario.directory / name).mkdir()
        msg = "no etcd"
        raise ClusterError(msg)

    scenario.engines.script["start"] = fill
    with pytest.raises(ClusterError, match="no etcd"):
        scenario.run()
    assert ("error", "no etcd") == scenario.end()


def test_an_action_that_fails_is_recorded_and_the_run_goes_on(scenario: Scenario) -> None:
    async def fail(_journal: JournalFile, _lost: Lost) -> None:
        msg = "the API does not answer"
        raise ClusterError(msg)

    scenario.engines.script["act grow"] = fail
    scenario.loaded = load_profile(
        str(scenario.loaded.path),
        ["fleet.pools=[{name: gpu, nodes: 1}]", "phases.third.do=[{grow: {pool: gpu, by: 1}}]"],
    )
    scenario.run()
    (end,) = [record for record in scenario.journal() if record["kind"] == "action.end"]
    assert (False, "the API does not answer") == (end["ok"], end["error"])
    assert ("finished", "") == scenario.end()


def test_run_json_tells_profile_provenance_and_facts(scenario: Scenario) -> None:
    scenario.run()
    info = json.loads((scenario.directory / "run.json").read_text())
    assert scenario.loaded.resolved == info["profile"]
    assert {"kubernetes": "fake"} == info["versions"]
    assert "tiny.yaml:2" == info["provenance"]["name"]


def test_a_signal_ends_an_action_that_is_under_way_and_says_so(scenario: Scenario) -> None:
    async def never_done(_journal: JournalFile, _lost: Lost) -> None:
        asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)

    scenario.engines.script["act applyFlowControl"] = never_done
    scenario.loaded = load_profile(
        str(scenario.loaded.path), ["phases.third.do=[{applyFlowControl: {}}]", "phases.third.for=30s"]
    )
    result = scenario.run()
    assert ExitCode.INTERRUPTED is result.verdict.exit_code
    (end,) = [record for record in scenario.journal() if record["kind"] == "action.end"]
    assert (False, True) == (end["ok"], end["error"].startswith("not done when its phase ended"))
    assert ("third", "cut") == scenario.phase_ends()[-1]
