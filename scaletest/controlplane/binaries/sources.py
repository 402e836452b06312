"""Where a binary may come from: the interface, and the three sources that are at hand without work.

Each source answers ``Found`` or ``Miss`` with the reason; ``plan`` answers the same question, or
``Planned``, without fetching or building anything.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from scaletest.controlplane.binaries.cache import BinaryCache
from scaletest.controlplane.binaries.progress import Progress
from scaletest.controlplane.binaries.versions import COMPONENTS, Family, Wanted, component_named
from scaletest.core.errors import BinaryUnavailable, UsageError

__all__ = [
    "BinarySource",
    "CacheSource",
    "ExplicitSource",
    "Found",
    "Miss",
    "PathSource",
    "Planned",
    "SourceName",
    "parse_binary_flags",
    "reported_version",
]

SourceName = Literal["given", "PATH", "cache", "download", "build"]

_VERSION_TIMEOUT_S = 20.0
"""For ``PROGRAM --version``: takes 0.1-0.3 s; on a machine in full use, seconds."""


@dataclass(frozen=True, slots=True)
class Found:
    """A binary that is on this machine now."""

    path: Path
    origin: str
    """Where it comes from, in words."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A binary that this source would get."""

    how: str
    """``would be downloaded from https://...``."""


@dataclass(frozen=True, slots=True)
class Miss:
    """This source has no such binary."""

    reason: str


class BinarySource(Protocol):
    """One place that a binary may come from."""

    @property
    def name(self) -> SourceName:
        """Name of the source, as users see it."""

    def plan(self, want: Wanted) -> Found | Planned | Miss:
        """Say what ``locate`` would do; fetches and builds nothing."""

    def locate(self, want: Wanted, progress: Progress) -> Found | Miss:
        """Find or get the binary. Raises ScaletestError only where going on to the next source would be wrong."""


class ExplicitSource:
    """A path that the user gave: by flag, or by ``SCALETEST_BINARY_...`` in the environment; the flag wins.

    A path that does not hold the program in the version asked for is an error, not a miss: the user meant this file.
    """

    name: SourceName = "given"

    def __init__(self, given: Mapping[str, Path], environ: Mapping[str, str]) -> None:
        self._given = {component_named(name).name: Path(path) for name, path in given.items()}
        self._environ = environ

    def plan(self, want: Wanted) -> Found | Miss:
        """Same as ``locate``: nothing is fetched."""
        component = want.component
        if component.name in self._given:
            return self._check(want, self._given[component.name], f"--binary {component.name}=PATH")
        if text := self._environ.get(component.environment_key):
            return self._check(want, Path(text), component.environment_key)
        return Miss(f"neither --binary {component.name}=PATH nor {component.environment_key} is given")

    def locate(self, want: Wanted, progress: Progress) -> Found | Miss:  # noqa: ARG002
        """Check the given path. Raises BinaryUnavailable when it is not what was asked for."""
        return self.plan(want)

    def _check(self, want: Wanted, path: Path, given_by: str) -> Found:
        path = path.expanduser().absolute()
        hint = f"it was given by {given_by}: correct the path, or leave it out and let scaletest find the program"
        if not path.is_file():
            msg = f"{want}: {path} {'is not a file' if path.exists() else 'does not exist'}"
            raise BinaryUnavailable(msg, hint=hint)
        version = reported_version(path, want.family)
        if isinstance(version, Miss):
            msg = f"{want}: {path} {version.reason}"
            raise BinaryUnavailable(msg, hint=hint)
        if version != want.version:
            msg = f"{path} is {want.component.name} {version}, asked for is {want.version}"
            raise BinaryUnavailable(msg, hint=hint)
        return Found(path, f"given by {given_by}")


class PathSource:
    """Programs on ``PATH`` whose ``--version`` is the one asked for."""

    name: SourceName = "PATH"

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._versions: dict[Path, str | Miss] = {}

    def plan(self, want: Wanted) -> Found | Miss:
        """Same as ``locate``: nothing is fetched."""
        reasons = []
        for path in self._candidates(want.component.program):
            if path not in self._versions:
                self._versions[path] = reported_version(path, want.family)
            version = self._versions[path]
            if version == want.version:
                return Found(path, "on PATH")
            reasons.append(f"{path} {version.reason if isinstance(version, Miss) else f'is version {version}'}")
        return Miss("; ".join(reasons) or f"no {want.component.program} on PATH")

    def locate(self, want: Wanted, progress: Progress) -> Found | Miss:  # noqa: ARG002
        """Look through all directories of ``PATH``, not only at the first hit."""
        return self.plan(want)

    def _candidates(self, program: str) -> Iterable[Path]:
        for directory in self._environ.get("PATH", "").split(os.pathsep):
            path = Path(directory or ".").absolute() / program
            if path.is_file() and os.access(path, os.X_OK):
                yield path


class CacheSource:
    """What an earlier download or build left in the cache."""

    name: SourceName = "cache"

    def __init__(self, cache: BinaryCache) -> None:
        self._cache = cache

    def plan(self, want: Wanted) -> Found | Miss:
        """Same as ``locate``: nothing is fetched."""
        cached = self._cache.lookup(want)
        return Miss(cached) if isinstance(cached, str) else Found(cached.path, f"cache: {cached.record.origin}")

    def locate(self, want: Wanted, progress: Progress) -> Found | Miss:  # noqa: ARG002
        """Look the program up."""
        return self.plan(want)


def reported_version(path: Path, family: Family) -> str | Miss:
    """Run ``PATH --version`` and read the version; a Miss says what is wrong with the program."""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=_VERSION_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Miss(f"did not answer --version within {_VERSION_TIMEOUT_S:.0f} s")
    except OSError as error:
        return Miss(f"cannot be run: {error.strerror}")
    output = done.stdout.decode(errors="replace")
    version = family.version_in(output)
    if version is None:
        first_line = (output.strip() or done.stderr.decode(errors="replace").strip() or "nothing").splitlines()[0]
        return Miss(f"answers --version with {first_line[:100]!r}, which is no version of {family.title}")
    return version


def parse_binary_flags(flags: Iterable[str]) -> dict[str, Path]:
    """Parse ``component=PATH`` flags. Raises UsageError for another form or an unknown component."""
    given: dict[str, Path] = {}
    for flag in flags:
        name, separator, path = flag.partition("=")
        if not separator or not path or name not in COMPONENTS:
            msg = f"--binary {flag!r}: write COMPONENT=PATH with a component of {', '.join(COMPONENTS)}"
            raise UsageError(msg)
        if name in given:
            msg = f"--binary {name}=... is given twice"
            raise UsageError(msg)
        given[name] = Path(path)
    return given
