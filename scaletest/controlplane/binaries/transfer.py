"""Fetching files over HTTP(S): resumable, bounded in time, and with the space checked first.

A file is fetched into a partial file beside its target; when the connection is cut, the partial file stays
and the next attempt, in this process or a later one, asks for the rest with a Range request. A
partial file is only taken further when the result can be checked: against a known SHA-256, or by
the server, against the ETag of the first part (If-Range).

A machine without a network must not make anyone wait: each host is tried once per process, for
``CONNECT_TIMEOUT_S`` at most, and a host that did not answer is not asked again.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import shutil
import socket
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO, Any

from scaletest.controlplane.binaries.cache import sha256_of
from scaletest.controlplane.binaries.progress import Task
from scaletest.core.errors import ResourceShortage
from scaletest.core.units import format_bytes

__all__ = ["NotThere", "TransferError", "Transfers"]

CONNECT_TIMEOUT_S = 2.5
"""Name lookup and connection together. A SYN lost once is sent again after 1 s."""
_STALL_TIMEOUT_S = 10.0
"""Longest silence of a server that is connected."""
_ATTEMPTS = 4
"""Cut connections in a row, each without a byte of progress, before the fetch is given up."""
_RETRY_PAUSE_S = 0.5
_CHUNK_BYTES = 1 << 18
_SMALL_BYTES = 4 << 20
"""Most that is read of a checksum file or an answer of an API."""
_SPARE_BYTES = 64 << 20
"""Space that is left to others on the file system."""
_PARTIAL_CONTENT = 206
_NOT_FOUND = {401, 403, 404, 410}
_RANGE_NOT_SATISFIABLE = 416


class TransferError(Exception):
    """A file could not be fetched; the text says why."""


class NotThere(TransferError):
    """The server answers, and has no such file."""


class _Broken(TransferError):
    """The server took the connection, and then it broke before any answer."""


class _CutShort(Exception):
    """The connection ended before the file did."""


@dataclass(frozen=True, slots=True)
class _Answer:
    body: IO[bytes]
    offset: int
    """Where in the file the body begins."""
    total_bytes: int | None
    etag: str | None


class Transfers:
    """Fetches files; remembers for its lifetime which hosts do not answer."""

    def __init__(
        self,
        *,
        ssl_context: ssl.SSLContext | None = None,
        free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        https = urllib.request.HTTPSHandler(context=ssl_context or ssl.create_default_context())
        self._following = urllib.request.build_opener(https, _NoDowngrade())
        self._unfollowing = urllib.request.build_opener(https, _RedirectIsAnswer())
        self._free_bytes = free_bytes
        self._sleep = sleep
        self._silent: dict[tuple[str, int], str] = {}
        self._heard: set[tuple[str, int]] = set()

    def reach(self, url: str) -> None:
        """Connect to the server of ``url``, once per process. Raises TransferError when it does not answer."""
        host = _first_hop(url)
        if host not in self._silent and host not in self._heard:
            reason = _try_connect(host, CONNECT_TIMEOUT_S)
            if reason is None:
                self._heard.add(host)
            else:
                self._silent[host] = reason
        if host in self._silent:
            msg = f"{host[0]}:{host[1]}: {self._silent[host]}"
            raise TransferError(msg)

    def exists(self, url: str) -> None:
        """Ask whether a file is there, without its content. Raises TransferError when it is not.

        A redirect counts as yes: release servers redirect to short-lived addresses that allow GET only.
        """
        request = urllib.request.Request(url, method="HEAD")  # noqa: S310 - _open checks the scheme
        with self._open(request, self._unfollowing):
            pass

    def text(self, url: str) -> str:
        """Fetch a small file. Raises TransferError."""
        with self._open(urllib.request.Request(url)) as response, _reading(url):  # noqa: S310
            data: bytes = response.read(_SMALL_BYTES)
        return data.decode("utf-8", errors="replace")

    def file(self, url: str, target: Path, *, sha256: str | None, task: Task) -> None:
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
        failures = 0
        while True:
            before_bytes = partial.stat().st_size if partial.exists() else 0
            try:
                self._take_further(url, partial, checked=checked, task=task)
                return
            except (_CutShort, _Broken) as error:
                now_bytes = partial.stat().st_size if partial.exists() else 0
                failures = 1 if now_bytes > before_bytes else failures + 1
                if failures >= _ATTEMPTS:
                    kept = "; the part that came is kept, and the next attempt goes on from there" if now_bytes else ""
                    msg = f"{error}{kept}"
                    raise TransferError(msg) from error
                self._sleep(_RETRY_PAUSE_S * 2**failures)

    def _take_further(self, url: str, partial: Path, *, checked: bool, task: Task) -> None:
        with self._ask_for_rest(url, partial, checked=checked) as answer:
            if answer is None:
                return
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
        offset = partial.stat().st_size if partial.exists() else 0
        etag = _noted_etag(partial)
        if not (checked or etag):
            offset = 0
        request = urllib.request.Request(url)  # noqa: S310
        if offset:
            request.add_header("Range", f"bytes={offset}-")
            if etag:
                request.add_header("If-Range", etag)
        try:
            opened = self._open(request)
            with opened as response:
                if response.status != _PARTIAL_CONTENT:
                    offset = 0
                elif _range_start(response.headers) != offset:
                    _forget(partial)
                    msg = f"{url}: the server answered with another range than asked for"
                    raise _CutShort(msg)
                length = response.headers.get("Content-Length")
                total = offset + int(length) if length and length.isdigit() else None
                yield _Answer(response, offset, total, response.headers.get("ETag"))
        except _RangeRefused as refused:
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
        if answer.offset == 0 and partial.exists():
            free += partial.stat().st_size
        if answer.total_bytes - answer.offset + _SPARE_BYTES > free:
            raise _no_space(partial, answer.total_bytes, free)

    def _open(
        self, request: urllib.request.Request, opener: urllib.request.OpenerDirector | None = None
    ) -> http.client.HTTPResponse:
        url = request.full_url
        if urllib.parse.urlsplit(url).scheme not in {"http", "https"}:
            msg = f"{url}: only http and https are fetched"
            raise TransferError(msg)
        request.add_header("User-Agent", "scaletest")
        self.reach(url)
        try:
            response: http.client.HTTPResponse = (opener or self._following).open(request, timeout=_STALL_TIMEOUT_S)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == _RANGE_NOT_SATISFIABLE:
                    raise _RangeRefused(error.headers) from error
                kind = NotThere if error.code in _NOT_FOUND else TransferError
                msg = f"{url}: {error.code} {error.reason}"
                raise kind(msg) from error
        except (OSError, http.client.HTTPException) as error:
            if _is_timeout(error):
                self._silent[_first_hop(url)] = _reason(error)
            msg = f"{url}: {_reason(error)}"
            raise _Broken(msg) from error
        return response


class _NoDowngrade(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but never from https to http."""

    def redirect_request(  # noqa: PLR0917 - urllib calls it so
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            problem = f"{req.full_url} redirects to {newurl}, which is not https"
            raise TransferError(problem)
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


class _RedirectIsAnswer(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for the answer."""

    def http_error_302(self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message) -> Any:
        del self, req, code, msg, headers
        return fp

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


class _RangeRefused(Exception):
    def __init__(self, headers: Message) -> None:
        super().__init__("range not satisfiable")
        _, _, total = str(headers.get("Content-Range", "")).partition("/")
        self.total_bytes = int(total) if total.isdigit() else None


def _first_hop(url: str) -> tuple[str, int]:
    """Host and port that a request to ``url`` connects to: the server, or the proxy of the environment."""
    parts = urllib.parse.urlsplit(url)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(parts.netloc):
        parts = urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _try_connect(host: tuple[str, int], timeout_s: float) -> str | None:
    """Connect once, in a thread since a name lookup has no time-out of its own; None when it worked."""
    outcome: list[str | None] = []

    def connect() -> None:
        try:
            socket.create_connection(host, timeout=timeout_s).close()
            outcome.append(None)
        except OSError as error:
            outcome.append(_reason(error))

    thread = threading.Thread(target=connect, daemon=True, name=f"connect {host[0]}")
    thread.start()
    thread.join(timeout_s)
    return outcome[0] if outcome else f"no connection within {timeout_s:g} s"


def _is_timeout(error: BaseException) -> bool:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return isinstance(reason, TimeoutError)


def _reason(error: BaseException) -> str:
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, BaseException):
        return _reason(error.reason)
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {getattr(error, 'verify_message', '') or error.reason or error}"
    return str(getattr(error, "strerror", None) or error) or type(error).__name__


@contextlib.contextmanager
def _reading(url: str) -> Iterator[None]:
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        msg = f"{url}: {_reason(error)}"
        raise TransferError(msg) from error


def _chunks(body: IO[bytes], url: str) -> Iterator[bytes]:
    while True:
        try:
            chunk = body.read(_CHUNK_BYTES)
        except (OSError, http.client.HTTPException) as error:
            msg = f"{url}: {_reason(error)}"
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
