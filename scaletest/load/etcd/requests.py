"""etcd's requests in protobuf, and what is read of its answers. Field numbers are those of etcd's ``rpc.proto`` and ``kv.proto`` (3.4 to 3.6).

A key and the time of a write differ from request to request: both have a fixed length, so that a request is its parts, joined.
"""

from __future__ import annotations

import re
from typing import Final

from scaletest.load.protobuf import bytes_field, number_field
from scaletest.load.watchstream import REVISION_MODULUS
from scaletest.profile.etcd import STAMP_BYTES

__all__ = [
    "DELETE_RANGE",
    "LEASE_GRANT",
    "LEASE_REVOKE",
    "PUT",
    "RANGE",
    "TXN",
    "WATCH",
    "Put",
    "ages_us",
    "delete",
    "lease_grant",
    "lease_revoke",
    "range_of",
    "stamp",
    "txn",
    "watch_create",
]

PUT: Final = b"/etcdserverpb.KV/Put"
RANGE: Final = b"/etcdserverpb.KV/Range"
DELETE_RANGE: Final = b"/etcdserverpb.KV/DeleteRange"
TXN: Final = b"/etcdserverpb.KV/Txn"
LEASE_GRANT: Final = b"/etcdserverpb.Lease/LeaseGrant"
LEASE_REVOKE: Final = b"/etcdserverpb.Lease/LeaseRevoke"
WATCH: Final = b"/etcdserverpb.Watch/Watch"

_GREATER: Final = 1
_OF_VERSION: Final = 0


_STAMP: Final = re.compile(rb"~([0-9]{12})~")


def stamp(now_s: float) -> bytes:
    """Return the first bytes of a value: when it was written, in microseconds of ``time.monotonic()``. No key has a tilde."""
    return b"~%012d~" % (int(now_s * 1e6) % REVISION_MODULUS)


def ages_us(message: bytes, now_s: float) -> list[int]:
    """Return how long ago each value in a message was written. A deletion carries no value."""
    now_us = int(now_s * 1e6)
    return [(now_us - int(written)) % REVISION_MODULUS for written in _STAMP.findall(message)]


class Put:
    """Writes PutRequests (key 1, value 2) of keys and values of one length."""

    __slots__ = ("_before_key", "_before_value", "_rest")

    def __init__(self, key_bytes: int, value_bytes: int) -> None:
        self._before_key = _before(1, key_bytes)
        self._before_value = _before(2, value_bytes)
        self._rest = b"x" * (value_bytes - STAMP_BYTES)

    def __call__(self, key: bytes, now_s: float) -> bytes:
        """Return the request that writes a key now."""
        return b"".join((self._before_key, key, self._before_value, stamp(now_s), self._rest))


def _before(number: int, size_bytes: int) -> bytes:
    """Return what stands before the content of a field."""
    content = bytes(size_bytes)
    return bytes_field(number, content).removesuffix(content)


def range_of(key: bytes, end: bytes | None, *, serializable: bool) -> bytes:
    """RangeRequest: key 1, range_end 2, serializable 7."""
    message = bytes_field(1, key)
    if end is not None:
        message += bytes_field(2, end)
    return message + (number_field(7, 1) if serializable else b"")


def delete(key: bytes, end: bytes | None = None) -> bytes:
    """DeleteRangeRequest: key 1, range_end 2."""
    return bytes_field(1, key) + (bytes_field(2, end) if end is not None else b"")


def txn(keys: list[bytes], puts: list[bytes]) -> bytes:
    """TxnRequest: compare 1, success 2. Every key is compared and written by its PutRequest.

    A Compare is result 1, target 2, key 3, version 4: that a version is greater than -1 always holds, so that each transaction writes. A
    RequestOp's put is its field 2.
    """
    compares = [
        number_field(1, _GREATER) + number_field(2, _OF_VERSION) + bytes_field(3, key) + number_field(4, -1)
        for key in keys
    ]
    operations = [bytes_field(2, item) for item in puts]
    return b"".join([*(bytes_field(1, item) for item in compares), *(bytes_field(2, item) for item in operations)])


def lease_grant(lease: int, ttl_s: int) -> bytes:
    """LeaseGrantRequest: TTL 1, ID 2; the client may choose the ID."""
    return number_field(1, ttl_s) + number_field(2, lease)


def lease_revoke(lease: int) -> bytes:
    """LeaseRevokeRequest: ID 1."""
    return number_field(1, lease)


def watch_create(key: bytes) -> bytes:
    """WatchRequest: create_request 1, whose key is 1."""
    return bytes_field(1, bytes_field(1, key))
