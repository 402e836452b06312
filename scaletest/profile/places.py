"""Places in a profile (``flows.agents.steps.0.every``) and what is wrong there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["Issue", "Path", "dotted", "leaves", "nearest", "show", "value_at"]

Path = tuple[str | int, ...]
"""Keys and list indices from the top of a profile."""


@dataclass(frozen=True, slots=True)
class Issue:
    """Something wrong at a place; where that place was written is for the caller to say."""

    path: Path
    what: str
    hint: str | None = None


def dotted(path: Path) -> str:
    """Write a path as messages and ``--set`` do."""
    return ".".join(str(part) for part in path)


def nearest(word: str, possible: Iterable[str]) -> str | None:
    """Return the possible word that a person most likely meant, or None when none is near."""
    by_folded = {candidate.casefold().replace("_", "").replace("-", ""): candidate for candidate in possible}
    folded = word.casefold().replace("_", "").replace("-", "")
    close = difflib.get_close_matches(folded, by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def show(value: Any) -> str:
    """Write a value in a message, as YAML would have it and never long."""
    match value:
        case None:
            return "nothing"
        case True | False:
            return str(value).lower()
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str() if len(value) > 60:
            return repr(value[:57] + "...")
    return repr(value)


def value_at(value: Any, path: Path) -> Any:
    """Return what stands at a place that there is."""
    for part in path:
        value = value[part]
    return value


def leaves(value: Any, path: Path = ()) -> Iterable[tuple[Path, Any]]:
    """Yield every value that is no mapping and no list, or an empty one, with its path."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    else:
        yield path, value
