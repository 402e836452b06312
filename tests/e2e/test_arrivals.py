"""Arrivals against a real API server: every request that a mix can make, and the truth about one that stands still."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from scaletest.controlplane.cluster import KwokControlPlane
from scaletest.controlplane.identities import MASTERS
from scaletest.load.client import LocustDriver
from scaletest.load.protocol import FlowStart
from scaletest.profile.schema import FlowSpec
from tests.e2e.test_load import ask, reached, run_flow
from tests.load.harness import FlowResult

pytestmark = pytest.mark.e2e

WRITES: list[dict[str, Any]] = [
    {"create": "configmaps", "label": "create", "size": "2KB"},
    {"delete": "configmaps", "label": "delete"},
    {"put": "configmaps", "label": "put", "size": "2KB"},
    {"patch": "configmaps", "label": "merge"},
    {"patch": "configmaps", "label": "strategic", "patchType": "strategic"},
    {"patch": "configmaps", "label": "apply", "patchType": "apply"},
    {"get": "configmaps", "label": "get", "consistency": "quorum"},
    {"put": "secrets", "label": "protobuf-secret", "encoding": "protobuf", "accept": "protobuf"},
    {"put": "configmaps", "label": "protobuf-map", "encoding": "protobuf", "namespace": "kube-public"},
    {"create": "secrets", "label": "create-protobuf", "encoding": "protobuf", "namespace": "kube-public"},
    {"patch": "leases", "label": "lease"},
    {"patch": "leases", "label": "apply-lease", "patchType": "apply"},
    {"patch": "pods", "label": "pod-status", "subresource": "status"},
    {"get": "pods", "label": "pod-status-get", "subresource": "status"},
    {"put": "deployments", "label": "deployment"},
    {"patch": "deployments", "label": "scale", "subresource": "scale"},
    {"get": "deployments", "label": "scale-get", "subresource": "scale", "consistency": "quorum"},
]
READS: list[dict[str, Any]] = [
    {"get": "namespaces", "name": "default", "label": "any"},
    {"list": "namespaces", "label": "cbor", "accept": "cbor"},
    {"list": "namespaces", "label": "gzip", "gzip": True, "consistency": "quorum"},
    {"list": "/apis/rbac.authorization.k8s.io/v1/clusterroles", "label": "pages", "limit": 20, "accept": "protobuf"},
    {"list": "namespaces", "label": "selected", "fieldSelector": "metadata.name=default"},
    {"watchList": "namespaces", "label": "watch-list"},
    {"watchList": "namespaces", "label": "watch-list-protobuf", "accept": "protobuf", "consistency": "quorum"},
]


def spec_of(mix: list[dict[str, Any]], **arrivals: Any) -> FlowSpec:
    return FlowSpec.model_validate({"arrivals": arrivals, "mix": mix})


def arrivals_of(result: FlowResult, key: str) -> int:
    return sum(record["arrivals"][key] for record in result.flows)


def test_processes_share_a_flow_and_every_arrival_counts_once(cluster: KwokControlPlane, tmp_path: Path) -> None:
    access = asyncio.run(cluster.access("admin"))
    mix: list[dict[str, Any]] = [{"patch": "configmaps", "label": "patch"}]
    spec = spec_of(mix, rate="100/s", process="even", processes=2, objects=5, connections=4)

    result = asyncio.run(
        run_flow(
            tmp_path,
            FlowStart("processes", spec, access, spec.target(0)),
            lambda result: sum(result.outcomes().values()) >= 200,
        )
    )
    left = ask(access, "GET", "/api/v1/namespaces/default/configmaps?labelSelector=scaletest.dev/flow=processes")

    assert {"200"} == set(result.outcomes())
    assert arrivals_of(result, "sent") == result.outcomes()["200"]
    assert arrivals_of(result, "due") == arrivals_of(result, "sent") + result.flows[-1]["arrivals"]["in_flight"]
    assert [] == json.loads(left)["items"]


def test_every_request_of_a_mix_is_what_the_api_server_takes(cluster: KwokControlPlane, tmp_path: Path) -> None:
    access = asyncio.run(cluster.access("admin"))
    spec = spec_of(WRITES + READS, rate="100/s", objects=8, connections=4)
    titles = set(spec.titles)

    result = asyncio.run(
        run_flow(
            tmp_path,
            FlowStart("mixed", spec, access, 4),
            lambda result: all(sum(result.outcomes(title).values()) >= 5 for title in titles),
        )
    )

    assert [] == result.samples
    assert {"200", "201"} == set(result.outcomes())
    assert 0 == arrivals_of(result, "dropped")
    # A page is a request, an arrival is a list: there are more of those than of any other read.
    assert result.outcomes("pages")["200"] > 2 * result.outcomes("selected")["200"]
    # Nothing of the flow's own is left.
    for collection in (
        "/api/v1/configmaps", "/api/v1/secrets", "/api/v1/pods", "/apis/apps/v1/deployments",
        "/apis/coordination.k8s.io/v1/leases",
    ):  # fmt: skip
        left = json.loads(ask(access, "GET", f"{collection}?labelSelector=scaletest.dev/flow=mixed"))["items"]
        assert [] == [item["metadata"]["name"] for item in left if "deletionTimestamp" not in item["metadata"]]


def test_arrivals_at_a_frozen_api_server_are_sent_and_their_wait_is_counted(
    cluster: KwokControlPlane, tmp_path: Path
) -> None:
    """The truth test of coordinated omission.

    Of 10 s at 200/s the API server stands still for 2 s: a fifth of the arrivals wait from 2 s down to nothing, so that the 95th
    percentile is 1.5 s. A closed loop would see a few slow requests and nothing in its percentiles.
    """
    access = asyncio.run(cluster.access(MASTERS))
    mix = [{"get": "namespaces", "name": "default", "label": "get", "consistency": "quorum"}]
    spec = spec_of(mix, rate="200/s", process="even", connections=64)
    (server,) = [item.pid for item in cluster.components() if item.name == "kube-apiserver"]
    assert server is not None

    result = asyncio.run(run_with_freeze(tmp_path, FlowStart("frozen", spec, access, 64), server))

    due = arrivals_of(result, "due")
    assert due == arrivals_of(result, "sent")
    assert 1_900 < due < 2_100
    assert {"200": due} == result.outcomes()
    latency, service = result.histogram("latency_us"), result.histogram("service_us")
    assert 1.2e6 < latency.quantile(0.95) < 1.8e6
    # From the send, only the 64 that were on the wire waited long.
    assert service.quantile(0.95) < 0.5 * latency.quantile(0.95)
    lag = [record["arrivals"]["lag_us"]["max"] for record in result.flows if record["arrivals"]["due"]]
    assert max(lag) < 1.0e6, "the pacer itself must not have stood still"


def test_a_watch_knows_how_long_the_event_of_a_write_took(cluster: KwokControlPlane, tmp_path: Path) -> None:
    access = asyncio.run(cluster.access("admin"))
    writes = spec_of([{"patch": "configmaps", "label": "write"}], rate="20/s", objects=4, connections=2)
    steps = [
        {"watch": "configmaps", "namespace": "default", "label": "watch"},
        {"watch": "configmaps", "namespace": "default", "label": "protobuf", "accept": "protobuf"},
    ]
    watches = FlowSpec.model_validate({"agents": {"count": 3, "rollout": "100/s"}, "steps": steps})

    result = asyncio.run(
        watched(tmp_path, FlowStart("watches", watches, access, 3), FlowStart("writes", writes, access, 2))
    )

    for step in ("watch", "protobuf"):
        events = result.histogram("event_us", step)
        assert 60 <= events.count <= result.total("events", step)
        assert 0 < events.quantile(0.5) < 1e6


async def watched(directory: Path, watches: FlowStart, writes: FlowStart) -> FlowResult:
    """Run both flows in one driver until each watch has seen some writes; return what the watches saw."""
    result = FlowResult(watches.flow)

    def take(record: dict[str, Any]) -> None:
        if record.get("flow") == watches.flow:
            result.records.append(record)

    driver = await LocustDriver.spawn(directory / "j", time.monotonic(), take, interval_s=0.2)
    try:
        await driver.start_flow(watches)
        async with asyncio.timeout(60):
            await reached(lambda found: sum(found.outcomes().values()) >= 6, result)
            await driver.start_flow(writes)
            await reached(
                lambda found: min(found.total("events", step) for step in ("watch", "protobuf")) > 200, result
            )
        await driver.stop_flow(writes.flow)
        await driver.stop_flow(watches.flow)
    finally:
        await driver.stop()
    return result


async def run_with_freeze(directory: Path, start: FlowStart, server: int) -> FlowResult:
    result = FlowResult(start.flow)
    driver = await LocustDriver.spawn(directory / "j", time.monotonic(), result.records.append, interval_s=0.2)
    try:
        await driver.start_flow(start)
        await asyncio.sleep(4)
        os.kill(server, signal.SIGSTOP)
        try:
            await asyncio.sleep(2)
        finally:
            os.kill(server, signal.SIGCONT)
        await asyncio.sleep(4)
        await driver.stop_flow(start.flow)
    finally:
        await driver.stop()
    return FlowResult(start.flow, [record for record in result.records if record.get("flow") == start.flow])


def test_watches_that_the_api_server_ends_go_on_and_miss_no_write(cluster: KwokControlPlane, tmp_path: Path) -> None:
    access = asyncio.run(cluster.access("admin"))
    writes = spec_of([{"patch": "configmaps", "label": "write"}], rate="20/s", objects=4, connections=2)
    # Ended after 1 to 2 s by the API server, again and again.
    steps = [
        {"watch": "configmaps", "namespace": "default", "labelSelector": "scaletest.dev/flow=resumed", "label": "watch", "lasts": "1s"},
        {"watch": "configmaps", "namespace": "default", "labelSelector": "scaletest.dev/flow=resumed", "label": "protobuf",
         "lasts": "1s", "accept": "protobuf"},
    ]  # fmt: skip
    watches = FlowSpec.model_validate({"watchers": {"count": 20}, "steps": steps})

    result, written = asyncio.run(
        resumed(tmp_path, FlowStart("resuming", watches, access, 20), FlowStart("resumed", writes, access, 2))
    )

    assert result.total("reconnects") >= 40
    assert 0 == result.histogram("early_us").count
    assert {"200"} == set(result.outcomes())
    # Of each write each watch got its event, also of those that came between two of its connections.
    assert 20 * written == result.histogram("event_us").count


async def resumed(directory: Path, watches: FlowStart, writes: FlowStart) -> tuple[FlowResult, int]:
    """Run both flows until each watch was opened three times; return what watches saw, and the writes that they could see."""
    result, written = FlowResult(watches.flow), FlowResult(writes.flow)

    def take(record: dict[str, Any]) -> None:
        for found in (result, written):
            if record.get("flow") == found.flow:
                found.records.append(record)

    driver = await LocustDriver.spawn(directory / "j", time.monotonic(), take, interval_s=0.2)
    try:
        await driver.start_flow(watches)
        async with asyncio.timeout(60):
            await reached(lambda found: sum(found.outcomes().values()) >= 20, result)
            await driver.start_flow(writes)
            await reached(lambda found: found.total("reconnects") >= 40, result)
        await driver.stop_flow(writes.flow)
        await asyncio.sleep(1.0)
        await driver.stop_flow(watches.flow)
    finally:
        await driver.stop()
    # The flow's own four objects are created before the first arrival, and say when, too.
    return result, 4 + sum(written.outcomes("write").values())
