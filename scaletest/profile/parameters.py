"""Parameters of a profile: ``{nodes}`` in a text stands for the value of the parameter ``nodes``.

A text that is nothing but ``{nodes}`` takes the parameter's value with its type; within a longer text the value is
written out. A literal brace is doubled: ``{{``, ``}}``. ``{node}`` is a word of the run time: each agent
fills it in, and it has a meaning only in the steps of a flow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from scaletest.core.units import write_number
from scaletest.profile.forms import RUN_TIME_WORDS
from scaletest.profile.places import Issue, Path, nearest
from scaletest.profile.structure import shape_at

__all__ = ["AS_WRITTEN", "Scalar", "Substitution", "check_names", "escape", "kind_of", "substitute"]

Scalar = str | int | float | bool

AS_WRITTEN: Final = frozenset({"parameters", "sizes", "variants"})
"""Blocks of a profile whose texts stand as they are written: what they hold is put elsewhere, and parameters into that."""

_TOKEN: Final = re.compile(r"\{\{|\}\}|\{([A-Za-z][A-Za-z0-9_-]*)\}|[{}]")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,40}", re.ASCII)


@dataclass(slots=True)
class Substitution:
    """Values with parameters put in; which parameters each path used; what went wrong."""

    data: Any = None
    used: dict[Path, tuple[str, ...]] = field(default_factory=dict)
    issues: list[Issue] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        """Names of all parameters that were used."""
        return {name for names in self.used.values() for name in names}


def kind_of(value: object) -> str:
    """Return what a parameter's value is, for people."""
    match value:
        case bool():
            return "true or false"
        case int():
            return "a whole number"
        case float():
            return "a number"
    return "text"


def check_names(parameters: Mapping[str, Any]) -> list[Issue]:
    """Find parameters that ``--set`` or ``{NAME}`` could not mean."""
    top = shape_at(())
    assert top is not None
    issues = []
    for name, value in parameters.items():
        path: Path = ("parameters", name)
        if not _NAME.fullmatch(name):
            issues.append(Issue(path, f"{name!r} is not a parameter's name", "letters, digits, - and _"))
        elif name in RUN_TIME_WORDS:
            issues.append(Issue(path, f"{{{name}}} is filled in by each agent: choose another name"))
        elif name in top.keys:
            issues.append(Issue(path, f"{name!r} is a key of the profile: choose another name"))
        if isinstance(value, str) and any(match[1] not in RUN_TIME_WORDS for match in _TOKEN.finditer(value)):
            issues.append(Issue(path, "the value of a parameter cannot hold another parameter or a brace"))
    return issues


def substitute(data: Any, parameters: Mapping[str, Scalar]) -> Substitution:
    """Put parameters into every text of a profile, the blocks ``AS_WRITTEN`` aside."""
    result = Substitution()
    if isinstance(data, dict):
        result.data = {
            key: value if key in AS_WRITTEN else _walk(value, (key,), parameters, result) for key, value in data.items()
        }
    else:
        result.data = data
    return result


def _walk(value: Any, path: Path, parameters: Mapping[str, Scalar], result: Substitution) -> Any:
    if isinstance(value, dict):
        return {key: _walk(item, (*path, key), parameters, result) for key, item in value.items()}
    if isinstance(value, list):
        return [_walk(item, (*path, index), parameters, result) for index, item in enumerate(value)]
    return _fill(value, path, parameters, result) if isinstance(value, str) else value


def _fill(text: str, path: Path, parameters: Mapping[str, Scalar], result: Substitution) -> Any:
    used: list[str] = []

    def fill(match: re.Match[str]) -> str:
        token, name = match[0], match[1]
        if token in {"{{", "}}"}:
            return token[0]
        issue = _issue(path, token, name, parameters)
        if issue is not None:
            result.issues.append(issue)
            return token
        if name in RUN_TIME_WORDS:
            return token
        used.append(name)
        return _written(parameters[name])

    filled = _TOKEN.sub(fill, text)
    if used:
        result.used[path] = tuple(dict.fromkeys(used))
    whole = len(used) == 1 and text == f"{{{used[0]}}}"
    return parameters[used[0]] if whole else filled


def _issue(path: Path, token: str, name: str | None, parameters: Mapping[str, Scalar]) -> Issue | None:
    if name is None:
        return Issue(path, f"a single {token!r}", f"write {token * 2} for a literal brace, {{NAME}} for a parameter")
    if name in RUN_TIME_WORDS:
        if _is_step(path):
            return None
        return Issue(path, f"{{{name}}} has a meaning only in the steps of a flow")
    if name in parameters:
        return None
    near = nearest(name, [*parameters, *(RUN_TIME_WORDS if _is_step(path) else ())])
    known = ", ".join(parameters) or "none"
    return Issue(path, f"unknown parameter {{{name}}}", f"did you mean {{{near}}}?" if near else f"known: {known}")


def _is_step(path: Path) -> bool:
    return len(path) > 3 and path[0] == "flows" and path[2] == "steps"


def _written(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return write_number(value) if isinstance(value, float) else str(value)


def escape(text: str, path: Path) -> str:
    """Double the braces of a text so that ``substitute`` gives the text back."""
    escaped = text.replace("{", "{{").replace("}", "}}")
    if _is_step(path):
        for word in RUN_TIME_WORDS:
            escaped = escaped.replace(f"{{{{{word}}}}}", f"{{{word}}}")
    return escaped
