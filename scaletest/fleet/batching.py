"""Batches of puts, one etcd transaction each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["MAX_BATCH_BYTES", "MAX_BATCH_PUTS", "Put", "batches"]

MAX_BATCH_PUTS = 100
"""etcd refuses more than 128 operations in a transaction (``--max-txn-ops``)."""

MAX_BATCH_BYTES = 1_000_000
"""etcd refuses requests over 1.5 MiB (``--max-request-bytes``); the rest is for keys, compares and framing."""


@dataclass(frozen=True, slots=True)
class Put:
    """A key and its value, as the API server stores them."""

    key: bytes
    value: bytes

    @property
    def size_bytes(self) -> int:
        """Bytes of key (once in the put and once in its compare) and value."""
        return 2 * len(self.key) + len(self.value)


def batches(
    groups: Iterable[tuple[Put, ...]], *, max_puts: int = MAX_BATCH_PUTS, max_bytes: int = MAX_BATCH_BYTES
) -> Iterator[list[Put]]:
    """Join groups into batches of at most ``max_puts`` puts and ``max_bytes`` bytes, in order.

    A group (a node and its lease) is never split; one that alone is over a limit is a batch of its own.
    """
    batch: list[Put] = []
    batch_bytes = 0
    for group in groups:
        group_bytes = sum(put.size_bytes for put in group)
        if batch and (len(batch) + len(group) > max_puts or batch_bytes + group_bytes > max_bytes):
            yield batch
            batch, batch_bytes = [], 0
        batch.extend(group)
        batch_bytes += group_bytes
    if batch:
        yield batch
