"""Load a profile: find, read, override, fill in parameters, validate, check, and remember where each value came from.

Every mistake ends in one ``ProfileError`` that carries all problems found: those of the text alone first; then overrides,
parameters and schema together; then, once the values are sound, whether the parts fit each other.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from scaletest.core.errors import Problem, ProfileError, UsageError
from scaletest.profile.builtin import find_profile
from scaletest.profile.checks import check_profile
from scaletest.profile.overrides import (
    Overridden,
    Override,
    VersionSetting,
    apply_overrides,
    size_overrides,
    variant_overrides,
    version_overrides,
)
from scaletest.profile.parameters import Scalar, Substitution, check_names, substitute
from scaletest.profile.places import Issue, Path, dotted, leaves, nearest, value_at
from scaletest.profile.schema import BeyondSpec, Profile, SearchSpec
from scaletest.profile.search import parse_load
from scaletest.profile.search_checks import check_steps
from scaletest.profile.validation import validate
from scaletest.profile.yamlfile import Document, parse_text, read_text

__all__ = ["LoadedProfile", "Origin", "load_profile", "resolve", "variant_names"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from: the profile's file (by its name), an override, or a default of the schema."""

    file: str | None = None
    line: int | None = None
    override: str | None = None
    parameters: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.file is None:
            return self.override or "default"
        place = f"{self.file}:{self.line}"
        used = " ".join(f"{{{name}}}" for name in self.parameters)
        parts = [place, f"via {used}" if used else "", f"from {self.override}" if self.override else ""]
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class LoadedProfile:
    """A profile with what it was made from.

    ``resolved`` is the whole profile as plain values, defaults included and units written out:
    ``Profile.model_validate(resolved) == profile``. ``provenance`` has the origin of each of its leaves by dotted key.
    """

    profile: Profile
    path: FilePath
    resolved: dict[str, Any]
    provenance: dict[str, Origin]
    parameters: dict[str, Scalar]
    warnings: list[Problem] = field(default_factory=list)
    unfilled: Any = field(default=None, repr=False, compare=False)
    """The profile's values, overrides applied, before parameters were put in."""
    searched: dict[Path, str] = field(default_factory=dict, repr=False, compare=False)
    """The texts that hold the parameter of a search, by their place in ``resolved``: what a load is put into."""

    @property
    def directory(self) -> FilePath:
        """The directory to which file names in the profile are relative."""
        return self.path.absolute().parent

    def at(self, values: Mapping[str, Scalar]) -> Profile:
        """Return the profile with other values of some parameters. Raises ProfileError when such a profile cannot be."""
        profile, issues = _validated_at(self.unfilled, {**self.parameters, **values})
        if profile is None or issues:
            given = ", ".join(f"{name} = {value}" for name, value in values.items())
            raise ProfileError(
                [
                    Problem(
                        issue.what,
                        file=f"{self.path} with {given}",
                        key=dotted(issue.path),
                        hint=issue.hint,
                    )
                    for issue in issues
                ]
            )
        return profile


def load_profile(
    reference: str,
    overrides: Sequence[str] = (),
    *,
    size: str | None = None,
    variant: str | None = None,
    versions: Sequence[VersionSetting] = (),
) -> LoadedProfile:
    """Load a built-in profile by name or a YAML file by path: in one of its sizes, over that in one of its variants, then with overrides.

    ``versions`` of settings go over what the file says, and under all else.

    Raises UsageError for an unknown name, size or variant and ProfileError with all problems, by line, for everything else.
    """
    path = find_profile(reference)
    file = str(path)
    document = parse_text(read_text(path), file)
    if document.data is None:
        raise ProfileError([Problem("is empty", file=file)])
    if not isinstance(document.data, dict):
        what = f"is {'a list' if isinstance(document.data, list) else 'a single value'}, not a mapping (key: value)"
        raise ProfileError([Problem(what, file=file, line=document.line(()))])
    named = version_overrides(document.data, versions)
    if size is not None:
        _refuse_unknown(document.data, "size", size, reference)
        named += size_overrides(document.data, size)
    if variant is not None:
        _refuse_unknown(document.data, "variant", variant, reference)
        named += variant_overrides(document.data, variant)
    return _Loading(path, document, apply_overrides(document.data, overrides, named)).load()


def variant_names(reference: str) -> list[str]:
    """Return the names of a profile's variants; none where what it has is malformed, which ``load_profile`` will tell.

    Raises UsageError for an unknown name and ProfileError for a file that cannot be read.
    """
    path = find_profile(reference)
    data = parse_text(read_text(path), str(path)).data
    variants = data.get("variants") if isinstance(data, dict) else None
    return [str(name) for name in variants] if isinstance(variants, dict) else []


def _refuse_unknown(data: dict[str, Any], noun: str, name: str, reference: str) -> None:
    there = data.get(f"{noun}s")
    if not there:
        msg = f"profile {reference} has no {noun}s, so none called {name!r}"
        raise UsageError(msg, hint=f"Change values by --set KEY=VALUE, or give it {noun}s: see the profile reference.")
    if isinstance(there, dict) and name not in there:
        known = [str(key) for key in there]
        near = nearest(name, known)
        msg = f"profile {reference} has no {noun} {name!r}"
        raise UsageError(msg, hint=f"{f'did you mean {near}? ' if near else ''}{noun}s: {', '.join(known)}")


def resolve(profile: Profile) -> dict[str, Any]:
    """Return a profile as plain values from which it can be read again."""
    return profile.model_dump(mode="json", by_alias=True, exclude_none=True)


class _Loading:
    """The values of one profile on their way, and whom to blame for each."""

    def __init__(self, path: FilePath, document: Document, overridden: Overridden) -> None:
        self.path = path
        self.document = document
        self.overridden = overridden
        self.parameters = _parameters_of(overridden.data)
        self.filled: Substitution = substitute(overridden.data, self.parameters)

    def load(self) -> LoadedProfile:
        profile, found = validate(self.filled.data)
        substitution_issues = [*check_names(self.parameters), *self.filled.issues]
        blamed = {issue.path for issue in substitution_issues}
        issues = [*substitution_issues, *(issue for issue in found if issue.path not in blamed)]
        problems = [*self.document.problems, *self.overridden.problems, *map(self._problem, issues)]
        problems += self._idle_overrides()
        if profile is not None and not problems:
            problems = [self._problem(issue) for issue in check_profile(profile, self.path.absolute().parent)]
        if profile is not None and profile.search is not None and not problems:
            problems = [self._problem(issue) for issue in self._search_issues(profile, profile.search)]
        if profile is None or problems:
            raise ProfileError(sorted(problems, key=lambda problem: (problem.line or 0, problem.key or "")))
        resolved = resolve(profile)
        provenance = {dotted(path): self._origin(path) for path, _ in leaves(resolved)}
        return LoadedProfile(
            profile,
            self.path,
            resolved,
            provenance,
            copy.deepcopy(self.parameters),
            self._unused_parameters(),
            self.overridden.data,
            self._searched_texts(profile),
        )

    def _searched_texts(self, profile: Profile) -> dict[Path, str]:
        if profile.search is None:
            return {}
        search = profile.search
        changing = {search.parameter} | ({search.beyond.parameter} if search.beyond is not None else set())
        places = [path for path, names in self.filled.used.items() if changing.intersection(names)]
        texts = {path: value_at(self.overridden.data, path) for path in places}
        # An objective written as a text is resolved to a mapping.
        return {
            (*path, "check") if path[0] == "objectives" and len(path) == 2 else path: text
            for path, text in texts.items()
        }

    def _search_issues(self, profile: Profile, search: SearchSpec) -> list[Issue]:
        """Find why the lightest and the heaviest load, and the heaviest beyond that, cannot be loads of one run."""
        ends: list[tuple[Path, SearchSpec | BeyondSpec]] = [(("search", "to"), search)]
        if search.beyond is not None:
            ends.append((("search", "beyond", "to"), search.beyond))
        near, parameters = profile, self.parameters
        for path, spec in ends:
            heaviest = parse_load(spec.to)
            parameters = {**parameters, spec.parameter: heaviest.value(heaviest.number)}
            far, issues = _validated_at(self.overridden.data, parameters)
            if far is None:
                said = "; ".join(f"{dotted(issue.path)}: {issue.what}" for issue in issues)
                return [Issue(path, f"no profile with {spec.parameter} = {spec.to}: {said}")]
            found = check_steps(near, far, spec.parameter, (*path[:-1], "parameter"))
            if found:
                return found
            near = far
        return []

    def _used_parameters(self) -> set[str]:
        # Those of the file as it stands: an override may replace the only text that uses one.
        return self.filled.names | substitute(self.document.data, self.parameters).names

    def _idle_overrides(self) -> list[Problem]:
        used = self._used_parameters()
        return [
            Problem("nothing in the profile uses this parameter", file=str(override), key=name)
            for name, override in self.overridden.parameters.items()
            if name not in used
        ]

    def _unused_parameters(self) -> list[Problem]:
        used = self._used_parameters()
        return [
            Problem(
                "nothing uses this parameter",
                file=str(self.path),
                line=self.document.line(("parameters", name)),
                key=f"parameters.{name}",
            )
            for name in self.parameters
            if name not in used
        ]

    def _problem(self, issue: Issue) -> Problem:
        key = dotted(issue.path) or None
        line = self.document.line(issue.path)
        override = self._override_at(issue.path) or self._override_below(issue.path)
        if override is not None:
            return Problem(issue.what, file=str(override), key=key, hint=issue.hint)
        parameter = self._parameter_at(issue.path)
        if parameter is not None:
            used_at = f"used in {self.path}:{line}"
            hint = f"{issue.hint}; {used_at}" if issue.hint else used_at
            return Problem(issue.what, file=str(parameter), key=key, hint=hint)
        return Problem(issue.what, file=str(self.path), line=line, key=key, hint=issue.hint)

    def _override_at(self, path: Path) -> Override | None:
        """Return the override that gave the value at a path, or a value around it."""
        if path[:1] == ("parameters",) and len(path) == 2 and path[1] in self.overridden.parameters:
            return self.overridden.parameters[str(path[1])]
        for length in range(len(path), 0, -1):
            if path[:length] in self.overridden.paths:
                return self.overridden.paths[path[:length]]
        return None

    def _override_below(self, path: Path) -> Override | None:
        """Return an override of something within a place that is wrong as a whole (``for`` beside ``until``)."""
        below = [override for at, override in self.overridden.paths.items() if path and at[: len(path)] == path]
        return below[-1] if below else None

    def _parameters_at(self, path: Path) -> tuple[str, ...]:
        # An objective written as a text is resolved to a mapping: its text was one part up.
        return self.filled.used.get(path) or self.filled.used.get(path[:-1], ())

    def _parameter_at(self, path: Path) -> Override | None:
        names = self._parameters_at(path)
        return next((self.overridden.parameters[name] for name in names if name in self.overridden.parameters), None)

    def _origin(self, path: Path) -> Origin:
        override = self._override_at(path)
        if override is not None:
            return Origin(override=str(override))
        if path not in self.document.lines and not (path[-1] == "check" and path[:-1] in self.document.lines):
            return Origin()
        parameter = self._parameter_at(path)
        return Origin(
            file=self.path.name,
            line=self.document.line(path),
            override=str(parameter) if parameter else None,
            parameters=self._parameters_at(path),
        )


def _validated_at(data: Any, parameters: dict[str, Scalar]) -> tuple[Profile | None, list[Issue]]:
    filled = substitute(data, parameters)
    return validate({**filled.data, "parameters": parameters})


def _parameters_of(data: Any) -> dict[str, Scalar]:
    given = data.get("parameters") if isinstance(data, dict) else None
    if not isinstance(given, dict):
        return {}
    return {name: value for name, value in given.items() if isinstance(value, str | int | float | bool)}
