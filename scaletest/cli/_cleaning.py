"""Before something is started: what dead clusters have left is removed, and that is said in a line for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scaletest.cli._streams import detail, say
from scaletest.controlplane import registry
from scaletest.controlplane.registry import Cleaned

__all__ = ["clean_dead_clusters", "tell_cleaned"]


def clean_dead_clusters() -> None:
    """Remove what dead clusters have left, and say so on stderr."""
    tell_cleaned(registry.clean_dead(), say)


def tell_cleaned(removed: Sequence[Cleaned], said: Callable[[str], None]) -> None:
    """Say which clusters were removed, and with --verbose every single thing that was done for it."""
    for cleaned in removed:
        said(str(cleaned))
        for done in cleaned.done:
            detail(f"  {done.said}")
