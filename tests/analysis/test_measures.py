"""Which metrics a run has, and over which time."""

from __future__ import annotations

import math

import pytest

from scaletest.analysis.gating import parse_rule, refuse_unknown
from scaletest.analysis.measures import RunMeasures, measure_run, possible_metrics, steady_part
from scaletest.analysis.metrickinds import kind_of, section_of
from scaletest.analysis.state import RunState
from scaletest.core.errors import UsageError
from scaletest.core.journal import Record
from scaletest.profile.loading import load_profile
from tests.analysis.journals import flow, process, record, run_info, step
from tests.report.matrices import calm_run


def measured(records: list[Record]) -> RunMeasures:
    return measure_run(run_info(), RunState().apply_all(records), outcome="pass", reason=None, directory=None)


def steady_run(seconds: int = 40, *, agents: int = 20, slow: float = 1.0) -> list[Record]:
    """A rollout of five seconds and then a steady load."""
    records = [
        record("phase.start", 0.0, phase="rollout"),
        record("phase.end", 5.0, phase="rollout", reason="condition"),
        record("phase.start", 5.0, phase="steady"),
        record("phase.end", 5.0 + seconds, phase="steady", reason="time"),
        record("flow.start", 0.1, flow="agents", target=agents),
        record("run.end", 6.0 + seconds, status="finished", reason=""),
    ]
    for second in range(1, 6 + seconds):
        started = min(agents, 5 * second)
        latencies = [1000.0 * slow * (1 + index / 100) for index in range(60)]
        records += [
            flow(second, target=agents, started=started, steps={"list": step(latencies)}),
            process(second, kube_apiserver=(1, 1e9 + 1e6 * second, 0.5 * second), driver=(2, 1e8, 0.1 * second)),
        ]
    return sorted(records, key=lambda item: item["t"])


def test_the_steady_part_is_the_longest_time_without_a_change() -> None:
    steady = steady_part(RunState().apply_all(steady_run()))
    assert steady is not None
    assert "steady" == steady.phase
    assert (6.0, 45.0) == steady.span


def test_an_action_ends_the_steady_part() -> None:
    records = [*steady_run(), record("action.start", 20.0, action="grow"), record("action.end", 21.0, action="grow")]
    steady = steady_part(RunState().apply_all(sorted(records, key=lambda item: item["t"])))
    assert steady is not None
    assert (22.0, 45.0) == steady.span


def test_a_run_without_load_or_of_a_moment_is_never_steady() -> None:
    assert steady_part(RunState()) is None
    assert steady_part(RunState().apply_all(steady_run(4))) is None
    quiet = [record("phase.start", 0.0, phase="wait"), record("phase.end", 60.0, phase="wait", reason="time")]
    assert steady_part(RunState().apply_all(quiet)) is None


def test_metrics_are_over_the_steady_part_and_in_blocks_of_it() -> None:
    run = measured(steady_run())
    rate, memory = run.metrics["flow.agents.rate"], run.metrics["component.kube-apiserver.memory"]
    assert 60.0 == rate.value
    assert 19 == len(rate.blocks) == len(memory.blocks)
    assert memory.value == max(memory.blocks)
    assert run.metrics["flow.agents.p50"].value == pytest.approx(0.00129, rel=0.01)
    assert 1000.0 == run.metrics["flow.agents.answer_bytes"].value
    assert 0.5 == run.metrics["component.kube-apiserver.cpu"].value


def test_scaletests_own_processes_are_not_compared() -> None:
    assert not any("driver" in name for name in measured(steady_run()).metrics)


def test_a_p99_needs_a_hundred_requests() -> None:
    few = [flow(second, started=10, steps={"list": step([1000.0] * 2)}) for second in range(1, 30)]
    records = [record("phase.start", 0.0, phase="p"), *few, record("phase.end", 30.0, phase="p", reason="time")]
    metrics = measured(records).metrics
    assert "flow.agents.p90" in metrics
    assert "flow.agents.p99" not in metrics


def test_a_small_run_has_every_kind_of_metric() -> None:
    run = measured(calm_run())
    for name in (
        "flow.agents.p50", "flow.agents.list-pods.p99", "flow.agents.error_rate", "probe.operator[admin].p50",
        "probe.operator[system:masters].success_rate", "component.etcd.memory", "component.kube-apiserver.oom_kills",
        "apf.global-default.rejected", "etcd.fsync_p99", "etcd.db_size",
    ):  # fmt: skip
        assert name in run.metrics, name
        assert kind_of(name) is not None
    assert not any(math.isnan(metric.value) for metric in run.metrics.values())
    assert all(kind_of(name) for name in run.metrics)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("flow.agents.list-pods.p99", ("Flow agents", "list-pods.p99")),
        ("probe.operator[a.b].p50", ("Probe operator[a.b]", "p50")),
        ("etcd.fsync_p99", ("etcd", "fsync_p99")),
        ("apf.workload-low.rejected", ("Priority level workload-low", "rejected")),
    ],
)
def test_names_have_a_place_in_a_table(name: str, expected: tuple[str, str]) -> None:
    assert expected == section_of(name)


def test_what_a_run_has_was_possible_before() -> None:
    possible = possible_metrics(load_profile("smoke").profile)
    renamed = {"flow.agents": "flow.telemetry", "probe.readiness": "probe.ready"}
    names = list(measured(calm_run()).metrics)
    for old, new in renamed.items():
        names = [name.replace(old, new) for name in names]

    assert {"flow", "probe", "component", "etcd"} <= {name.partition(".")[0] for name in names}
    for name in names:
        refuse_unknown([parse_rule(f"{name}:10%", "--fail")], possible)


@pytest.mark.parametrize(
    "rule",
    ["p98", "flow.agents.p99", "probe.operators.p99", "apisever.memory", "search.capacity", "max_rps"],
)
def test_what_no_run_can_have_is_not_possible(rule: str) -> None:
    with pytest.raises(UsageError, match=r"no metric .* in runs of smoke"):
        refuse_unknown(
            [parse_rule(f"{rule}:10%", "--fail")], possible_metrics(load_profile("smoke").profile), "runs of smoke"
        )


@pytest.mark.parametrize(
    "rule",
    ["p99", "own-pods.p50", "flow.*.p99", "flow.*", "probe.*", "operator[system:masters].p50", "kube-scheduler.cpu", "rejected",
     "apf.workload-low.rejected", "etcd.fsync_p99", "incident.steady.recovery", "answer_bytes"],
)  # fmt: skip
def test_what_a_run_may_have_is_possible(rule: str) -> None:
    refuse_unknown([parse_rule(f"{rule}:10%", "--fail")], possible_metrics(load_profile("smoke").profile))
