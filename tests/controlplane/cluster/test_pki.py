"""Certificates verify against the cluster's CA, for both ends, and keys are private from the first byte."""

from __future__ import annotations

import socket
import ssl
import stat
import threading
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from scaletest.controlplane import pki
from scaletest.controlplane.identities import CONTROLLERS, controller_kubeconfig, write_controllers
from scaletest.controlplane.pki import Subject

ADMIN = Subject("kwok-admin", ("system:masters",))


@pytest.fixture(scope="module")
def pki_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("cluster") / "kwok" / "pki"
    pki.create_authority(directory, cluster="t", admin=ADMIN)
    return directory


def test_every_file_is_readable_by_its_owner_only(pki_dir: Path) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in pki_dir.iterdir()}

    assert dict.fromkeys(("admin.crt", "admin.key", "ca.crt", "ca.key"), 0o600) == modes


def test_the_admin_certificate_carries_user_and_group(pki_dir: Path) -> None:
    certificate = x509.load_pem_x509_certificate((pki_dir / "admin.crt").read_bytes())

    assert "CN=kwok-admin,O=system:masters" == certificate.subject.rfc4514_string()


def test_controllers_have_certificates_and_kubeconfigs_of_their_own(tmp_path: Path) -> None:
    authority = pki.create_authority(tmp_path / "pki", cluster="t", admin=ADMIN)
    write_controllers(authority, tmp_path / "pki", "https://127.0.0.1:20001")

    for component, user in CONTROLLERS.items():
        path = controller_kubeconfig(tmp_path / "pki", component)
        (entry,) = yaml.safe_load(path.read_text())["users"]
        certificate = x509.load_pem_x509_certificate(Path(entry["user"]["client-certificate"]).read_bytes())
        assert f"CN={user}" == certificate.subject.rfc4514_string()
        assert 0o600 == stat.S_IMODE(path.stat().st_mode)


def test_serial_numbers_are_positive(pki_dir: Path) -> None:
    serials = [
        x509.load_pem_x509_certificate((pki_dir / f"{name}.crt").read_bytes()).serial_number for name in ("ca", "admin")
    ]

    assert all(serial > 0 for serial in serials)


def handshake(pki_dir: Path, client: ssl.SSLContext, host: str) -> dict[str, object]:
    """Shake hands over a pair of sockets, as server with the admin certificate; return the client's certificate."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pki_dir / "admin.crt", pki_dir / "admin.key")
    server.load_verify_locations(pki_dir / "ca.crt")
    server.verify_mode = ssl.CERT_REQUIRED
    near, far = socket.socketpair()
    seen: dict[str, object] = {}

    def serve() -> None:
        try:
            with server.wrap_socket(far, server_side=True) as wrapped:
                seen.update(wrapped.getpeercert() or {})
                wrapped.sendall(b"x")
        except ssl.SSLError:
            far.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(near, server_hostname=host) as wrapped:
            wrapped.recv(1)
    finally:
        near.close()
        thread.join()
    return seen


def client_context(pki_dir: Path, certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(pki_dir / "ca.crt"))
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.load_cert_chain(certificate, key)
    return context


def test_a_strict_client_trusts_the_server_on_loopback_and_the_server_a_signed_node(
    pki_dir: Path, tmp_path: Path
) -> None:
    key = pki.new_client_key()
    (pem,) = pki.load_authority(pki_dir).sign_clients([Subject("system:node:n1", ("system:nodes",))], key.public_key())
    pki.write_private(tmp_path / "n1.crt", pem)
    pki.write_private(tmp_path / "n1.key", pki.key_pem(key))

    seen = handshake(pki_dir, client_context(pki_dir, tmp_path / "n1.crt", tmp_path / "n1.key"), "127.0.0.1")

    expected = ((("organizationName", "system:nodes"),), (("commonName", "system:node:n1"),))
    assert expected == seen["subject"]


def test_the_server_certificate_is_for_no_other_host(pki_dir: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(pki_dir, client_context(pki_dir, pki_dir / "admin.crt", pki_dir / "admin.key"), "192.0.2.1")


def test_a_client_key_is_the_same_after_it_was_stored(tmp_path: Path) -> None:
    key = pki.new_client_key()
    pki.write_private(tmp_path / "key", pki.key_pem(key))

    assert key.public_key() == pki.load_client_key(tmp_path / "key").public_key()


def test_a_private_file_replaces_an_older_one_of_other_mode(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    path.chmod(0o644)

    pki.write_private(path, "new")

    assert ("new", 0o600) == (path.read_text(), stat.S_IMODE(path.stat().st_mode))
    assert [path] == list(tmp_path.iterdir())
