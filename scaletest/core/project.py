"""Which project a directory belongs to, and where that project keeps its baselines.

The project is the nearest directory, from the given one upwards, with a ``.scaletest`` or a ``pyproject.toml``; else that directory itself.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["BASELINES_DIR", "Project", "find_project"]

PROJECT_FILE: Final = "pyproject.toml"
BASELINES_DIR: Final = Path(".scaletest") / "baselines"


@dataclass(frozen=True, slots=True)
class Project:
    """A project."""

    directory: Path

    @property
    def baselines(self) -> Path:
        """Directory of its baselines, unless a setting names another; may not be there yet."""
        return self.directory / BASELINES_DIR

    @property
    def file(self) -> Path:
        """Its ``pyproject.toml``; may not be there."""
        return self.directory / PROJECT_FILE


def find_project(start: Path) -> Project:
    """Return the project of a directory."""
    try:
        start = start.absolute()
    except FileNotFoundError:
        # The current directory was removed under us.
        return Project(start)
    return Project(next((path for path in (start, *start.parents) if _is_project(path)), start))


def _is_project(directory: Path) -> bool:
    # Unlike those of Path, these say no where a directory may not be looked into. A file that is a directory, or a link to nothing, is
    # somebody's mistake: reading it will say so.
    return os.path.isdir(directory / ".scaletest") or os.path.lexists(directory / PROJECT_FILE)  # noqa: PTH112
