"""Files that people, other programs or a dying machine may have changed: read in one way, and refused with a sentence that says what is wrong.

What a parser of the standard library makes of such a file is no promise of one exception: bytes that are no text, a bracket too many or a hundred
thousand of them, and a number of five thousand digits raise four different ones. Here they all are ``Damaged``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from scaletest.core.errors import ScaletestError
from scaletest.core.texts import encodable

__all__ = ["LARGEST", "Damaged", "check_schema", "check_values", "parse_bytes", "parse_json", "read_object"]

LARGEST: Final = 2**64
"""No number of ours is larger: the kernel and Go's runtime count in 64 bits."""

_DEEPEST: Final = 64
"""Levels of lists and objects; the deepest file of ours, a resolved profile, has about ten."""

_TOO_DEEP: Final = "nested too deeply"
_SHOWN_CHARS: Final = 40

_LONE: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""Where JSON text may hold a surrogate: most has none, and need not be looked through value by value."""

_Parsed = TypeVar("_Parsed")


class Damaged(ValueError):
    """What is wrong with a text, for people: ``line 3: cut short or no JSON: …``."""


class FileProblem(Protocol):
    """An error about a file, as ``RunDirectoryError`` and ``BaselineError`` are."""

    def __call__(self, path: Path, what: str, *, hint: str | None = None) -> ScaletestError:
        """Make the error."""


def parse_bytes(raw: bytes, parse: Callable[[str], _Parsed]) -> _Parsed:
    """Parse UTF-8 text. Raises Damaged, whatever ``parse`` raises for a text that is not of its form."""
    try:
        return parse(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        what = f"line {line}: not UTF-8 (byte 0x{raw[error.start]:02x})"
    except json.JSONDecodeError as error:
        what = f"line {error.lineno}: cut short or no JSON: {error.msg}" if raw.strip() else "empty"
    except RecursionError:
        what = _TOO_DEEP
    except Damaged:
        raise
    except ValueError as error:
        # Python's guard against the quadratic time of int(); its own sentence is about how to switch that off.
        what = "a number of thousands of digits" if str(error).startswith("Exceeds the limit") else str(error)
    raise Damaged(what)


def parse_json(raw: bytes) -> Any:
    """Parse JSON; lone surrogates, which nothing could write again, become replacement characters. Raises Damaged."""
    return parse_bytes(raw, _parse_json)


def _parse_json(text: str) -> Any:
    value = json.loads(text)
    return _encodable(value) if "\\u" in text and _LONE.search(text) else value


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {encodable(key): _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list) else value


def check_values(value: Any) -> None:
    """Raise Damaged where a JSON value is nested too deeply to be gone through, or holds a number that is none or beyond ``LARGEST``."""
    found = _impossible(value, _DEEPEST)
    if found is not None:
        keys, what = found
        raise Damaged(f"{'.'.join(keys)}: {what}" if keys else what)


def _impossible(value: Any, levels: int) -> tuple[tuple[str, ...], str] | None:
    """Return the first thing in a value that cannot be, with the keys that lead to it."""
    if isinstance(value, dict | list):
        if levels == 0:
            return (), _TOO_DEEP
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            found = _impossible(item, levels - 1)
            if found is not None:
                keys, what = found
                return ((str(key), *keys) if what != _TOO_DEEP else ()), what
    elif isinstance(value, float) and not math.isfinite(value):
        return (), f"{value} is no number"
    elif isinstance(value, int | float) and abs(value) > LARGEST:
        return (), "a number of more than 64 bits"
    return None


def read_object(path: Path, problem: FileProblem, *, hint: str | None = None) -> dict[str, Any]:
    """Read a file that holds a JSON object. Raises ``problem``, and FileNotFoundError or NotADirectoryError where there is no file."""
    try:
        value = parse_json(path.read_bytes())
        check_values(value)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise problem(path, f"cannot be read: {error.strerror}") from None
    except Damaged as error:
        raise problem(path, str(error), hint=hint) from None
    if not isinstance(value, dict):
        raise problem(path, "no JSON object", hint=hint)
    return value


def check_schema(path: Path, data: Mapping[str, Any], of: str, latest: int, problem: FileProblem) -> None:
    """Raise ``problem`` where the ``schema_version`` of a file is none, or a newer one than ``latest``; ``of`` is what the file is about."""
    version = data.get("schema_version")
    if type(version) is not int or version < 1:
        said = encodable(json.dumps(version, ensure_ascii=False))
        shown = f"{said[:_SHOWN_CHARS]}…" if len(said) > _SHOWN_CHARS else said
        raise problem(path, f"schema_version: a whole number is wanted, not {shown}")
    if version > latest:
        what = f"written by a newer scaletest ({of} schema {version}; this one reads up to {latest})"
        raise problem(path, what, hint="Upgrade scaletest to read it.")
