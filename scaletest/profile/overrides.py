"""``--set KEY=VALUE``: a parameter, or any place in the profile. ``--size NAME``, ``--variant NAME``: several of them, named in the profile.

    nodes=100                                     a parameter
    fleet.pools.gpu.nodes=100                     a list item by its name
    flows.agents.steps.0.every=5s                 ... or by its index; a step also by its label
    controlPlane.limits.etcd.memory=2GiB          a key that the schema has and the file leaves out
    fleet.pools.gpu.resources.nvidia.com/gpu=4    the rest of the key is one name in a map of plain values

Values are written as in the profile: ``5s``, ``true``, ``"quoted"``, ``[a, b]``, ``{key: value}``. A number given
where the profile has text is taken as written, so that ``kubernetes=1.30`` is that version.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from scaletest.core.errors import Problem, ProfileError
from scaletest.profile.parameters import kind_of
from scaletest.profile.places import Path, dotted, nearest, show
from scaletest.profile.structure import Shape, shape_at
from scaletest.profile.yamlfile import parse_text, resolve_scalar

__all__ = [
    "Overridden",
    "Override",
    "VersionSetting",
    "apply_overrides",
    "next_keys",
    "parse_override",
    "size_overrides",
    "variant_overrides",
    "version_overrides",
]


_CHOSEN: Final = {"sizes": "size", "variants": "variant"}
"""Named sets of values, and the options that choose one."""


@dataclass(frozen=True, slots=True)
class Override:
    """One ``--set``, or one value of a size or variant: the key and value as written, and the value read as YAML."""

    key: str
    text: str
    value: Any
    named: str | None = None
    """What else than ``--set`` gave it: the option that chose the set of values that it is of (``--size quick``), or a setting."""

    def __str__(self) -> str:
        option = "--set" if self.named is None else f"{self.named}:"
        return f"{option} {self.key}={self.text}"

    @property
    def is_quoted(self) -> bool:
        """Whether the value was written in quotes or brackets, or in a file, so that its type is meant."""
        return self.named is not None or _is_quoted(self.text)


class VersionSetting(NamedTuple):
    """A version that a setting names in place of the profile's."""

    component: str
    """``kubernetes`` or ``etcd``."""
    version: str
    given_by: str


def _is_quoted(text: str) -> bool:
    # `{nodes}` alone is a parameter, not YAML's mapping of `nodes` to nothing.
    return text[:1] in {'"', "'", "[", "{"} and not re.fullmatch(r"\{[A-Za-z][A-Za-z0-9_-]*\}", text)


@dataclass(slots=True)
class Overridden:
    """Values after all overrides; which override set which path or parameter, and which could not."""

    data: Any
    paths: dict[Path, Override] = field(default_factory=dict)
    parameters: dict[str, Override] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


class _Unusable(Exception):
    def __init__(self, what: str, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


def parse_override(text: str) -> Override:
    """Parse ``KEY=VALUE``. Raises ProfileError for anything else."""
    key, equals, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if not equals or not key or not all(key.split(".")):
        raise ProfileError([Problem("not KEY=VALUE", file=f"--set {text}", key=key or None, hint="--set nodes=100")])
    if not value:
        problem = Problem("no value", file=f"--set {text}", key=key, hint='an empty text is written ""')
        raise ProfileError([problem])
    if not _is_quoted(value):
        return Override(key, value, resolve_scalar(value))
    document = parse_text(value, f"--set {text}")
    if document.problems:
        raise ProfileError(document.problems)
    return Override(key, value, document.data)


def version_overrides(data: Any, settings: Sequence[VersionSetting]) -> list[Override]:
    """Return what versions of settings change: the parameter that has the version in this profile, or the version itself."""
    found = []
    for component, version, given_by in settings:
        written = _inner(_inner(data, "controlPlane"), component)
        name = re.fullmatch(r"\{([A-Za-z][A-Za-z0-9_-]*)\}", written) if isinstance(written, str) else None
        key = (
            name[1] if name and _inner(_inner(data, "parameters"), name[1]) is not None else f"controlPlane.{component}"
        )
        found.append(Override(key, version, version, given_by))
    return found


def size_overrides(data: Any, size: str) -> list[Override]:
    """Return what a size of a profile's values stands for; none where the profile has no such size, or it is malformed."""
    return _named(_inner(_inner(data, "sizes"), size), f"--size {size}")


def variant_overrides(data: Any, variant: str) -> list[Override]:
    """Return what a variant of a profile's values stands for; none as for sizes."""
    return _named(_inner(_inner(_inner(data, "variants"), variant), "set"), f"--variant {variant}")


def _inner(data: Any, key: str) -> Any:
    return data.get(key) if isinstance(data, dict) else None


def _named(values: Any, option: str) -> list[Override]:
    if not isinstance(values, dict):
        return []
    return [Override(str(key), _written(value), value, option) for key, value in values.items()]


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    return show(value)


def apply_overrides(data: Any, overrides: Sequence[str], named: Sequence[Override] = ()) -> Overridden:
    """Apply the values of a size and a variant, then overrides in order, the last one winning, to a copy of a profile's values."""
    result = Overridden(copy.deepcopy(data))
    for override in named:
        _try_apply(result, override)
    for text in overrides:
        try:
            override = parse_override(text)
        except ProfileError as error:
            result.problems.extend(_with_key(problem, text) for problem in error.problems)
        else:
            _try_apply(result, override)
    return result


def _try_apply(result: Overridden, override: Override) -> None:
    try:
        _apply(result, override)
    except _Unusable as error:
        result.problems.append(Problem(error.what, file=str(override), key=override.key, hint=error.hint))


def _with_key(problem: Problem, text: str) -> Problem:
    # A YAML mistake inside a value has a line of the value, which is always 1.
    key = problem.key or text.partition("=")[0].strip() or None
    return Problem(problem.what, file=problem.file, key=key, hint=problem.hint)


def _apply(result: Overridden, override: Override) -> None:
    if not isinstance(result.data, dict):
        return
    option = _CHOSEN.get(override.key.partition(".")[0])
    if option is not None:
        what = f"a {option} cannot be changed by a value"
        raise _Unusable(what, f"choose one by --{option} NAME, and change single values by --set KEY=VALUE")
    given = result.data.get("parameters")
    parameters = given if isinstance(given, dict) else {}
    name = override.key.removeprefix("parameters.")
    if name in parameters:
        parameters[name] = _as_parameter(override, name, parameters[name])
        result.parameters[name] = override
        return
    path = _locate(result.data, override, tuple(parameters))
    shape = shape_at(path)
    assert shape is not None
    _put(result.data, path, _fitting(override, shape))
    for earlier in [known for known in result.paths if known[: len(path)] == path]:
        del result.paths[earlier]
    result.paths[path] = override


def _as_parameter(override: Override, name: str, default: Any) -> Any:
    value = override.value
    if isinstance(default, str) and not override.is_quoted:
        return override.text
    if isinstance(default, float) and type(value) is int:
        return float(value)
    if type(value) is not type(default):
        what = f"{name} is {kind_of(default)} (default {show(default)}), not {show(value)}"
        raise _Unusable(what)
    return value


def _fitting(override: Override, shape: Shape) -> Any:
    """Return the value, or its text where the profile has text and the value looks like a number."""
    value = override.value
    if value is None and shape.optional:
        return None
    if shape.kind == "scalar" and not override.is_quoted and type(value) not in shape.scalars and str in shape.scalars:
        return override.text
    return value


def _locate(data: Any, override: Override, parameters: tuple[str, ...]) -> Path:
    """Find the path that a key means in these values."""
    parts = override.key.split(".")
    path: Path = ()
    values = data
    while parts:
        shape = shape_at(path)
        assert shape is not None
        if shape.kind == "scalar":
            what = f"{dotted(path)} is a plain value: nothing is under it"
            raise _Unusable(what)
        if path == ("parameters",):
            raise _unknown(".".join(parts), path, parameters)
        if shape.holds_scalars:
            return (*path, ".".join(parts))
        part = _step(parts.pop(0), path, shape, values, parameters)
        path = (*path, part)
        values = _under(values, part)
    return path


def _step(part: str, path: Path, shape: Shape, values: Any, parameters: tuple[str, ...]) -> str | int:
    if shape.kind == "list":
        return _item(part, path, values if isinstance(values, list) else [])
    if shape.kind == "map" and shape.choices is None:
        # A flow or probe that the profile does not have cannot be made of one value.
        names: tuple[str, ...] = tuple(values) if isinstance(values, dict) else ()
        if part not in names:
            raise _unknown(part, path, names)
        return part
    if part not in shape.keys:
        raise _unknown(part, path, (*shape.keys, *(() if path else parameters)))
    return part


def next_keys(data: Any, begun: str) -> list[str]:
    """Return the keys that go on from one that is begun, one part further: with ``=`` where a value follows, else with a dot.

    Without a dot in it these are the parameters of a profile and its parts; nothing for a place that there is not.
    """
    *above, _ = begun.split(".")
    path: Path = ()
    values = data
    for part in above:
        shape = shape_at(path)
        if shape is None or shape.kind == "scalar":
            return []
        try:
            step = _step(part, path, shape, values, ())
        except _Unusable:
            return []
        path, values = (*path, step), _under(values, step)
    parameters = _inner(data, "parameters") if not path else None
    found = [f"{name}=" for name in parameters] if isinstance(parameters, dict) else []
    prefix = "".join(f"{part}." for part in above)
    for child in _children(path, values):
        shape = shape_at((*path, int(child) if child.isdigit() else child)) or shape_at((*path, 0))
        found.append(f"{prefix}{child}{'=' if shape is None or shape.kind == 'scalar' else '.'}")
    return found


def _children(path: Path, values: Any) -> list[str]:
    shape = shape_at(path)
    if shape is None or shape.kind == "scalar":
        return []
    if shape.kind == "list":
        items = values if isinstance(values, list) else []
        return [_item_name(item, path) or str(index) for index, item in enumerate(items)]
    if shape.kind == "map" and shape.choices is None:
        return [str(key) for key in values] if isinstance(values, dict) else []
    return [key for key in shape.keys if path or key not in {"name", "summary", "parameters", *_CHOSEN}]


def _item(part: str, path: Path, items: list[Any]) -> int:
    names = [_item_name(item, path) for item in items]
    if part in names:
        return names.index(part)
    if part.isascii() and part.isdigit() and len(part) < 7 and int(part) < len(items):
        return int(part)
    possible = [name or str(index) for index, name in enumerate(names)]
    raise _unknown(part, path, tuple(possible))


def _item_name(item: Any, path: Path) -> str | None:
    if not isinstance(item, dict):
        return None
    # The `name` of a step or request is the object that it asks for; they are known by their label.
    name = item.get("label" if path[-1] in {"steps", "mix"} else "name")
    return name if isinstance(name, str) else None


def _unknown(part: str, path: Path, possible: tuple[str, ...]) -> _Unusable:
    near = nearest(part, possible)
    place = f" in {dotted(path)}" if path else ""
    listed = f"possible{place}: {', '.join(possible)}" if possible else f"nothing is{place}"
    if near is None:
        return _Unusable(f"there is no {part!r}{place}", listed)
    return _Unusable(f"there is no {part!r}{place}: did you mean {dotted((*path, near))!r}?", listed)


def _under(values: Any, part: str | int) -> Any:
    if isinstance(values, dict):
        return values.get(str(part))
    if isinstance(values, list) and isinstance(part, int):
        return values[part]
    return None


def _put(data: Any, path: Path, value: Any) -> None:
    """Put a value at a path, making the mappings on the way to it that the file leaves out."""
    values = data
    for index, part in enumerate(path[:-1]):
        inner = _under(values, part)
        if isinstance(inner, str) and path[0] == "objectives":
            inner = {"check": inner}
        elif inner is None:
            inner = {}
        elif not isinstance(inner, dict | list):
            place = dotted(path[: index + 1])
            what = f"{place} is {show(inner)} in the file: set {place} as a whole"
            raise _Unusable(what)
        values[part] = inner
        values = inner
    values[path[-1]] = value
