"""A server of release files on loopback, with the faults of real ones."""

from __future__ import annotations

import datetime as dt
import hashlib
import http.server
import ipaddress
import ssl
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass
class ReleaseServer:
    """Serves ``files`` by path; the fields are switches that a test turns."""

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    etags: bool = True
    content_length: bool = True
    redirects: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    cut_after_bytes: deque[int] = field(default_factory=deque)
    """For each of the next answers to a GET: after how many bytes of body the connection is closed."""
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, path and Range header of every request."""
    base: str = ""

    def publish(self, path: str, content: bytes) -> None:
        self.files[path] = content
        self.files[path + ".sha256"] = hashlib.sha256(content).hexdigest().encode()

    def gets(self, path: str) -> list[str | None]:
        return [range_ for method, asked, range_ in self.requests if method == "GET" and asked == path]


class _Handler(http.server.BaseHTTPRequestHandler):
    release: ReleaseServer

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        path = self.path
        self.release.requests.append((self.command, path, self.headers.get("Range")))
        if path in self.release.redirects:
            self._plain(302, {"Location": self.release.redirects[path]})
            return
        if path in self.release.statuses or path not in self.release.files:
            self._plain(self.release.statuses.get(path, 404), {})
            return
        content = self.release.files[path]
        etag = '"' + hashlib.sha256(content).hexdigest()[:16] + '"'
        start = self._range_start(etag) if self.release.ranges else 0
        if start and start >= len(content):
            self._plain(416, {"Content-Range": f"bytes */{len(content)}"})
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if self.release.etags:
            self.send_header("ETag", etag)
        if self.release.content_length:
            self.send_header("Content-Length", str(len(content) - start))
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        if body:
            rest = content[start:]
            if self.release.cut_after_bytes:
                rest = rest[: self.release.cut_after_bytes.popleft()]
            self.wfile.write(rest)

    def _range_start(self, etag: str) -> int:
        header = self.headers.get("Range")
        if header is None or self.headers.get("If-Range", etag) != etag:
            return 0
        return int(header.removeprefix("bytes=").removesuffix("-"))

    def _plain(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[ReleaseServer]:
    server = ReleaseServer()
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), type("Handler", (_Handler,), {"release": server})
    ) as http_server:
        if tls is not None:
            http_server.socket = tls.wrap_socket(http_server.socket, server_side=True)
        server.base = f"{'https' if tls else 'http'}://127.0.0.1:{http_server.server_address[1]}"
        thread = threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            http_server.shutdown()
            thread.join()


def loopback_tls(directory: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's and a client's TLS context around a certificate made for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = directory / "cert.pem", directory / "key.pem"
    cert_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert_file, key_file)
    return server, ssl.create_default_context(cafile=str(cert_file))
