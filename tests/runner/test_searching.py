"""A search in a run, against a simulated control plane that holds 300 agents."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from scaletest.analysis.pastknee import Goodput
from scaletest.analysis.saturation import Saturation, analyse
from scaletest.analysis.search import Reason
from scaletest.analysis.state import RunState
from scaletest.core.errors import ExitCode
from scaletest.core.histogram import Histogram
from scaletest.core.journal import JournalFile
from scaletest.profile.loading import load_profile
from scaletest.profile.schema import Profile
from scaletest.runner.engines import FakeEngines, Lost
from scaletest.runner.searching import Pace
from scaletest.runner.session import RunOptions, RunResult, execute

PROFILE = """
name: found
summary: For tests.
parameters: {agents: 100}
flows:
  load:
    agents: {count: "{agents}", rollout: 100000/s}
    steps: [{list: pods, every: 100ms}]
probes:
  operator: {get: /version, every: 20ms}
phases:
  - {name: warm-up, start: [load], for: 100ms}
search:
  parameter: agents
  to: 1600
  resolution: 30%
  step: {atLeast: 300ms, atMost: 600ms}
  holds: [probe.operator.p99 < 1s, flow.load.error_rate < 1%]
  past: [2]
  recoverWithin: 1s
objectives:
  - search.capacity >= 250
"""
PACE = Pace(look_s=0.05, calm_s=0.1, grace_s=0.1, recovery_window_s=0.2, start_slack_s=0.2)
EVERY_S = 0.02


def hist(value_us: int, count: int) -> dict[str, object]:
    histogram = Histogram()
    for _ in range(count):
        histogram.record(value_us)
    return histogram.to_json()


@dataclass
class Simulation:
    """What agents, operators and the driver would journal, every 20 ms."""

    holds: Callable[[int], bool] = lambda agents: agents <= 300
    lag_us: Callable[[int], int] = lambda _agents: 500
    stays_down: bool = False
    """Whether more than 450 agents break it for good."""
    engines: FakeEngines = field(default_factory=FakeEngines)
    task: asyncio.Task[None] | None = None
    running: bool = False
    down: bool = False
    stuck: bool = False
    """Whether none of the agents that are asked for is there."""

    def __post_init__(self) -> None:
        script = {"start": self.start, "start_flow load": self.begin, "stop_flow load": self.end, "stop": self.stop}
        self.engines.script.update(script)

    async def start(self, journal: JournalFile, _lost: Lost) -> None:
        self.task = asyncio.create_task(self.live(journal))

    async def begin(self, _journal: JournalFile, _lost: Lost) -> None:
        self.running = True

    async def end(self, _journal: JournalFile, _lost: Lost) -> None:
        self.running = False

    async def stop(self, _journal: JournalFile, _lost: Lost) -> None:
        if self.task is not None:
            self.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.task

    async def live(self, journal: JournalFile) -> None:
        due_s = time.monotonic()
        while True:
            agents = self.agents(self.engines.profile) if self.running else 0
            # The search tried 400 at most by itself: it is broken by what comes after.
            self.down = self.down or (self.stays_down and agents > 450)
            while due_s <= time.monotonic():
                self.record(journal, agents, due_s - journal.clock_origin_s, good=self.holds(agents) and not self.down)
                due_s += EVERY_S
            await asyncio.sleep(EVERY_S)

    @staticmethod
    def agents(profile: Profile | None) -> int:
        return profile.flows["load"].target(0) if profile is not None else 100

    def record(self, journal: JournalFile, agents: int, due_s: float, *, good: bool) -> None:
        journal.append("driver", interval_s=EVERY_S, cpu_s=0.0, rss_bytes=1, lag_us=hist(self.lag_us(agents), 1))
        latency_s = 0.03 if good else 2.0
        journal.append(
            "probe", probe="operator", identity="system:masters", server="s", sent_t=due_s, late_s=0.0, latency_s=latency_s,
            ok=True, outcome="ok",
        )  # fmt: skip
        if self.running:
            step = {"outcomes": {"200": 5}, "bytes": 5_000, "latency_us": hist(round(1e6 * latency_s), 5)}
            journal.append(
                "flow", flow="load", interval_s=EVERY_S, target=agents, started=0 if self.stuck else agents, connected=agents, steps={"list-pods": step},
            )  # fmt: skip


class Run:
    def __init__(self, tmp_path: Path, simulation: Simulation, text: str = PROFILE) -> None:
        path = tmp_path / "found.yaml"
        path.write_text(text)
        self.loaded = load_profile(str(path))
        self.directory = tmp_path / "run"
        self.simulation = simulation

    def execute(self) -> RunResult:
        options = RunOptions(run_dir=self.directory, argv=[], host={}, pace=PACE)
        return asyncio.run(execute(self.loaded, options, self.simulation.engines, lambda _: None))

    def journal(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.directory / "journal.jsonl").read_text().splitlines()]

    def found(self) -> Saturation:
        saturation = analyse(RunState().apply_all(self.journal()), self.loaded.resolved)
        assert saturation is not None
        return saturation


def test_a_search_finds_the_knee_goes_past_it_and_comes_back(tmp_path: Path) -> None:
    run = Run(tmp_path, Simulation())

    result = run.execute()
    saturation = run.found()

    assert ExitCode.PASS is result.verdict.exit_code, result.verdict.reasons
    assert (300, 350, Reason.FOUND) == (saturation.found.holds, saturation.found.fails, saturation.found.reason)
    assert [100, 200, 400, 300, 350, 300, 350, 600, 150] == [step.value for step in saturation.log.steps]
    assert ["search"] * 7 + ["past", "back"] == [step.kind for step in saturation.log.steps]
    assert "probe.operator.p99 < 1s: 2" in saturation.log.steps[2].reason
    assert saturation.back is not None
    assert saturation.back.recovered_after_s is not None
    assert saturation.past is not None
    assert saturation.past.behaviour == "degraded"
    # Heavier after one that held: as it runs. Otherwise stopped first, and the way back at once.
    every = [call for call in run.simulation.engines.calls if call != "start"]
    calls = [call for call in every if not call.startswith("capture")]
    # Profiles are taken of the first load that fails and of the one that is confirmed to, before anything changes.
    assert ["capture step-3", "capture step-7"] == [call for call in every if call not in calls]
    assert ["step_to", "capture step-3", "stop_flow load"] == every[3:6]
    assert calls[:4] == ["start_flow load", "step_to", "step_to", "step_to"]
    assert calls[4:7] == ["stop_flow load", "step_to", "start_flow load"]
    assert calls[-3:] == ["step_to", "stop_flow load", "stop"]
    assert [("load",), ("load",)] == [change.retarget for change in run.simulation.engines.changes[1:3]]
    phases = [(record["kind"], record["phase"]) for record in run.journal() if record["kind"].startswith("phase.")]
    assert [("phase.start", "search"), ("phase.end", "search")] == phases[-2:]


def test_a_control_plane_that_stays_down_is_metastable(tmp_path: Path) -> None:
    text = (
        PROFILE.replace("resolution: 30%", "resolution: 100%")
        .replace("{agents: 100}", "{agents: 200}")
        .replace("past: [2]", "past: [4]")
    )
    run = Run(tmp_path, Simulation(stays_down=True), text)

    run.execute()
    saturation = run.found()

    assert (200, 400) == (saturation.found.holds, saturation.found.fails)
    assert saturation.back is not None
    assert saturation.back.recovered_after_s is None
    assert saturation.past is not None
    assert saturation.past.behaviour == "metastable"


@pytest.mark.parametrize("why", ["hangs", "not started"])
def test_a_load_that_cannot_be_taken_back_says_nothing_of_a_recovery(tmp_path: Path, why: str) -> None:
    text = PROFILE.replace("resolution: 30%", "resolution: 100%").replace("{agents: 100}", "{agents: 200}")
    simulation = Simulation()
    run = Run(tmp_path, simulation, text)

    async def go(_journal: JournalFile, _lost: Lost) -> None:
        on_the_way_back = '"stage":"back"' in (run.directory / "journal.jsonl").read_text()
        if on_the_way_back and why == "hangs":
            await asyncio.sleep(60)
        simulation.stuck = on_the_way_back

    simulation.engines.script["step_to"] = go
    run.execute()
    saturation = run.found()

    assert saturation.back is not None
    assert (None, False) == (saturation.back.recovered_after_s, saturation.back.taken_back)
    assert saturation.past is not None
    assert saturation.past.behaviour != "metastable"
    assert any("not all of the load could be taken back" in item.get("text", "") for item in run.journal())


def test_a_search_without_a_failing_load_says_so_and_goes_no_further(tmp_path: Path) -> None:
    run = Run(tmp_path, Simulation(), PROFILE.replace("to: 1600", "to: 200"))

    run.execute()

    assert (200, Reason.NEVER_FAILED) == (run.found().found.holds, run.found().found.reason)
    assert {"search"} == {step.kind for step in run.found().log.steps}


def test_beyond_what_can_be_made_the_same_agents_work_harder(tmp_path: Path) -> None:
    text = (
        PROFILE.replace("{agents: 100}", "{agents: 100, period: 100ms}")
        .replace("every: 100ms", 'every: "{period}"')
        .replace("to: 1600", "to: 200\n  beyond: {parameter: period, to: 50ms}")
        .replace("resolution: 30%", "resolution: 100%")
        .replace("past: [2]", "past: []")
    )
    simulation = Simulation()
    # What 200 agents are asked at half their period is what 400 would be.
    simulation.holds = lambda agents: agents * 0.1 / _period_s(simulation) <= 300
    run = Run(tmp_path, simulation, text)

    run.execute()
    saturation = run.found()

    assert (200, 400) == (saturation.found.holds, saturation.found.fails)
    assert [100, 200, 400, 200, 400, 100] == [step.value for step in saturation.log.steps]
    assert [False, True] == [saturation.log.is_derived(value) for value in (200, 400)]
    assert "400 (derived: agents 200, period 50ms)" == saturation.log.steps[2].load
    assert ("load",) == run.simulation.engines.changes[2].restart


def _period_s(simulation: Simulation) -> float:
    profile = simulation.engines.profile
    every_s = profile.flows["load"].steps[0].every_s if profile is not None else None
    return every_s or 0.1


def test_a_generator_that_lags_makes_no_knee_and_an_invalid_run(tmp_path: Path) -> None:
    text = PROFILE.replace("resolution: 30%", "resolution: 100%")
    run = Run(tmp_path, Simulation(lag_us=lambda agents: 500 if agents <= 100 else 400_000), text)

    result = run.execute()

    assert ExitCode.INVALID is result.verdict.exit_code
    assert (100, None, Reason.GENERATOR_LIMIT) == (
        run.found().found.holds,
        run.found().found.fails,
        run.found().found.reason,
    )
    assert {"event-loop lag"} == {
        step.reason.partition(":")[0] for step in run.found().log.steps if step.outcome == "not counted"
    }


def test_a_search_out_of_time_has_the_interval_so_far(tmp_path: Path) -> None:
    run = Run(tmp_path, Simulation(), PROFILE.replace("past: [2]", "past: [2]\n  atMost: 1s"))

    run.execute()

    assert Reason.OUT_OF_TIME is run.found().found.reason
    assert run.found().found.holds is not None


def test_an_interrupt_keeps_what_was_measured(tmp_path: Path) -> None:
    run = Run(tmp_path, Simulation())

    async def interrupt(_journal: JournalFile, _lost: Lost) -> None:
        if len(run.simulation.engines.changes) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    run.simulation.engines.script["step_to"] = interrupt
    result = run.execute()

    assert ExitCode.INTERRUPTED is result.verdict.exit_code
    assert (200, None, Reason.CUT) == (run.found().found.holds, run.found().found.fails, run.found().found.reason)


@pytest.mark.parametrize("late", ["latency", "nothing"])
def test_requests_without_an_answer_do_not_hold(tmp_path: Path, late: str) -> None:
    """A probe that hangs has no latency: it must not look quick."""
    simulation = Simulation(holds=lambda _agents: late == "nothing")
    plain = simulation.record

    def record(journal: JournalFile, agents: int, due_s: float, *, good: bool) -> None:
        probed = agents <= 100 or late == "latency"
        kept = journal if probed else _WithoutProbes(journal)
        plain(kept, agents, due_s, good=good)  # type: ignore[arg-type]

    simulation.record = record  # type: ignore[method-assign]
    run = Run(
        tmp_path, simulation, PROFILE.replace("resolution: 30%", "resolution: 100%").replace("to: 1600", "to: 200")
    )
    run.execute()

    found = run.found()
    failed = next(step for step in found.log.steps if step.outcome == "failed")
    assert (
        ("no answer yet" in failed.reason or "not measured" in failed.reason)
        if late == "nothing"
        else "p99" in failed.reason
    )


class _WithoutProbes:
    def __init__(self, journal: JournalFile) -> None:
        self._journal = journal

    def append(self, kind: str, /, **fields: Any) -> dict[str, Any]:
        return {} if kind == "probe" else self._journal.append(kind, **fields)


class Watched(Simulation):
    """Agents whose load makes the events of watches late, and nothing else."""

    def record(self, journal: JournalFile, agents: int, due_s: float, *, good: bool) -> None:
        super().record(journal, agents, due_s, good=True)
        event_us = hist(5_000 if good else 2_000_000, 1)
        step = {"outcomes": {}, "bytes": 100, "events": 1, "latency_us": hist(1, 0), "event_us": event_us}
        journal.append(
            "flow", flow="watches", interval_s=EVERY_S, target=5, started=5, connected=5, steps={"w": step},
        )  # fmt: skip


def test_a_load_that_makes_events_late_does_not_hold(tmp_path: Path) -> None:
    text = PROFILE.replace(
        "flows:\n", "flows:\n  watches: {watchers: {count: 5}, steps: [{watch: pods, label: w}]}\n"
    ).replace("start: [load]", "start: [watches, load]")
    text = text.replace("flow.load.error_rate < 1%", "flow.watches.event_p99 < 1s").replace("past: [2]", "past: []")
    run = Run(tmp_path, Watched(), text)

    run.execute()
    found = run.found()

    assert found.found.holds is not None
    assert found.found.fails is not None
    assert found.found.holds <= 300 < found.found.fails
    assert Goodput.EVENTS is found.goodput
    ended = [item for item in run.journal() if item["kind"] == "search.step.end" and item["outcome"] == "failed"]
    assert all("flow.watches.event_p99" in item["reason"] for item in ended)
