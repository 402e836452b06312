"""The heartbeat factor follows from the host, and kwokctl's times from the factor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.controlplane.heartbeat import AUTO_FACTORS, AUTO_SHARE_OF_CORES, Heartbeat, heartbeat_for

fleets = st.integers(0, 100_000)
hosts = st.floats(0.5, 256)


@pytest.mark.parametrize(
    ("nodes", "cores", "factor"),
    [(50, 2, 1), (1_680, 2, 1), (1_681, 2, 2), (7_000, 2, 5), (7_000, 16, 1), (7_000, 0.5, 20), (0, 1, 1)],
)
def test_auto_takes_the_smallest_factor_that_the_host_can_bear(nodes: int, cores: float, factor: int) -> None:
    assert factor == heartbeat_for(nodes=nodes, cores=cores, factor="auto").factor


def test_at_factor_1_a_fake_node_beats_as_a_kubelet_does() -> None:
    heartbeat = heartbeat_for(nodes=7_000, cores=2, factor=1)

    assert (40, 10.0, 40, 5) == (
        heartbeat.lease_duration_s,
        heartbeat.renew_interval_s,
        heartbeat.grace_period_s,
        heartbeat.monitor_period_s,
    )
    assert pytest.approx(1.25) == heartbeat.cost_cores


def test_a_given_factor_is_taken_whatever_it_costs() -> None:
    assert 1 == heartbeat_for(nodes=100_000, cores=1, factor=1).factor


@given(fleets, hosts)
def test_auto_stays_within_its_share_or_takes_the_largest_factor(nodes: int, cores: float) -> None:
    heartbeat = heartbeat_for(nodes=nodes, cores=cores, factor="auto")

    assert heartbeat.cost_cores <= AUTO_SHARE_OF_CORES * cores or heartbeat.factor == AUTO_FACTORS[-1]


@given(fleets, fleets, hosts)
def test_more_nodes_never_beat_faster(one: int, other: int, cores: float) -> None:
    fewer, more = sorted((one, other))

    few = heartbeat_for(nodes=fewer, cores=cores, factor="auto")
    many = heartbeat_for(nodes=more, cores=cores, factor="auto")

    assert few.factor <= many.factor


def test_json_gives_the_same_heartbeat_back() -> None:
    heartbeat = heartbeat_for(nodes=7_000, cores=2, factor="auto")

    assert heartbeat == Heartbeat.from_json(heartbeat.to_json())
