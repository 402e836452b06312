"""Churn on a real control plane: real controllers and scheduler make its pods, fake nodes run them, a watch sees them start."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scaletest.controlplane.cluster import KwokControlPlane
from scaletest.controlplane.identities import MASTERS
from scaletest.core.access import ApiAccess
from scaletest.core.histogram import Histogram
from scaletest.load.protocol import FlowStart
from scaletest.profile.schema import FlowSpec
from tests.e2e.test_load import ask, run_flow
from tests.load.harness import FlowResult

pytestmark = pytest.mark.e2e

NODES = [f"churn-{number:02d}" for number in range(20)]
DEFAULT = "/api/v1/namespaces/default"
BY_FLOW = "labelSelector=scaletest.dev/flow%3Dchurn"


@pytest.fixture
def nodes(cluster: KwokControlPlane) -> Iterator[ApiAccess]:
    """Twenty nodes, and a pod on one of them that is not the flow's; all gone afterwards."""
    access = asyncio.run(cluster.access(MASTERS))
    capacity = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    made = []
    try:
        for name in NODES:
            status = {"capacity": capacity, "allocatable": capacity}
            # By this label the scheduler spreads a Deployment's pods.
            metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
            ask(access, "POST", "/api/v1/nodes", {"metadata": metadata, "status": status})
            made.append(f"/api/v1/nodes/{name}")
        # Without it the pod would be refused; in a young cluster it may not be there yet.
        while not any(item["metadata"]["name"] == "default" for item in items(access, f"{DEFAULT}/serviceaccounts")):
            time.sleep(0.1)
        spec = {"nodeName": NODES[7], "containers": [{"name": "c", "image": "none"}]}
        ask(access, "POST", f"{DEFAULT}/pods", {"metadata": {"name": "bystander"}, "spec": spec})
        # The first that is Ready would get the first pods.
        while any(
            "taints" in item["spec"] for item in items(access, "/api/v1/nodes") if item["metadata"]["name"] in NODES
        ):
            time.sleep(0.1)
        made.insert(0, f"{DEFAULT}/pods/bystander?gracePeriodSeconds=0")
        yield access
    finally:
        for path in made:
            ask(access, "DELETE", path)


def items(access: ApiAccess, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ask(access, "GET", path))["items"]
    return found


def startups(result: FlowResult) -> Histogram:
    return Histogram.merged(Histogram.from_json(record["churn"]["startup_us"]) for record in result.flows)


def test_deployments_jobs_and_pods_live_and_die_and_their_starts_are_measured(
    cluster: KwokControlPlane, nodes: ApiAccess, tmp_path: Path
) -> None:
    access = asyncio.run(cluster.access("admin"))
    churn = {
        "pods": 40, "rate": "20/s", "rollout": "60/s", "jobs": "15%", "barePods": "15%",
        "sizes": [{"pods": 10, "share": "50%"}, {"pods": 3, "share": "50%"}],
    }  # fmt: skip
    spec = FlowSpec.model_validate({"churn": churn})
    acts = [f"{act}-deployment" for act in ("create", "scale", "roll", "delete")]
    acts += [f"{act}-{kind}" for kind in ("job", "pod") for act in ("create", "delete")]
    bystander = json.loads(ask(nodes, "GET", f"{DEFAULT}/pods/bystander"))["metadata"]["uid"]
    seen: dict[str, list[dict[str, Any]]] = {}

    def look() -> None:
        namespaces = items(nodes, f"/api/v1/namespaces?{BY_FLOW}")
        (name,) = [item["metadata"]["name"] for item in namespaces if "deletionTimestamp" not in item["metadata"]]
        for kind, api in {"deployments": "apis/apps/v1", "jobs": "apis/batch/v1", "pods": "api/v1"}.items():
            seen[kind] = items(nodes, f"/{api}/namespaces/{name}/{kind}")

    result = asyncio.run(
        run_flow(
            tmp_path,
            FlowStart("churn", spec, access, spec.target(0)),
            lambda result: all(result.outcomes(act) for act in acts),
            first=lambda result: any(record["started"] >= 40 for record in result.flows),
            then=look,
        )
    )

    assert [] == result.samples
    assert {"200", "201"} == set(result.outcomes())
    # 28 pods under Deployments of 10 and 3, 6 under Jobs of 3, the others on their own; one may be on its way to its next life.
    assert len(seen["deployments"]) in {6, 7}
    assert len(seen["jobs"]) in {1, 2}
    assert 25 <= len(seen["pods"]) <= 60
    bound = {item["spec"]["nodeName"] for item in seen["pods"] if "nodeName" in item["spec"]}
    assert bound <= set(NODES)
    assert len(bound) > 1
    # Real controllers made them, and every one was seen to start.
    owners = {owner["kind"] for item in seen["pods"] for owner in item["metadata"].get("ownerReferences", [])}
    assert {"ReplicaSet", "Job"} == owners
    started = startups(result)
    assert started.count >= 40
    assert 0 < started.quantile(0.5) < started.quantile(1.0) < 30e6
    assert 0 == sum(record["churn"]["late"] for record in result.flows)
    # The others' pods stay as they were, and the flow's own things go.
    left = json.loads(ask(nodes, "GET", f"{DEFAULT}/pods/bystander"))
    assert (bystander, "Running") == (left["metadata"]["uid"], left["status"]["phase"])
    assert all("deletionTimestamp" in item["metadata"] for item in items(nodes, f"/api/v1/namespaces?{BY_FLOW}"))
