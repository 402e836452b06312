"""Writes profiles as Go does, for the tests of what reads them: every frame a location of its own, unless calls are inlined."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from itertools import chain

Frames = Sequence[str | Sequence[str]]
"""The innermost first; a sequence of names is one location, of calls that were inlined."""


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def profile(
    types: Sequence[tuple[str, str]], samples: Iterable[tuple[Frames, Sequence[int]]], *, duration_s: float = 0.0,
    packed: bool = True,
) -> bytes:  # fmt: skip
    """Return a profile, not gzipped."""
    strings: dict[str, int] = {"": 0}
    functions: dict[str, int] = {}
    locations: dict[tuple[str, ...], int] = {}

    def string(text: str) -> int:
        return strings.setdefault(text, len(strings))

    def location(frame: str | Sequence[str]) -> int:
        names = (frame,) if isinstance(frame, str) else tuple(frame)
        for name in names:
            functions.setdefault(name, len(functions) + 1)
        return locations.setdefault(names, len(locations) + 1)

    def repeated(number: int, values: Sequence[int]) -> bytes:
        if packed:
            return field(number, b"".join(varint(value) for value in values))
        return b"".join(field(number, value) for value in values)

    parts = [field(1, field(1, string(name)) + field(2, string(unit))) for name, unit in types]
    for frames, values in samples:
        body = repeated(1, [location(frame) for frame in frames]) + repeated(2, values)
        parts.append(field(2, body + field(3, field(1, string("label")))))
    for names, identity in locations.items():
        lines = b"".join(field(4, field(1, functions[name]) + field(2, 17)) for name in names)
        parts.append(field(4, field(1, identity) + field(3, 0x1234567) + lines))
    parts += [field(5, field(1, identity) + field(2, string(name))) for name, identity in functions.items()]
    texts = [field(6, text.encode()) for text in strings]
    return b"".join(chain(parts, texts, [field(10, round(duration_s * 1e9)), varint(99 << 3 | 1) + bytes(8)]))


def cpu_profile(samples: Iterable[tuple[Frames, float]], *, duration_s: float = 10.0) -> bytes:
    """Return a gzipped profile of CPU seconds."""
    values = [(frames, (round(100 * seconds), round(1e9 * seconds))) for frames, seconds in samples]
    types = [("samples", "count"), ("cpu", "nanoseconds")]
    return gzip.compress(profile(types, values, duration_s=duration_s), mtime=0)


def heap_profile(samples: Iterable[tuple[Frames, int]]) -> bytes:
    """Return a gzipped profile of bytes in use."""
    types = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
    return gzip.compress(profile(types, [(frames, (9, 9 * size, 1, size)) for frames, size in samples]), mtime=0)


def goroutine_profile(samples: Iterable[tuple[Frames, int]]) -> bytes:
    """Return a gzipped profile of goroutines."""
    return gzip.compress(profile([("goroutine", "count")], [(frames, (n,)) for frames, n in samples]), mtime=0)
