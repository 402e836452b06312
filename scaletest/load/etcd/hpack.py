"""HTTP/2's header compression (RFC 7541), as far as a gRPC client needs it.

The encoder puts every header that it has not sent before into the dynamic table, as all gRPC clients do, so that from the second
request on a header block is a byte for each header. The decoder has no dynamic table: this client allows the server none
(``SETTINGS_HEADER_TABLE_SIZE`` 0), so that a block means the same whenever it comes, and each is decoded once.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

__all__ = ["DEFAULT_TABLE_BYTES", "HeaderEncoder", "decode_headers"]

Header = tuple[bytes, bytes]

DEFAULT_TABLE_BYTES: Final = 4_096
"""Size of a dynamic table unless its owner says otherwise (RFC 9113, 6.5.2)."""

_STATIC_ENTRIES: Final = 61
_ENTRY_OVERHEAD_BYTES: Final = 32
_STATIC: Final[dict[int, Header]] = {
    index: (b":status", status)
    for index, status in enumerate((b"200", b"204", b"206", b"304", b"400", b"404", b"500"), start=8)
}
"""Of the static table, what a server may answer and a client must know; the names of the others say nothing here."""

# RFC 7541, Appendix B: bits of the code of each byte. The code is canonical: shorter codes come first, and bytes in their order.
_CODE_BITS: Final = bytes((
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
))  # fmt: skip


def _canonical_codes() -> dict[tuple[int, int], int]:
    """Return the byte of each code, by (bits, code)."""
    codes: dict[tuple[int, int], int] = {}
    code, previous_bits = 0, 0
    for bits, byte in sorted(zip(_CODE_BITS, itertools.count(), strict=False)):
        code <<= bits - previous_bits
        codes[bits, code] = byte
        code, previous_bits = code + 1, bits
    return codes


_CODES: Final = _canonical_codes()


class HeaderEncoder:
    """Encodes header lists for one connection; every block must be sent, and in the order of the calls."""

    def __init__(self, table_bytes: int = DEFAULT_TABLE_BYTES) -> None:
        """Take the size of the peer's dynamic table, from its settings."""
        self._room_bytes = min(table_bytes, DEFAULT_TABLE_BYTES)
        # A smaller table has to be acknowledged at the start of the first block (RFC 7541, 4.2).
        shrunk = self._room_bytes < DEFAULT_TABLE_BYTES
        self._prefix = _integer(0x20, 5, self._room_bytes) if shrunk else b""
        self._inserted: dict[Header, int] = {}

    @property
    def inserted(self) -> int:
        """Entries of the dynamic table: while it stays the same, a block of headers that are in it stays the same."""
        return len(self._inserted)

    def encode(self, headers: Sequence[Header]) -> bytes:
        """Return the block of a header list; names are in lower case."""
        parts, self._prefix = [self._prefix], b""
        for header in headers:
            number = self._inserted.get(header)
            if number is not None:
                parts.append(_integer(0x80, 7, _STATIC_ENTRIES + len(self._inserted) - number))
                continue
            name, value = header
            size = len(name) + len(value) + _ENTRY_OVERHEAD_BYTES
            fits = size <= self._room_bytes
            parts += [b"\x40" if fits else b"\x00", _text(name), _text(value)]
            if fits:
                # Nothing is ever evicted: the table stops growing when it is full.
                self._room_bytes -= size
                self._inserted[header] = len(self._inserted)
        return b"".join(parts)


def _integer(pattern: int, prefix_bits: int, value: int) -> bytes:
    most = (1 << prefix_bits) - 1
    if value < most:
        return bytes([pattern | value])
    parts = bytearray([pattern | most])
    value -= most
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _text(text: bytes) -> bytes:
    return _integer(0x00, 7, len(text)) + text


def decode_headers(block: bytes) -> dict[bytes, bytes]:
    """Return the headers of a block that uses no dynamic table. Raises ValueError for any other, or one that is cut."""
    headers: dict[bytes, bytes] = {}
    position = 0
    try:
        while position < len(block):
            first = block[position]
            if first & 0x80:
                index, position = _read_integer(block, position, 7)
                name, value = _static(index)
            elif first & 0xE0 == 0x20:
                _, position = _read_integer(block, position, 5)
                continue
            else:
                index, position = _read_integer(block, position, 6 if first & 0x40 else 4)
                if index:
                    name, _ = _static(index)
                else:
                    name, position = _read_text(block, position)
                value, position = _read_text(block, position)
            headers[name] = value
    except IndexError:
        msg = f"a header block ends within a header: {block!r}"
        raise ValueError(msg) from None
    return headers


def _static(index: int) -> Header:
    if not 1 <= index <= _STATIC_ENTRIES:
        msg = f"a header block names entry {index} of a dynamic table, and the server was allowed none"
        raise ValueError(msg)
    return _STATIC.get(index, (b"static-%d" % index, b""))


def _read_integer(block: bytes, position: int, prefix_bits: int) -> tuple[int, int]:
    most = (1 << prefix_bits) - 1
    value, position = block[position] & most, position + 1
    if value < most:
        return value, position
    shift = 0
    while True:
        byte, position = block[position], position + 1
        value += (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position


def _read_text(block: bytes, position: int) -> tuple[bytes, int]:
    is_coded = block[position] & 0x80
    length, position = _read_integer(block, position, 7)
    text = block[position : position + length]
    if len(text) < length:
        raise IndexError
    return (_uncoded(text) if is_coded else text), position + length


def _uncoded(text: bytes) -> bytes:
    """Undo the Huffman code; the bits after the last code are padding."""
    decoded = bytearray()
    bits = code = 0
    for byte in text:
        for shift in range(7, -1, -1):
            code = code << 1 | byte >> shift & 1
            bits += 1
            found = _CODES.get((bits, code))
            if found is not None:
                decoded.append(found)
                bits = code = 0
    if bits > 7 or code != (1 << bits) - 1:
        msg = f"a header's Huffman code is broken: {text!r}"
        raise ValueError(msg)
    return bytes(decoded)
