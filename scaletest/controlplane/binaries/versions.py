"""Which programs a control plane consists of, and what a version that a user writes means.

A *component* is one program (``kube-apiserver``); a *family* is what is released, versioned and
built together (Kubernetes: three components). A version is written as a minor (``1.37``), which
resolves to the patch pinned here, or in full (``1.37.2``, ``v1.37.2``, ``1.38.0-rc.1``), which is taken
as it stands. Versions are kept without the leading ``v``.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from scaletest.core.errors import UsageError

__all__ = [
    "COMPONENTS",
    "ETCD",
    "FAMILIES",
    "KUBERNETES",
    "KWOK",
    "KWOK_VERSION",
    "Component",
    "Family",
    "Wanted",
    "component_named",
    "host_platform",
    "known_versions",
    "resolve",
    "wanted",
]

KWOK_VERSION = "0.8.0"
"""The version of kwok and kwokctl: the one that this project's configuration and stages are written for."""


@dataclass(frozen=True, slots=True)
class Component:
    """One program, under the name that profiles and reports use."""

    name: str
    program: str
    """Name of the executable file."""
    package: str
    """Go package of its ``main``."""

    @property
    def environment_key(self) -> str:
        """Environment variable that holds an explicit path to it."""
        return "SCALETEST_BINARY_" + self.name.upper().replace("-", "_")


@dataclass(frozen=True, slots=True)
class Family:
    """Programs that are released, versioned and built together."""

    name: str
    title: str
    module: str
    """Go module that holds the ``main`` packages."""
    components: tuple[Component, ...]
    version_output: str
    """Regular expression over what ``--version`` prints; group 1 is the version without ``v``."""
    pins: Mapping[str, str]
    """Patch version by minor: those that were built and run with this project."""

    def version_in(self, output: str) -> str | None:
        """Read the version from what ``--version`` printed; None when it is something else."""
        match = re.search(self.version_output, output, re.MULTILINE)
        return match[1] if match else None


KUBERNETES = Family(
    name="kubernetes",
    title="Kubernetes",
    module="k8s.io/kubernetes",
    components=tuple(
        Component(name, name, f"k8s.io/kubernetes/cmd/{name}")
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    ),
    version_output=r"^Kubernetes v(\S+)$",
    pins=MappingProxyType({"1.31": "1.31.4", "1.32": "1.32.0", "1.33": "1.33.5", "1.36": "1.36.1", "1.37": "1.37.2"}),
)
ETCD = Family(
    name="etcd",
    title="etcd",
    module="go.etcd.io/etcd/server/v3",
    components=(Component("etcd", "etcd", "go.etcd.io/etcd/server/v3"),),
    version_output=r"^etcd Version: (\S+)$",
    pins=MappingProxyType({"3.6": "3.6.16"}),
)
KWOK = Family(
    name="kwok",
    title="KWOK",
    module="sigs.k8s.io/kwok",
    components=(
        Component("kwok-controller", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
        Component("kwokctl", "kwokctl", "sigs.k8s.io/kwok/cmd/kwokctl"),
    ),
    version_output=r"^kwok(?:ctl)? version v?(\S+)",
    pins=MappingProxyType({"0.8": KWOK_VERSION}),
)
FAMILIES: tuple[Family, ...] = (ETCD, KWOK, KUBERNETES)
"""All families, the quick ones first: when one of them cannot be had, that is known before a long build."""
COMPONENTS: Mapping[str, Family] = MappingProxyType(
    {component.name: family for family in FAMILIES for component in family.components}
)
"""Every component's name with its family."""

_MINOR = re.compile(r"v?(\d+\.\d+)")
_FULL = re.compile(r"v?(\d+\.\d+\.\d+(?:-(?:alpha|beta|rc)\.\d+)?)")
_GO_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """One program in one version, for one operating system and processor."""

    component: Component
    family: Family
    version: str
    goos: str
    goarch: str

    def __str__(self) -> str:
        return f"{self.component.name} {self.version}"

    @property
    def platform(self) -> str:
        """``linux-amd64``."""
        return f"{self.goos}-{self.goarch}"

    def sibling(self, component: Component) -> Wanted:
        """Return another program of the same family and version."""
        return Wanted(component, self.family, self.version, self.goos, self.goarch)


def host_platform() -> tuple[str, str]:
    """Operating system and processor of this machine, as Go names them: ``("linux", "amd64")``."""
    machine = platform.machine()
    return platform.system().lower(), _GO_ARCHITECTURES.get(machine, machine)


def known_versions() -> dict[str, dict[str, str]]:
    """Pinned patch versions: ``{"kubernetes": {"1.37": "1.37.2", ...}, "etcd": ..., "kwok": ...}``."""
    return {family.name: dict(family.pins) for family in FAMILIES}


def resolve(family: Family, text: str) -> str:
    """Resolve a version as a user writes it into a full one. Raises UsageError for an unknown minor."""
    stripped = text.strip()
    if match := _FULL.fullmatch(stripped):
        return match[1]
    known = ", ".join(family.pins)
    full = list(family.pins.values())[-1]
    if match := _MINOR.fullmatch(stripped):
        if match[1] in family.pins:
            return family.pins[match[1]]
        msg = f"{family.title} {match[1]}: no patch version is pinned for this minor; known are {known}"
    else:
        msg = f"{text!r} is not a version of {family.title}; known are {known}"
    raise UsageError(msg, hint=f"a full version such as {full} may be given as well")


def component_named(name: str) -> Component:
    """Find a component. Raises UsageError that lists them all."""
    for family in FAMILIES:
        for component in family.components:
            if component.name == name:
                return component
    msg = f"{name!r} is not a component; there are {', '.join(COMPONENTS)}"
    raise UsageError(msg)


def wanted(name: str, version: str) -> Wanted:
    """Describe a component in a version, minor or full, for this machine. Raises UsageError."""
    component = component_named(name)
    family = COMPONENTS[name]
    return Wanted(component, family, resolve(family, version), *host_platform())
