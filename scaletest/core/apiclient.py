"""GET from one API server (or etcd's ``/metrics``) on a kept connection, with every way to fail told apart.

An ``ApiClient`` is one identity at one server. The real one speaks HTTP/1.1 by aiohttp, imported when
the first client is made; the fake one answers from a script. Both never raise for what a server or
the network does: that is an ``Answer`` with an outcome.

    ok         2xx, the whole body, within the time-out
    http_429   any other status, by number
    timeout    no complete answer within the time-out
    refused    nothing listens
    reset      the connection ended before an answer began
    cut_short  the connection ended within the answer
    tls        the handshake failed (certificate, protocol)
    error      anything else; the reason says what

As Go's HTTP client does, aiohttp sends a GET once more, on a new connection, when a *kept* connection
turns out to be dead before the first byte of the answer; the time-out covers both attempts.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import socket
import ssl
import time
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from scaletest.core.access import ApiAccess

__all__ = ["Answer", "ApiClient", "FakeApiClient", "HttpApiClient", "tls_context"]

_REASON_CHARS: Final = 200
_CLOSE_TURNS: Final = 100
"""After a time-out asyncio waits 30 s for the other side's TLS farewell, which a hung server never sends: such sockets
are shut down instead, and their transports get a few turns of the event loop to notice."""
_RESET_ERRNOS: Final = {errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one request; ``latency_s`` runs from its start to the last byte of the body or to its failure."""

    outcome: str
    latency_s: float
    status: int | None = None
    reason: str | None = None
    body: bytes = b""

    @property
    def ok(self) -> bool:
        """Whether this is a 2xx answer, complete and in time."""
        return self.outcome == "ok"


class ApiClient(Protocol):
    """One identity at one server."""

    async def get(self, path: str, *, timeout_s: float, accept: str = "application/json") -> Answer:
        """GET ``path`` (with its query) and read the whole body; never raises for what server or network do."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


def tls_context(access: ApiAccess) -> ssl.SSLContext:
    """Return a context that trusts the cluster's CA alone and shows the credential's certificate, if it has one."""
    # ssl.create_default_context asks for RFC 5280 strictness from Python 3.13 on, which many cluster CAs fail.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(access.ca_file)
    credential = access.credential
    if credential.cert_file is not None:
        context.load_cert_chain(credential.cert_file, credential.key_file)
    return context


class HttpApiClient:
    """Speaks to one server. Make it within a running event loop.

    ``keep_s`` is how long an idle connection is kept: connections opened while an answer was slow go away
    after it, the one in regular use stays.
    """

    def __init__(self, server: str, *, access: ApiAccess | None = None, keep_s: float = 75.0) -> None:
        import aiohttp  # noqa: PLC0415 - 0.2 s that `scaletest --help` must not pay

        # The API server compresses bodies over 128 KiB when asked to: CPU of the thing under test, for nothing here.
        headers = {"Accept-Encoding": "identity", "User-Agent": "scaletest"}
        if access is not None and access.credential.token_file is not None:
            token = access.credential.token_file.read_text(encoding="ascii").strip()
            headers["Authorization"] = f"Bearer {token}"
        self._server = server.rstrip("/")
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                ssl=tls_context(access) if access is not None else True,
                limit=0,
                keepalive_timeout=keep_s,
                socket_factory=self._socket,
            ),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            # aiohttp rounds time-outs over five seconds up to whole ones, so the clock is ours.
            timeout=aiohttp.ClientTimeout(total=None),
        )

    async def get(self, path: str, *, timeout_s: float, accept: str = "application/json") -> Answer:
        """GET ``path`` (with its query) and read the whole body; never raises for what server or network do."""
        started_s = time.monotonic()
        status: int | None = None
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._session.get(
                    _url(self._server + path), headers={"Accept": accept}, allow_redirects=False
                ) as response,
            ):
                status = response.status
                body = await response.read()
        except Exception as error:  # noqa: BLE001 - every failure is an observation
            outcome, reason = outcome_of(error, answer_began=status is not None)
            return Answer(outcome, time.monotonic() - started_s, status, reason)
        latency_s = time.monotonic() - started_s
        if 200 <= status < 300:
            return Answer("ok", latency_s, status, None, body)
        return Answer(f"http_{status}", latency_s, status, status_reason(body), body)

    async def close(self) -> None:
        """Close the connections, those to a server that no longer takes part as well."""
        await self._session.close()
        for _ in range(_CLOSE_TURNS):
            left = [one for one in self._sockets if one.fileno() >= 0]
            if not left:
                return
            for one in left:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            await asyncio.sleep(0.001)

    def _socket(self, address: tuple[Any, ...]) -> socket.socket:
        made = socket.socket(*address[:3])
        made.setblocking(False)
        self._sockets.add(made)
        return made


def _url(text: str) -> Any:
    from yarl import URL  # noqa: PLC0415 - comes with aiohttp

    return URL(text, encoded=True)


def outcome_of(error: BaseException, *, answer_began: bool) -> tuple[str, str | None]:
    """Name a failure and give its reason. ``answer_began``: whether a status line had been read."""
    import aiohttp  # noqa: PLC0415

    reason = _head(f"{type(error).__name__}: {error}")
    if isinstance(error, TimeoutError):
        return "timeout", "within the answer" if answer_began else None
    if answer_began:
        return "cut_short", reason
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(error, aiohttp.ClientSSLError) or isinstance(cause, ssl.SSLError):
        return "tls", reason
    if isinstance(cause, ConnectionRefusedError):
        return "refused", None
    if isinstance(cause, aiohttp.ServerDisconnectedError | ConnectionError) or (
        isinstance(cause, OSError) and cause.errno in _RESET_ERRNOS
    ):
        return "reset", None
    return "error", reason


def status_reason(body: bytes) -> str | None:
    """Return reason and message of a Kubernetes Status, or the head of any other text; None when there is none."""
    try:
        status: Any = json.loads(body)
    except ValueError:
        return _head(body[: 4 * _REASON_CHARS].decode(errors="replace")) or None
    if isinstance(status, dict) and (status.get("reason") or status.get("message")):
        return _head(": ".join(str(part) for part in (status.get("reason"), status.get("message")) if part))
    return _head(body[: 4 * _REASON_CHARS].decode(errors="replace")) or None


def _head(text: str) -> str:
    return " ".join(text.split())[:_REASON_CHARS]


@dataclass
class FakeApiClient:
    """Answers every request by calling ``script`` with its path; keeps the paths."""

    script: Callable[[str], Awaitable[Answer]]
    paths: list[str] = field(default_factory=list)
    closed: bool = False

    async def get(self, path: str, *, timeout_s: float, accept: str = "application/json") -> Answer:
        """Answer from the script, within the time-out."""
        self.paths.append(path)
        assert accept
        try:
            return await asyncio.wait_for(self.script(path), timeout_s)
        except TimeoutError:
            return Answer("timeout", timeout_s)

    async def close(self) -> None:
        """Note that the client was closed."""
        self.closed = True
