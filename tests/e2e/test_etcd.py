"""The ``etcd`` flow against a real etcd: every operation, what etcd itself counts of it, and that nothing is left."""

from __future__ import annotations

import asyncio
import re
import time
import urllib.request
from pathlib import Path
from typing import Any

import aetcd
import pytest

from scaletest.controlplane.cluster import KwokControlPlane
from scaletest.load.client import LocustDriver
from scaletest.load.protocol import FlowStart
from scaletest.profile.schema import FlowSpec
from tests.e2e.test_load import reached
from tests.load.harness import FlowResult

pytestmark = pytest.mark.e2e

PREFIX = b"/scaletest/"
OPERATIONS: list[dict[str, Any]] = [
    {"op": "put"},
    {"op": "range", "label": "get"},
    {"op": "range", "label": "some", "keys": 10, "consistency": "serializable"},
    {"op": "txn", "keys": 3},
    {"op": "delete"},
    {"op": "lease", "ttl": "60s", "weight": 4},
]
ASKED = ("put", "get", "some", "txn", "delete", "lease", "revoke")


def counted(endpoint: str) -> dict[str, int]:
    """What etcd has done so far, by its own count."""
    with urllib.request.urlopen(f"{endpoint}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = re.findall(r"^etcd_mvcc_(put|delete)_total (\S+)$", text, re.MULTILINE)
    leases = re.search(r"^etcd_debugging_lease_granted_total (\S+)$", text, re.MULTILINE)
    return {name: int(float(value)) for name, value in found} | {"lease": int(float(leases[1])) if leases else 0}


async def keys_of(endpoint: str) -> list[bytes]:
    host, port = endpoint.removeprefix("http://").split(":")
    async with aetcd.Client(host=host, port=int(port)) as client:
        return [item.key for item in await client.get_prefix(PREFIX)]


def test_every_operation_is_what_etcd_takes_and_nothing_is_left(cluster: KwokControlPlane, tmp_path: Path) -> None:
    endpoint = cluster.etcd_endpoint
    spec = FlowSpec.model_validate({
        "etcd": {
            "rate": "200/s", "processes": 2, "connections": 4, "keys": 40, "keySize": "100B", "valueSize": "30KB",
            "watches": 4, "operations": OPERATIONS,
        }
    })  # fmt: skip
    start = FlowStart("kv", spec, asyncio.run(cluster.access("admin")), 4, etcd_endpoint=endpoint)
    before = counted(endpoint)

    result, there = asyncio.run(run_flow(tmp_path, start, endpoint))

    after = counted(endpoint)
    assert [] == result.samples
    assert {"OK"} == set(result.outcomes())
    assert {"OK": 4} == result.outcomes("watch")
    assert result.total("events", "watch") > 3
    assert sum(record["arrivals"]["due"] for record in result.flows) == sum(
        result.outcomes(title)["OK"] for title in ASKED
    )
    # The first 40 puts are the flow's own; other clients write, too.
    assert after["put"] - before["put"] >= 40 + result.outcomes("put")["OK"] + 3 * result.outcomes("txn")["OK"]
    assert after["delete"] - before["delete"] >= result.outcomes("delete")["OK"]
    assert after["lease"] - before["lease"] >= result.outcomes("lease")["OK"]
    # Longer than HTTP/2 lets through at once; so are the transactions.
    assert result.total("bytes", "some") > 250_000 * result.outcomes("some")["OK"]
    assert 0 < len(there) <= 40
    assert {100} == {len(key) for key in there}
    assert [] == asyncio.run(keys_of(endpoint))


async def run_flow(directory: Path, start: FlowStart, endpoint: str) -> tuple[FlowResult, list[bytes]]:
    """Run the flow until each operation has been done; return what it told, and the keys that were there."""
    result = FlowResult(start.flow)
    driver = await LocustDriver.spawn(directory / "j", time.monotonic(), result.records.append, interval_s=0.2)
    try:
        await driver.start_flow(start)
        async with asyncio.timeout(20):
            await reached(
                lambda found: (
                    all(sum(found.outcomes(title).values()) > 20 for title in ASKED)
                    and found.total("events", "watch") > 3
                ),
                result,
            )
        there = await keys_of(endpoint)
        await driver.stop_flow(start.flow)
    finally:
        await driver.stop()
    return FlowResult(start.flow, [record for record in result.records if record.get("flow") == start.flow]), there
