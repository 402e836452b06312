"""Waiting until nodes are Ready and pods Running, as the API shows them."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from scaletest.core.access import ApiAccess
from scaletest.core.errors import ClusterError
from scaletest.core.kubernetesapi import FIELD_MANAGER, ApiError, KubernetesApi
from scaletest.fleet.family import POD

__all__ = ["TOUCH_AFTER_S", "count_ready", "touch", "wait_nodes_ready", "wait_pods_running"]

TOUCH_AFTER_S: Final = 5.0
"""How long a pod that waits for KWOK is left alone. KWOK passes by the pods of a node whose Lease, which it has just made, its own
watch has not shown it yet (0.8.0, ``PodController.watchResources``: "read only"), and looks at them again when they change: never.
On a busy machine one fleet in about a hundred waited for such a pod for ever."""
_TOUCHED: Final = "scaletest.dev/touched"
_TOUCHED_AT_ONCE: Final = 500
_POLL_S: Final = 0.25
_STATUS_COLUMN: Final = 1
"""NAME, STATUS, … of ``kubectl get nodes``."""


def count_ready(rows: list[list[str]]) -> int:
    """Count the nodes whose STATUS is Ready (cordoned ones are ``Ready,SchedulingDisabled``)."""
    return sum(row[_STATUS_COLUMN].split(",")[0] == "Ready" for row in rows)


async def wait_nodes_ready(access: ApiAccess, count: int, timeout_s: float) -> float:
    """Wait until at least ``count`` nodes are Ready and return the seconds that took. Raises ClusterError."""
    started_s = time.monotonic()
    ready = 0
    why = ""
    async with KubernetesApi(access, connections=1) as api:
        while time.monotonic() - started_s < timeout_s:
            try:
                ready = count_ready(await api.table("/api/v1/nodes"))
                why = ""
            except ApiError as error:
                why = f" ({error})"
            if ready >= count:
                return time.monotonic() - started_s
            await asyncio.sleep(_POLL_S)
    msg = f"{ready} of {count} nodes were Ready after {timeout_s:g} s{why}"
    raise ClusterError(msg, hint="see the logs of kwok-controller and kube-controller-manager")


async def wait_pods_running(api: KubernetesApi, timeout_s: float, *, touch_after_s: float = TOUCH_AFTER_S) -> None:
    """Wait until every pod of the cluster that has a node is Running; those that KWOK passed by are touched.

    Raises ClusterError.
    """
    deadline_s = time.monotonic() + timeout_s
    query = "&fieldSelector=status.phase%3DPending%2Cspec.nodeName%21%3D"
    fewest, since_s = None, time.monotonic()
    while rows := await api.table("/api/v1/pods", query):
        now_s = time.monotonic()
        if now_s > deadline_s:
            msg = f"{len(rows)} pods were not Running after {timeout_s:g} s"
            raise ClusterError(msg, hint="see the log of kwok-controller")
        if fewest is None or len(rows) < fewest:
            fewest, since_s = len(rows), now_s
        elif now_s - since_s >= touch_after_s:
            pods = (await api.get(f"/api/v1/pods?limit={_TOUCHED_AT_ONCE}{query}"))["items"]
            for pod in pods:
                await touch(
                    api, POD.resource.path(namespace=pod["metadata"]["namespace"], name=pod["metadata"]["name"])
                )
            since_s = now_s
        await asyncio.sleep(_POLL_S)


async def touch(api: KubernetesApi, path: str) -> None:
    """Change an object and change it back, so that whoever watches it looks at it again."""
    for value in ("true", None):
        body = {"metadata": {"annotations": {_TOUCHED: value}}}
        try:
            await api.merge(path, body, field_manager=FIELD_MANAGER)
        except ApiError as error:
            if error.status != 404:
                raise
