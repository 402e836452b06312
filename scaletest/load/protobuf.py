"""Writing protobuf by field numbers: a message is its fields, joined."""

from __future__ import annotations

__all__ = ["bytes_field", "map_entry", "number_field", "varint"]


def varint(value: int) -> bytes:
    """Return a whole number that is not negative, seven bits to a byte; an int64 below 0 is written as value + 2**64."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def number_field(number: int, value: int) -> bytes:
    """Return a field that holds a whole number, an enum or a bool; an int64 may be negative."""
    return varint(number << 3) + varint(value % 2**64)


def bytes_field(number: int, content: bytes) -> bytes:
    """Return a field that holds bytes, a string or a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def map_entry(number: int, key: str, value: bytes) -> bytes:
    """Return one entry of a map field."""
    return bytes_field(number, bytes_field(1, key.encode()) + bytes_field(2, value))
