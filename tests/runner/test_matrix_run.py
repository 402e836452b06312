"""A matrix goes through its runs, stops at Ctrl-C, and goes on where it stopped; engines only remember."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from scaletest.controlplane.host import Host
from scaletest.core.errors import ClusterError, ExitCode, RunDirectoryError, UsageError
from scaletest.core.journal import JournalFile
from scaletest.core.matrixdir import MatrixInfo, RunEntry, read_matrix_info
from scaletest.runner.engines import FakeEngines, Lost
from scaletest.runner.matrix import Matrix, make_matrix, parse_axes
from scaletest.runner.matrix_run import begin, check_same, execute_matrix, held, new_info, resumable
from scaletest.runner.session import RunOptions, RunResult, execute

PROFILE = """
name: tiny
summary: For tests.
parameters: {users: 2, length: 50ms}
flows:
  load: {agents: {count: "{users}", rollout: 10/s}, steps: [{list: pods}]}
phases:
  - {name: first, start: [load], for: "{length}"}
objectives:
  - host.available_memory > 1GiB
"""


async def _enough(journal: JournalFile, _lost: Lost) -> None:
    memory = {"available_bytes": 8 << 30, "total_bytes": 16 << 30}
    journal.append("host", **memory, cores=2, cpu_busy_s=1.0, cpu_idle_s=1.0, cpu_steal_s=0.0)


async def _interrupt(_journal: JournalFile, _lost: Lost) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.sleep(30)


async def _no_etcd(_journal: JournalFile, _lost: Lost) -> None:
    msg = "no etcd"
    raise ClusterError(msg)


class Scenario:
    """A matrix of the tiny profile; ``broken`` says for some runs what happens when their flow starts."""

    def __init__(self, tmp_path: Path) -> None:
        self.profile = tmp_path / "tiny.yaml"
        self.profile.write_text(PROFILE)
        self.directory = tmp_path / "matrix"
        self.begun: list[str] = []
        self.broken: dict[str, Callable[[JournalFile, Lost], object]] = {}

    def matrix(self, *flags: str, repeat: int = 1) -> Matrix:
        axes = parse_axes(flags or ["users=1,2,3"])
        return make_matrix(str(self.profile), (), axes, repeat=repeat, host=Host(16 << 30, 2.0))

    def info(self, matrix: Matrix, repeat: int = 1) -> MatrixInfo:
        return new_info(matrix, self.directory, reference="tiny", overrides=(), repeat=repeat, argv=["run", "tiny"])

    def run(self, matrix: Matrix | None = None, *, repeat: int = 1) -> MatrixInfo:
        matrix = matrix or self.matrix(repeat=repeat)
        wanted = self.info(matrix, repeat)
        if resumable(self.directory) is None:
            begin(self.directory, wanted)
        self.begun = []
        loaded = {variant.name: variant.loaded for variant in matrix.variants}

        def run_one(entry: RunEntry, run_dir: Path) -> RunResult:
            happens = self.broken.get(entry.directory, _enough)
            engines = FakeEngines(script={"start_flow load": happens})  # type: ignore[dict-item]
            options = RunOptions(run_dir=run_dir, argv=["run"], host={"cores": 2})
            return asyncio.run(execute(loaded[entry.variant], options, engines, lambda _record: None))

        stored = resumable(self.directory)
        assert stored is not None
        return execute_matrix(
            self.directory, stored, run_one, lambda _number, entry: self.begun.append(entry.directory)
        )

    def entries(self) -> list[tuple[str, int | None]]:
        return [(entry.status, entry.exit_code) for entry in read_matrix_info(self.directory).runs]


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return Scenario(tmp_path)


DONE = ("finished", 0)


def test_every_variant_is_an_ordinary_run_in_the_matrix_directory(scenario: Scenario) -> None:
    scenario.run()
    assert ["users=1", "users=2", "users=3"] == scenario.begun
    assert [DONE] * 3 == scenario.entries()
    for users in (1, 2, 3):
        run = json.loads((scenario.directory / f"users={users}/run.json").read_text())
        assert users == run["profile"]["flows"]["load"]["agents"]["count"]
        assert "run.end" in (scenario.directory / f"users={users}/journal.jsonl").read_text()


def test_all_variants_have_the_same_limits_in_their_profiles(scenario: Scenario) -> None:
    scenario.run()
    limits = [
        json.loads((scenario.directory / f"users={users}/run.json").read_text())["profile"]["controlPlane"]["limits"]
        for users in (1, 2, 3)
    ]
    assert limits[0]["kube-apiserver"]
    assert [limits[0]] * 3 == limits


def test_ctrl_c_ends_the_run_and_the_matrix_and_a_resumed_one_goes_on_there(scenario: Scenario) -> None:
    scenario.broken["users=2"] = _interrupt
    scenario.run()
    assert [DONE, ("incomplete", 130), ("waiting", None)] == scenario.entries()
    kept = (scenario.directory / "users=1/journal.jsonl").read_bytes()

    scenario.broken.clear()
    scenario.run()
    assert ["users=2", "users=3"] == scenario.begun
    assert [DONE] * 3 == scenario.entries()
    assert kept == (scenario.directory / "users=1/journal.jsonl").read_bytes()
    assert "interrupted" in (scenario.directory / "users=2.cut-1/journal.jsonl").read_text()


def test_an_interrupt_between_runs_is_noted_too(scenario: Scenario) -> None:
    matrix = scenario.matrix()
    begin(scenario.directory, scenario.info(matrix))

    def run_one(_entry: RunEntry, _run_dir: Path) -> RunResult:
        raise KeyboardInterrupt

    execute_matrix(scenario.directory, scenario.info(matrix), run_one, lambda _number, _entry: None)
    assert [("incomplete", 130), ("waiting", None), ("waiting", None)] == scenario.entries()


def test_a_control_plane_that_does_not_start_does_not_keep_the_next_from_being_tried(scenario: Scenario) -> None:
    scenario.broken["users=1"] = _no_etcd
    info = scenario.run()
    assert [("incomplete", 3), DONE, DONE] == scenario.entries()
    assert "no etcd" == info.runs[0].message


def test_a_bug_is_noted_and_raised(scenario: Scenario) -> None:
    async def bug(_journal: JournalFile, _lost: Lost) -> None:
        msg = "ours"
        raise ZeroDivisionError(msg)

    scenario.broken["users=2"] = bug
    with pytest.raises(ZeroDivisionError):
        scenario.run()
    assert [DONE, ("incomplete", 1), ("waiting", None)] == scenario.entries()


def test_a_run_that_failed_its_objectives_is_finished_and_kept(scenario: Scenario) -> None:
    async def nothing(_journal: JournalFile, _lost: Lost) -> None:
        pass

    scenario.broken["users=2"] = nothing
    scenario.run()
    assert [DONE, ("finished", ExitCode.FAILED), DONE] == scenario.entries()
    scenario.run()
    assert [] == scenario.begun


def test_a_verdict_counts_that_matrix_json_has_missed(scenario: Scenario) -> None:
    """A kill between the two files: the run is not done again."""
    done = scenario.run()
    path = scenario.directory / "matrix.json"
    data = json.loads(path.read_text())
    data["runs"][1].update(status="running", outcome=None, exit_code=None)
    path.write_text(json.dumps(data))
    assert done == scenario.run()
    assert [] == scenario.begun


def test_a_run_that_was_killed_is_done_again(scenario: Scenario) -> None:
    scenario.run()
    (scenario.directory / "users=3/verdict.json").unlink()
    scenario.run()
    (scenario.directory / "users=3/verdict.json").unlink()
    scenario.run()
    assert ["users=3"] == scenario.begun
    assert ["users=1", "users=2", "users=3", "users=3.cut-1", "users=3.cut-2"] == sorted(
        path.name for path in scenario.directory.iterdir() if path.is_dir()
    )


def test_repeats_are_runs_of_their_own(scenario: Scenario) -> None:
    scenario.run(scenario.matrix("users=1,2", repeat=2), repeat=2)
    assert ["users=1-r1", "users=2-r1", "users=1-r2", "users=2-r2"] == scenario.begun


@pytest.mark.parametrize(
    ("flags", "repeat", "message"),
    [
        (["users=1,2"], 1, "--matrix users was 1,2,3 and is 1,2"),
        (["users=3,2,1"], 1, "--matrix users was 1,2,3 and is 3,2,1"),
        (["length=50ms,60ms"], 1, "--matrix users was 1,2,3 and is not there"),
        (["users=1,2,3", "length=50ms"], 1, "--matrix length was not there and is 50ms"),
        (["users=1,2,3"], 2, "--repeat was 1 and is 2"),
    ],
)
def test_another_matrix_is_not_resumed_here(scenario: Scenario, flags: list[str], repeat: int, message: str) -> None:
    stored = scenario.info(scenario.matrix())
    with pytest.raises(UsageError, match="cannot be resumed") as caught:
        check_same(stored, scenario.info(scenario.matrix(*flags, repeat=repeat), repeat), scenario.directory)
    assert message in caught.value.message


def test_another_profile_is_not_resumed_and_the_key_is_named(scenario: Scenario) -> None:
    stored = scenario.info(scenario.matrix())
    check_same(stored, scenario.info(scenario.matrix()), scenario.directory)
    scenario.profile.write_text(PROFILE.replace("rollout: 10/s", "rollout: 20/s"))
    with pytest.raises(UsageError, match=r"flows.load.agents.rollout was '10/s' and is '20/s'"):
        check_same(stored, scenario.info(scenario.matrix()), scenario.directory)


def test_a_difference_that_only_a_later_variant_has_is_found(scenario: Scenario) -> None:
    scenario.profile.write_text(PROFILE + 'slo: {a: "{word}"}\n'.replace("{word}", "flow.load.started >= {users}"))
    stored = scenario.info(scenario.matrix())
    scenario.profile.write_text(PROFILE + 'slo: {a: "flow.load.started >= 1"}\n')
    with pytest.raises(UsageError, match=r"slo.a of users=2 was .*>= 2.* and is"):
        check_same(stored, scenario.info(scenario.matrix()), scenario.directory)


def test_a_directory_that_is_no_matrix_is_refused_and_left_alone(scenario: Scenario) -> None:
    scenario.directory.mkdir()
    with pytest.raises(RunDirectoryError, match="is no matrix"):
        resumable(scenario.directory)
    assert [] == list(scenario.directory.iterdir())


def test_two_processes_do_not_run_the_same_matrix(scenario: Scenario) -> None:
    scenario.directory.mkdir()
    with (
        held(scenario.directory),
        pytest.raises(RunDirectoryError, match="runs this matrix now"),
        held(scenario.directory),
    ):
        pass
    with held(scenario.directory):
        pass


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ('{"schema_version": 1', "line 1: cut short or no JSON"),
        ("[]", "no JSON object"),
        pytest.param("[" * 200_000, "nested too deeply", id="brackets"),
        ("{}", "of another program"),
        ('{"schema_version": "1"}', 'schema_version: a whole number is wanted, not "1"'),
        ('{"schema_version": 2}', "newer scaletest"),
        ('{"schema_version": 1}', "id: missing"),
    ],
)
def test_a_matrix_json_that_cannot_be_used_is_named(scenario: Scenario, text: str, message: str) -> None:
    scenario.directory.mkdir()
    (scenario.directory / "matrix.json").write_text(text)
    with pytest.raises(RunDirectoryError, match=message):
        resumable(scenario.directory)
