"""Who has which cores, and what ``--processes`` asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.profile.schema import FlowSpec
from scaletest.runner.cores import APART_FROM_CORES, CorePlan, plan_cores, process_overrides


@pytest.mark.parametrize(
    ("cpus", "usable", "processes", "generator"),
    [
        (range(2), 2.0, 1, ()),
        (range(3), 3.0, 1, ()),
        (range(4), 4.0, 1, (3,)),
        (range(4), 4.0, 9, (2, 3)),
        (range(8), 8.0, 2, (6, 7)),
        ((9, 3, 5, 1), 4.0, 0, (9,)),
        (range(64), 2.0, 4, ()),  # a container's quota
    ],
)
def test_the_generator_has_the_last_cores_where_there_are_enough(
    cpus: range | tuple[int, ...], usable: float, processes: int, generator: tuple[int, ...]
) -> None:
    assert generator == plan_cores(cpus, usable, processes).generator


@given(cpus=st.sets(st.integers(0, 255), max_size=64), processes=st.integers(0, 64))
def test_every_core_has_one_owner_or_all_are_shared(cpus: set[int], processes: int) -> None:
    plan = plan_cores(cpus, float(len(cpus)), processes)

    if len(cpus) < APART_FROM_CORES:
        assert CorePlan() == plan
    else:
        assert sorted(cpus) == sorted([*plan.generator, *plan.control_plane])
        assert 1 <= len(plan.generator) <= len(plan.control_plane)


def flows() -> dict[str, FlowSpec]:
    gets = {"arrivals": {"rate": "10/s"}, "mix": [{"get": "/version"}]}
    puts = {"etcd": {"rate": "10/s", "operations": [{"op": "put"}]}}
    agents = {"agents": {"count": 1, "rollout": "1/s"}, "steps": [{"list": "pods"}]}
    watchers = {"watchers": {"count": 1}, "steps": [{"watch": "pods"}]}
    users = {"locustfile": {"path": "users.py", "users": 1, "spawn": "1/s"}}
    each = {"g": gets, "p": puts, "a": agents, "w": watchers, "u": users}
    return {name: FlowSpec.model_validate(item) for name, item in each.items()}


@pytest.mark.parametrize(
    ("wanted", "cores", "count"), [("2", 2.0, 2), ("auto", 2.0, 1), ("auto", 9.5, 2), ("64", 1.0, 64)]
)
def test_processes_are_set_for_every_flow_that_can_have_several(wanted: str, cores: float, count: int) -> None:
    kinds = {"g": "arrivals", "p": "etcd", "a": "agents", "w": "watchers"}
    expected = [f"flows.{name}.{kind}.processes={count}" for name, kind in kinds.items()]

    assert expected == process_overrides(flows(), wanted, cores)


@pytest.mark.parametrize("wanted", ["0", "65", "-1", "many", "1.5", ""])
def test_what_is_no_number_of_processes_is_refused(wanted: str) -> None:
    with pytest.raises(ValueError, match="no number of processes"):
        process_overrides(flows(), wanted, 8.0)
