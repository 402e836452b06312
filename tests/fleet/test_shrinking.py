import asyncio

from scaletest.core.kubernetesapi import KubernetesApi
from scaletest.fleet.fleet import pool_plans
from scaletest.fleet.shrinking import ShrinkResult, delete_nodes
from scaletest.profile.schema import FleetSpec
from tests.serving import Answer, Serve

SPEC = FleetSpec.model_validate({"pools": [{"name": "gpu", "nodes": 9, "podsPerNode": 2}], "namespaces": 4})


def shrink(served: Serve, answer: Answer) -> tuple[ShrinkResult, list[tuple[str, str]]]:
    async def run() -> tuple[ShrinkResult, list[tuple[str, str]]]:
        async with served(answer) as server, KubernetesApi(server.access) as api:
            result = ShrinkResult(asked=3)
            await delete_nodes(api, pool_plans(SPEC)[0], [8, 7, 6], lambda _: None, result)
        return result, server.requests

    return asyncio.run(run())


def test_a_node_goes_before_its_pods_and_its_lease_last(served: Serve) -> None:
    result, requests = shrink(served, lambda *_: (200, {}))

    of_node = [path.partition("?")[0] for method, path in requests if "gpu-00008" in path and method == "DELETE"]
    expected = [
        "/api/v1/nodes/gpu-00008",
        "/api/v1/namespaces/fleet-0000/pods/gpu-00008-000",
        "/api/v1/namespaces/fleet-0001/pods/gpu-00008-001",
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/gpu-00008",
    ]
    assert expected == of_node
    assert (["gpu-00006", "gpu-00007", "gpu-00008"], 6, 3) == (sorted(result.nodes), result.pods, result.leases)
    assert result.complete


def test_what_is_gone_already_counts_as_gone(served: Serve) -> None:
    result, _ = shrink(served, lambda *_: (404, {"message": "not found"}))

    assert result.complete


def test_a_refused_node_stays_with_its_pods_and_the_errors_are_counted(served: Serve) -> None:
    def answer(_method: str, path: str, _body: object) -> tuple[int, object]:
        return (429, {"message": "too many requests"}) if "/nodes/gpu-00007" in path else (200, {})

    result, requests = shrink(served, answer)

    assert ["gpu-00006", "gpu-00008"] == sorted(result.nodes)
    assert {"http_429": 1} == result.errors
    assert "DELETE /api/v1/nodes/gpu-00007 as system:masters: 429 too many requests" == result.first_error
    assert not result.complete
    assert not [path for _, path in requests if "pods/gpu-00007" in path]
