"""From plain values to a ``Profile``, or to everything that is wrong with them, in plain words.

Pydantic finds the mistakes; here its error types become sentences, its locations become paths in
the file, and an unknown key gets the key that was probably meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from scaletest.core.mistakes import expected
from scaletest.profile.places import Issue, Path, dotted, nearest, show
from scaletest.profile.schema import Profile
from scaletest.profile.structure import Shape, shape_at
from scaletest.profile.yamlfile import resolve_scalar

__all__ = ["validate"]


def validate(data: Mapping[str, Any]) -> tuple[Profile | None, list[Issue]]:
    """Return the profile, or None and every issue found, each at its path."""
    try:
        return Profile.model_validate(data), []
    except ValidationError as error:
        return None, _issues(data, error)


def _issues(data: Mapping[str, Any], error: ValidationError) -> list[Issue]:
    # The branches of a union each fail on their own: one place, one issue.
    by_path: dict[Path, list[ErrorDetails]] = {}
    for details in error.errors(include_url=False):
        by_path.setdefault(_path_of(data, details), []).append(details)
    return [issue for path, group in by_path.items() for issue in _describe(path, group)]


def _path_of(data: Any, details: ErrorDetails) -> Path:
    """Follow an error's location through the values as far as they go: what remains names types, not keys."""
    path: Path = ()
    value = data
    for part in details["loc"]:
        in_mapping = isinstance(value, dict) and part in value
        in_list = isinstance(value, list) and isinstance(part, int) and part < len(value)
        if not in_mapping and not in_list:
            return (*path, part) if details["type"] == "missing" else path
        value = value[part]
        path = (*path, part)
    return path


def _describe(path: Path, group: list[ErrorDetails]) -> list[Issue]:
    first = group[0]
    match first["type"]:
        case "extra_forbidden":
            return [_unknown_key(path)]
        case "missing":
            return [Issue(path, "is required and missing")]
        case "literal_error" if first["loc"][-1] == "[key]":
            return [_unknown_key(path)]
        case "too_short":
            noun = "list" if isinstance(first["input"], list) else "mapping"
            return [Issue(path, f"the {noun} needs at least {first['ctx']['min_length']} item")]
        case "string_too_short":
            return [Issue(path, "the text must not be empty")]
    said = [str(details["ctx"]["error"]) for details in group if details["type"] == "value_error"]
    wanted = list(dict.fromkeys(expected(details) for details in group if details["type"] != "value_error"))
    issues = [Issue(path, what, _hint(first["input"], [])) for what in dict.fromkeys(said)]
    if wanted and not said:
        what = f"must be {' or '.join(wanted)}, not {show(first['input'])}"
        issues.append(Issue(path, what, _hint(first["input"], wanted) or _near_word(path, first["input"])))
    return issues


def _hint(value: Any, wanted: list[str]) -> str | None:
    # `nodes: {nodes}` is, to YAML, a mapping of `nodes` to nothing.
    if isinstance(value, dict) and len(value) == 1 and next(iter(value.values())) is None:
        return f'a parameter stands in quotes: "{{{next(iter(value))}}}"'
    if isinstance(value, int | float) and wanted == ["text"]:
        return "put it in quotes"
    if isinstance(value, str) and wanted and not isinstance(resolve_scalar(value), str) and "text" not in wanted:
        return "leave out the quotes"
    return None


def _near_word(path: Path, value: Any) -> str | None:
    shape = shape_at(path)
    if shape is None or shape.kind != "scalar" or not isinstance(value, str):
        return None
    near = nearest(value, shape.choices or ())
    return f"did you mean {near!r}?" if near else None


def _unknown_key(path: Path) -> Issue:
    shape: Shape | None = shape_at(path[:-1])
    possible = shape.keys if shape is not None else ()
    near = nearest(str(path[-1]), possible)
    place = f"of {dotted(path[:-1])}" if len(path) > 1 else "of a profile"
    hint = f"did you mean {near!r}? " if near else ""
    return Issue(path, "unknown key", f"{hint}keys {place}: {', '.join(possible)}")
