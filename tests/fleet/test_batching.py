from hypothesis import given
from hypothesis import strategies as st

from scaletest.fleet.batching import Put, batches

puts = st.builds(Put, st.binary(min_size=1, max_size=20), st.binary(max_size=100))
groups = st.lists(st.lists(puts, min_size=1, max_size=3).map(tuple), max_size=60)


@given(groups, st.integers(1, 10), st.integers(1, 1_000))
def test_batches_hold_every_put_in_order_and_split_no_group(
    made: list[tuple[Put, ...]], max_puts: int, max_bytes: int
) -> None:
    found = list(batches(iter(made), max_puts=max_puts, max_bytes=max_bytes))

    assert [put for group in made for put in group] == [put for batch in found for put in batch]
    starts = {sum(map(len, made[:number])) for number in range(len(made) + 1)}
    assert {sum(map(len, found[:number])) for number in range(len(found))} <= starts


@given(groups, st.integers(1, 10), st.integers(1, 1_000))
def test_only_a_single_group_may_be_over_the_limits(made: list[tuple[Put, ...]], max_puts: int, max_bytes: int) -> None:
    for batch in batches(iter(made), max_puts=max_puts, max_bytes=max_bytes):
        over = len(batch) > max_puts or sum(put.size_bytes for put in batch) > max_bytes
        assert not over or any(batch == list(group) for group in made)


def test_a_hundred_puts_make_a_transaction() -> None:
    made = [(Put(b"k", b"v"),) for _ in range(250)]

    assert [100, 100, 50] == [len(batch) for batch in batches(made)]


def test_large_objects_make_smaller_transactions() -> None:
    made = [(Put(b"k", b"v" * 300_000),) for _ in range(7)]

    assert [3, 3, 1] == [len(batch) for batch in batches(made)]
