"""What stands in a run directory beside the journal: ``run.json`` and ``verdict.json``.

``run.json`` is written once, before the first phase: what was asked, of which versions, on which host.
Files are replaced whole, so that a reader never meets half of one that this module wrote.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from scaletest.core.errors import RunDirectoryError
from scaletest.core.foreignfiles import check_schema, read_object
from scaletest.core.journal import JOURNAL_NAME
from scaletest.core.wholefile import write_whole

__all__ = [
    "LOGS_DIR",
    "MATRIX_INFO_NAME",
    "PROFILES_DIR",
    "RUN_INFO_NAME",
    "RUN_SCHEMA_VERSION",
    "VERDICT_NAME",
    "RunInfo",
    "is_measured",
    "read_run_info",
    "run_names",
    "write_json",
    "write_run_info",
]

RUN_INFO_NAME: Final = "run.json"
MATRIX_INFO_NAME: Final = "matrix.json"
VERDICT_NAME: Final = "verdict.json"

_OWN_NAMES: Final = {RUN_INFO_NAME, MATRIX_INFO_NAME, VERDICT_NAME, JOURNAL_NAME}
LOGS_DIR: Final = "logs"
"""Where the logs of the components lie, from the end of the run on."""
PROFILES_DIR: Final = "profiles"
"""Where the profiles of the API servers lie, if any were captured."""

RUN_SCHEMA_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What was asked, and of what. No credential ever stands here."""

    id: str
    """Name of the run directory."""
    profile: Mapping[str, Any]
    """The resolved profile, with the keys of its YAML."""
    started_at: str
    """Start of the run, UTC, ISO 8601."""
    clock_origin_s: float = 0.0
    """Value of CLOCK_MONOTONIC that the journal's times count from; means nothing after a reboot."""
    provenance: Mapping[str, str] = field(default_factory=dict)
    """Where each value of the profile comes from, by dotted key."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions by name: kubernetes, etcd, kwok, scaletest, python, locust."""
    host: Mapping[str, Any] = field(default_factory=dict)
    """The machine: ``cores``, ``memory_bytes``, ``kernel`` and more."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Limits as asked, by component."""
    argv: Sequence[str] = ()
    """The command line."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What a reader has to know to read the numbers (heartbeat factor, kept cluster, …): title and sentence."""
    schema_version: int = RUN_SCHEMA_VERSION


def is_measured(path: Path) -> bool:
    """Whether a file is one that a run or matrix itself consists of, by whatever name it is reached: nothing else is to be written to it."""
    real = Path(os.path.realpath(path))
    return real.name in _OWN_NAMES and real.is_file()


def run_names(results: Path) -> list[str]:
    """Return the names of the runs and matrices under ``results``, oldest first: names begin with the time."""
    try:
        return sorted(
            entry.name
            for entry in results.iterdir()
            if (entry / RUN_INFO_NAME).is_file() or (entry / MATRIX_INFO_NAME).is_file()
        )
    except OSError:
        return []


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole: readers see the old file or the new one. Raises OSError."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    # An argument or path that is not UTF-8 holds lone surrogates; written as \udcXX they are JSON's own escape.
    write_whole(path, text.encode(errors="backslashreplace").decode() + "\n")


def write_run_info(directory: Path, info: RunInfo) -> None:
    """Write ``run.json``. Raises OSError."""
    write_json(directory / RUN_INFO_NAME, asdict(info))


def read_run_info(directory: Path) -> RunInfo:
    """Read ``run.json``. Raises RunDirectoryError when there is none, or it is not ours, damaged or newer."""
    path = directory / RUN_INFO_NAME
    if not directory.exists():
        raise RunDirectoryError(directory, "no such run directory")
    if not directory.is_dir():
        raise RunDirectoryError(directory, "a file, not a run directory")
    try:
        data = read_object(path, RunDirectoryError, hint="The journal beside it is plain JSON lines and may be whole.")
    except FileNotFoundError:
        raise RunDirectoryError(directory, f"no run directory: it has no {RUN_INFO_NAME}") from None
    if "schema_version" not in data or "profile" not in data:
        raise RunDirectoryError(directory, f"its {RUN_INFO_NAME} is of another program")
    check_schema(path, data, "run", RUN_SCHEMA_VERSION, RunDirectoryError)
    return _parse(directory, data)


_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "id": str, "profile": dict, "started_at": str, "clock_origin_s": (int, float), "provenance": dict,
    "versions": dict, "host": dict, "limits": dict, "argv": list, "facts": dict, "schema_version": int,
}  # fmt: skip
_NEEDED: Final = ("id", "profile", "started_at")


def _parse(directory: Path, data: dict[str, Any]) -> RunInfo:
    known = {item.name: data[item.name] for item in fields(RunInfo) if item.name in data}
    path = directory / RUN_INFO_NAME
    for name in _NEEDED:
        if name not in known:
            raise RunDirectoryError(path, f"{name}: missing")
    for name, value in known.items():
        if not isinstance(value, _TYPES[name]):
            raise RunDirectoryError(path, f"{name}: of a wrong type")
    return RunInfo(**known)
