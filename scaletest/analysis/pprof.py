"""Reads profiles as Go's pprof writes them: gzipped protocol buffers of ``perftools.profiles.Profile``.

The format is public: ``proto/profile.proto`` of github.com/google/pprof. What is read of it, by field number:

    Profile   1 sample_type, 2 sample, 4 location, 5 function, 6 string_table, 10 duration_nanos
    ValueType 1 type, 2 unit                 (indices into the string table)
    Sample    1 location_id, 2 value         (innermost location first; one value for each sample type)
    Location  1 id, 4 line                   (several lines where calls were inlined, the innermost first)
    Line      1 function_id
    Function  1 id, 2 name

Mappings, labels, addresses and line numbers are passed over. Figures are those of ``go tool pprof -top``: *flat* of a function
is what was sampled in it, *cum* what was sampled in it or in what it called, counted once where it calls itself.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Function", "Profile", "Stack", "functions", "parse_profile"]

_MOST_BYTES: Final = 256 * 2**20
"""Of a profile, unpacked: the largest of an idle API server has 250 KB. A damaged file must not take all memory."""


@dataclass(frozen=True, slots=True)
class Stack:
    """One sample."""

    frames: tuple[str, ...]
    """Names of functions with their import paths, the innermost first."""
    values: tuple[int, ...]
    """One for each sample type."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile."""

    sample_types: tuple[tuple[str, str], ...]
    """Type and unit: ``("cpu", "nanoseconds")``, ``("inuse_space", "bytes")``, ``("goroutine", "count")``."""
    stacks: tuple[Stack, ...]
    duration_s: float
    """Time over which it was taken; 0 for a snapshot."""

    def samples(self, sample_type: str) -> list[tuple[tuple[str, ...], int]]:
        """Return the stacks with their value of one type, those of 0 left out. Raises ValueError when there is no such type."""
        names = [name for name, _ in self.sample_types]
        if sample_type not in names:
            msg = f"no samples of type {sample_type}: it has {', '.join(names) or 'none'}"
            raise ValueError(msg)
        index = names.index(sample_type)
        return [(stack.frames, stack.values[index]) for stack in self.stacks if stack.values[index]]


@dataclass(frozen=True, slots=True)
class Function:
    """A function's part of a profile, in the unit of its values."""

    name: str
    flat: int
    cum: int


def functions(samples: Iterable[tuple[Sequence[str], int]]) -> list[Function]:
    """Return flat and cumulative values of every function, the largest flat first, then the largest cum, then by name."""
    flat: dict[str, int] = {}
    cum: dict[str, int] = {}
    for frames, value in samples:
        if not frames:
            continue
        flat[frames[0]] = flat.get(frames[0], 0) + value
        for name in dict.fromkeys(frames):
            cum[name] = cum.get(name, 0) + value
    found = [Function(name, flat.get(name, 0), value) for name, value in cum.items()]
    return sorted(found, key=lambda item: (-item.flat, -item.cum, item.name))


def parse_profile(data: bytes) -> Profile:
    """Parse a profile, gzipped or not. Raises ValueError for anything else, also for one that is cut short."""
    try:
        return _profile(_unpacked(data))
    except (IndexError, UnicodeDecodeError, KeyError) as error:
        msg = f"no profile, or a damaged one: {error!r}"
        raise ValueError(msg) from None


def _unpacked(data: bytes) -> bytes:
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            unpacked = stream.read(_MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        msg = f"no gzip, or cut short: {error}"
        raise ValueError(msg) from None
    if len(unpacked) > _MOST_BYTES:
        msg = f"larger than {_MOST_BYTES // 2**20} MiB"
        raise ValueError(msg)
    return unpacked


def _profile(data: bytes) -> Profile:
    types: list[bytes] = []
    samples: list[bytes] = []
    locations: dict[int, list[int]] = {}
    names: dict[int, int] = {}
    strings: list[str] = []
    duration_ns = 0
    for field, value in _fields(data):
        if field == 1:
            types.append(_message(value))
        elif field == 2:
            samples.append(_message(value))
        elif field == 4:
            identity, calls = _location(_message(value))
            locations[identity] = calls
        elif field == 5:
            function = dict(_fields(_message(value)))
            names[_number(function.get(1, 0))] = _number(function.get(2, 0))
        elif field == 6:
            strings.append(_message(value).decode("utf-8", errors="replace"))
        elif field == 10:
            duration_ns = _number(value)
    if not types or not strings:
        msg = "no profile: it has no sample types"
        raise ValueError(msg)
    # Locations are shared by thousands of samples: their names are looked up once.
    frames = {key: tuple(strings[names[function]] for function in calls) for key, calls in locations.items()}
    return Profile(
        sample_types=tuple(_value_type(item, strings) for item in types),
        stacks=tuple(_stack(item, frames, len(types)) for item in samples),
        duration_s=duration_ns / 1e9,
    )


def _value_type(data: bytes, strings: Sequence[str]) -> tuple[str, str]:
    fields = dict(_fields(data))
    return strings[_number(fields.get(1, 0))], strings[_number(fields.get(2, 0))]


def _location(data: bytes) -> tuple[int, list[int]]:
    """Return the id of a location and the functions of its lines."""
    identity, calls = 0, []
    for field, value in _fields(data):
        if field == 1:
            identity = _number(value)
        elif field == 4:
            calls.append(_number(dict(_fields(_message(value))).get(1, 0)))
    return identity, calls


def _stack(data: bytes, frames: dict[int, tuple[str, ...]], types: int) -> Stack:
    found: list[str] = []
    values: list[int] = []
    for field, value in _fields(data):
        if field == 1:
            for identity in _numbers(value):
                found += frames[identity]
        elif field == 2:
            values += (_signed(number) for number in _numbers(value))
    if len(values) != types:
        msg = f"a sample with {len(values)} values where {types} are due"
        raise ValueError(msg)
    return Stack(tuple(found), tuple(values))


# The wire format: protobuf.dev/programming-guides/encoding.


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message: number, and an integer or bytes. Raises ValueError, IndexError."""
    position, end = 0, len(data)
    while position < end:
        key, position = _varint(data, position)
        wire = key & 7
        if wire == 0:
            number, position = _varint(data, position)
            yield key >> 3, number
            continue
        if wire == 2:
            length, position = _varint(data, position)
        elif wire in {1, 5}:
            length = 8 if wire == 1 else 4
        else:
            msg = f"no profile: wire type {wire}"
            raise ValueError(msg)
        if position + length > end:
            msg = "cut short within a field"
            raise ValueError(msg)
        yield key >> 3, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    byte = data[position]
    if byte < 0x80:
        return byte, position + 1
    number, shift = byte & 0x7F, 7
    while True:
        position += 1
        byte = data[position]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position + 1
        shift += 7
        if shift > 63:
            msg = "no profile: a number of more than 64 bits"
            raise ValueError(msg)


def _numbers(value: int | bytes) -> Iterator[int]:
    """Yield a repeated number: packed, or one of several fields."""
    if isinstance(value, int):
        yield value
        return
    position, end = 0, len(value)
    while position < end:
        number, position = _varint(value, position)
        yield number


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


def _number(value: int | bytes) -> int:
    if isinstance(value, int):
        return value
    msg = "no profile: bytes where a number is due"
    raise ValueError(msg)


def _message(value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    msg = "no profile: a number where bytes are due"
    raise ValueError(msg)
