"""The certificates of a cluster: its CA, the API server's certificate, and client certificates.

kwokctl makes a CA of its own unless it finds one. We give it ours: its private keys are readable by the
user alone from their first byte on (kwokctl's are 0644), and its serial numbers are positive (kwokctl's CA
has serial 0, which the ``cryptography`` package announces to refuse). Keys are as kubeadm makes them,
RSA 2048, so that a TLS handshake and the check of a client certificate cost the API server what they
cost in real clusters; nodes have ECDSA P-256 keys, as kubelets do.

Signing one client certificate takes 1.1 ms, 7,000 take 7.5 s on one core.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = [
    "Authority",
    "Subject",
    "create_authority",
    "key_pem",
    "load_authority",
    "load_client_key",
    "new_client_key",
    "write_client",
    "write_private",
]

VALIDITY: Final = dt.timedelta(days=365)
CLOCK_SKEW: Final = dt.timedelta(hours=1)

SERVER_DNS_NAMES: Final = (
    "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Subject:
    """Who a client certificate is to the API server: a user and its groups."""

    user: str
    groups: tuple[str, ...] = ()


def write_private(path: Path, content: bytes | str) -> None:
    """Write a file that the user alone can read, replacing an older one as a whole."""
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as stream:
        stream.write(data)
    temporary.replace(path)


@dataclass(frozen=True, slots=True)
class Authority:
    """The cluster's certificate authority, able to sign."""

    name: x509.Name
    key: rsa.RSAPrivateKey

    def sign_clients(
        self, subjects: Iterable[Subject], public_key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey
    ) -> Iterator[bytes]:
        """Yield a client certificate (PEM) for each subject, all for one public key."""
        from cryptography import x509  # noqa: PLC0415
        from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
        from cryptography.x509.oid import ExtendedKeyUsageOID  # noqa: PLC0415

        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        for subject in subjects:
            builder = _builder(_name(subject), self.name, public_key).add_extension(usage, critical=False)
            yield builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def create_authority(pki_dir: Path, *, cluster: str, admin: Subject) -> Authority:
    """Make ``ca.crt``, ``ca.key``, ``admin.crt`` and ``admin.key`` where kwokctl looks for them.

    The admin certificate is, as in kwokctl's own layout, both the client certificate of ``admin`` and the
    serving certificate of the components, valid for ``127.0.0.1`` and ``localhost``.
    """
    pki_dir.mkdir(mode=0o700, parents=True)
    ca_key = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"scaletest-ca-{cluster}")])
    ca_certificate = (
        _builder(ca_name, ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .add_extension(_ca_usage(), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    admin_key = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
    alternative_names = [
        *(x509.DNSName(name) for name in SERVER_DNS_NAMES),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ]
    both_ways = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    admin_certificate = (
        _builder(_name(admin), ca_name, admin_key.public_key())
        .add_extension(x509.SubjectAlternativeName(alternative_names), critical=False)
        .add_extension(both_ways, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    write_private(pki_dir / "ca.key", key_pem(ca_key))
    write_private(pki_dir / "ca.crt", ca_certificate.public_bytes(serialization.Encoding.PEM))
    write_private(pki_dir / "admin.key", key_pem(admin_key))
    write_private(pki_dir / "admin.crt", admin_certificate.public_bytes(serialization.Encoding.PEM))
    return Authority(ca_name, ca_key)


def write_client(authority: Authority, directory: Path, name: str, subject: Subject) -> tuple[Path, Path]:
    """Make a client certificate with a key of its own: ``NAME.crt`` and ``NAME.key``."""
    key = new_client_key()
    (pem,) = authority.sign_clients([subject], key.public_key())
    certificate, private = directory / f"{name}.crt", directory / f"{name}.key"
    write_private(private, key_pem(key))
    write_private(certificate, pem)
    return certificate, private


def load_authority(pki_dir: Path) -> Authority:
    """Load the authority that ``create_authority`` made."""
    key = serialization.load_pem_private_key((pki_dir / "ca.key").read_bytes(), password=None)
    assert isinstance(key, rsa.RSAPrivateKey)
    certificate = x509.load_pem_x509_certificate((pki_dir / "ca.crt").read_bytes())
    return Authority(certificate.subject, key)


def new_client_key() -> ec.EllipticCurvePrivateKey:
    """Make a client's private key: ECDSA P-256, as kubelets have."""
    return ec.generate_private_key(ec.SECP256R1())


def load_client_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Load a key that ``new_client_key`` made."""
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def key_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    """Return a private key as unencrypted PEM (PKCS #1 or SEC 1, which every Go program reads)."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def _name(subject: Subject) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in subject.groups]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, subject.user)])


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + VALIDITY)
    )


def _ca_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
