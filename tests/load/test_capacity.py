from __future__ import annotations

import resource
from typing import Any

import pytest

from scaletest.core.errors import ResourceShortage
from scaletest.load.capacity import (
    check_all_descriptors,
    check_descriptors,
    connections_of,
    connections_per_user,
    driver_memory_bytes,
    source_addresses,
)
from scaletest.profile.schema import FlowSpec


def flow(*steps: dict[str, Any], processes: int = 1) -> FlowSpec:
    agents = {"count": 1, "rollout": "1/s", "processes": processes}
    return FlowSpec.model_validate({"agents": agents, "steps": list(steps)})


def test_connections_of_an_agent_are_one_and_one_for_each_watch() -> None:
    list_, watch, other = {"list": "pods"}, {"watch": "pods"}, {"watch": "nodes"}

    assert [1, 2, 1, 3] == [
        connections_per_user(spec) for spec in (flow(list_), flow(list_, watch), flow(watch), flow(list_, watch, other))
    ]


def test_a_shortage_says_how_many_agents_would_fit() -> None:
    spec = flow({"list": "pods"}, {"watch": "pods"})
    check_descriptors(spec, 4_950, hard_limit=10_000)

    with pytest.raises(
        ResourceShortage, match=r"11,000 connections in all.* only 10,000 files: 4,450 agents"
    ) as caught:
        check_descriptors(spec, 5_000, beside=1_000, hard_limit=10_000)
    assert "ulimit -Hn 11100" in (caught.value.hint or "")


def test_every_process_may_open_as_many_files() -> None:
    spec = flow({"list": "pods"}, {"watch": "pods"}, processes=3)
    check_descriptors(spec, 3 * 4_950, beside=9_900, hard_limit=10_000)

    with pytest.raises(ResourceShortage, match=r"9,902 connections in each of 3 processes.*: 14,850 agents would fit"):
        check_descriptors(spec, 3 * 4_950 + 1, hard_limit=10_000)
    assert 2 * (3 * 4_950) == connections_of(spec, 3 * 4_950)


def test_flows_in_the_load_driver_share_its_files_and_others_do_not() -> None:
    own, plain = flow({"list": "pods"}, processes=2), flow({"list": "pods"})
    own = own.model_copy(update={"agents": own.placed.model_copy(update={"count": 190})})  # type: ignore[union-attr]
    plain = plain.model_copy(update={"agents": plain.placed.model_copy(update={"count": 60})})  # type: ignore[union-attr]

    assert 250 == check_all_descriptors([own, plain], 0, hard_limit=200)
    with pytest.raises(ResourceShortage, match="60 agents need 120 connections in all"):
        check_all_descriptors([plain, own, plain], 0, hard_limit=200)


def test_no_limit_is_no_shortage() -> None:
    check_descriptors(flow({"list": "pods"}), 10**9, hard_limit=resource.RLIM_INFINITY)


def test_one_address_serves_28_000_connections_and_only_loopback_is_spread() -> None:
    loopback, far = ("https://127.0.0.1:6443",), ("https://api.example.org:443",)

    assert () == source_addresses(loopback, 28_000)
    assert ("127.0.1.1", "127.0.1.2") == source_addresses(loopback, 28_001)
    assert () == source_addresses(far, 100_000)
    assert () == source_addresses((*loopback, *far), 100_000)
    many = source_addresses(loopback, 28_000 * 600)
    assert 600 == len(set(many))


def test_memory_grows_with_the_connections() -> None:
    assert driver_memory_bytes(0) < driver_memory_bytes(7_000) < 600 * 2**20
