"""The cache of binaries: ``bin/<component>/<version>/<goos>-<goarch>/<program>`` with a record beside it.

The record (``<program>.json``) holds the SHA-256, the size and where the file came from. A program is
in the cache when both are there and the size is right; ``verify`` hashes again. Files arrive by
rename within the cache directory, the record first, so that a process killed at any moment
leaves either a whole program with its record or none. One file lock per family and version (what
is released and built together) makes a second process wait for the first and then use its result.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scaletest.controlplane.binaries.progress import Progress
from scaletest.controlplane.binaries.versions import COMPONENTS, Wanted, component_named
from scaletest.core.errors import EnvironmentProblem, ResourceShortage
from scaletest.core.foreignfiles import parse_json
from scaletest.core.paths import cache_dir

__all__ = ["BinaryCache", "CachedBinary", "Damage", "Record", "sha256_of"]


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of a cached program."""

    sha256: str
    size_bytes: int
    origin: str
    """Where it came from, in words: ``built from k8s.io/kubernetes@v1.37.2 by go1.26.8``."""


@dataclass(frozen=True, slots=True)
class CachedBinary:
    """A program in the cache."""

    component: str
    version: str
    platform: str
    path: Path
    record: Record


@dataclass(frozen=True, slots=True)
class Damage:
    """A cached file that is not what its record says."""

    path: Path
    what: str


class BinaryCache:
    """The cache under one directory (the user's cache directory by default)."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root if root is not None else cache_dir()

    def path_of(self, want: Wanted) -> Path:
        """Where the program lies when it is cached."""
        return self.root / "bin" / want.component.name / want.version / want.platform / want.component.program

    def work_dir(self, want: Wanted) -> Path:
        """Return the directory for downloads and builds of this family and version; made if need be."""
        path = self.root / "work" / f"{want.family.name}-{want.version}-{want.platform}"
        self._make(path)
        return path

    def lookup(self, want: Wanted) -> CachedBinary | str:
        """Return the cached program, or why there is none."""
        path = self.path_of(want)
        try:
            size_bytes = path.stat().st_size
        except OSError:
            return f"{path} is not there"
        record = _read_record(path)
        if record is None:
            return f"{path} has no record beside it that can be read"
        if size_bytes != record.size_bytes:
            return f"{path} has {size_bytes:,} bytes where its record says {record.size_bytes:,}"
        return CachedBinary(want.component.name, want.version, want.platform, path, record)

    def store(self, want: Wanted, file: Path, origin: str) -> CachedBinary:
        """Move a finished program (within the cache's file system) into the cache. Call it under ``locked``."""
        file.chmod(0o755)
        _sync(file)
        record = Record(sha256_of(file), file.stat().st_size, origin)
        path = self.path_of(want)
        self._make(path.parent)
        # An old program goes before the record changes: never a program with another one's record.
        path.unlink(missing_ok=True)
        new_record = _record_path(path).with_suffix(".new")
        new_record.write_text(json.dumps(asdict(record), indent=1) + "\n", encoding="utf-8")
        _sync(new_record)
        new_record.replace(_record_path(path))
        file.replace(path)
        return CachedBinary(want.component.name, want.version, want.platform, path, record)

    def entries(self) -> list[CachedBinary]:
        """Return every program in the cache that has a readable record."""
        found = []
        for path, name, version, platform in self._programs():
            record = _read_record(path)
            if record is not None:
                found.append(CachedBinary(name, version, platform, path, record))
        return found

    def verify(self) -> tuple[list[CachedBinary], list[Damage]]:
        """Hash every cached program again; return the sound and the damaged ones."""
        sound, damaged = [], []
        for path, name, version, platform in self._programs():
            record = _read_record(path)
            if record is None:
                damaged.append(Damage(path, "has no record that can be read"))
                continue
            actual = sha256_of(path)
            if actual != record.sha256:
                damaged.append(Damage(path, f"has SHA-256 {actual}, recorded is {record.sha256}"))
            else:
                sound.append(CachedBinary(name, version, platform, path, record))
        return sound, damaged

    def _programs(self) -> Iterator[tuple[Path, str, str, str]]:
        for record_or_program in sorted((self.root / "bin").glob("*/*/*/*")):
            platform_dir = record_or_program.parent
            name, version = platform_dir.parent.parent.name, platform_dir.parent.name
            if name in COMPONENTS and record_or_program.name == component_named(name).program:
                yield record_or_program, name, version, platform_dir.name

    @contextlib.contextmanager
    def locked(self, want: Wanted, doing: str, progress: Progress) -> Iterator[None]:
        """Hold the lock of the family and version; while another process holds it, say who and wait."""
        locks = self.root / "locks"
        self._make(locks)
        lock = locks / f"{want.family.name}-{want.version}-{want.platform}"
        what = f"{want.family.title} {want.version}"
        with self._writing(), lock.open("a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                progress.note(f"{what}: waiting for {file.read().strip() or 'another process'}")
                fcntl.flock(file, fcntl.LOCK_EX)
            file.truncate(0)
            file.write(f"process {os.getpid()}, which is {doing} it ({_own_command()})")
            file.flush()
            yield

    def _make(self, directory: Path) -> None:
        with self._writing():
            directory.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn the operating system's refusals to write into errors for people."""
        hint = "SCALETEST_CACHE_DIR names another directory for the cache"
        try:
            yield
        except OSError as error:
            where = error.filename or self.root
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                msg = f"no space left in {self.root}, writing {where}"
                raise ResourceShortage(msg, hint=f"free space there, or: {hint}") from error
            msg = f"cannot write {where}: {error.strerror or error}"
            raise EnvironmentProblem(msg, hint=hint) from error


def _record_path(program: Path) -> Path:
    return program.with_name(program.name + ".json")


def _read_record(program: Path) -> Record | None:
    try:
        data: Any = parse_json(_record_path(program).read_bytes())
        return Record(str(data["sha256"]), int(data["size_bytes"]), str(data["origin"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _own_command() -> str:
    try:
        words = Path("/proc/self/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return "unknown command"
    return shlex.join(words[:-1])[:120]


def _sync(file: Path) -> None:
    with file.open("rb") as handle:
        os.fsync(handle.fileno())


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
