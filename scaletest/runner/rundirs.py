"""Making a run's directory: ``results/<UTC time>-<profile>/``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from scaletest.core.errors import EnvironmentProblem, RunDirectoryError
from scaletest.core.rundir import LOGS_DIR
from scaletest.core.wholefile import refuse_unwritable

__all__ = ["create_run_dir", "default_run_dir", "refuse_run_dir"]


def default_run_dir(results: Path, profile_name: str, now: datetime) -> Path:
    """Return the directory that a run of ``profile_name`` beginning at ``now`` gets."""
    return results / f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{profile_name}"


def refuse_run_dir(path: Path) -> None:
    """Refuse a directory that ``create_run_dir`` would refuse: before anything is downloaded, started or planned. Raises UsageError."""
    if path.exists():
        raise RunDirectoryError(path, "exists already", hint="Name another with --output; nothing was changed.")
    refuse_unwritable(
        path, f"{path} cannot be made", "Name another directory with --output, or --results for all runs."
    )


def create_run_dir(path: Path) -> Path:
    """Create an empty run directory. An existing one is never written into."""
    try:
        path.mkdir(parents=True)
        (path / LOGS_DIR).mkdir()
    except FileExistsError:
        raise RunDirectoryError(
            path, "exists already", hint="Name another with --output, or remove it; nothing was changed."
        ) from None
    except NotADirectoryError:
        raise RunDirectoryError(path, "one of its parents is a file", hint="Name another with --output.") from None
    except OSError as error:
        msg = f"{path}: cannot be made: {error.strerror}"
        raise EnvironmentProblem(msg, hint="Name another with --output.") from error
    return path
