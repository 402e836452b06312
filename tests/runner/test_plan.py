"""A plan says what a run needs, and what does not fit is refused with what would."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.controlplane.host import Host
from scaletest.core.errors import ExitCode, ResourceShortage
from scaletest.profile.loading import load_profile
from scaletest.runner.plan import RunPlan, make_plan, refuse_if_too_large

GIB = 1 << 30
LAPTOP = Host(8 * GIB, 4.0)
SERVER = Host(256 * GIB, 64.0)


def plan_for(host: Host, *overrides: str) -> RunPlan:
    return make_plan(load_profile("smoke", list(overrides)).profile, host)


def test_the_longest_time_is_that_of_the_phases_and_set_up() -> None:
    assert 53 <= plan_for(LAPTOP).longest_s <= 75


def test_nodes_that_phases_add_count() -> None:
    grown = plan_for(LAPTOP, "phases.steady.do=[{grow: {pool: gpu, by: 30}}]")
    assert 80 == grown.most_nodes
    assert grown.all_needed_bytes > plan_for(LAPTOP).all_needed_bytes


def test_a_fleet_that_is_too_large_names_the_size_that_fits() -> None:
    plan = plan_for(LAPTOP, "nodes=50000")
    with pytest.raises(ResourceShortage, match="50,000 nodes") as caught:
        refuse_if_too_large(plan, available_bytes=8 * GIB)
    assert ExitCode.ENVIRONMENT is caught.value.exit_code
    fit = int(re.sub(r"\D", "", (caught.value.hint or "").split("such")[0]))
    refuse_if_too_large(plan_for(LAPTOP, f"nodes={fit}"), available_bytes=100 * GIB)


def test_memory_that_is_in_use_counts() -> None:
    with pytest.raises(ResourceShortage, match="too little free memory"):
        refuse_if_too_large(plan_for(SERVER, "nodes=7000"), available_bytes=9 * GIB)


def test_a_limit_above_the_host_is_refused_with_its_key() -> None:
    plan = plan_for(LAPTOP, "controlPlane.limits.kube-apiserver.memory=400GiB")
    with pytest.raises(ResourceShortage, match="400 GiB") as caught:
        refuse_if_too_large(plan, available_bytes=8 * GIB)
    assert "controlPlane.limits.kube-apiserver.memory" in (caught.value.hint or "")


@given(st.integers(1, 20_000))
def test_more_nodes_never_need_less(nodes: int) -> None:
    profile = load_profile("smoke", [f"nodes={nodes}"]).profile
    more = load_profile("smoke", [f"nodes={nodes + 1}"]).profile
    assert make_plan(profile, SERVER).all_needed_bytes <= make_plan(more, SERVER).all_needed_bytes


def test_one_api_server_gets_its_share_of_the_most_that_the_lever_gives() -> None:
    one = plan_for(SERVER, "phases.steady.do=[{lever: block-agents}]")
    levered = plan_for(SERVER, "phases.steady.do=[{lever: add-api-servers}]")

    assert (1, 2) == (one.api_servers, levered.api_servers)
    assert one.limits["kube-apiserver"].memory_bytes // 2 == levered.limits["kube-apiserver"].memory_bytes
    assert one.all_needed_bytes < levered.all_needed_bytes
