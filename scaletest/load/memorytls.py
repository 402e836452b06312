"""TLS over memory: one system call takes all the records that a socket holds.

OpenSSL on a socket reads each record with two system calls, its five bytes of header and the rest; the API server writes a list's
objects in records of 3 to 4 KiB. Over memory a body costs three quarters as much (2.6 ms of CPU per MB, where a loop of ``recv_into`` takes
3.5), a small answer the same.
"""

from __future__ import annotations

import ssl
from typing import Any

from gevent import socket

from scaletest.load.connection import Endpoint, Sockets, open_tcp

__all__ = ["MemoryTls"]

_HANDSHAKE_BYTES = 64 * 1024


class MemoryTls:
    """A TLS connection whose socket is read and written when its owner says so; only ``connect`` waits."""

    __slots__ = ("_closed_by_peer", "_incoming", "_object", "_outgoing", "_raw", "_sockets", "_tcp")

    def __init__(self, sockets: Sockets, tcp: socket.socket, context: ssl.SSLContext, host: str) -> None:
        self._sockets = sockets
        self._tcp = tcp
        # The non-blocking socket inside gevent's, whose own methods would wait.
        self._raw: Any = tcp._sock  # noqa: SLF001
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        wrapped: Any = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._object: Any = wrapped._sslobj  # noqa: SLF001 - one Python call less for each record
        self._closed_by_peer = False

    @classmethod
    def connect(cls, sockets: Sockets, endpoint: Endpoint, context: ssl.SSLContext, *, source: str | None) -> MemoryTls:
        """Open a TCP and TLS connection; waits, in the caller's greenlet. Raises OSError, SSLError among them."""
        tcp = open_tcp(endpoint, source=source)
        try:
            tls = cls(sockets, tcp, context, endpoint.host)
            tls._shake_hands()
        except BaseException:
            tcp.close()
            raise
        return tls

    def _shake_hands(self) -> None:
        while True:
            try:
                self._object.do_handshake()
            except ssl.SSLWantReadError:
                self._tcp.sendall(self._outgoing.read())
                data = self._tcp.recv(_HANDSHAKE_BYTES)
                if data:
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
            else:
                self._tcp.sendall(self._outgoing.read())
                return

    def fileno(self) -> int:
        """File descriptor of the socket."""
        return int(self._tcp.fileno())

    def close(self) -> None:
        """Close the socket."""
        self._tcp.close()

    def send(self, data: bytes) -> bytes:
        """Encrypt and send; return what the socket did not take, encrypted, for ``send_rest``. Raises OSError."""
        self._object.write(data)
        return self.send_rest(self._outgoing.read())

    def send_rest(self, encrypted: bytes) -> bytes:
        """Send what ``send`` or this returned; return what the socket did not take. Raises OSError."""
        try:
            sent = self._raw.send(encrypted)
        except BlockingIOError:
            return encrypted
        return encrypted[sent:]

    def take_one(self) -> int:
        """Receive once, and read a record into the shared buffer; return its bytes, 0 at the end.

        Raises SSLWantReadError when no record is whole, OSError.
        """
        if not self._receive():
            return self.take()
        try:
            count: int = self._object.read(len(self._sockets.view), self._sockets.buffer)
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return 0
        return count

    def take(self) -> int:
        """Read what is there into the shared buffer, as far as it goes; return the bytes read, 0 at the end.

        Raises SSLWantReadError for nothing, OSError.
        """
        view, filled = self._sockets.view, 0
        size, read, may_receive = len(view), self._object.read, True
        while filled < size:
            try:
                count = read(size - filled, view[filled:])
            except ssl.SSLWantReadError:
                # What one system call brought is all that there was, or nearly.
                if may_receive and self._receive():
                    may_receive = False
                    continue
                if not filled and not self._closed_by_peer:
                    raise
                break
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                break
            if not count:
                break
            filled += count
        if self._outgoing.pending:
            # What TLS itself has to say: a key update, an alert.
            self.send_rest(self._outgoing.read())
        return filled

    def _receive(self) -> bool:
        """Receive what the socket holds, at most a buffer full; whether there was anything, the end included."""
        if self._closed_by_peer:
            return False
        try:
            count = self._raw.recv_into(self._sockets.encrypted)
        except BlockingIOError:
            return False
        if count:
            self._incoming.write(self._sockets.encrypted_view[:count])
        else:
            self._closed_by_peer = True
            self._incoming.write_eof()
        return True
