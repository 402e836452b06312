"""Fetching files: resumable, checked, and with the space looked at first.

A file is fetched into a partial file beside its target; when the connection is cut, the partial file stays
and the next attempt, in this process or a later one, asks for the rest with a Range request. A
partial file is only taken further when the result can be checked: against a known SHA-256, or by
the server, against the ETag of the first part (If-Range).
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO

from scaletest.controlplane.binaries.cache import sha256_of
from scaletest.controlplane.binaries.progress import Task
from scaletest.controlplane.binaries.web import Broken, RangeRefused, TransferError, Web, reason_of
from scaletest.core.errors import ResourceShortage
from scaletest.core.units import format_bytes

__all__ = ["Fetcher"]

_ATTEMPTS = 4
"""Cut connections in a row, each without a byte of progress, before the fetch is given up."""
_RETRY_PAUSE_S = 0.5
_CHUNK_BYTES = 1 << 18
_SPARE_BYTES = 64 << 20
"""Space that is left to others on the file system."""
_PARTIAL_CONTENT = 206


class _CutShort(Exception):
    """The connection ended before the file did."""


@dataclass(frozen=True, slots=True)
class _Answer:
    body: IO[bytes]
    offset: int
    """Where in the file the body begins."""
    total_bytes: int | None
    etag: str | None


class Fetcher:
    """Fetches files."""

    def __init__(
        self,
        web: Web,
        *,
        free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._web = web
        self._free_bytes = free_bytes
        self._sleep = sleep

    def fetch(self, url: str, target: Path, *, sha256: str | None, task: Task) -> None:
        """Fetch ``url`` into ``target``, going on from a partial file, and check it against ``sha256``.

        Raises TransferError, and ResourceShortage when the file system has too little space.
        """
        partial = target.with_name(target.name + ".partial")
        resumed = partial.exists()
        self._complete(url, partial, sha256 is not None, task)
        if sha256 is not None and (actual := sha256_of(partial)) != sha256:
            _forget(partial)
            if resumed:
                # What lay there was not the beginning of this file.
                self._complete(url, partial, checked=True, task=task)
                actual = sha256_of(partial)
            if actual != sha256:
                _forget(partial)
                msg = f"{url} has SHA-256 {actual}, published is {sha256}; it was thrown away"
                raise TransferError(msg)
        partial.replace(target)
        _forget(partial)

    def _complete(self, url: str, partial: Path, checked: bool, task: Task) -> None:
        failures, furthest_bytes = 0, _size_of(partial)
        while True:
            try:
                self._take_further(url, partial, checked=checked, task=task)
                return
            except (_CutShort, Broken) as error:
                now_bytes = _size_of(partial)
                failures = 1 if now_bytes > furthest_bytes else failures + 1
                furthest_bytes = max(furthest_bytes, now_bytes)
                if failures >= _ATTEMPTS:
                    kept = "; the part that came is kept, and the next attempt goes on from there" if now_bytes else ""
                    msg = f"{error}{kept}"
                    raise TransferError(msg) from error
                self._sleep(_RETRY_PAUSE_S * 2**failures)

    def _take_further(self, url: str, partial: Path, *, checked: bool, task: Task) -> None:
        with self._ask_for_rest(url, partial, checked=checked) as answer:
            if answer is None:
                return
            if answer.total_bytes is None and not checked:
                msg = f"{url}: neither its length nor a checksum is known, so a part would pass for the whole"
                raise TransferError(msg)
            self._check_space(partial, answer)
            _note_etag(partial, answer.etag)
            done_bytes = answer.offset
            try:
                with partial.open("r+b" if answer.offset else "wb") as file:
                    file.truncate(answer.offset)
                    file.seek(answer.offset)
                    for chunk in _chunks(answer.body, url):
                        file.write(chunk)
                        done_bytes += len(chunk)
                        task.update(done_bytes, answer.total_bytes)
            except OSError as error:
                if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                    raise _no_space(partial, answer.total_bytes, self._free_bytes(partial.parent)) from error
                raise
            if answer.total_bytes is not None and done_bytes < answer.total_bytes:
                msg = f"{url}: the connection was cut after {done_bytes:,} of {answer.total_bytes:,} bytes"
                raise _CutShort(msg)

    @contextlib.contextmanager
    def _ask_for_rest(self, url: str, partial: Path, *, checked: bool) -> Iterator[_Answer | None]:
        """Open the answer that completes ``partial``; None when nothing is missing."""
        offset = _size_of(partial)
        etag = _noted_etag(partial)
        if not (checked or etag):
            offset = 0
        headers = {}
        if offset:
            headers["Range"] = f"bytes={offset}-"
            if etag:
                headers["If-Range"] = etag
        try:
            with self._web.open(url, headers=headers) as response:
                if response.status != _PARTIAL_CONTENT:
                    offset = 0
                elif _range_start(response.headers) != offset:
                    _forget(partial)
                    msg = f"{url}: the server answered with another range than asked for"
                    raise _CutShort(msg)
                length = response.headers.get("Content-Length")
                total = offset + int(length) if length and length.isdigit() else None
                yield _Answer(response, offset, total, response.headers.get("ETag"))
        except RangeRefused as refused:
            if refused.total_bytes == offset:
                yield None
            else:
                _forget(partial)
                msg = f"{url}: the part kept from before does not belong to the server's file"
                raise _CutShort(msg) from refused

    def _check_space(self, partial: Path, answer: _Answer) -> None:
        if answer.total_bytes is None:
            return
        free = self._free_bytes(partial.parent)
        # A file that is started again gives back what the old part takes.
        if answer.offset == 0:
            free += _size_of(partial)
        if answer.total_bytes - answer.offset + _SPARE_BYTES > free:
            raise _no_space(partial, answer.total_bytes, free)


def _size_of(partial: Path) -> int:
    return partial.stat().st_size if partial.exists() else 0


def _chunks(body: IO[bytes], url: str) -> Iterator[bytes]:
    while True:
        try:
            chunk = body.read(_CHUNK_BYTES)
        except (OSError, http.client.HTTPException) as error:
            msg = f"{url}: {reason_of(error)}"
            raise _CutShort(msg) from error
        if not chunk:
            return
        yield chunk


def _no_space(partial: Path, total_bytes: int | None, free_bytes: int) -> ResourceShortage:
    need = f"needs {format_bytes(total_bytes)} there" if total_bytes else "does not fit"
    msg = (
        f"no space in {partial.parent}: {partial.name.removesuffix('.partial')} {need}, {format_bytes(free_bytes)} left"
    )
    return ResourceShortage(msg, hint="free space there, or set SCALETEST_CACHE_DIR to a directory with more")


def _range_start(headers: Message) -> int | None:
    unit, _, rest = str(headers.get("Content-Range", "")).partition(" ")
    start = rest.partition("-")[0]
    return int(start) if unit == "bytes" and start.isdigit() else None


def _etag_path(partial: Path) -> Path:
    return partial.with_name(partial.name + ".etag")


def _noted_etag(partial: Path) -> str | None:
    with contextlib.suppress(OSError):
        return _etag_path(partial).read_text(encoding="utf-8") or None
    return None


def _note_etag(partial: Path, etag: str | None) -> None:
    """Keep the ETag for If-Range, which takes strong ones only."""
    if etag and not etag.startswith("W/"):
        _etag_path(partial).write_text(etag, encoding="utf-8")
    else:
        _etag_path(partial).unlink(missing_ok=True)


def _forget(partial: Path) -> None:
    partial.unlink(missing_ok=True)
    _etag_path(partial).unlink(missing_ok=True)
