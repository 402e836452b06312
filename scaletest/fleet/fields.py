"""Which fields tell objects of one kind apart, by their place in the object's JSON.

A *path* is a tuple of keys and list indices. A ``FieldMap`` gives the role of every path whose value is the
object's own; everything else is the same in all copies. The field paths inside ``metadata.managedFields`` name list
items by value (``k:{"uid":"…"}``), so tokens occur there too.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from scaletest.fleet.stamping import Token

__all__ = ["FieldMap", "Json", "Path", "differences", "expected_copy", "show_path", "tokens_of", "value_at"]

Json = dict[str, Any]
Path = tuple[str | int, ...]
FieldMap = Mapping[Path, str]


def value_at(obj: Json, path: Path) -> Any:
    """Return the value at a path. Raises KeyError with the path when there is none."""
    value: Any = obj
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            raise KeyError(show_path(path)) from None
    return value


def show_path(path: Path) -> str:
    """Write a path as people read it."""
    return ".".join(str(step) for step in path)


def _set_at(obj: Json, path: Path, value: str) -> None:
    parent = value_at(obj, path[:-1])
    parent[path[-1]] = value


def tokens_of(sample: Json, fields: FieldMap) -> list[Token]:
    """Return the tokens of a sample, in the order of their paths. Raises KeyError for a path it does not have.

    Two paths of one role must have the same value: ValueError otherwise.
    """
    values: dict[str, str] = {}
    counts: dict[str, int] = {}
    for path, role in fields.items():
        value = value_at(sample, path)
        if values.setdefault(role, value) != value:
            msg = f"{show_path(path)} is {value!r} in the sample, and another field of the same {role} {values[role]!r}"
            raise ValueError(msg)
        counts[role] = counts.get(role, 0) + 1
    managed = json.dumps(sample["metadata"].get("managedFields", []))
    for role, value in values.items():
        counts[role] += managed.count(_in_field_path(value))
    return [Token(role, value, counts[role]) for role, value in values.items()]


def _in_field_path(value: str) -> str:
    return f'\\"{value}\\"'


def expected_copy(sample: Json, fields: FieldMap, values: Mapping[str, str]) -> Json:
    """Return what the API must answer for the copy with these values."""
    obj = copy.deepcopy(sample)
    renamed = {value_at(sample, path): values[role] for path, role in fields.items()}
    for path, role in fields.items():
        _set_at(obj, path, values[role])
    metadata = obj["metadata"]
    if "managedFields" in metadata:
        pattern = "|".join(re.escape(_in_field_path(old)) for old in renamed)
        text = json.dumps(metadata["managedFields"])
        new_text = re.sub(pattern, lambda found: _in_field_path(renamed[found[0][2:-2]]), text)
        metadata["managedFields"] = json.loads(new_text)
    return obj


def differences(expected: Any, actual: Any, path: Path = ()) -> Iterator[str]:
    """Yield every difference between two JSON values as ``path: expected …, actual …``.

    ``metadata.resourceVersion`` is left out: it is no part of what is stored.
    """
    if path == ("metadata", "resourceVersion"):
        return
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted({*expected, *actual}):
            yield from differences(expected.get(key), actual.get(key), (*path, key))
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, pair in enumerate(zip(expected, actual, strict=True)):
            yield from differences(*pair, (*path, index))
    elif expected != actual:
        yield f"{show_path(path)}: expected {expected!r}, actual {actual!r}"
