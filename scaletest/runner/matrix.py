"""A profile in several variants: the cross product of the values that ``--matrix KEY=V1,V2`` gives, and of the variants that it names itself.

Without any of them it is one variant, the profile as it is, to be repeated.

Every value is one that ``--set KEY=VALUE`` takes. A comma separates values unless it stands within quotes, brackets or
braces that begin the value: ``'steps="a,b",c'`` has two values.

All variants get the same limits. They are worked out for each variant by the rule of the host, and the smallest wins,
which is that of the most demanding one: with two API servers each gets half of the memory. A limit that a profile or an axis
gives itself stays as it is.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from scaletest.controlplane.host import Host
from scaletest.controlplane.plan import Limits
from scaletest.core.errors import Problem, ProfileError, UsageError
from scaletest.core.matrixdir import VARIANT_AXIS, Axis, VariantEntry
from scaletest.core.units import write_bytes, write_number
from scaletest.profile.loading import LoadedProfile, load_profile
from scaletest.profile.overrides import VersionSetting
from scaletest.profile.places import dotted, leaves
from scaletest.profile.schema import COMPONENTS, ComponentName, Profile
from scaletest.runner.plan import RunPlan, make_plan

__all__ = ["MOST_RUNS", "Matrix", "Variant", "make_matrix", "parse_axes", "run_names", "split_values"]

MOST_RUNS: Final = 100
"""Of a minute each, more than an hour and a half: what is larger is most likely a typing mistake."""

_LONGEST_NAME: Final = 60
"""The name of a run directory becomes that of a cluster, and its sockets have paths of 107 bytes at most."""

_CLOSING: Final = {"[": "]", "{": "}"}
_EXAMPLE: Final = "For example: --matrix lever=none,block-agents"


@dataclass(frozen=True, slots=True)
class _Choice:
    """One value of each axis."""

    values: Mapping[str, str]
    variant: str | None
    """The profile's own variant among them, which ``--set`` does not take."""
    flags: Sequence[str] = field(default=())
    """Overrides beside them."""

    @property
    def sets(self) -> dict[str, str]:
        """Values by the keys that ``--set`` takes."""
        return {key: value for key, value in self.values.items() if self.variant is None or key != VARIANT_AXIS}

    def __str__(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.values.items())


@dataclass(frozen=True, slots=True)
class Variant:
    """One combination of values, and the profile that it makes."""

    name: str
    values: Mapping[str, str]
    loaded: LoadedProfile
    plan: RunPlan


@dataclass(frozen=True, slots=True)
class Matrix:
    """All variants of a profile, under the same limits."""

    axes: Sequence[Axis]
    variants: Sequence[Variant]
    limits: Mapping[str, Mapping[str, Any]]
    """What was written into each variant, by component: ``memory_bytes`` and ``cpu_cores``."""
    profile: Mapping[str, Any]
    """The first variant's resolved profile without those limits."""
    entries: Sequence[VariantEntry]
    warnings: Sequence[Problem]


def split_values(text: str) -> list[str]:
    """Split the values of an axis at its commas. Raises ValueError for an empty value and for open quotes or brackets."""
    values: list[str] = []
    rest = text
    while True:
        length = _value_length(rest)
        values.append(rest[:length].strip())
        if length == len(rest):
            break
        rest = rest[length + 1 :]
    if "" in values:
        msg = 'a value is empty; an empty text is written ""' if len(values) > 1 else "no values"
        raise ValueError(msg)
    return values


def _value_length(text: str) -> int:
    """Return how many characters the first value of a list takes."""
    if text.lstrip()[:1] not in {'"', "'", "[", "{"}:
        comma = text.find(",")
        return len(text) if comma < 0 else comma
    open_: list[str] = []
    quote, escaped = "", False
    for index, char in enumerate(text):
        if escaped:
            escaped = False
        elif quote:
            escaped = char == "\\" and quote == '"'
            quote = "" if char == quote else quote
        elif char in {'"', "'"}:
            quote = char
        elif char in _CLOSING:
            open_.append(_CLOSING[char])
        elif open_ and char == open_[-1]:
            open_.pop()
        elif char == "," and not open_:
            return index
    if quote or open_:
        msg = f"{quote or open_[-1]} is missing at the end"
        raise ValueError(msg)
    return len(text)


def parse_axes(flags: Sequence[str], overrides: Sequence[str] = ()) -> list[Axis]:
    """Parse every ``--matrix KEY=V1,V2``. Raises UsageError for what is no such list, and for keys or values given twice."""
    given = {_plain_key(override.partition("=")[0].strip()) for override in overrides}
    axes: list[Axis] = []
    for flag in flags:
        key, equals, text = flag.partition("=")
        key = key.strip()
        if not equals or not key:
            msg = f"--matrix {flag}: not KEY=VALUE,VALUE"
            raise UsageError(msg, hint=_EXAMPLE)
        try:
            values = split_values(text)
        except ValueError as error:
            msg = f"--matrix {flag}: {error}"
            raise UsageError(msg, hint=_EXAMPLE) from None
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            msg = f"--matrix {flag}: {twice} is there twice"
            raise UsageError(msg, hint="To run every variant several times: --repeat 3")
        if _plain_key(key) in {_plain_key(axis.key) for axis in axes}:
            msg = f"--matrix {key} is given twice"
            raise UsageError(msg, hint=f"One list has all values: --matrix {key}=VALUE,VALUE")
        if _plain_key(key) in given:
            msg = f"{key} is given by --set and by --matrix"
            raise UsageError(msg, hint="Leave one of them out.")
        axes.append(Axis(key=key, values=values))
    return axes


def _plain_key(key: str) -> str:
    return key.removeprefix("parameters.")


def make_matrix(
    reference: str,
    overrides: Sequence[str],
    axes: Sequence[Axis],
    *,
    size: str | None = None,
    named: Sequence[str] = (),
    versions: Sequence[VersionSetting] = (),
    repeat: int,
    host: Host,
    limits: Mapping[str, Mapping[str, Any]] | None = None,
) -> Matrix:
    """Load every variant under the same limits: those given (of a matrix that is resumed), or those of the host.

    ``named`` are variants of the profile itself; they become the first axis, if there are any.

    Raises UsageError for too many runs and for variants that are the same profile, ProfileError with the problems of
    all variants, ResourceShortage when the host has no room for an API server.
    """
    if named:
        axes = [Axis(key=VARIANT_AXIS, values=list(named)), *axes]
    _refuse_too_many(axes, repeat)
    combined = [
        dict(zip((axis.key for axis in axes), values, strict=True))
        for values in itertools.product(*(axis.values for axis in axes))
    ]
    choices = [_Choice(values, values[VARIANT_AXIS] if named else None) for values in combined]
    plain = _load_all(reference, overrides, choices, size, versions)
    _refuse_same(choices, plain)
    if limits is None:
        limits = common_limits([loaded.profile for loaded in plain], host)
    with_limits = [
        replace(choice, flags=limit_overrides(loaded.profile, limits))
        for choice, loaded in zip(choices, plain, strict=True)
    ]
    limited = _load_all(reference, overrides, with_limits, size, versions)
    # Repeats of a profile as it is have no values to be named by.
    names = _unique([_name(axes, choice.values) for choice in choices]) if axes else [plain[0].profile.name]
    variants = [
        Variant(name, choice.values, loaded, make_plan(loaded.profile, host))
        for name, choice, loaded in zip(names, choices, limited, strict=True)
    ]
    first = plain[0].resolved
    entries = [
        VariantEntry(name=name, values=dict(choice.values), changes=_changes(first, loaded.resolved))
        for name, choice, loaded in zip(names, choices, plain, strict=True)
    ]
    warnings = dict.fromkeys(warning for loaded in plain for warning in loaded.warnings)
    return Matrix(axes, variants, limits, first, entries, list(warnings))


def run_names(matrix: Matrix, repeat: int) -> list[tuple[str, int, str]]:
    """Return (variant, repeat, run directory) in the order of the runs.

    All variants are run once before any is run again: what drifts on the machine meets all of them alike.
    """
    pairs = [(variant.name, number) for number in range(1, repeat + 1) for variant in matrix.variants]
    names = _unique([name if repeat == 1 else f"{name}-r{number}" for name, number in pairs])
    return [(variant, number, name) for (variant, number), name in zip(pairs, names, strict=True)]


def _refuse_too_many(axes: Sequence[Axis], repeat: int) -> None:
    if repeat < 1:
        msg = f"--repeat {repeat}: at least 1"
        raise UsageError(msg)
    runs = repeat
    for axis in axes:
        runs *= len(axis.values)
    if runs > MOST_RUNS:
        factors = [f"{len(axis.values)} of {axis.key}" for axis in axes]
        product = " x ".join([*factors, f"{repeat} repeats"] if repeat > 1 else factors)
        msg = f"{product} make {runs:,} runs: at most {MOST_RUNS}"
        raise UsageError(msg, hint="Leave out values, or make several matrices of them.")


def _load_all(
    reference: str,
    overrides: Sequence[str],
    choices: Sequence[_Choice],
    size: str | None,
    versions: Sequence[VersionSetting],
) -> list[LoadedProfile]:
    loaded: list[LoadedProfile] = []
    problems: dict[Problem, list[str]] = {}
    for choice in choices:
        chosen = {f"--set {key}={value}": (key, value) for key, value in choice.sets.items()}
        try:
            sets = [*overrides, *(f"{key}={value}" for key, value in choice.sets.items()), *choice.flags]
            loaded.append(load_profile(reference, sets, size=size, variant=choice.variant, versions=versions))
        except ProfileError as error:
            for problem in error.problems:
                key, value = chosen.get(problem.file or "", ("", ""))
                # Said once for all values of which it is true, and as the user wrote it.
                said = replace(problem, file=f"--matrix {key}") if key else problem
                known = problems.setdefault(said, [])
                if key and value not in known:
                    known.append(value)
    if problems:
        said_all = [
            replace(problem, file=f"{problem.file}={','.join(values)}") if values else problem
            for problem, values in problems.items()
        ]
        raise ProfileError(said_all)
    return loaded


def _refuse_same(choices: Sequence[_Choice], loaded: Sequence[LoadedProfile]) -> None:
    seen: list[dict[str, Any]] = []
    for index, item in enumerate(loaded):
        if item.resolved in seen:
            first = choices[seen.index(item.resolved)]
            msg = f"{first} and {choices[index]} make the same profile"
            raise UsageError(msg, hint="Leave one of them out; to run every variant several times: --repeat 3")
        seen.append(item.resolved)


def common_limits(profiles: Sequence[Profile], host: Host) -> dict[str, dict[str, Any]]:
    """Return the smallest default limit of each component; what profiles give themselves has no say."""
    plans = [make_plan(profile, host) for profile in profiles]
    found: dict[str, dict[str, Any]] = {}
    for name in COMPONENTS:
        memory = [plan.limits[name].memory_bytes for plan in plans if not _gives(plan.profile, name, "memory_bytes")]
        cores = [_cores(plan.limits[name]) for plan in plans if not _gives(plan.profile, name, "cpu_cores")]
        quotas = [quota for quota in cores if quota is not None]
        values = {"memory_bytes": min(memory, default=None), "cpu_cores": min(quotas, default=None)}
        found[name] = {key: value for key, value in values.items() if value is not None}
    return {name: values for name, values in found.items() if values}


def _cores(limits: Limits) -> float | None:
    return limits.cpu_cores


def _gives(profile: Profile, name: ComponentName, limit: str) -> bool:
    spec = profile.control_plane.limits.get(name)
    return spec is not None and getattr(spec, limit) is not None


def limit_overrides(profile: Profile, limits: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the ``--set`` texts that write limits into a profile where it gives none."""
    texts: list[str] = []
    for name in COMPONENTS:
        values = limits.get(name, {})
        if "memory_bytes" in values and not _gives(profile, name, "memory_bytes"):
            texts.append(f"controlPlane.limits.{name}.memory={write_bytes(values['memory_bytes'])}")
        if "cpu_cores" in values and not _gives(profile, name, "cpu_cores"):
            texts.append(f"controlPlane.limits.{name}.cpu={write_number(values['cpu_cores'])}")
    return texts


def _changes(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    before = {dotted(path): value for path, value in leaves(dict(first))}
    after = {dotted(path): value for path, value in leaves(dict(other))}
    keys = dict.fromkeys([*before, *after])
    return {key: after.get(key) for key in keys if before.get(key) != after.get(key)}


def first_difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, Any, Any] | None:
    """Return the first dotted key in which two profiles differ, with its value in each."""
    flat_before = {dotted(path): value for path, value in leaves(dict(before))}
    flat_after = {dotted(path): value for path, value in leaves(dict(after))}
    for key in dict.fromkeys([*flat_before, *flat_after]):
        if flat_before.get(key) != flat_after.get(key):
            return key, flat_before.get(key), flat_after.get(key)
    return None


def _name(axes: Sequence[Axis], values: Mapping[str, str]) -> str:
    """Return a directory's name: ``lever=none,kubernetes=1.31``."""
    short = _short_keys([axis.key for axis in axes])
    text = ",".join(f"{short[key]}={value}" for key, value in values.items())
    return (
        re.sub(r"[^A-Za-z0-9._=,+-]+", "_", re.sub("[\"'\\[\\]{}]", "", text))[:_LONGEST_NAME].strip("._") or "variant"
    )


def _short_keys(keys: Sequence[str]) -> dict[str, str]:
    """Return the last parts of each key, as many as tell it from the others."""
    short: dict[str, str] = {}
    for key in keys:
        parts = key.split(".")
        for count in range(1, len(parts) + 1):
            tail = ".".join(parts[-count:])
            if sum(f".{other}".endswith(f".{tail}") for other in keys) == 1:
                break
        short[key] = tail
    return short


def _unique(names: Iterable[str]) -> list[str]:
    """Add a number to every name that is there already."""
    taken: dict[str, None] = {}
    for name in names:
        candidate = name
        for number in itertools.count(2):
            if candidate not in taken:
                break
            candidate = f"{name}~{number}"
        taken[candidate] = None
    return list(taken)
