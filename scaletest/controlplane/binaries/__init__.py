"""The programs of a control plane, in any version, from five sources.

In order: a path that the user gives, ``PATH``, the cache, an official release, a build from the Go module.
"""

from scaletest.controlplane.binaries.cache import CachedBinary, Damage
from scaletest.controlplane.binaries.locate import (
    Binaries,
    Plan,
    build_all,
    cached,
    locate,
    locate_all,
    plan_all,
    verify,
)
from scaletest.controlplane.binaries.progress import Progress, SilentProgress, TerminalProgress
from scaletest.controlplane.binaries.sources import parse_binary_flags
from scaletest.controlplane.binaries.versions import COMPONENTS, KWOK_VERSION, known_versions

__all__ = [
    "COMPONENTS",
    "KWOK_VERSION",
    "Binaries",
    "CachedBinary",
    "Damage",
    "Plan",
    "Progress",
    "SilentProgress",
    "TerminalProgress",
    "build_all",
    "cached",
    "known_versions",
    "locate",
    "locate_all",
    "parse_binary_flags",
    "plan_all",
    "verify",
]
