"""IPv4 addresses of nodes and pods: unique, and all of the same width.

Width is kept by using only octets of three digits (100 to 255), so that 156 values are left of 256. Nothing is ever
sent to these addresses.

Nodes have ``100.100.100.100`` upwards (in 100.64.0.0/10, the range that large clusters use for nodes), pods
``10.100.100.129`` upwards: each node has a ``/25`` whose lowest address ends in 128, because KWOK gives the first
pod of a node the second address of its range, and that one must have three digits too. More than 127 pods of a
node go on in the next block, so all nodes are ``stride`` blocks apart.
"""

from __future__ import annotations

from scaletest.core.errors import UsageError

__all__ = ["PODS_PER_BLOCK", "backend_address", "node_address", "pod_address", "pod_cidr", "stride_for"]

PODS_PER_BLOCK = 127
"""Addresses .129 to .255."""

_DIGIT = 156
_LOWEST = 100
_NODE_SECOND_OCTETS = 28
"""100.100 to 100.127: what 100.64.0.0/10 has with three digits."""
_POD_FIRST_OCTETS = 90
"""10 to 99."""


def _three_digits(number: int, octets: int) -> str:
    parts: list[str] = []
    for _ in range(octets):
        number, digit = divmod(number, _DIGIT)
        parts.append(str(_LOWEST + digit))
    return ".".join(reversed(parts))


def _refuse_beyond(index: int, limit: int) -> None:
    if index >= limit:
        msg = f"a fleet has addresses for {limit} nodes in all pools, and this would be number {index}"
        raise UsageError(msg, hint="use fewer pools or fewer nodes")


def stride_for(pods_per_node: int) -> int:
    """Blocks of pod addresses that every node of the fleet takes, for the most pods on any of them."""
    return max(1, -(-pods_per_node // PODS_PER_BLOCK))


def node_address(index: int) -> str:
    """Address of the fleet's node number ``index``. Raises UsageError when the range is used up."""
    _refuse_beyond(index, _NODE_SECOND_OCTETS * _DIGIT * _DIGIT)
    return f"100.{_three_digits(index, 3)}"


def _block(index: int, stride: int, slot: int) -> str:
    blocks = _POD_FIRST_OCTETS * _DIGIT * _DIGIT
    _refuse_beyond(index, blocks // stride)
    first, rest = divmod(index * stride + slot // PODS_PER_BLOCK, _DIGIT * _DIGIT)
    return f"{10 + first}.{_three_digits(rest, 2)}"


def pod_cidr(index: int, stride: int) -> str:
    """Pod range of the fleet's node number ``index``."""
    return f"{_block(index, stride, 0)}.128/25"


def pod_address(index: int, slot: int, stride: int) -> str:
    """Address of the pod in a slot of the fleet's node number ``index``."""
    return f"{_block(index, stride, slot)}.{129 + slot % PODS_PER_BLOCK}"


def backend_address(index: int) -> str:
    """Address of a Service's endpoint that is no pod of the fleet; repeats after 16 × 156² of them."""
    first, rest = divmod(index % (16 * _DIGIT * _DIGIT), _DIGIT * _DIGIT)
    return f"172.{16 + first}.{_three_digits(rest, 2)}"
