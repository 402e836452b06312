"""The rollout's DaemonSet: made before its agents start, and deleted through the API to roll them back.

The DaemonSet selects a node label that no node has, so the cluster makes no pods for it: the agents are the load driver's. What is
real is the object and the API's answers to those who delete it. The part of the garbage collector, which deletes the pods one by one, and of
the kubelets is played here: both go through the API, so for each share of the agents that stops, a GET must first have said that the
DaemonSet is gone.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol

from scaletest.core.kubernetesapi import ApiError, Json, KubernetesApi
from scaletest.runner.attempts import EVERY_S, ActionLog, Operator, until_done

__all__ = ["Agents", "create_daemon_set", "daemon_set_path", "roll_back"]

PODS_DELETED_PER_S: Final = 20.0
"""Pods that the garbage collector deletes: ``--kube-api-qps`` of the controller-manager is 20 by default, and the collector's client has
twice that for two requests a pod (``startGarbageCollectorController`` in cmd/kube-controller-manager/app/core.go, 1.31.4 and 1.37.2)."""

SHARES: Final = 20
DONE_SHARES: Final = 19
"""A rollback is done once 95 % of the agents have stopped."""


class Agents(Protocol):
    """The agents of the rollout."""

    def running(self) -> int:
        """Return how many there are, or are being started."""

    async def keep(self, count: int) -> None:
        """Tell all but so many to stop."""

    async def wait_for(self, count: int) -> None:
        """Return when there are no more than so many. Raises ClusterError when that takes too long."""


def daemon_set_path(daemon_set: str) -> str:
    """Return the path of ``NAMESPACE/NAME``."""
    namespace, _, name = daemon_set.partition("/")
    return f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}"


async def create_daemon_set(api: KubernetesApi, daemon_set: str) -> None:
    """Make the DaemonSet and its namespace; one that is there stays as it is. Raises ApiError."""
    namespace, _, _ = daemon_set.partition("/")
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await api.apply(f"/api/v1/namespaces/{namespace}", body)
    await api.apply(daemon_set_path(daemon_set), _daemon_set(daemon_set))


def _daemon_set(daemon_set: str) -> Json:
    namespace, _, name = daemon_set.partition("/")
    labels = {"app": name}
    container = {"name": "agent", "image": "registry.invalid/agent:1"}
    pod: dict[str, Any] = {
        "nodeSelector": {"scaletest.dev/agents-are-played-by": "the-load-driver"},
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }


async def roll_back(
    operator: Operator,
    log: ActionLog,
    daemon_set: str,
    agents: Agents,
    *,
    every_s: float = EVERY_S,
    pods_per_s: float = PODS_DELETED_PER_S,
) -> str:
    """Delete a DaemonSet, see that it is gone, and have its agents stop; return what was done, with times.

    Attempts that fail are made again without end: cancel to give up.
    """
    path = daemon_set_path(daemon_set)
    await until_done(lambda: operator.attempt("delete", lambda api: _delete(api, path)), every_s=every_s)
    accepted_s = log.elapsed_s
    await until_done(lambda: operator.attempt("gone", lambda api: _require_gone(api, path)), every_s=every_s)
    gone_s = log.elapsed_s
    said = f"DELETE accepted after {accepted_s:.1f} s, DaemonSet gone after {gone_s:.1f} s"
    running = agents.running()
    if not running:
        return f"{said}, no agents were left"
    for share in range(1, SHARES + 1):
        await asyncio.sleep(running / pods_per_s / SHARES)
        await until_done(lambda: operator.attempt("pods", lambda api: _require_gone(api, path)), every_s=every_s)
        await agents.keep(running * (SHARES - share) // SHARES)
        if share == DONE_SHARES:
            await agents.wait_for(running - running * DONE_SHARES // SHARES)
            done_s = log.elapsed_s
    return f"{said}, 95 % of {running:,} agents stopped after {done_s:.1f} s"


async def _delete(api: KubernetesApi, path: str) -> None:
    try:
        await api.delete(path)
    except ApiError as error:
        if error.status != 404:  # an earlier attempt may have been done without an answer
            raise


async def _require_gone(api: KubernetesApi, path: str) -> None:
    answer = await api.request("GET", path)
    if answer.status == 404:
        return
    message = "it is still there" if answer.status == 200 else f"{answer.status} {answer.message}"
    told = f"GET {path}: {message}"
    raise ApiError(told, outcome=f"http_{answer.status}", status=answer.status)
