"""Errors that people read, and the exit code that each one ends in.

    ScaletestError                 what went wrong, where, what to do next
    ├── UsageError            2    the command line or a file the user wrote
    │   ├── ProfileError           a profile, with file, line and key
    │   ├── RunDirectoryError      a run directory that cannot be read or made
    │   └── BaselineError          a saved baseline that cannot be read or made
    ├── EnvironmentProblem    3    the machine cannot do what was asked
    │   ├── BinaryUnavailable      no source has the binary; says why for each
    │   ├── ClusterError           a control plane did not start, or went away
    │   └── ResourceShortage       memory, disk, ports, descriptors
    ├── MeasurementInvalid    4    the generator was the bottleneck
    └── Interrupted         130    Ctrl-C or SIGTERM

What the system refuses us (``of_the_machine``: no space, no permission, no descriptor) is an EnvironmentProblem too,
wherever it was raised; a name that it takes for none is a UsageError. Every other exception that reaches the command line is our own
bug and ends in 1.
"""

from __future__ import annotations

import enum
import errno
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = [
    "BaselineError",
    "BinaryUnavailable",
    "ClusterError",
    "EnvironmentProblem",
    "ExitCode",
    "Interrupted",
    "MeasurementInvalid",
    "Problem",
    "ProfileError",
    "ResourceShortage",
    "RunDirectoryError",
    "ScaletestError",
    "UsageError",
    "of_the_machine",
    "refused",
    "shorten",
    "without_place",
]


class ExitCode(enum.IntEnum):
    """Exit codes of the ``scaletest`` command, in all output formats alike."""

    PASS = 0
    BUG = 1
    USAGE = 2
    ENVIRONMENT = 3
    INVALID = 4
    FAILED = 99
    """An objective or a regression gate failed (k6's number)."""
    INTERRUPTED = 130


EXIT_CODE_MEANINGS: dict[ExitCode, str] = {
    ExitCode.PASS: "the verdict is pass, or the command did what was asked",
    ExitCode.BUG: "a bug in scaletest itself",
    ExitCode.USAGE: "wrong usage, or an invalid profile",
    ExitCode.ENVIRONMENT: "the environment is at fault: a binary, a port, memory, a control plane that did not start",
    ExitCode.INVALID: "the measurement is invalid: the generator was the bottleneck; or a gate cannot tell",
    ExitCode.FAILED: "an objective or a regression gate failed",
    ExitCode.INTERRUPTED: "interrupted: results so far are kept, the control plane is gone",
}


_LONG_WORD: Final = re.compile(r"\S{301,}")
"""A path of a deep project has 200 characters; what is longer is no name that anybody reads."""
_LINE_CHARS: Final = 3_000
"""The longest hint, which lists what there is, has a third of that."""


def shorten(text: str) -> str:
    """Cut words and lines of a message that nobody would read to their end: what was given is not poured onto the terminal."""
    cut = _LONG_WORD.sub(lambda word: f"{word[0][:120]}…{word[0][-60:]}", text)
    return "\n".join(line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]}…" for line in cut.split("\n"))


class ScaletestError(Exception):
    """What went wrong, and what to do next; the base of all errors shown to people."""

    exit_code: ExitCode = ExitCode.BUG

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = shorten(message)
        self.hint = hint and shorten(hint)
        super().__init__(self.message)


def without_place(error: ScaletestError, path: Path) -> str:
    """Return what an error says of a directory or file, for where its name stands already."""
    return error.message.removeprefix(str(path)).lstrip("/: ")


class UsageError(ScaletestError):
    """The command line, or a file that the user wrote, asks for something impossible."""

    exit_code = ExitCode.USAGE


_PROBLEMS_SHOWN = 25
_KEY_CHARS = 100


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a file: ``FILE:LINE: KEY: what`` and a hint."""

    what: str
    file: str | None = None
    line: int | None = None
    key: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        place = self.file or ""
        if self.line is not None:
            place += f":{self.line}"
        # A wrong file may have anything for a key: what it holds is not poured onto the terminal.
        key = self.key and " ".join(self.key.split())
        if key and len(key) > _KEY_CHARS:
            key = key[:_KEY_CHARS] + "…"
        parts = [part for part in (place, key) if part]
        text = ": ".join([*parts, self.what])
        return f"{text} ({self.hint})" if self.hint else text


class ProfileError(UsageError):
    """A profile cannot be read; carries every problem found, not only the first."""

    def __init__(self, problems: list[Problem], *, hint: str | None = None) -> None:
        self.problems = problems
        lines = [str(problem) for problem in problems[:_PROBLEMS_SHOWN]]
        if len(problems) > _PROBLEMS_SHOWN:
            lines.append(f"… and {len(problems) - _PROBLEMS_SHOWN} more")
        # Below the first line, which the caller begins with who is speaking.
        super().__init__("\n  ".join(lines), hint=hint)


class RunDirectoryError(UsageError):
    """A run directory is missing, foreign, of a newer schema, or already there."""

    def __init__(self, path: Path, what: str, *, hint: str | None = None) -> None:
        self.path = path
        super().__init__(f"{path}: {what}", hint=hint)


class BaselineError(UsageError):
    """A saved baseline is missing, foreign, of a newer schema, of another profile, or already there."""

    def __init__(self, path: Path, what: str, *, hint: str | None = None) -> None:
        self.path = path
        super().__init__(f"{path}: {what}", hint=hint)


class EnvironmentProblem(ScaletestError):
    """This machine cannot do what was asked."""

    exit_code = ExitCode.ENVIRONMENT


class BinaryUnavailable(EnvironmentProblem):
    """No source has the binary; the message names every source and why it missed."""


class ClusterError(EnvironmentProblem):
    """A control plane did not start, or went away under the run."""


class ResourceShortage(EnvironmentProblem):
    """Too little memory, disk, ports or file descriptors."""


class MeasurementInvalid(ScaletestError):
    """The load generator could not do what the profile asks for."""

    exit_code = ExitCode.INVALID


class Interrupted(ScaletestError):
    """Ctrl-C or SIGTERM."""

    exit_code = ExitCode.INTERRUPTED


_NO_SPACE: Final = "Make room there, or use another place: --output, SCALETEST_STATE_DIR, SCALETEST_CACHE_DIR."
_NO_ACCESS: Final = "Use a place you may write to: --output, SCALETEST_STATE_DIR, SCALETEST_CACHE_DIR."
_NO_NAME: Final[dict[int, str]] = {
    errno.ENAMETOOLONG: "the name is too long for a file",
    errno.ELOOP: "links that lead to each other",
}
"""What the system says of a name that somebody gave: no machine would take it."""
_NO_PROCESSES: Final = "Raise the limit of processes and threads (ulimit -u), or end other processes."
_NO_FILES: Final = "Raise the limit of open files (ulimit -n)."
_NO_MEMORY: Final = "Free memory, or lift the limit of address space (ulimit -v)."

_REFUSALS: Final[dict[int, str]] = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EFBIG: "Lift the limit of file sizes (ulimit -f).",
    errno.EROFS: _NO_ACCESS,
    errno.EACCES: _NO_ACCESS,
    errno.EPERM: _NO_ACCESS,
    errno.ENOTDIR: _NO_ACCESS,
    errno.EIO: "The disk has errors: see the kernel's log.",
    errno.EMFILE: _NO_FILES,
    errno.ENFILE: "The machine has no file descriptors left (sysctl fs.file-max).",
    errno.EAGAIN: _NO_PROCESSES,
    errno.ENOMEM: _NO_MEMORY,
}
"""What to do about an error number that says something of the machine. All others are ours to handle."""

_NO_THREAD: Final = "can't start new thread"
"""What Python says, in a RuntimeError of no kind of its own, when the system gives it no thread."""


def of_the_machine(error: BaseException) -> EnvironmentProblem | UsageError | None:
    """Return what people are told of an error that the machine, or a name that it cannot take, is the reason of; None for any other."""
    if isinstance(error, MemoryError):
        return ResourceShortage("out of memory", hint=_NO_MEMORY)
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        return ResourceShortage("the system gives no more threads", hint=_NO_PROCESSES)
    if not isinstance(error, OSError):
        return None
    place = f"{error.filename}: " if error.filename is not None else ""
    if error.errno in _NO_NAME:
        return UsageError(f"{place}{_NO_NAME[error.errno]}", hint="Give another name.")
    if error.errno not in _REFUSALS:
        return None
    return EnvironmentProblem(f"{place}{error.strerror}", hint=_REFUSALS[error.errno])


def refused(error: OSError, message: str, *, hint: str) -> EnvironmentProblem | UsageError:
    """Return what people are told of a file or directory that the system does not let us make, with a hint for the option that named it."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return UsageError(f"{message}: one of its parents is a file", hint=hint)
    problem = of_the_machine(error)
    reason = _NO_NAME.get(error.errno or 0, error.strerror)
    return (type(problem) if problem else UsageError)(f"{message}: {reason}", hint=hint)
