"""Our requests, read by the messages that aetcd has generated from etcd's own definitions."""

from __future__ import annotations

from random import Random

import aetcd.rpc as wire
import pytest

from scaletest.load.etcd import requests
from scaletest.load.etcd.operations import Keys, Mix
from scaletest.profile.etcd import EtcdSpec

NOW_S = 1234.5


def mix_of(*operations: dict[str, object], keys: int = 5) -> tuple[Mix, Keys]:
    spec = EtcdSpec.model_validate({"rate": "1/s", "operations": list(operations), "keys": keys})
    ring = Keys("flow", 0, keys, spec.key_bytes)
    mix = Mix(spec, ring, Random(1))
    for _ in mix.first_puts():
        index = ring.ring.take_absent()
        assert index is not None
        ring.ring.put_back(index, present=True)
    return mix, ring


@pytest.mark.parametrize("value_bytes", [14, 256, 100_000])
def test_a_put_has_key_and_value_of_their_lengths_and_its_time(value_bytes: int) -> None:
    read = wire.PutRequest.FromString(requests.Put(64, value_bytes)(b"k" * 64, NOW_S))

    assert (b"k" * 64, value_bytes, 0) == (read.key, len(read.value), read.lease)
    assert [1_500_000] == requests.ages_us(read.value, NOW_S + 1.5)


def test_keys_have_one_length_are_in_order_and_under_the_prefix_that_is_removed() -> None:
    keys = Keys("flow", 3, 12, 64)
    names = [keys[index] for index in range(12)]

    assert names == sorted(set(names))
    assert {64} == {len(name) for name in names}
    assert all(name.startswith(b"/scaletest/flow/3/") and keys.prefix <= name < keys.end for name in names)
    assert not keys.prefix <= b"/scaletest/flow/30/0" < keys.end
    assert not keys.prefix <= b"/registry/pods" < keys.end


def test_a_range_is_of_so_many_keys() -> None:
    mix, keys = mix_of({"op": "range", "keys": 3, "consistency": "serializable"})
    for _ in range(20):
        read = wire.RangeRequest.FromString(mix.draw(NOW_S).message)
        assert read.serializable
        assert 3 == sum(read.key <= keys[index] < read.range_end for index in range(5))
    one = wire.RangeRequest.FromString(mix_of({"op": "range"})[0].draw(NOW_S).message)
    assert (b"", False) == (one.range_end, one.serializable)


def test_a_transaction_compares_and_writes_every_key() -> None:
    mix, keys = mix_of({"op": "txn", "keys": 2})

    read = wire.TxnRequest.FromString(mix.draw(NOW_S).message)

    written = [operation.request_put.key for operation in read.success]
    assert 2 == len(written)
    assert set(written) < {keys[index] for index in range(5)}
    assert [(key, wire.Compare.GREATER, wire.Compare.VERSION, -1) for key in written] == [
        (item.key, item.result, item.target, item.version) for item in read.compare
    ]
    assert not read.failure


def test_deletes_take_what_is_there_and_puts_bring_back_what_is_not() -> None:
    mix, _keys = mix_of({"op": "delete"}, keys=2)

    taken = [mix.draw(NOW_S) for _ in range(2)]
    instead = mix.draw(NOW_S)

    assert [requests.DELETE_RANGE] * 2 == [item.path for item in taken]
    assert 2 == len({wire.DeleteRangeRequest.FromString(item.message).key for item in taken})
    # Both keys are being deleted: what comes meanwhile is a put, and says so.
    assert (requests.PUT, "put") == (instead.path, mix.titles[instead.step])
    for item in taken:
        assert item.ended is not None
        item.ended(True)
    back = mix.draw(NOW_S)
    assert (requests.PUT, "put") == (back.path, mix.titles[back.step])
    assert back.ended is not None
    back.ended(True)
    assert requests.DELETE_RANGE == mix.draw(NOW_S).path


def test_no_more_leases_are_held_than_there_are_keys_and_those_that_have_ended_are_forgotten() -> None:
    mix, _ = mix_of({"op": "lease", "ttl": "10s"}, keys=2)

    def granted(now_s: float) -> int:
        planned = mix.draw(now_s)
        assert requests.LEASE_GRANT == planned.path
        assert planned.ended is not None
        planned.ended(True)
        read = wire.LeaseGrantRequest.FromString(planned.message)
        assert 10 == read.TTL
        return int(read.ID)

    first, second = granted(0.0), granted(5.0)
    revoked = mix.draw(9.0)
    assert ("revoke", first) == (
        mix.titles[revoked.step], wire.LeaseRevokeRequest.FromString(revoked.message).ID
    )  # fmt: skip
    third, fourth = granted(9.0), granted(15.5)
    assert [third, fourth] == mix.held_leases()
    assert 4 == len({first, second, third, fourth})


def test_a_watch_asks_for_one_key_and_reads_the_age_of_every_event() -> None:
    read = wire.WatchRequest.FromString(requests.watch_create(b"key"))
    assert (b"key", b"") == (read.create_request.key, read.create_request.range_end)

    answer = wire.WatchResponse()
    for age_s in (0.5, 0.25):
        event = answer.events.add()
        event.kv.value = requests.stamp(NOW_S - age_s) + b"xxx"
    answer.events.add(type=1).kv.key = b"key"

    assert [500_000, 250_000] == requests.ages_us(answer.SerializeToString(), NOW_S)
