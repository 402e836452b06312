"""Rules of the gate: what they are about, what they allow, and what keeps them from deciding."""

from __future__ import annotations

import math
from typing import Any

import pytest

from scaletest.analysis.comparison import RunSet, compare
from scaletest.analysis.gatelooks import looks, setting_of
from scaletest.analysis.gating import ALL_RULE, Despite, Gate, decide, is_clear, parse_rule
from scaletest.analysis.measures import RunMeasures
from scaletest.analysis.metrickinds import Metric
from scaletest.core.errors import ExitCode, UsageError

P50, MEMORY, ADMIN = "flow.telemetry.p50", "component.kube-apiserver.memory", "probe.operator[system:masters].p50"


def run(number: int, factor: float = 1.0, *, outcome: str = "pass", **more: object) -> RunMeasures:
    off = 1 + 0.01 * (number % 3)
    metrics = {
        P50: Metric(0.010 * factor * off), MEMORY: Metric(1e9 * off), ADMIN: Metric(0.05 * off),
        "flow.telemetry.error_rate": Metric(0.01 * (factor - 1)), "search.capacity": Metric(1000 / factor * off),
    }  # fmt: skip
    fields = {
        "id": f"run-{number}", "directory": None, "started_at": "2026-12-01T00:00:00+00:00", "outcome": outcome,
        "reason": None if outcome == "pass" else "lag", "profile": {"name": "smoke", "fleet": {"nodes": 50}},
        "host": {"cores": 2, "memory_bytes": 24 * 2**30}, "versions": {"kubernetes": "1.37.2"}, "limits": {},
        "steady_phase": "steady", "metrics": metrics, **more,
    }  # fmt: skip
    return RunMeasures(**fields)  # type: ignore[arg-type]


def runs(name: str, count: int = 6, factor: float = 1.0, **more: Any) -> RunSet:
    return RunSet(name, tuple(run(number, factor, **more) for number in range(count)))


def gate(base: RunSet, new: RunSet, *rules: str, despite: frozenset[Despite] = frozenset()) -> Gate:
    parsed = [parse_rule(rule, "--fail") for rule in rules] or [ALL_RULE]
    return decide(compare(base, new), parsed, despite=despite)


def about(rule: str) -> list[str]:
    parsed = parse_rule(f"{rule}:10%", "--fail")
    return [name for name in run(0).metrics if parsed.matches(name)]


@pytest.mark.parametrize(
    ("rule", "metrics"),
    [
        (P50, [P50]),
        ("p50", [P50, ADMIN]),
        ("telemetry.p50", [P50]),
        ("flow.*.p50", [P50]),
        ("apiserver.memory", [MEMORY]),
        ("kube-apiserver.memory", [MEMORY]),
        ("operator.p50", [ADMIN]),
        (ADMIN, [ADMIN]),
        ("max_rps", ["search.capacity"]),
        ("probe.*", [ADMIN]),
        ("flow.*", [P50, "flow.telemetry.error_rate"]),
        ("telemetry.*", [P50, "flow.telemetry.error_rate"]),
        ("*.operator.*", [ADMIN]),
        ("*", list(run(0).metrics)),
        ("50", []),
        ("prob.*", []),
        ("*.p50.*", []),
        ("server.memory", []),
        ("operator[admin].p50", []),
    ],
)
def test_metrics_are_named_from_any_dot_on(rule: str, metrics: list[str]) -> None:
    assert metrics == about(rule)


@pytest.mark.parametrize("text", ["p99", "p99:", ":10%", "p99:much", "p99:10%%", "p99:-1%", "", "p99:ten%"])
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--fail"):
        parse_rule(text, "--fail")


def test_a_rule_about_nothing_names_what_is_near() -> None:
    with pytest.raises(UsageError, match="no metric p51") as caught:
        gate(runs("a"), runs("b"), "p51:10%")
    assert caught.value.hint is not None
    assert "p50" in caught.value.hint


def test_a_unit_that_the_metric_has_not_is_refused() -> None:
    with pytest.raises(UsageError, match="is not a size"):
        gate(runs("a"), runs("b"), "apiserver.memory:50ms")


def test_a_regression_beyond_what_is_allowed_fails() -> None:
    failed = gate(runs("a"), runs("b", factor=1.2), "telemetry.p50:10%", "apiserver.memory:10%")
    assert ("fail", ExitCode.FAILED) == (failed.outcome, failed.exit_code)
    assert [P50] == [check.metric for check in failed.checks if check.outcome == "fail"]
    assert "pass" == gate(runs("a"), runs("b", factor=1.2), "telemetry.p50:25%").outcome
    assert "fail" == gate(runs("a"), runs("b", factor=1.2), "telemetry.p50:1ms").outcome
    assert "pass" == gate(runs("a"), runs("b", factor=1.2), "telemetry.p50:3ms").outcome
    assert "fail" == gate(runs("a"), runs("b", factor=1.2), "max_rps:5%").outcome


def test_better_never_fails() -> None:
    assert "pass" == gate(runs("a", factor=1.5), runs("b"), "p50:1%", "max_rps:1%", "error_rate:0.1%").outcome


def test_shares_are_allowed_percentage_points() -> None:
    base, new = runs("a", factor=1.0001), runs("b", factor=3.0)
    assert "fail" == gate(base, new, "error_rate:1%").outcome
    assert "pass" == gate(base, new, "error_rate:3%").outcome


def test_without_rules_any_called_change_for_the_worse_fails() -> None:
    assert "pass" == gate(runs("a"), runs("b")).outcome
    failed = gate(runs("a"), runs("b", factor=1.3))
    assert {P50, "search.capacity"} == {check.metric for check in failed.checks if check.outcome == "fail"}


def test_invalid_runs_never_gate() -> None:
    broken = gate(runs("a"), runs("b", factor=2.0, outcome="invalid"), "p50:10%")
    assert ("undecided", ExitCode.INVALID) == (broken.outcome, broken.exit_code)
    assert ("b has no valid run",) == broken.kept


def test_invalid_runs_beside_valid_ones_are_left_out() -> None:
    mixed = RunSet("b", (*runs("b").runs, run(9, 9.0, outcome="invalid")))
    compared = compare(runs("a"), mixed)
    assert "b: 1 of 7 runs left out: run-9 is invalid (lag)" in compared.notes
    assert "pass" == decide(compared, [ALL_RULE]).outcome


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"host": {"cores": 4, "memory_bytes": 24 * 2**30}}, "host"),
        ({"versions": {"kubernetes": "1.36.0"}}, "versions"),
        ({"profile": {"name": "smoke", "fleet": {"nodes": 65}}}, "profile"),
        ({"limits": {"etcd": {"memory_bytes": 1}}}, "limits"),
    ],
)
def test_what_differs_keeps_the_gate_from_deciding_unless_it_is_told_not_to_mind(
    more: dict[str, Any], what: Despite
) -> None:
    base, new = runs("a"), runs("b", factor=1.2, **more)
    kept = gate(base, new, "p50:10%")
    assert "undecided" == kept.outcome
    assert f"--despite {what}" in kept.kept[0]
    assert "fail" == gate(base, new, "p50:10%", despite=frozenset({what})).outcome


def test_a_little_more_memory_is_the_same_host_and_a_threshold_the_same_profile() -> None:
    other: dict[str, Any] = {
        "host": {"cores": 2, "memory_bytes": 24 * 2**30 + 4096},
        "profile": {"name": "smoke", "fleet": {"nodes": 50}, "slo": {"a": "b"}},
    }
    assert () == compare(runs("a"), runs("b", **other)).differences


def test_limits_are_compared_as_they_held_and_not_as_a_profile_gives_them() -> None:
    profile = {"name": "smoke", "controlPlane": {"apiServers": 1, "limits": {}}}
    given = {"name": "smoke", "controlPlane": {"apiServers": 1, "limits": {"etcd": {"memory": "1GiB"}}}}
    held = {"etcd": {"memory_bytes": 2**30}}
    base = runs("a", limits=held, profile=profile)
    assert () == compare(base, runs("b", limits=held, profile=given)).differences
    (difference,) = compare(base, runs("b", profile=given)).differences
    assert "limits" == difference.what


def test_few_samples_are_undecided_unless_the_gate_is_told_not_to_mind() -> None:
    base, new = runs("a", 1), runs("b", 1, factor=1.2)
    few = gate(base, new, "telemetry.p50:10%")
    assert "undecided" == few.outcome
    assert few.checks[0].why is not None
    assert "fail" == gate(base, new, "telemetry.p50:10%", despite=frozenset({"few-samples"})).outcome
    assert "pass" == gate(base, new, "telemetry.p50:30%", despite=frozenset({"few-samples"})).outcome
    assert "undecided" == gate(base, new).outcome


def test_a_metric_that_new_lacks_is_undecided() -> None:
    lacking = RunSet("b", tuple(run(number, metrics={MEMORY: Metric(1e9)}) for number in range(6)))
    assert "undecided" == gate(runs("a"), lacking, "telemetry.p50:10%").outcome
    assert "pass" == gate(runs("a"), lacking).outcome


def test_runs_steady_in_different_phases_compare_what_happens_once() -> None:
    compared = compare(runs("a"), runs("b", steady_phase="other"))
    assert ["search.capacity"] == [change.metric for change in compared.changes]
    assert "different phases" in compared.notes[0]


def test_a_gate_is_clear_when_no_metric_can_be_worse_by_what_is_allowed() -> None:
    assert is_clear(gate(runs("a"), runs("b"), "telemetry.p50:10%"))
    assert not is_clear(gate(runs("a"), runs("b"), "telemetry.p50:0.1%"))
    assert not is_clear(gate(runs("a", 1), runs("b", 1), "telemetry.p50:10%"))
    assert not is_clear(gate(runs("a"), runs("b", factor=1.5), "telemetry.p50:10%"))


@pytest.mark.parametrize(("most", "expected"), [(1, [1]), (4, [4]), (5, [4, 5]), (8, [4, 6, 8]), (10, [4, 6, 8, 10])])
def test_looks_share_the_chance_of_a_false_alarm(most: int, expected: list[int]) -> None:
    assert expected == looks(most)
    assert setting_of(most).alpha == pytest.approx(0.05 / len(expected))


def test_no_number_is_no_change() -> None:
    nan = RunSet("b", tuple(run(number, metrics={P50: Metric(math.inf)}) for number in range(1)))
    assert "undecided" == gate(runs("a", 1), nan, "telemetry.p50:10%").outcome
