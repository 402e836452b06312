r"""Stamping: copies of a stored object, made by writing other values of equal length over its *tokens*.

A token is a string that tells one object from another: name, uid, node, address. A stored object is either
protobuf (``k8s\0``, then nested messages that all carry their length) or, for custom resources, JSON. As long as
every new value is as long as the old one, no length in the encoding changes, so a copy needs no knowledge of the
schema and is complete in whatever way the API server of this version makes objects complete.

An occurrence of a token counts where it is a whole string of the encoding: after a byte that is its length
(protobuf), or within quotes (JSON, and the field paths of ``managedFields`` inside protobuf:
``k:{"uid":"…"}``). Any other occurrence, or one more or less than was expected, raises StampError: a
copy with a wrong or forgotten field is never written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["StampError", "Template", "Token", "compile_template"]

_QUOTES = (b'"', b'\\"')


class StampError(Exception):
    """The stored sample is not what the stamping of its kind expects."""


@dataclass(frozen=True, slots=True)
class Token:
    """A value of the sample under its role, and how often it must occur in the stored bytes."""

    role: str
    value: str
    occurrences: int


@dataclass(frozen=True, slots=True)
class Template:
    """A stored object with the places of its tokens: ``(offset, role)``, and each role's width in bytes."""

    raw: bytes
    places: tuple[tuple[int, str], ...]
    widths: Mapping[str, int]

    def stamp(self, values: Mapping[str, str]) -> bytes:
        """Return a copy with the values of another object. Raises StampError when a width differs."""
        encoded: dict[str, bytes] = {}
        for role, width in self.widths.items():
            value = values[role].encode()
            if len(value) != width:
                msg = f"the {role} {values[role]!r} is {len(value)} bytes long, the sample's is {width}"
                raise StampError(msg)
            encoded[role] = value
        copy = bytearray(self.raw)
        for offset, role in self.places:
            copy[offset : offset + self.widths[role]] = encoded[role]
        return bytes(copy)


def compile_template(raw: bytes, tokens: Sequence[Token]) -> Template:
    """Find every token in a stored object. Raises StampError when one is not where, or as often as, it should be.

    Roles with the same value (two endpoints on one node) must occur once each; they are told apart by their order.
    """
    by_value: dict[bytes, list[Token]] = {}
    for token in tokens:
        by_value.setdefault(token.value.encode(), []).append(token)
    places: list[tuple[int, str]] = []
    claimed = bytearray(len(raw))
    # The longest first: a node's name is part of the names of its pods, and those are claimed by then.
    for value in sorted(by_value, key=len, reverse=True):
        offsets = list(_whole_occurrences(raw, value, claimed))
        places.extend(_assign(offsets, by_value[value]))
        for offset in offsets:
            claimed[offset : offset + len(value)] = b"\x01" * len(value)
    widths = {token.role: len(token.value.encode()) for token in tokens}
    return Template(raw, tuple(sorted(places)), widths)


def _assign(offsets: list[int], tokens: list[Token]) -> Iterable[tuple[int, str]]:
    expected = sum(token.occurrences for token in tokens)
    if len(offsets) != expected:
        roles = ", ".join(token.role for token in tokens)
        msg = f"{tokens[0].value!r} ({roles}) occurs {len(offsets)} times in the stored sample, not {expected}"
        raise StampError(msg)
    if len(tokens) == 1:
        return [(offset, tokens[0].role) for offset in offsets]
    if any(token.occurrences != 1 for token in tokens):
        msg = f"{tokens[0].value!r} stands for {', '.join(token.role for token in tokens)}, which cannot be told apart"
        raise StampError(msg)
    return [(offset, token.role) for offset, token in zip(offsets, tokens, strict=True)]


def _whole_occurrences(raw: bytes, value: bytes, claimed: bytearray) -> Iterable[int]:
    offset = raw.find(value)
    while offset >= 0:
        end = offset + len(value)
        if claimed.count(1, offset, end) != len(value):
            if not (_is_protobuf_string(raw, offset, len(value)) or _is_quoted(raw, offset, end)):
                msg = (
                    f"{value.decode()!r} is part of a longer string in the stored sample: {raw[offset - 8 : end + 8]!r}"
                )
                raise StampError(msg)
            yield offset
        offset = raw.find(value, offset + 1)


def _is_protobuf_string(raw: bytes, offset: int, width: int) -> bool:
    # One length byte: all tokens are shorter than 128 bytes.
    return width < 128 and offset > 0 and raw[offset - 1] == width


def _is_quoted(raw: bytes, offset: int, end: int) -> bool:
    return any(raw.endswith(quote, 0, offset) and raw.startswith(quote, end) for quote in _QUOTES)
