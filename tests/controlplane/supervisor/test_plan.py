from __future__ import annotations

import stat
from pathlib import Path

import pytest

from scaletest.controlplane.plan import ClusterPlan, JournalTarget, Limits, plan_path, read_plan, state_path, write_plan
from scaletest.controlplane.state import ClusterState, ComponentState, Enforcement, LastExit, read_state, write_state
from scaletest.core.processes import ProcessId
from tests.controlplane.supervisor.toys import ToyCluster


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    toy = ToyCluster(tmp_path, tmp_path).add("api", "listen=8080", role="server", cores=1.5).add("kcm")
    toy.options.update(
        journal=JournalTarget(tmp_path / "j", 1.25), remove_paths=("/x",), limit_by="watchdog", cpus=(0, 2)
    )
    plan = toy.plan()

    write_plan(tmp_path, plan)

    assert read_plan(tmp_path) == plan
    assert plan.component("api").tcp_ports == (8080,)
    assert stat.S_IMODE(plan_path(tmp_path).stat().st_mode) == 0o600


def test_an_unknown_component_is_a_key_error(tmp_path: Path) -> None:
    plan: ClusterPlan = ToyCluster(tmp_path, tmp_path).add("kcm").plan()

    with pytest.raises(KeyError):
        plan.component("etcd")


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    component = ComponentState("api", Limits(5, 1.5), Enforcement("cgroup_v2", "none"), ProcessId(1, 2), 3)
    component.last_exit = LastExit("oom", None, 9, 77)
    idle = ComponentState("kcm", Limits(5), Enforcement("watchdog", "none"))
    state = ClusterState("demo", ProcessId(4, 5), "ending", "asked", "why", "because", ProcessId(6, 7), ProcessId(8, 9))
    state.components = {"api": component, "kcm": idle}
    state.groups, state.remove_paths = ["/g"], ["/p"]

    write_state(tmp_path, state)

    assert read_state(tmp_path) == state
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_a_file_that_is_no_state_is_told_and_none_is_none(tmp_path: Path) -> None:
    assert read_state(tmp_path) is None
    state_path(tmp_path).write_text('{"name": "x"}')

    with pytest.raises(ValueError, match="not the state of a cluster"):
        read_state(tmp_path)
