"""What a project says of itself: ``[tool.scaletest]`` of its ``pyproject.toml``, and where its baselines are.

The project is the nearest directory, from the current one upwards, with a ``.scaletest`` or a ``pyproject.toml``; else the current one.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from scaletest.core.errors import UsageError

__all__ = ["BASELINES_DIR", "Project", "read_project"]

PROJECT_FILE: Final = "pyproject.toml"
BASELINES_DIR: Final = Path(".scaletest") / "baselines"

_KNOWN: Final = ("fail",)


@dataclass(frozen=True, slots=True)
class Project:
    """A project."""

    directory: Path
    fail: tuple[str, ...] = ()
    """Rules of the regression gate."""

    @property
    def baselines(self) -> Path:
        """Directory of its baselines; may not be there yet."""
        return self.directory / BASELINES_DIR

    @property
    def file(self) -> Path:
        """Its ``pyproject.toml``; may not be there."""
        return self.directory / PROJECT_FILE


def read_project(start: Path) -> Project:
    """Find and read the project of a directory. Raises UsageError for a ``[tool.scaletest]`` that cannot be read."""
    start = start.absolute()
    directory = next(
        (path for path in (start, *start.parents) if (path / ".scaletest").is_dir() or (path / PROJECT_FILE).is_file()),
        start,
    )
    settings = _settings(directory / PROJECT_FILE)
    unknown = next((key for key in settings if key not in _KNOWN), None)
    if unknown is not None:
        msg = f"{directory / PROJECT_FILE}: tool.scaletest.{unknown}: no such key; there are: {', '.join(_KNOWN)}"
        raise UsageError(msg)
    fail = settings.get("fail", [])
    if not isinstance(fail, list) or not all(isinstance(rule, str) for rule in fail):
        msg = f"{directory / PROJECT_FILE}: tool.scaletest.fail: not a list of texts"
        raise UsageError(msg, hint='Write: fail = ["p99:10%"]')
    return Project(directory, tuple(fail))


def _settings(path: Path) -> dict[str, Any]:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        msg = f"{path}: cannot be read: {error}"
        raise UsageError(msg) from None
    tool = data.get("tool")
    settings = tool.get("scaletest", {}) if isinstance(tool, dict) else {}
    if not isinstance(settings, dict):
        msg = f"{path}: tool.scaletest: no table"
        raise UsageError(msg)
    return settings
