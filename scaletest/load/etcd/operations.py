"""What an ``etcd`` flow asks: its keys, its leases, and the mix of its operations.

Keys are numbered, of one length, and under a prefix of the process that writes them, ``/scaletest/FLOW/PROCESS/``; there are never more
of them than the profile says. All are there before the first arrival. A key that a ``delete`` has taken away is the next to be written.
"""

from __future__ import annotations

from bisect import bisect
from collections import deque
from collections.abc import Callable
from itertools import accumulate
from random import Random
from typing import Final

from scaletest.load.etcd import requests
from scaletest.load.ownobjects import OwnObjects
from scaletest.profile.etcd import PUT_TITLE, REVOKE_TITLE, EtcdOperationSpec, EtcdSpec

__all__ = ["Keys", "Mix", "Planned"]

DEFAULT_TTL_S: Final = 60


class Keys:
    """The keys of one process, in order."""

    def __init__(self, flow: str, process: int, count: int, key_bytes: int) -> None:
        self.prefix = f"/scaletest/{flow}/{process}/".encode()
        self.end = self.prefix[:-1] + bytes([self.prefix[-1] + 1])
        """The first key behind all of them."""
        self.ring = OwnObjects(count)
        digits = key_bytes - len(self.prefix)
        self._keys = [self.prefix + b"%0*d" % (digits, index) for index in range(count)]

    def __getitem__(self, index: int) -> bytes:
        return self._keys[index]

    def __len__(self) -> int:
        return len(self._keys)

    def after(self, index: int, count: int) -> bytes:
        """Return the end of the range of ``count`` keys from ``index`` on, which is exclusive."""
        return self._keys[index + count] if index + count < len(self._keys) else self.end


class Planned:
    """One request of a flow, ready to be sent; ``ended`` is told whether etcd did it."""

    __slots__ = ("ended", "message", "path", "step")

    def __init__(self, step: int, path: bytes, message: bytes, ended: Callable[[bool], None] | None = None) -> None:
        self.step = step
        """Index of its name in the titles of the mix."""
        self.path = path
        self.message = message
        self.ended = ended


class Mix:
    """Draws the requests of a flow by weight."""

    def __init__(self, spec: EtcdSpec, keys: Keys, random: Random) -> None:
        self.titles = spec.titles
        self._keys = keys
        self._random = random
        self._put = requests.Put(spec.key_bytes, spec.value_bytes)
        self._leases: deque[tuple[float, int]] = deque()
        """When each may have ended, and its number."""
        makers = {
            "put": self._make_put, "range": self._make_range, "txn": self._make_txn,
            "delete": self._make_delete, "lease": self._make_lease,
        }  # fmt: skip
        self._makers = [makers[item.op](index, item) for index, item in enumerate(spec.operations)]
        self._weights = list(accumulate(item.weight for item in spec.operations))
        puts = [index for index, item in enumerate(spec.operations) if item.op == "put"]
        self._put_step = puts[0] if puts else self.titles.index(PUT_TITLE) if PUT_TITLE in self.titles else -1

    def draw(self, now_s: float) -> Planned:
        """Return the next request, of an arrival that is sent at about ``now_s``."""
        if len(self._makers) == 1:
            return self._makers[0](now_s)
        return self._makers[bisect(self._weights, self._random.random() * self._weights[-1])](now_s)

    def first_puts(self) -> list[tuple[int, Callable[[float], bytes]]]:
        """Return what makes the keys that there are at the start: their numbers, and the message at a time."""
        keys, put = self._keys, self._put

        def writer(index: int) -> Callable[[float], bytes]:
            return lambda now_s: put(keys[index], now_s)

        return [(index, writer(index)) for index in range(len(keys))]

    def held_leases(self) -> list[int]:
        """Return the leases that were granted and not revoked; some may have ended."""
        return [lease for _, lease in self._leases]

    # One maker for each operation: called with the time, it returns a request.

    def _make_put(self, step: int, _spec: EtcdOperationSpec) -> Callable[[float], Planned]:
        return lambda now_s: self._written(step, now_s)

    def _written(self, step: int, now_s: float) -> Planned:
        ring = self._keys.ring
        index = ring.take_absent()
        if index is None:
            # None is there while all are being deleted: any will do.
            index = ring.any_present()
            index = self._random.choice(ring.numbers) if index is None else index
            return Planned(step, requests.PUT, self._put(self._keys[index], now_s))
        taken = index
        message = self._put(self._keys[taken], now_s)
        return Planned(step, requests.PUT, message, lambda done: ring.put_back(taken, present=done))

    def _make_range(self, step: int, spec: EtcdOperationSpec) -> Callable[[float], Planned]:
        count, serializable = spec.keys or 1, spec.consistency == "serializable"
        keys, random = self._keys, self._random

        def make(_now_s: float) -> Planned:
            first = random.randrange(len(keys) - count + 1)
            end = keys.after(first, count) if count > 1 else None
            return Planned(step, requests.RANGE, requests.range_of(keys[first], end, serializable=serializable))

        return make

    def _make_txn(self, step: int, spec: EtcdOperationSpec) -> Callable[[float], Planned]:
        count = spec.keys or 1
        keys, random = self._keys, self._random

        def make(now_s: float) -> Planned:
            first = random.randrange(len(keys) - count + 1)
            written = [keys[index] for index in range(first, first + count)]
            puts = [self._put(key, now_s) for key in written]
            return Planned(step, requests.TXN, requests.txn(written, puts))

        return make

    def _make_delete(self, step: int, _spec: EtcdOperationSpec) -> Callable[[float], Planned]:
        ring = self._keys.ring

        def make(now_s: float) -> Planned:
            index = ring.take_present()
            if index is None:
                return self._written(self._put_step, now_s)
            message = requests.delete(self._keys[index])
            return Planned(step, requests.DELETE_RANGE, message, lambda done: ring.put_back(index, present=not done))

        return make

    def _make_lease(self, step: int, spec: EtcdOperationSpec) -> Callable[[float], Planned]:
        ttl_s = int(spec.ttl_s or DEFAULT_TTL_S)
        revoke, most, leases = self.titles.index(REVOKE_TITLE), len(self._keys), self._leases

        def make(now_s: float) -> Planned:
            while leases and leases[0][0] <= now_s:
                leases.popleft()
            if len(leases) >= most:
                _, oldest = leases.popleft()
                return Planned(revoke, requests.LEASE_REVOKE, requests.lease_revoke(oldest))
            lease = self._random.randrange(1, 2**62)

            def granted(done: bool) -> None:
                if done:
                    leases.append((now_s + ttl_s, lease))

            return Planned(step, requests.LEASE_GRANT, requests.lease_grant(lease, ttl_s), granted)

        return make
