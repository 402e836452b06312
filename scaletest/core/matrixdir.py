"""``matrix.json``: what a matrix was asked for, and how far it got.

A *matrix* runs a profile in several *variants*, one for each combination of values (of keys, and of the variants that the profile names);
each variant is run once or several times. A matrix directory holds ``matrix.json`` and one ordinary run directory for each *run* that was begun.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from scaletest.core.errors import RunDirectoryError
from scaletest.core.foreignfiles import check_schema, read_object
from scaletest.core.mistakes import first_mistake
from scaletest.core.rundir import MATRIX_INFO_NAME, VERDICT_NAME, write_json

__all__ = [
    "MATRIX_SCHEMA_VERSION",
    "VARIANT_AXIS",
    "Axis",
    "MatrixInfo",
    "RunEntry",
    "VariantEntry",
    "is_matrix",
    "kept_outcome",
    "read_matrix_info",
    "write_matrix_info",
]

MATRIX_SCHEMA_VERSION: Final = 1
VARIANT_AXIS: Final = "variant"
"""Key of the axis whose values are variants that the profile names."""

RunStatus = Literal["waiting", "running", "finished", "incomplete"]
"""``running`` also stays behind when the machine or scaletest itself was killed: the run directory tells the truth."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Axis(_Part):
    """A key and the values that it takes, as ``--matrix`` gave them; or ``variant``, and names."""

    key: str
    values: list[str]


class VariantEntry(_Part):
    """One combination of values."""

    name: str
    values: dict[str, str]
    """Value by key of its axis."""
    changes: dict[str, Any]
    """What its profile has other than ``MatrixInfo.profile``, by dotted key; None for what it lacks."""


class RunEntry(_Part):
    """One run of a variant."""

    directory: str
    """Name of its run directory within the matrix directory."""
    variant: str
    repeat: int
    """1 for the first run of the variant."""
    status: RunStatus = "waiting"
    outcome: str | None = None
    exit_code: int | None = None
    message: str | None = None
    """Why it is incomplete."""


class MatrixInfo(_Part):
    """The whole of ``matrix.json``; ``runs`` stand in the order in which they are run."""

    schema_version: int = MATRIX_SCHEMA_VERSION
    id: str
    """Name of the matrix directory."""
    reference: str
    """Profile as the command line named it."""
    overrides: list[str]
    axes: list[Axis]
    repeat: int
    argv: list[str]
    started_at: str
    limits: dict[str, dict[str, Any]]
    """Limits that all variants share, by component; what a variant's own profile says is not among them."""
    profile: dict[str, Any]
    """The resolved profile of the first variant, before ``limits`` were written into it."""
    variants: list[VariantEntry]
    runs: list[RunEntry]


def is_matrix(directory: Path) -> bool:
    """Whether a directory is that of a matrix."""
    return (directory / MATRIX_INFO_NAME).is_file()


def write_matrix_info(directory: Path, info: MatrixInfo) -> None:
    """Write ``matrix.json`` whole. Raises OSError."""
    write_json(directory / MATRIX_INFO_NAME, info.model_dump(mode="json"))


def read_matrix_info(directory: Path) -> MatrixInfo:
    """Read ``matrix.json``. Raises RunDirectoryError when there is none, or it is not ours, damaged or newer."""
    path = directory / MATRIX_INFO_NAME
    try:
        data = read_object(
            path, RunDirectoryError, hint="The runs beside it are whole: scaletest report DIRECTORY/RUN."
        )
    except (FileNotFoundError, NotADirectoryError):
        raise RunDirectoryError(directory, f"no matrix directory: it has no {MATRIX_INFO_NAME}") from None
    if "schema_version" not in data:
        raise RunDirectoryError(path, "of another program")
    check_schema(path, data, "matrix", MATRIX_SCHEMA_VERSION, RunDirectoryError)
    try:
        return MatrixInfo.model_validate(data)
    except ValidationError as error:
        raise RunDirectoryError(path, first_mistake(error)) from None


def kept_outcome(run_dir: Path) -> tuple[str, int] | None:
    """Return outcome and exit code of a run that came to its end; None for one that did not, or was never begun.

    What counts is the verdict that the run wrote last of all: ``matrix.json`` may have missed it.
    """
    try:
        verdict = read_object(run_dir / VERDICT_NAME, RunDirectoryError)
        outcome, exit_code = str(verdict["outcome"]), int(verdict["exit_code"])
    except (OSError, RunDirectoryError, ValueError, KeyError, TypeError):
        return None
    return None if outcome == "incomplete" else (outcome, exit_code)
