"""Ports are explicit, distinct, free, below the ephemeral range, and a taken one is named with its holder."""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.controlplane import ports
from scaletest.controlplane.ports import PORT_ROLES, PortRole
from scaletest.core.errors import ResourceShortage


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server


def choose(
    wanted: dict[PortRole, int] | None = None,
    *,
    taken: Collection[int] = (),
    busy: Collection[int] = (),
    candidates: Sequence[int] = range(20_001, 20_101),
) -> dict[PortRole, int]:
    return ports.choose_ports(
        wanted or {},
        taken=set(taken),
        candidates=candidates,
        free=lambda port: port not in set(busy),
        holder=lambda port: f"pid 7 (nginx), port {port}",
    )


@given(st.sets(st.integers(20_001, 20_100), max_size=60), st.sets(st.integers(20_001, 20_100), max_size=30))
def test_chosen_ports_are_distinct_and_neither_taken_nor_busy(taken: set[int], busy: set[int]) -> None:
    try:
        chosen = choose(taken=taken, busy=busy)
    except ResourceShortage:
        assert len(set(range(20_001, 20_101)) - taken - busy) < len(PORT_ROLES)
        return

    assert list(PORT_ROLES) == list(chosen)
    assert len(PORT_ROLES) == len(set(chosen.values()))
    assert not set(chosen.values()) & (taken | busy)


def test_a_wanted_port_is_taken_as_it_is_and_not_given_out_again() -> None:
    chosen = choose({"kube-apiserver": 20_001})

    assert 20_001 == chosen["kube-apiserver"]
    assert 1 == list(chosen.values()).count(20_001)


def test_a_wanted_port_that_is_busy_is_refused_with_its_holder() -> None:
    with pytest.raises(ResourceShortage, match=r"port 6443 for kube-apiserver is taken by pid 7 \(nginx\)"):
        choose({"kube-apiserver": 6443}, busy=[6443])


def test_a_wanted_port_of_another_cluster_is_refused_even_while_nothing_listens() -> None:
    with pytest.raises(ResourceShortage, match="port 6443"):
        choose({"kube-apiserver": 6443}, taken=[6443])


def test_one_port_for_two_components_is_refused() -> None:
    with pytest.raises(ResourceShortage, match="given twice"):
        choose({"kube-apiserver": 6443, "etcd": 6443})


def test_without_a_free_port_the_component_is_named() -> None:
    with pytest.raises(ResourceShortage, match="for etcd-peer"):
        choose(candidates=[20_001])


@pytest.mark.parametrize(
    ("ephemeral_first", "expected"),
    [
        (32_768, range(20_001, 32_000)),
        (25_000, range(20_001, 25_000)),
        (1_024, range(20_001, 32_000)),
    ],
)
def test_the_range_stays_below_ephemeral_ports_where_that_leaves_room(ephemeral_first: int, expected: range) -> None:
    assert expected == ports.port_range(ephemeral_first)


@given(st.integers(0, 70_000))
def test_rotated_ports_are_the_same_ports_from_another_start(start: int) -> None:
    rotated = ports.rotated(range(20_001, 32_000), start)

    assert 20_001 + start % 11_999 == rotated[0]
    assert list(range(20_001, 32_000)) == sorted(rotated)


def test_a_port_that_somebody_listens_on_is_not_free_and_its_holder_is_known(listener: socket.socket) -> None:
    port = listener.getsockname()[1]

    assert not ports.is_free(port)
    found = ports.listener_of(port)
    assert found is not None
    assert (os.getpid(), "127.0.0.1") == (found.pid, found.address)
    assert f"pid {os.getpid()} (" in str(found)


def test_a_port_is_free_again_when_its_listener_has_gone(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    listener.close()

    assert ports.is_free(port)
    assert ports.listener_of(port) is None


def test_a_listener_on_every_address_holds_the_loopback_port_too() -> None:
    with socket.socket(socket.AF_INET6) as server:
        server.bind(("::", 0))
        server.listen()

        assert not ports.is_free(server.getsockname()[1])
        exposed = [found.address for found in ports.listeners_of({os.getpid()}) if found.address == "::"]
        assert exposed == ["::"]


def test_a_holder_that_the_kernel_hides_is_said_to_be_another_users() -> None:
    assert "a process of another user" == str(ports.Listener("127.0.0.1", 1, None, None))
