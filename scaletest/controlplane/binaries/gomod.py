"""Text of Go modules: what a scratch module that builds someone else's ``main`` packages must say.

Kubernetes' own go.mod requires its libraries as ``k8s.io/api v0.0.0`` and replaces them by directories of its
source tree. Replacements do not hold for whoever imports the module, so the scratch module replaces
each of them by the library's published version, which for Kubernetes A.B.C is v0.B.C. Only the exact version
``v0.0.0`` is meant: ``k8s.io/utils v0.0.0-2025...`` is a real version of a library that is released by itself.
"""

from __future__ import annotations

import re

__all__ = [
    "executable_name",
    "go_directive",
    "placeholder_requirements",
    "scratch_go_mod",
    "staging_version",
    "too_old",
]

_PLACEHOLDER = re.compile(r"^\s*(?:require\s+)?(\S+)\s+v0\.0\.0(?:\s*//.*)?$", re.MULTILINE)
_GO_DIRECTIVE = re.compile(r"^go\s+(\S+)", re.MULTILINE)
_MAJOR_SUFFIX = re.compile(r"v\d+")


def placeholder_requirements(go_mod: str) -> list[str]:
    """Paths of the modules that a go.mod requires at exactly ``v0.0.0``."""
    return sorted(set(_PLACEHOLDER.findall(go_mod)))


def staging_version(version: str) -> str:
    """Version of Kubernetes' libraries that belongs to Kubernetes ``version``: ``1.37.2`` gives ``v0.37.2``."""
    _, rest = version.split(".", 1)
    return f"v0.{rest}"


def go_directive(go_mod: str) -> str | None:
    """Return the Go version that a go.mod asks for."""
    match = _GO_DIRECTIVE.search(go_mod)
    return match[1] if match else None


def scratch_go_mod(go_mod: str, version: str) -> str:
    """Write the go.mod of a scratch module that builds the module ``go_mod`` in ``version``."""
    lines = ["module scaletest.invalid/build", ""]
    if directive := go_directive(go_mod):
        lines += [f"go {directive}", ""]
    staging = staging_version(version)
    lines += [f"replace {path} => {path} {staging}" for path in placeholder_requirements(go_mod)]
    return "\n".join(lines) + "\n"


def executable_name(package: str) -> str:
    """Name that ``go build`` gives a main package's program: the last path element that is no major version."""
    elements = package.split("/")
    return elements[-2] if len(elements) > 1 and _MAJOR_SUFFIX.fullmatch(elements[-1]) else elements[-1]


def too_old(go_version: str, needed: str) -> bool:
    """Whether the toolchain ``go1.25.3`` is older than the directive ``1.26.0`` asks for."""
    return _numbers(go_version.removeprefix("go")) < _numbers(needed)


def _numbers(version: str) -> tuple[int, ...]:
    numbers = [int(number) for number in re.findall(r"\d+", version)[:3]]
    return tuple(numbers + [0] * (3 - len(numbers)))
