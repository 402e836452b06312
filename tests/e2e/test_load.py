"""Agents against a real control plane: what they read is what the API server says, and who they are counts."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from scaletest.controlplane.cluster import KwokControlPlane
from scaletest.controlplane.identities import MASTERS
from scaletest.core.access import ApiAccess
from scaletest.load.client import LocustDriver
from scaletest.load.protocol import FlowStart
from scaletest.profile.schema import FlowSpec
from tests.load.harness import FlowResult

pytestmark = pytest.mark.e2e

AGENTS = 40
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
"""As many, and they stay as they are: in a new cluster the rules of some roles are still being put together."""


def ask(access: ApiAccess, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
    """Ask with the standard library; return the body of a good answer."""
    credential = access.credential
    context = ssl.create_default_context(cafile=access.ca_file)
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if credential.cert_file is not None:
        context.load_cert_chain(credential.cert_file, credential.key_file)
    if credential.token_file is not None:
        headers["Authorization"] = f"Bearer {credential.token_file.read_text().strip()}"
    connection = http.client.HTTPSConnection(urlsplit(access.servers[0]).netloc, context=context, timeout=20)
    connection.request(method, path, json.dumps(body) if body else None, headers)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    assert answer.status < 300, data
    return data


Until = Callable[[FlowResult], bool]


async def run_flow(
    directory: Path,
    start: FlowStart,
    until: Until,
    *,
    first: Until | None = None,
    then: Callable[[], None] | None = None,
) -> FlowResult:
    """Run a flow in a driver of its own until its records say so; on the way, do ``then`` after ``first``."""
    result = FlowResult(start.flow)
    driver = await LocustDriver.spawn(directory / "j", time.monotonic(), result.records.append, interval_s=0.2)
    try:
        await driver.start_flow(start)
        async with asyncio.timeout(60):
            if first is not None and then is not None:
                await reached(first, result)
                await asyncio.to_thread(then)
            await reached(until, result)
        await driver.stop_flow(start.flow)
    finally:
        await driver.stop()
    return FlowResult(start.flow, [record for record in result.records if record.get("flow") == start.flow])


async def reached(condition: Until, result: FlowResult) -> None:
    while not condition(result):  # noqa: ASYNC110 - records come by callback
        await asyncio.sleep(0.1)


def spec_of(steps: list[dict[str, Any]], **options: Any) -> FlowSpec:
    return FlowSpec.model_validate({"agents": {"count": AGENTS, "rollout": "80/s"}, "steps": steps} | options)


def outcome_is(count: int, outcome: str, *steps: str) -> Until:
    return lambda result: all(result.outcomes(step).get(outcome, 0) >= count for step in steps)


@pytest.mark.parametrize("accept", ["json", "protobuf"])
def test_agents_list_and_watch_as_a_service_account(cluster: KwokControlPlane, tmp_path: Path, accept: str) -> None:
    access = asyncio.run(cluster.access("serviceAccount:load-e2e/agent"))
    masters = asyncio.run(cluster.access(MASTERS))
    steps: list[dict[str, Any]] = [
        {"list": BINDINGS, "label": "bindings", "accept": accept},
        {"list": "namespaces", "label": "list", "accept": accept},
        {"watchList": "namespaces", "label": "state", "accept": accept},
        {"watch": "namespaces", "label": "watch", "accept": accept},
    ]
    name = f"load-e2e-{accept}"

    def make_namespace() -> None:
        ask(masters, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    result = asyncio.run(
        run_flow(
            tmp_path,
            FlowStart("agents", spec_of(steps), access, AGENTS),
            lambda result: result.total("events", "watch") >= AGENTS,
            first=outcome_is(AGENTS, "200", "watch"),
            then=make_namespace,
        )
    )

    assert {"200": AGENTS} == result.outcomes("bindings") == result.outcomes("list") == result.outcomes("watch")
    assert {"200": AGENTS} == result.outcomes("state")
    assert [] == result.samples
    whole = len(ask(access, "GET", f"{BINDINGS}?resourceVersion=0"))
    if accept == "json":
        assert AGENTS * whole == result.total("bytes", "bindings")
    else:
        assert 0 < result.total("bytes", "bindings") < AGENTS * whole
    assert (AGENTS, AGENTS) == (result.flows[-1]["started"], result.flows[-1]["connected"])


def test_agents_follow_pages_to_the_end(cluster: KwokControlPlane, tmp_path: Path) -> None:
    access = asyncio.run(cluster.access("admin"))
    roles = len(json.loads(ask(access, "GET", ROLES))["items"])
    pages = -(-roles // 10)
    steps: list[dict[str, Any]] = [{"list": ROLES, "label": "paged", "limit": 10, "consistency": "quorum"}]

    result = asyncio.run(
        run_flow(
            tmp_path,
            FlowStart("agents", spec_of(steps), access, AGENTS),
            outcome_is(AGENTS * pages, "200", "paged"),
        )
    )

    assert {"200": AGENTS * pages} == result.outcomes("paged")


def test_gzip_and_exact_versions_are_understood(cluster: KwokControlPlane, tmp_path: Path) -> None:
    access = asyncio.run(cluster.access(MASTERS))
    steps: list[dict[str, Any]] = [
        {"get": "/openapi/v2", "label": "plain"},
        {"get": "/openapi/v2", "label": "gzip", "gzip": True},
        {"list": "namespaces", "label": "first"},
        {"list": "namespaces", "label": "exact", "consistency": "exact"},
    ]

    result = asyncio.run(
        run_flow(
            tmp_path,
            FlowStart("agents", spec_of(steps), access, 5),
            outcome_is(5, "200", "exact"),
        )
    )

    assert {"200": 4 * 5} == result.outcomes()
    assert result.total("bytes", "first") == result.total("bytes", "exact")
    assert 0 < result.total("bytes", "gzip") < result.total("bytes", "plain") / 3


def test_a_node_reads_its_own_and_is_forbidden_the_rest(cluster: KwokControlPlane, tmp_path: Path) -> None:
    masters = asyncio.run(cluster.access(MASTERS))
    nodes = tuple(f"load-e2e-{index:02}" for index in range(AGENTS))
    credentials = tuple(asyncio.run(cluster.node_credentials(nodes)))
    steps: list[dict[str, Any]] = [
        {"list": "pods", "label": "own", "fieldSelector": "spec.nodeName={node}", "every": "30s"},
        {"list": "pods", "label": "all", "every": "30s"},
    ]

    result = asyncio.run(
        run_flow(
            tmp_path,
            FlowStart(
                "agents", spec_of(steps, identity="node"), masters, AGENTS, nodes=nodes, node_credentials=credentials
            ),
            lambda result: outcome_is(AGENTS, "200", "own")(result) and outcome_is(AGENTS, "403", "all")(result),
        )
    )

    assert {"200"} == set(result.outcomes("own"))
    assert {"403"} == set(result.outcomes("all"))
    assert 3 == len(result.samples)
    sample = result.samples[0]
    assert ("all", "403", "Forbidden") == (sample["step"], sample["outcome"], sample["reason"])
    assert f'User "system:node:{sample["node"]}" cannot list resource "pods"' in sample["message"]
