"""A TLS server in a child process, its certificates, and one driver process shared by the tests of flows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.load.harness import Authority, Drivers, TestServer

SERVER = Path(__file__).with_name("server.py")


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="session")
def foreign_ca_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificate of an authority that signed nothing here."""
    return Authority(tmp_path_factory.mktemp("foreign")).ca_file


@pytest.fixture(scope="session")
def server(authority: Authority) -> Iterator[TestServer]:
    cert_file, key_file = authority.issue("server")
    with subprocess.Popen(
        [sys.executable, SERVER, cert_file, key_file, authority.ca_file],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        yield TestServer(f"https://127.0.0.1:{port}", authority, authority.credential("agent"))
        assert process.stdin is not None
        process.stdin.close()
        process.wait(10)


@pytest.fixture(scope="session")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    drivers = Drivers(tmp_path_factory.mktemp("run"))
    yield drivers
    drivers.close()
