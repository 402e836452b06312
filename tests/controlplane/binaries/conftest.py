from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.controlplane.binaries.release_server import ReleaseServer, serving


@pytest.fixture
def server() -> Iterator[ReleaseServer]:
    with serving() as release_server:
        yield release_server
