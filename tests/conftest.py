"""Settings and fixtures for all tests."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import settings

from tests.serving import Serve, server_maker

# No deadline: the machine is small and shared. The same examples in every run: a test that fails, fails again.
settings.register_profile("scaletest", deadline=None, derandomize=True)
settings.load_profile("scaletest")


SHARED = {"cluster": "cluster", "stamped": "fleet", "created": "fleet", "installed": "wheel"}
"""Fixtures that take seconds to make: the tests that share one run in one process."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give end-to-end tests a second try, shown as R, and several processes the long tests first.

    A second try, since real control planes on a shared machine are sometimes late.
    """
    for item in items:
        if item.get_closest_marker("e2e"):
            item.add_marker(pytest.mark.flaky(reruns=1))
        group = next((SHARED[name] for name in getattr(item, "fixturenames", ()) if name in SHARED), None)
        if group is not None:
            item.add_marker(pytest.mark.xdist_group(group))
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.get_closest_marker("e2e") is None)


@pytest.fixture(scope="session")
def ca_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some CA: a client needs one, though it speaks plain HTTP here."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
        .not_valid_before(now).not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    path = tmp_path_factory.mktemp("ca") / "ca.crt"
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
def served(ca_file: Path) -> Serve:
    """Serve: ``async with served(answer) as server``."""
    return server_maker(ca_file)
