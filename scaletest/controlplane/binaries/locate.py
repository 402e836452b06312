"""Finding all programs of a control plane: the sources in order, and what to say when none has it."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scaletest.controlplane.binaries.cache import BinaryCache, CachedBinary, Damage
from scaletest.controlplane.binaries.download import ReleaseSource
from scaletest.controlplane.binaries.gobuild import GoModuleSource
from scaletest.controlplane.binaries.progress import Progress
from scaletest.controlplane.binaries.sources import (
    BinarySource,
    CacheSource,
    ExplicitSource,
    Found,
    Miss,
    PathSource,
    Planned,
    SourceName,
)
from scaletest.controlplane.binaries.versions import (
    COMPONENTS,
    ETCD,
    FAMILIES,
    KUBERNETES,
    KWOK_VERSION,
    Wanted,
    wanted,
)
from scaletest.controlplane.binaries.web import Web
from scaletest.core.errors import BinaryUnavailable, ScaletestError

__all__ = ["Binaries", "Plan", "build_all", "cached", "default_sources", "locate", "locate_all", "plan_all", "verify"]


@dataclass(frozen=True, slots=True)
class Binaries:
    """All programs of one control plane, by component."""

    paths: dict[str, Path]
    versions: dict[str, str]
    """Full versions, without ``v``."""
    origin: dict[str, str]
    """Where each came from, in words, for the run's record."""

    @property
    def kubernetes(self) -> str:
        """Full version of Kubernetes."""
        return self.versions["kube-apiserver"]

    @property
    def etcd(self) -> str:
        """Full version of etcd."""
        return self.versions["etcd"]

    @property
    def kwok(self) -> str:
        """Full version of kwok and kwokctl."""
        return self.versions["kwokctl"]


@dataclass(frozen=True, slots=True)
class Plan:
    """Where one component would come from."""

    component: str
    version: str
    source: SourceName | None
    """None when no source has it."""
    path: Path | None
    """None when it is not on this machine yet."""
    how: str
    """Where it lies and came from, what would be done, or the explanation why there is none."""
    misses: dict[SourceName, str]
    """Reasons of the sources that were asked before, in order."""

    @property
    def ready(self) -> bool:
        """Whether it is on this machine now."""
        return self.path is not None


@functools.cache
def _web() -> Web:
    """One per process: it remembers the hosts that do not answer."""
    return Web()


def default_sources(
    explicit: Mapping[str, Path] | None = None, environ: Mapping[str, str] | None = None
) -> list[BinarySource]:
    """List the five sources in their order. Raises UsageError for an explicit path of an unknown component."""
    environ = os.environ if environ is None else environ
    cache = BinaryCache()
    return [
        ExplicitSource(explicit or {}, environ),
        PathSource(environ),
        CacheSource(cache),
        ReleaseSource(cache, environ, _web()),
        GoModuleSource(cache, environ),
    ]


def locate_all(
    kubernetes: str,
    etcd: str,
    *,
    explicit: Mapping[str, Path] | None = None,
    sources: Sequence[BinarySource] | None = None,
    progress: Progress,
) -> Binaries:
    """Find or get every program of a control plane; may download and build for minutes.

    ``kubernetes`` and ``etcd`` are versions as users write them. ``explicit`` holds paths by component, which win
    over ``SCALETEST_BINARY_...`` of the environment. Raises UsageError for an unknown version, BinaryUnavailable
    when no source has a program, ResourceShortage when the disk is full.
    """
    sources = default_sources(explicit) if sources is None else sources
    wants = _wants(kubernetes, etcd)
    found = {want.component.name: locate_wanted(want, sources, progress) for want in wants}
    return Binaries(
        paths={name: item.path for name, item in found.items()},
        versions={want.component.name: want.version for want in wants},
        origin={name: item.origin for name, item in found.items()},
    )


def plan_all(
    kubernetes: str,
    etcd: str,
    *,
    explicit: Mapping[str, Path] | None = None,
    sources: Sequence[BinarySource] | None = None,
) -> list[Plan]:
    """Say where each program would come from; fetches and builds nothing.

    A program that no source has is a Plan without source. Raises UsageError for an unknown version.
    """
    sources = default_sources(explicit) if sources is None else sources
    return [_plan(want, sources) for want in _wants(kubernetes, etcd)]


def locate(
    component: str,
    version: str,
    *,
    explicit: Mapping[str, Path] | None = None,
    sources: Sequence[BinarySource] | None = None,
    progress: Progress,
) -> Found:
    """Find or get one program. Raises as ``locate_all`` does."""
    sources = default_sources(explicit) if sources is None else sources
    return locate_wanted(wanted(component, version), sources, progress)


def cached() -> list[CachedBinary]:
    """Return everything in the user's cache."""
    return BinaryCache().entries()


def verify() -> tuple[list[CachedBinary], list[Damage]]:
    """Hash everything in the user's cache again; return the sound and the damaged programs."""
    return BinaryCache().verify()


def build_all(kubernetes: str, etcd: str, *, progress: Progress, source: GoModuleSource | None = None) -> Binaries:
    """Build every program from its Go module into the cache, also those that are cached already."""
    source = GoModuleSource(BinaryCache(), os.environ) if source is None else source
    wants = _wants(kubernetes, etcd)
    found: dict[str, Found] = {}
    for family in FAMILIES:
        of_family = [want for want in wants if want.family is family]
        result = source.rebuild(of_family[0], progress)
        if isinstance(result, Miss):
            raise _unavailable(of_family[0], {source.name: result.reason})
        found |= {want.component.name: locate_wanted(want, [source], progress) for want in of_family}
    return Binaries(
        paths={name: item.path for name, item in found.items()},
        versions={want.component.name: want.version for want in wants},
        origin={name: item.origin for name, item in found.items()},
    )


def _wants(kubernetes: str, etcd: str) -> list[Wanted]:
    given = {KUBERNETES.name: kubernetes, ETCD.name: etcd}
    return [wanted(name, given.get(family.name, KWOK_VERSION)) for name, family in COMPONENTS.items()]


def locate_wanted(want: Wanted, sources: Sequence[BinarySource], progress: Progress) -> Found:
    """Ask the sources in order. Raises BinaryUnavailable with the reason of each."""
    misses: dict[SourceName, str] = {}
    for source in sources:
        result = source.locate(want, progress)
        if isinstance(result, Found):
            return result
        misses[source.name] = result.reason
        if source.name == "download":
            progress.note(f"{want}: not downloaded: {result.reason}")
    raise _unavailable(want, misses)


def _plan(want: Wanted, sources: Sequence[BinarySource]) -> Plan:
    misses: dict[SourceName, str] = {}
    for source in sources:
        try:
            result = source.plan(want)
        except BinaryUnavailable as error:
            # A given path that is wrong: that ends the search here as it would in ``locate``.
            return Plan(want.component.name, want.version, None, None, _with_hint(error), misses)
        if isinstance(result, Found):
            return Plan(want.component.name, want.version, source.name, result.path, result.origin, misses)
        if isinstance(result, Planned):
            return Plan(want.component.name, want.version, source.name, None, result.how, misses)
        misses[source.name] = result.reason
    return Plan(want.component.name, want.version, None, None, _with_hint(_unavailable(want, misses)), misses)


def _with_hint(error: ScaletestError) -> str:
    return f"{error.message}\n{error.hint}" if error.hint else error.message


def _unavailable(want: Wanted, misses: Mapping[SourceName, str]) -> BinaryUnavailable:
    lines = [f"no source has {want} for {want.goos}/{want.goarch}:"]
    lines += [f"  {name + ':':<10} {reason}" for name, reason in misses.items()]
    hint = (
        f"give a path with --binary {want.component.name}=PATH, name a mirror in "
        f"SCALETEST_MIRROR_{want.family.name.upper()}, or install a current Go"
    )
    return BinaryUnavailable("\n".join(lines), hint=hint)
