"""Where scaletest keeps things outside a run directory."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

__all__ = ["cache_dir", "clusters_dir", "data_file_dir", "state_dir"]


def cache_dir() -> Path:
    """Directory of binaries, downloads and builds: ``SCALETEST_CACHE_DIR`` or the user's cache directory."""
    override = os.environ.get("SCALETEST_CACHE_DIR")
    return Path(override).absolute() if override else Path(platformdirs.user_cache_dir("scaletest"))


def state_dir() -> Path:
    """Directory of clusters that exist now: ``SCALETEST_STATE_DIR`` or the user's state directory."""
    override = os.environ.get("SCALETEST_STATE_DIR")
    return Path(override).absolute() if override else Path(platformdirs.user_state_dir("scaletest"))


def clusters_dir() -> Path:
    """Directory with one directory per cluster."""
    return state_dir() / "clusters"


def data_file_dir(name: str) -> Path:
    """Directory ``profiles`` or ``kwok``: in the package when installed from a wheel, else in the checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_data" / name
    return installed if installed.is_dir() else package.parent / name
