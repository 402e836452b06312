"""Connections to API servers: TLS over gevent sockets, answers drained into one shared buffer.

All connections of the process read into one buffer of 256 KiB. That is safe because a reader walks what it received
before it lets another greenlet run: nothing is left in the buffer while somebody waits.
"""

from __future__ import annotations

import errno
import socket as stdlib_socket
import ssl as stdlib_ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import gevent
from gevent import socket, ssl

from scaletest.core.access import Credential
from scaletest.load.http1 import Body, Head, HeadReader, Sink
from scaletest.load.outcomes import AnswerCutShort, PeerClosed

__all__ = ["Answer", "ChooseSink", "Connection", "Endpoint", "Socket", "Sockets", "TlsContexts", "connect", "open_tcp"]

BUFFER_BYTES = 256 * 1024

ChooseSink = Callable[[Head], Sink | None]

FAIR_BYTES = 1024 * 1024
"""Body bytes after which a reader lets others run: 3 to 4 ms of reading, since a fast server never makes it wait."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An API server, its name resolved once."""

    host: str
    port: int
    family: int
    address: tuple[str, int]

    @classmethod
    def resolve(cls, server: str) -> Endpoint:
        """Resolve ``https://HOST:PORT``. Raises OSError when the name has no address."""
        parts = urlsplit(server)
        host, port = parts.hostname or "", parts.port or 443
        family, _, _, _, address = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)[0]
        return cls(host, port, int(family), (str(address[0]), int(address[1])))

    @property
    def header(self) -> str:
        """Value of the Host header."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Socket(Protocol):
    """What is known of every connection of the process."""

    reads: int
    """How often bytes were taken from it."""

    def fileno(self) -> int:
        """File descriptor of the socket."""


class Sockets:
    """All connections of the process, those that wait for bytes, and the buffers that they share."""

    def __init__(self) -> None:
        self.buffer = bytearray(BUFFER_BYTES)
        self.view = memoryview(self.buffer)
        self.encrypted = bytearray(BUFFER_BYTES)
        """For ``memorytls``: what came from a socket, until it is decrypted."""
        self.encrypted_view = memoryview(self.encrypted)
        self.open: set[Socket] = set()
        self.reading: set[Socket] = set()


class TlsSocket(ssl.SSLSocket):  # type: ignore[misc] # gevent does not type it
    """gevent's TLS socket, with a read that takes all that is there.

    The API server writes an object a record (4 KiB): one Python call for each, not three, is a third of the CPU per MB.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._ended = False

    def fill(self, view: memoryview) -> int:
        """Wait for the first byte, read what is there into ``view``; return the bytes read, 0 at the end."""
        while True:
            try:
                return self.take(view)
            except stdlib_ssl.SSLWantReadError:
                self._wait(self._read_event)

    def take(self, view: memoryview) -> int:
        """Read what is there into ``view``; return the bytes read, 0 at the end. Raises SSLWantReadError for nothing."""
        if self._ended:
            return 0
        if self._sslobj is None:
            raise OSError(errno.EBADF, "closed under its reader")
        size, filled = len(view), 0
        read = self._sslobj.read
        try:
            while filled < size:
                count = read(size - filled, view[filled:])
                if not count:
                    self._ended = True
                    return filled
                filled += count
            return filled
        except stdlib_ssl.SSLEOFError:
            # Closed without close_notify, as a killed server does: for HTTP an end like any other.
            self._ended = True
            return filled
        except OSError:
            # SSLWantReadError is one. An error comes again with the next read.
            if not filled:
                raise
            return filled


class TlsContexts:
    """One TLS context for each credential: verifies the CA and the host's name, offers HTTP/1.1 only."""

    def __init__(self, ca_file: Path) -> None:
        self._ca_file = ca_file
        self._contexts: dict[Credential, ssl.SSLContext] = {}

    def get(self, credential: Credential) -> ssl.SSLContext:
        """Return the context of a credential. Raises OSError (SSLError too) when its files cannot be read."""
        context = self._contexts.get(credential)
        if context is None:
            context = ssl.SSLContext(stdlib_ssl.PROTOCOL_TLS_CLIENT)
            context.sslsocket_class = TlsSocket
            context.load_verify_locations(self._ca_file)
            if credential.cert_file is not None:
                context.load_cert_chain(credential.cert_file, credential.key_file)
            self._contexts[credential] = context
        return context


class Answer:
    """An answer as it comes in; can be read when the exchange ended in an exception, too."""

    __slots__ = ("began", "body", "head", "sink")

    def __init__(self) -> None:
        self.began = False
        self.head: Head | None = None
        self.body: Body | None = None
        self.sink: Sink | None = None

    @property
    def status(self) -> int | None:
        """HTTP status, None before the head is whole."""
        return self.head.status if self.head is not None else None

    @property
    def body_bytes(self) -> int:
        """Body bytes received so far."""
        return self.body.received_bytes if self.body is not None else 0


class Connection:
    """A connection on which one request is in flight at a time."""

    __slots__ = ("_socket", "_sockets", "_unyielded_bytes", "endpoint", "is_open", "on_close", "reads")

    def __init__(self, sockets: Sockets, endpoint: Endpoint, tls: TlsSocket, on_close: Callable[[], None]) -> None:
        self._sockets = sockets
        self._socket = tls
        self.endpoint = endpoint
        self.on_close = on_close
        self.is_open = True
        self.reads = 0
        self._unyielded_bytes = 0
        sockets.open.add(self)

    def fileno(self) -> int:
        """File descriptor of the socket."""
        return int(self._socket.fileno())

    @property
    def is_busy(self) -> bool:
        """Whether a request was sent on it whose answer is not whole yet."""
        return self in self._sockets.reading

    def close(self) -> None:
        """Close the socket; whoever reads from it gets an OSError. A second call does nothing."""
        if self.is_open:
            self.is_open = False
            self._sockets.open.discard(self)
            self._sockets.reading.discard(self)
            self._socket.close()
            self.on_close()

    def begin(self, request: bytes, answer: Answer, choose_sink: ChooseSink) -> None:
        """Send a request and read the answer's head, with the part of the body that came along.

        Raises PeerClosed when the peer closes before the first byte, AnswerCutShort after it, MalformedAnswer,
        and OSError.
        """
        sent = self._socket.send(request)
        if sent != len(request):
            self._socket.sendall(request[sent:])
        self._sockets.reading.add(self)
        reader, buffer = HeadReader(), self._sockets.buffer
        while True:
            end = self._receive()
            if not end:
                raise AnswerCutShort if answer.began else PeerClosed
            answer.began = True
            head, position = reader.feed(buffer, 0, end)
            if head is not None:
                break
        answer.head, answer.body = head, head.body
        answer.sink = choose_sink(head)
        self._feed(answer, position, end)

    def advance(self, answer: Answer) -> bool:
        """Receive once; False when the body is whole. Raises AnswerCutShort, MalformedAnswer, OSError."""
        assert answer.body is not None
        return not answer.body.done and self._took(answer, self._receive())

    def take(self, answer: Answer) -> bool:
        """Receive what is there, at most a buffer full, for whoever may not wait; False when the body is whole.

        Raises SSLWantReadError for nothing, and as ``advance``.
        """
        assert answer.body is not None
        if answer.body.done:
            return False
        self.reads += 1
        return self._took(answer, self._socket.take(self._sockets.view))

    @property
    def holds_bytes(self) -> bool:
        """Whether TLS has decrypted bytes that were not taken: they do not make the socket readable again."""
        return bool(self._socket.pending())

    def _took(self, answer: Answer, end: int) -> bool:
        """Walk what was received; False at the peer's end. Raises AnswerCutShort, MalformedAnswer."""
        if end:
            self._feed(answer, 0, end)
            return True
        assert answer.body is not None
        if not answer.body.at_eof():
            raise AnswerCutShort
        return False

    def finish(self, answer: Answer) -> None:
        """Read the rest of the body; closes the connection if it cannot be used again. Raises as ``advance``."""
        while self.advance(answer):
            pass
        self._sockets.reading.discard(self)
        assert answer.head is not None
        if not answer.head.keep_alive:
            self.close()

    def _feed(self, answer: Answer, position: int, end: int) -> None:
        assert answer.body is not None
        assert answer.head is not None
        stop = answer.body.feed(self._sockets.buffer, position, end, answer.sink)
        if stop < end:
            # Bytes after the answer belong to nothing that we asked for.
            answer.head.keep_alive = False

    def _receive(self) -> int:
        if self._unyielded_bytes >= FAIR_BYTES:
            self._unyielded_bytes = 0
            gevent.sleep(0)
        if not self.is_open:
            raise OSError(errno.EBADF, "closed while it was read")
        count = self._socket.fill(self._sockets.view)
        self.reads += 1
        self._unyielded_bytes += count
        return count


def connect(
    sockets: Sockets,
    endpoint: Endpoint,
    context: ssl.SSLContext,
    *,
    source: str | None,
    on_close: Callable[[], None],
) -> Connection:
    """Open a TCP and TLS connection from ``source`` (any port). Raises OSError, SSLError among them."""
    return Connection(sockets, endpoint, _open_tls(endpoint, context, source=source), on_close)


def open_tcp(endpoint: Endpoint, *, source: str | None) -> socket.socket:
    """Open a TCP connection from ``source`` (any port). Raises OSError."""
    raw = socket.socket(endpoint.family, socket.SOCK_STREAM)
    try:
        if source is not None:
            # The port is chosen at connect, so that one port serves for every server.
            raw.setsockopt(socket.IPPROTO_IP, stdlib_socket.IP_BIND_ADDRESS_NO_PORT, 1)
            raw.bind((source, 0))
        raw.connect(endpoint.address)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        raw.close()
        raise
    return raw


def _open_tls(endpoint: Endpoint, context: ssl.SSLContext, *, source: str | None) -> TlsSocket:
    raw = open_tcp(endpoint, source=source)
    try:
        tls: TlsSocket = context.wrap_socket(
            raw, server_hostname=endpoint.host, do_handshake_on_connect=False, suppress_ragged_eofs=False
        )
    except BaseException:
        raw.close()
        raise
    try:
        tls.do_handshake()
    except BaseException:
        tls.close()
        raise
    return tls
