from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.controlplane.host import Host
from scaletest.controlplane.limits import (
    default_limits,
    floor_bytes,
    memory_needed_bytes,
    nodes_that_fit,
    reserve_bytes,
)
from scaletest.core.errors import ResourceShortage
from scaletest.profile.schema import COMPONENTS, ComponentName, LimitSpec

GIB = 1 << 30
MIB = 1 << 20


@pytest.mark.parametrize(
    ("memory_gib", "cores", "expected_mib"),
    [
        (8, 4, {"etcd": 682, "kube-controller-manager": 682, "kube-scheduler": 384, "kwok-controller": 384}),
        (24, 2, {"etcd": 2048, "kube-controller-manager": 2048, "kube-scheduler": 1024, "kwok-controller": 1024}),
        (256, 64, {"etcd": 8192, "kube-controller-manager": 8192, "kube-scheduler": 4096, "kwok-controller": 4096}),
    ],
)
def test_caps_follow_the_documented_rule(memory_gib: int, cores: int, expected_mib: dict[ComponentName, int]) -> None:
    host = Host(memory_gib * GIB, cores)

    limits = default_limits(host)

    assert {name: limits[name].memory_bytes // MIB for name in expected_mib} == expected_mib
    assert limits["kube-apiserver"].cpu_cores == round(0.85 * cores, 2)
    assert [limits[name].cpu_cores for name in COMPONENTS if name != "kube-apiserver"] == [None] * 4


def test_config_maps_are_nothing_to_the_scheduler_and_kwok() -> None:
    few = memory_needed_bytes(nodes=50, pods=100)
    many = memory_needed_bytes(nodes=50, pods=100, other_object_bytes=10_000_000)

    grown = {name for name, bytes_ in many.items() if bytes_ > few[name]}
    assert {"etcd", "kube-apiserver", "kube-controller-manager"} == grown


@given(st.integers(4 * GIB, 4096 * GIB), st.floats(0.5, 512), st.integers(1, 3))
def test_caps_and_reserve_together_are_what_the_host_has(memory_bytes: int, cores: float, servers: int) -> None:
    host = Host(memory_bytes, cores)
    try:
        limits = default_limits(host, api_servers=servers)
    except ResourceShortage:
        assert memory_bytes < 8 * GIB
        return

    total = sum(values.memory_bytes for values in limits.values())
    total += (servers - 1) * limits["kube-apiserver"].memory_bytes
    assert memory_bytes - servers < total + reserve_bytes(host) <= memory_bytes
    assert floor_bytes(host) < reserve_bytes(host) or memory_bytes > 50 * GIB


@pytest.mark.parametrize(("memory_gib", "floor_gib"), [(4, 1), (8, 1), (15.6, 2), (24, 2), (64, 5.12), (256, 8)])
def test_the_floor_follows_the_host(memory_gib: float, floor_gib: float) -> None:
    assert floor_bytes(Host(int(memory_gib * GIB), 2)) == pytest.approx(floor_gib * GIB, rel=1e-6)


def test_a_profiles_own_limits_win_and_the_api_server_gets_what_they_leave() -> None:
    host = Host(16 * GIB, 4)
    own: dict[ComponentName, LimitSpec] = {"etcd": LimitSpec(memory="1GiB", cpu=0.5)}  # type: ignore[arg-type]

    plain, limits = default_limits(host), default_limits(host, overrides=own)

    assert (limits["etcd"].memory_bytes, limits["etcd"].cpu_cores) == (GIB, 0.5)
    freed = plain["etcd"].memory_bytes - GIB
    assert limits["kube-apiserver"].memory_bytes == plain["kube-apiserver"].memory_bytes + freed

    capped = default_limits(host, overrides={"kube-apiserver": LimitSpec(memory="2GiB")})  # type: ignore[arg-type]

    assert capped["kube-apiserver"].memory_bytes == 2 * GIB
    assert capped["kube-apiserver"].cpu_cores == 3.4
    assert capped["etcd"] == plain["etcd"]


def test_a_host_too_small_for_an_api_server_is_told_with_figures() -> None:
    with pytest.raises(
        ResourceShortage, match=r"of 3.00 GiB, 0 B would be left to each of 1 API server\(s\)"
    ) as caught:
        default_limits(Host(3 * GIB, 2))

    assert caught.value.hint is not None


def test_the_need_agrees_with_what_was_measured() -> None:
    idle = memory_needed_bytes(nodes=7_000, pods=0)
    full = memory_needed_bytes(nodes=7_000, pods=20_000, pod_bytes=3_100)

    assert idle["kube-apiserver"] == pytest.approx(1.3e9, rel=0.05)
    assert idle["kube-controller-manager"] == pytest.approx(340e6, rel=0.05)
    assert idle["kwok-controller"] == pytest.approx(167e6, rel=0.05)
    assert idle["etcd"] == pytest.approx(135e6, rel=0.05)
    assert full["kube-apiserver"] == pytest.approx(2.1e9, rel=0.05)


@given(st.integers(4 * GIB, 512 * GIB), st.integers(0, 100), st.integers(0, 20_000), st.integers(0, 10**8))
def test_what_fits_needs_less_than_the_caps_and_one_node_more_does_not(
    memory_bytes: int, pods_per_node: int, pod_bytes: int, other_bytes: int
) -> None:
    limits = default_limits(Host(memory_bytes, 4), overrides={"kube-apiserver": LimitSpec(memory="2GiB")})  # type: ignore[arg-type]

    def fits(nodes: int) -> bool:
        need = memory_needed_bytes(
            nodes=nodes, pods=nodes * pods_per_node, pod_bytes=pod_bytes, other_object_bytes=other_bytes
        )
        return all(need[name] * 1.25 <= limits[name].memory_bytes + 2 for name in need)

    nodes = nodes_that_fit(limits, pods_per_node=pods_per_node, pod_bytes=pod_bytes, other_object_bytes=other_bytes)

    assert nodes == 0 or fits(nodes)
    assert not fits(nodes + 2)


def test_seven_thousand_nodes_with_pods_fit_a_host_of_24_gib_but_not_one_of_8() -> None:
    fitting = [nodes_that_fit(default_limits(Host(gib * GIB, 2)), pods_per_node=3) for gib in (8, 24)]

    assert fitting[0] < 7_000 < fitting[1]
