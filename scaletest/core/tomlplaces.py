"""TOML files that people write, and the line on which a key stands: ``tomllib`` gives none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from scaletest.core.errors import UsageError
from scaletest.core.foreignfiles import Damaged, parse_bytes

__all__ = ["TomlFile", "read_toml"]


class TomlFile:
    """A file that was read."""

    def __init__(self, path: Path, text: str) -> None:
        """Parse ``text``. Raises ValueError for what is no TOML."""
        self.path = path
        self.data = _parse(text)
        self._lines = text.splitlines(keepends=True)

    def line(self, keys: tuple[str, ...]) -> int | None:
        """Return the line on which the value at some keys begins; None when it is not there.

        It is the first line with the key's name before which the value is not there, and with which (and those that it goes on in) it is.
        """
        name = re.compile(re.escape(keys[-1]))
        for number, line in enumerate(self._lines, start=1):
            if name.search(line) and self._begins_at(number, keys):
                return number
        return None

    def _begins_at(self, number: int, keys: tuple[str, ...]) -> bool:
        before = self._parsed(number - 1)
        if before is None or _has(before, keys):
            return False
        whole = (self._parsed(count) for count in range(number, len(self._lines) + 1))
        first = next((data for data in whole if data is not None), {})
        return _has(first, keys)

    def _parsed(self, count: int) -> dict[str, Any] | None:
        """Parse the first lines; None where they end in the middle of a value."""
        try:
            return _parse("".join(self._lines[:count]))
        except (ValueError, RecursionError):
            return None


def _parse(text: str) -> dict[str, Any]:
    # Imported here: most directories have no such file, and it takes 10 ms.
    import tomllib  # noqa: PLC0415

    return tomllib.loads(text)


def _has(data: Any, keys: tuple[str, ...]) -> bool:
    for key in keys:
        if not isinstance(data, dict) or key not in data:
            return False
        data = data[key]
    return True


def read_toml(path: Path) -> TomlFile | None:
    """Read a file; None where there is none. Raises UsageError for what cannot be read or is no TOML."""
    try:
        return parse_bytes(path.read_bytes(), lambda text: TomlFile(path, text))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror}"
    except Damaged as error:
        msg = f"{path}: cannot be read: {error}"
    raise UsageError(msg)
