from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from scaletest.controlplane.binaries.web import NotThere, TransferError, Web
from tests.controlplane.binaries.release_server import ReleaseServer, loopback_tls, serving


@pytest.mark.parametrize(("status", "kind"), [(404, NotThere), (403, NotThere), (500, TransferError)])
def test_a_refusal_names_address_and_status(server: ReleaseServer, status: int, kind: type[TransferError]) -> None:
    server.statuses["/file"] = status

    with pytest.raises(kind, match=rf"{server.base}/file: {status} "):
        Web().text(server.base + "/file")


def test_a_refused_connection_is_remembered() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    one = Web()

    for _ in range(2):
        with pytest.raises(TransferError, match=f"127.0.0.1:{port}: Connection refused"):
            one.text(f"http://127.0.0.1:{port}/file")
        # Were it asked again, this server would answer.
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_a_host_that_drops_packets_costs_one_short_wait() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        # Linux queues one more connection than the backlog says; then SYNs are dropped.
        port = full.getsockname()[1]
        queued = [socket.socket() for _ in range(4)]
        for client in queued:
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
        one = Web()
        began_s = time.monotonic()
        for _ in range(6):
            with pytest.raises(TransferError, match=r"no (answer in time|connection within 2\.5 s)"):
                one.text(f"http://127.0.0.1:{port}/file")
        took_s = time.monotonic() - began_s
        for client in queued:
            client.close()

    assert 2.0 < took_s < 10.0


def test_a_name_that_does_not_exist_is_said() -> None:
    with pytest.raises(TransferError, match=r"^no-such-host\.invalid:443: "):
        Web().text("https://no-such-host.invalid/file")


def test_an_existing_file_is_known_without_its_content(server: ReleaseServer) -> None:
    server.publish("/file", b"text")
    server.redirects["/elsewhere"] = "http://no-such-host.invalid/signed"

    Web().exists(server.base + "/file")
    Web().exists(server.base + "/elsewhere")
    with pytest.raises(NotThere):
        Web().exists(server.base + "/missing")

    assert server.gets("/file") == []


def test_a_redirect_is_followed(server: ReleaseServer) -> None:
    server.files["/there"] = b"text"
    server.redirects["/here"] = server.base + "/there"

    assert Web().text(server.base + "/here") == "text"


def test_other_schemes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")

    with pytest.raises(TransferError, match="not an address of http or https"):
        Web().text((tmp_path / "secret").as_uri())


@pytest.mark.parametrize(
    "url", ["nonsense/x", "http://127.0.0.1:port/x", "http://[::1/x", "https:///x", "http://a b/x", "http://h:99999/"]
)
def test_what_is_no_address_is_an_error_and_no_crash(url: str) -> None:
    with pytest.raises(TransferError):
        Web().text(url)


def test_a_proxy_of_the_environment_is_what_must_answer(server: ReleaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.files["http://no-such-host.invalid/file"] = b"through the proxy"
    monkeypatch.setenv("http_proxy", server.base)

    assert Web().text("http://no-such-host.invalid/file") == "through the proxy"


def test_https_is_verified_and_never_left_for_http(server: ReleaseServer, tmp_path: Path) -> None:
    server_tls, client_tls = loopback_tls(tmp_path)
    server.files["/file"] = b"text"
    with serving(server_tls) as secure:
        secure.files["/file"] = b"text"
        secure.redirects["/down"] = server.base + "/file"
        trusting = Web(ssl_context=client_tls)

        assert trusting.text(secure.base + "/file") == "text"
        with pytest.raises(TransferError, match="which is not https"):
            trusting.text(secure.base + "/down")
        with pytest.raises(TransferError, match="TLS: self-signed certificate"):
            Web().text(secure.base + "/file")
