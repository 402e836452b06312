import ipaddress
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.core.errors import UsageError
from scaletest.fleet.addresses import backend_address, node_address, pod_address, pod_cidr, stride_for

indices = st.integers(0, 681_407)


@given(indices, indices)
def test_node_addresses_differ_have_one_width_and_lie_in_the_shared_address_space(one: int, other: int) -> None:
    first, second = node_address(one), node_address(other)

    assert (one == other) == (first == second)
    assert len("100.100.100.100") == len(first)
    assert ipaddress.ip_address(first) in ipaddress.ip_network("100.64.0.0/10")


@given(st.integers(0, 200_000), st.integers(0, 200_000), st.integers(1, 1_000), st.data())
def test_pod_addresses_differ_and_have_one_width(one: int, other: int, pods_per_node: int, data: st.DataObject) -> None:
    stride = stride_for(pods_per_node)
    slots = [data.draw(st.integers(0, pods_per_node - 1)) for _ in range(2)]
    first, second = pod_address(one, slots[0], stride), pod_address(other, slots[1], stride)

    assert ((one, slots[0]) == (other, slots[1])) == (first == second)
    assert len("10.100.100.100") == len(first)
    assert first == str(ipaddress.ip_address(first))


@given(st.integers(0, 200_000), st.integers(0, 126))
def test_a_node_gives_its_pods_addresses_of_its_own_range_from_the_second_on(index: int, slot: int) -> None:
    network = ipaddress.ip_network(pod_cidr(index, 1))

    assert str(network[1]) == pod_address(index, 0, 1)
    assert ipaddress.ip_address(pod_address(index, slot, 1)) in network


def test_a_hundred_and_twenty_seven_pods_fit_a_block() -> None:
    assert [1, 1, 1, 2, 8] == [stride_for(pods) for pods in (0, 1, 127, 128, 1_000)]


@given(st.integers(0, 2_000_000), st.integers(1, 999))
def test_backends_of_one_service_differ_and_are_private(first: int, count: int) -> None:
    addresses = [backend_address(first + index) for index in range(count)]

    assert count == len(set(addresses))
    assert {len("172.16.100.100")} == {len(address) for address in addresses}
    assert ipaddress.ip_address(addresses[0]) in ipaddress.ip_network("172.16.0.0/12")


@pytest.mark.parametrize("too_many", [lambda: node_address(681_408), lambda: pod_cidr(2_190_240, 1)])
def test_more_nodes_than_addresses_is_a_usage_error(too_many: Callable[[], object]) -> None:
    with pytest.raises(UsageError, match="addresses for"):
        too_many()
