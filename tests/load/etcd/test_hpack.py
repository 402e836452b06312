from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.load.etcd.hpack import HeaderEncoder, decode_headers

NAMES = st.binary(min_size=1, max_size=40)
HEADERS = st.lists(st.tuples(NAMES, st.binary(max_size=200)), max_size=8, unique_by=lambda item: item[0])


@pytest.mark.parametrize(
    ("block", "headers"),
    [
        # RFC 7541, C.2: a literal with indexing, one without, one never indexed, and an entry of the static table.
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", {b"custom-key": b"custom-header"}),
        ("100870617373776f726406736563726574", {b"password": b"secret"}),
        ("88", {b":status": b"200"}),
        # C.6.1: Huffman codes; the names stand in the static table.
        (
            "4882640258" + "85aec3771a4b" + "6196d07abe941054d444a8200595040b8166e082a62d1bff"
            "6e919d29ad171863c78f0b97c8e9ae82ae43d3",
            {b":status": b"302", b"static-24": b"private", b"static-33": b"Mon, 21 Oct 2013 20:13:21 GMT",
             b"static-46": b"https://www.example.com"},
        ),
        # A change of the table's size says nothing.
        ("20" + "88", {b":status": b"200"}),
    ],
)  # fmt: skip
def test_blocks_are_read_as_the_standard_says(block: str, headers: dict[bytes, bytes]) -> None:
    assert headers == decode_headers(bytes.fromhex(block))


@pytest.mark.parametrize("block", ["be", "80", "400a6375", "00", "4085ffffffffff00", "7f"])
def test_a_block_that_is_cut_or_needs_a_dynamic_table_is_refused(block: str) -> None:
    with pytest.raises(ValueError):
        decode_headers(bytes.fromhex(block))


@given(HEADERS)
def test_what_is_encoded_for_the_first_time_reads_back(headers: list[tuple[bytes, bytes]]) -> None:
    assert dict(headers) == decode_headers(HeaderEncoder().encode(headers))


@given(HEADERS, HEADERS)
def test_a_peer_with_a_dynamic_table_reads_every_block(
    first: list[tuple[bytes, bytes]], second: list[tuple[bytes, bytes]]
) -> None:
    encoder = HeaderEncoder()
    table: list[tuple[bytes, bytes]] = []
    for headers in (first, second, first):
        assert headers == read_with_table(encoder.encode(headers), table)


def test_the_second_time_a_header_is_one_byte_and_a_small_table_is_not_overrun() -> None:
    headers = [(b"name-%d" % index, b"value") for index in range(4)]
    encoder = HeaderEncoder()
    encoder.encode(headers)

    assert 4 == len(encoder.encode(headers)) == encoder.inserted
    small = HeaderEncoder(100)
    # Its size is acknowledged once, at the start of the first block.
    assert small.encode(headers).startswith(bytes([0x20 | 31, 100 - 31]))
    assert 2 == small.inserted
    assert 0x20 != small.encode(headers)[0] & 0xE0


def read_with_table(block: bytes, table: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Read the blocks of one connection as a server with a dynamic table of the default size does."""
    found, position = [], 0

    def number(bits: int) -> int:
        nonlocal position
        most = (1 << bits) - 1
        value = block[position] & most
        position += 1
        shift = 0
        while value >= most and shift >= 0:
            byte = block[position]
            position += 1
            value += (byte & 0x7F) << shift
            shift = shift + 7 if byte & 0x80 else -1
            if shift < 0:
                break
        return value

    def text() -> bytes:
        nonlocal position
        length = number(7)
        position += length
        return block[position - length : position]

    while position < len(block):
        if block[position] & 0x80:
            found.append(table[number(7) - 62])
            continue
        indexed = bool(block[position] & 0x40)
        assert 0 == block[position] & 0x3F
        position += 1
        header = (text(), text())
        found.append(header)
        if indexed:
            table.insert(0, header)
            assert sum(len(name) + len(value) + 32 for name, value in table) <= 4_096
    return found
