"""Write a file whole: who reads it meets the old text or the new one, never half of either."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from scaletest.core.errors import UsageError

__all__ = ["refuse_unwritable", "write_whole"]


def refuse_unwritable(path: Path, said: str, hint: str) -> None:
    """Raise UsageError for a path at which nothing can be made or written, as far as that can be known without trying."""
    there = next((item for item in (path, *path.parents) if item.exists()), path.parent)
    if there != path and not there.is_dir():
        msg = f"{said}: {there} is no directory"
        raise UsageError(msg, hint=hint)
    if not os.access(there, os.W_OK):
        msg = f"{said}: no permission to write {'it' if there == path else f'in {there}'}"
        raise UsageError(msg, hint=hint)


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8 to a file beside ``path``, then rename it. Raises OSError, leaving what was there.

    A symbolic link stays one: what it points to is replaced. What is no regular file (``/dev/stdout``, a pipe) is written to as it is.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        with target.open("w", encoding="utf-8") as stream:
            stream.write(text)
        return
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
