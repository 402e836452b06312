"""Real local servers that misbehave on demand: each connection is handed to a function in a thread of its own."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from scaletest.core.access import ApiAccess, Credential

Handler = Callable[[socket.socket], None]


@dataclass(frozen=True)
class LocalServer:
    port: int
    connections: list[int]
    """One entry per accepted connection."""

    def url(self, scheme: str = "http") -> str:
        return f"{scheme}://127.0.0.1:{self.port}"


@contextlib.contextmanager
def serving(handler: Handler, *, tls: ssl.SSLContext | None = None) -> Iterator[LocalServer]:
    """Serve on a free port of loopback until the block ends; connections then open are closed."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    server = LocalServer(listener.getsockname()[1], [])
    open_sockets: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def one(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            with_tls = tls.wrap_socket(connection, server_side=True) if tls else connection
            open_sockets.append(with_tls)
            with contextlib.closing(with_tls):
                handler(with_tls)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                server.connections.append(connection.fileno())
                open_sockets.append(connection)
                thread = threading.Thread(target=one, args=(connection,))
                threads.append(thread)
                thread.start()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield server
    finally:
        # Closing a listening socket does not wake a thread in accept(); shutting it down does.
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        acceptor.join()
        for connection in open_sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        for connection in open_sockets:
            connection.close()


def closed_port() -> int:
    """Return a port of loopback on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def read_request(connection: socket.socket) -> str | None:
    """Read one request without a body; returns its head, or None at the end of the connection."""
    head = b""
    while b"\r\n\r\n" not in head:
        block = connection.recv(65536)
        if not block:
            return None
        head += block
    return head.decode()


def response(body: bytes, *, status: str = "200 OK", content_type: str = "application/json") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def answering(body: bytes, *, status: str = "200 OK", content_type: str = "application/json") -> Handler:
    """Answer every request of a connection alike, and keep it open."""

    def handler(connection: socket.socket) -> None:
        while read_request(connection) is not None:
            connection.sendall(response(body, status=status, content_type=content_type))

    return handler


def hanging(connection: socket.socket) -> None:
    """Read whatever comes, and never answer."""
    while connection.recv(65536):
        pass


def reset(connection: socket.socket) -> None:
    """End a connection with RST rather than FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@dataclass(frozen=True)
class Pki:
    ca_file: Path
    server: ssl.SSLContext
    """For a server at 127.0.0.1 that asks for a client certificate of the CA."""
    client_cert: Path
    client_key: Path

    def access(self, *servers: str, identity: str = "system:masters") -> ApiAccess:
        return ApiAccess(servers, self.ca_file, Credential(identity, self.client_cert, self.client_key))


def make_pki(directory: Path) -> Pki:
    """Make a CA, a server certificate for 127.0.0.1 and a client certificate."""
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca = _certificate("test-ca", ca_key, None, None)
    server_key, client_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    files = {
        "ca.crt": ca,
        "server.crt": _certificate("server", server_key, ca, ca_key),
        "client.crt": _certificate("client", client_key, ca, ca_key),
    }
    for name, certificate in files.items():
        (directory / name).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    for name, key in {"server.key": server_key, "client.key": client_key}.items():
        (directory / name).write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "server.crt", directory / "server.key")
    context.load_verify_locations(directory / "ca.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    return Pki(directory / "ca.crt", context, directory / "client.crt", directory / "client.key")


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey | None,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))]), critical=False
        )
    )
    return builder.sign(issuer_key or key, hashes.SHA256())
