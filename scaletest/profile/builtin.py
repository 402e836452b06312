"""Profiles by name (built in) and by path (a YAML file)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from scaletest.core.errors import ProfileError, UsageError
from scaletest.core.paths import data_file_dir
from scaletest.profile.places import nearest
from scaletest.profile.yamlfile import parse_text, read_text

__all__ = ["BuiltIn", "built_in_profiles", "find_profile"]

_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A built-in profile: its name is that of its file."""

    name: str
    path: Path
    summary: str


def built_in_profiles(directory: Path | None = None) -> list[BuiltIn]:
    """List the built-in profiles by name; their schema is not checked."""
    return [BuiltIn(path.stem, path, _summary(path)) for path in _files(directory)]


def _files(directory: Path | None) -> list[Path]:
    return sorted((directory or data_file_dir("profiles")).glob("*.yaml"))


def _summary(path: Path) -> str:
    try:
        data = parse_text(read_text(path), str(path)).data
    except ProfileError as error:
        return f"cannot be read: {error}"
    summary = data.get("summary") if isinstance(data, dict) else None
    return " ".join(str(summary or "").split())


def find_profile(reference: str, directory: Path | None = None) -> Path:
    """Return the file of a profile given by name or path. Raises UsageError with the nearest name."""
    if "/" in reference or reference.endswith(_SUFFIXES):
        return Path(reference)
    names = {path.stem: path for path in _files(directory)}
    if reference in names:
        return names[reference]
    near = nearest(reference, names)
    # Unlike Path.is_file, this says no of a name that is too long for a file.
    lying = next((suffix for suffix in _SUFFIXES if os.path.isfile(reference + suffix)), None)  # noqa: PTH113
    if lying:
        hint = f"the file here is ./{reference}{lying}"
    else:
        hint = (
            f"{f'did you mean {near}? ' if near else ''}built in: {', '.join(names)}; a path holds a / or ends in .yaml"
        )
    msg = f"there is no built-in profile {reference!r}"
    raise UsageError(msg, hint=hint)
