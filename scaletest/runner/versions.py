"""Whether a profile's versions are such that binaries can be looked for, said with the key and the line of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scaletest.controlplane.binaries.versions import ETCD, KUBERNETES, Family, resolve
from scaletest.core.errors import Problem, ProfileError, UsageError
from scaletest.profile.loading import LoadedProfile

__all__ = ["refuse_unknown_versions", "version_problems"]

_KEYS: Final[dict[str, Family]] = {"kubernetes": KUBERNETES, "etcd": ETCD}


def version_problems(loaded: LoadedProfile) -> list[Problem]:
    """Return a problem for each version that no patch version is known for."""
    return list(_problems(loaded))


def refuse_unknown_versions(loaded: LoadedProfile) -> None:
    """Raise ProfileError for versions that no patch version is known for."""
    problems = version_problems(loaded)
    if problems:
        raise ProfileError(problems)


def _problems(loaded: LoadedProfile) -> Iterator[Problem]:
    for name, family in _KEYS.items():
        key = f"controlPlane.{name}"
        try:
            resolve(family, loaded.resolved["controlPlane"][name])
        except UsageError as error:
            origin = loaded.provenance[key]
            used = f"used in {loaded.path}:{origin.line}" if origin.override and origin.line else ""
            file, line = (origin.override, None) if origin.override else (str(loaded.path), origin.line)
            hint = "; ".join(part for part in (error.hint, used) if part)
            yield Problem(error.message, file=file, line=line, key=key, hint=hint)
