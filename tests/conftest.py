"""Settings and fixtures for all tests."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.serving import Serve, server_maker

# No deadline: the machine is small and shared. The same examples in every run: a test that fails, fails again.
settings.register_profile("scaletest", deadline=None, derandomize=True)
settings.load_profile("scaletest")


TOGETHER = ("tests/test_wheel.py", "tests/e2e/test_cluster.py", "tests/e2e/test_fleet.py")
"""Files whose tests share what takes many seconds to make: of several processes, one runs them."""


class _Scheduling(LoadScopeScheduling):  # type: ignore[misc] # xdist is not typed
    """Hands out test by test, and the tests of some files together."""

    def _split_scope(self, nodeid: str) -> str:
        return next((file for file in TOGETHER if nodeid.startswith(file)), nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _Scheduling:
    """Schedule as above; ``--dist loadgroup`` would do, but xdist 3.8 finds no groups under pytest 9."""
    return _Scheduling(config, log)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give end-to-end tests a second try, shown as R: real control planes on a shared machine are sometimes late."""
    if item.get_closest_marker("e2e"):
        item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give several processes the long tests first."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.get_closest_marker("e2e") is None and not item.nodeid.startswith(TOGETHER))


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
