"""Asking servers over HTTP(S): TLS verified, bounded in time, and a dead host asked only once.

A machine without a network must not make anyone wait: each host is tried once per process, for
``CONNECT_TIMEOUT_S`` at most, and a host that did not answer is not asked again. Proxies of the
environment (``HTTPS_PROXY``) and ``SSL_CERT_FILE`` are honoured.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from email.message import Message
from typing import IO, Any

__all__ = ["Broken", "NotThere", "RangeRefused", "TransferError", "Web", "reason_of"]

CONNECT_TIMEOUT_S = 2.5
"""Name lookup and connection together. A SYN lost once is sent again after 1 s."""
_STALL_TIMEOUT_S = 10.0
"""Longest silence of a server that is connected."""
_SMALL_BYTES = 4 << 20
"""Most that is read of a checksum file or an answer of an API."""
_NOT_FOUND = {401, 403, 404, 410}
_RANGE_NOT_SATISFIABLE = 416


class TransferError(Exception):
    """A file could not be fetched; the text says why."""


class NotThere(TransferError):
    """The server answers, and has no such file."""


class Broken(TransferError):
    """The server took the connection, and then it broke before any answer."""


class RangeRefused(TransferError):
    """The server has nothing beyond the offset asked for; carries its file's size where it tells."""

    def __init__(self, url: str, headers: Message) -> None:
        super().__init__(f"{url}: the server has no such range")
        _, _, total = str(headers.get("Content-Range", "")).partition("/")
        self.total_bytes = int(total) if total.isdigit() else None


class Web:
    """Opens URLs; remembers for its lifetime which hosts do not answer."""

    def __init__(self, *, ssl_context: ssl.SSLContext | None = None) -> None:
        https = urllib.request.HTTPSHandler(context=ssl_context or ssl.create_default_context())
        self._following = urllib.request.build_opener(https, _NoDowngrade())
        self._unfollowing = urllib.request.build_opener(https, _RedirectIsAnswer())
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
        with self.open(url, method="HEAD", opener=self._unfollowing):
            pass

    def text(self, url: str) -> str:
        """Fetch a small file. Raises TransferError."""
        with self.open(url) as response, _reading(url):
            data: bytes = response.read(_SMALL_BYTES)
        return data.decode("utf-8", errors="replace")

    def open(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        opener: urllib.request.OpenerDirector | None = None,
    ) -> http.client.HTTPResponse:
        """Open an address. Raises TransferError, and its RangeRefused where a range was asked for."""
        self.reach(url)
        all_headers = {"User-Agent": "scaletest", **(headers or {})}
        try:
            # ``reach`` has checked the scheme.
            request = urllib.request.Request(url, headers=all_headers, method=method)  # noqa: S310
            response: http.client.HTTPResponse = (opener or self._following).open(request, timeout=_STALL_TIMEOUT_S)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == _RANGE_NOT_SATISFIABLE:
                    raise RangeRefused(url, error.headers) from error
                kind = NotThere if error.code in _NOT_FOUND else TransferError
                msg = f"{url}: {error.code} {error.reason}"
                raise kind(msg) from error
        except (OSError, http.client.HTTPException) as error:
            if _is_timeout(error):
                self._silent[_first_hop(url)] = reason_of(error)
            msg = f"{url}: {reason_of(error)}"
            raise Broken(msg) from error
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


def _first_hop(url: str) -> tuple[str, int]:
    """Host and port that a request to ``url`` connects to: the server, or the proxy of the environment."""
    try:
        parts = urllib.parse.urlsplit(url)
        proxy = urllib.request.getproxies().get(parts.scheme)
        if parts.scheme in {"http", "https"} and proxy and not urllib.request.proxy_bypass(parts.netloc):
            parts = urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        msg = f"{url}: {error}"
        raise TransferError(msg) from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        msg = f"{url}: not an address of http or https"
        raise TransferError(msg)
    return parts.hostname, port


def _try_connect(host: tuple[str, int], timeout_s: float) -> str | None:
    """Connect once, in a thread since a name lookup has no time-out of its own; None when it worked."""
    outcome: list[str | None] = []

    def connect() -> None:
        try:
            socket.create_connection(host, timeout=timeout_s).close()
            outcome.append(None)
        except OSError as error:
            outcome.append(reason_of(error))

    thread = threading.Thread(target=connect, daemon=True, name=f"connect {host[0]}")
    thread.start()
    thread.join(timeout_s)
    return outcome[0] if outcome else f"no connection within {timeout_s:g} s"


def _is_timeout(error: BaseException) -> bool:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return isinstance(reason, TimeoutError)


def reason_of(error: BaseException) -> str:
    """Say in a few words what went wrong with a connection."""
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, BaseException):
        return reason_of(error.reason)
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
        msg = f"{url}: {reason_of(error)}"
        raise TransferError(msg) from error
