"""``scaletest gate``: what is refused before anything is run, and how the runs take turns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner, Result

from scaletest.analysis.comparison import RunSet
from scaletest.analysis.gating import ALL_RULE, parse_rule
from scaletest.analysis.measures import RunMeasures
from scaletest.cli._gate import Rounds, SideName, parse_against
from scaletest.cli.main import app
from scaletest.core.errors import ExitCode, Interrupted, ScaletestError, UsageError
from scaletest.observe.hostinfo import host_info
from scaletest.profile.loading import load_profile
from scaletest.report.baselines import save_baseline
from tests.analysis.gate_series import SLOW, simulated

RULES = (parse_rule("flow.telemetry.p50:10%", "--fail"), parse_rule("apiserver.memory:15%", "--fail"))


def measures(number: int, factors: dict[str, float] | None = None, **more: object) -> RunMeasures:
    (metrics,) = simulated(Random(f"{number} {bool(factors)}"), 1, wild=0.0, factors=factors)
    made = RunMeasures(
        id=f"run-{number}", directory=None, started_at="2026-12-01T00:00:00+00:00", outcome="pass", reason=None,
        profile={"name": "smoke"}, host={}, versions={}, limits={}, steady_phase="steady", metrics=metrics,
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


class Runs:
    """Runs that were done, in their order; those of ``new`` as ``factors`` say."""

    def __init__(self, factors: dict[str, float] | None = None, **more: object) -> None:
        self.done: list[tuple[SideName, int]] = []
        self.factors = factors
        self.more = more

    def __call__(self, side: SideName, number: int) -> RunMeasures:
        self.done.append((side, number))
        if side == "base":
            return measures(number)
        return measures(100 + number, self.factors, **self.more)


def quiet(_text: str) -> None:
    """Tell nobody."""


def rounds(most: int, base: RunSet | None = None) -> Rounds:
    return Rounds(base=base, rules=RULES, despite=frozenset(), most=most)


def test_base_and_new_take_turns_and_who_goes_first_changes() -> None:
    runs = Runs()
    rounds(2).run(runs, quiet)
    assert [("base", 1), ("new", 1), ("new", 2), ("base", 2)] == runs.done


def test_a_gate_stops_when_nothing_can_have_become_worse() -> None:
    runs, told = Runs(), list[str]()
    _, gate, _ = rounds(12).run(runs, told.append)
    assert "pass" == gate.outcome
    assert len(runs.done) < 24
    assert told[0].endswith("of at most 12 runs: pass")


def test_a_gate_stops_when_a_regression_is_found() -> None:
    runs, told = Runs({name: factor**3 for name, factor in SLOW.items()}), list[str]()
    compared, gate, setting = rounds(12).run(runs, told.append)
    assert "fail" == gate.outcome
    assert 8 == len(runs.done)
    assert ["clear after 4 of at most 12 runs: fail"] == told
    assert setting.alpha < 0.05
    assert "flow.telemetry.p50" in {change.metric for change in compared.changes if change.call(setting) == "worse"}


def test_a_baseline_is_not_run_again() -> None:
    runs = Runs()
    base = RunSet("main", tuple(measures(number) for number in range(6)), is_baseline=True)
    _, gate, _ = rounds(4, base).run(runs, quiet)
    assert [("new", number) for number in (1, 2, 3, 4)] == runs.done
    assert "pass" == gate.outcome


def test_invalid_runs_leave_the_gate_undecided() -> None:
    _, gate, _ = rounds(4).run(Runs(outcome="invalid", reason="lag"), quiet)
    assert ("undecided", ExitCode.INVALID) == (gate.outcome, gate.exit_code)


def test_sides_that_differ_are_not_run_again_and_again() -> None:
    runs, told = Runs(versions={"kubernetes": "1.36"}), list[str]()
    _, gate, _ = rounds(8).run(runs, told.append)
    assert "undecided" == gate.outcome
    assert 2 == len(runs.done)
    assert ["no number of runs can decide: the sides differ"] == told


def test_an_interrupt_ends_the_gate() -> None:
    def interrupted(side: SideName, number: int) -> RunMeasures:
        msg = "interrupted"
        raise Interrupted(msg)

    with pytest.raises(Interrupted):
        rounds(4).run(interrupted, quiet)


def test_against_is_a_version_or_any_key() -> None:
    texts = ["kubernetes=1.36", "etcd=3.5", "set:nodes=100", "set:flows.a.agents.rollout=5/s"]
    expected = ["controlPlane.kubernetes=1.36", "controlPlane.etcd=3.5", "nodes=100", "flows.a.agents.rollout=5/s"]
    assert expected == parse_against(texts)
    for text in ("kubernetes", "nodes=100", "set:nodes", "set:=1", "kubernetes="):
        with pytest.raises(UsageError, match="--against"):
            parse_against([text])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".scaletest").mkdir()
    return tmp_path


def gate(*argv: str) -> Result:
    return CliRunner().invoke(app, ["gate", "smoke", *argv])


def saved(project: Path, name: str, **more: object) -> None:
    fields = {"profile": load_profile("smoke").resolved, "host": host_info().to_json(), **more}
    runs = [measures(number, **fields) for number in range(4)]  # type: ignore[arg-type]
    save_baseline(project / ".scaletest" / "baselines" / f"{name}.json", runs, "2026-12-01T12:00:00+00:00")


def test_a_dry_run_says_what_would_be_run_and_makes_nothing(project: Path) -> None:
    saved(project, "main")
    done = gate("--baseline", "main", "--fail", "p50:10%", "--dry-run")
    assert 0 == done.exit_code, done.exception
    assert "at most 8 runs of it" in done.output
    assert "against the baseline main: 4 runs" in done.output
    assert "looks after 4, 6, 8 runs" in done.output
    assert "p50:10%  (--fail)" in done.output
    assert "each side, in turns" in gate("--against", "set:nodes=60", "--repeat", "4", "--dry-run").output
    assert [".scaletest"] == [path.name for path in project.iterdir()]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "one of --baseline NAME, --against"),
        (["--baseline", "main", "--against", "kubernetes=1.36"], "one of --baseline NAME, --against"),
        (["--baseline", "none"], "no such baseline"),
        (["--baseline", "other"], "a baseline of the profile openai-outage, not of smoke"),
        (["--baseline", "main", "--set", "nodes=60"], "of another profile: fleet.pools.0.nodes was 50 and is 60"),
        (["--baseline", "elsewhere"], "of another host: cores was 9999"),
        (["--baseline", "main", "--fail", "p98:10%"], "no metric p98"),
        (["--baseline", "main", "--repeat", "0"], "--repeat 0: from 1 to 30"),
        (["--against", "set:nodes=50"], "base and new are the same profile"),
        (["--against", "set:nods=50"], "--against set:nods=50: nods: there is no 'nods': did you mean 'nodes'?"),
        (["--against", "set:nodes=many"], "--against set:nodes=many: "),
        (["--against", "set:a..b=1"], "--against set:a..b=1: not kubernetes=VERSION"),
        (["--against", "kubernetes=latest"], "--against kubernetes=latest: controlPlane.kubernetes: 'latest' is not a version"),
        (["--against", "kubernetes=9.99"], "--against kubernetes=9.99: controlPlane.kubernetes: Kubernetes 9.99: no patch version"),
        (["--against", "set:nodes=60", "--fail", "p98:10%"], "p98:10% (--fail): no metric p98 in runs of smoke"),
        (["--against", "set:nodes=60", "--fail", "flow.agents.p99:10%"], "no metric flow.agents.p99 in runs of smoke"),
        (["--against", "set:nodes=60", "--fail", "p99:10MiB"], "p99:10MiB (--fail): "),
        (["--against", "set:nodes=60", "--output", ".scaletest"], ".scaletest: exists already"),
        (["--against", "set:nodes=60", "--output", ".scaletest/file/x"], "cannot be made: .scaletest/file is no directory"),
        (["--against", "set:nodes=60", "--report", "junit=.scaletest"], "--report junit=.scaletest: a directory"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_what_could_not_decide_is_refused_before_anything_is_run(
    argv: list[str], message: str, dry: tuple[str, ...], project: Path
) -> None:
    (project / ".scaletest" / "file").touch()
    saved(project, "main")
    saved(project, "other", profile={"name": "openai-outage"})
    saved(project, "elsewhere", host={**host_info().to_json(), "cores": 9999})
    error = gate(*argv, *dry).exception
    assert isinstance(error, ScaletestError)
    assert ExitCode.USAGE is error.exit_code
    assert message in error.message
    assert [".scaletest"] == [path.name for path in project.iterdir()]


def test_without_rules_every_metric_is_gated() -> None:
    runs = Runs({name: factor**2 for name, factor in SLOW.items()})
    every = Rounds(base=None, rules=(ALL_RULE,), despite=frozenset(), most=6)
    assert "fail" == every.run(runs, quiet)[1].outcome
