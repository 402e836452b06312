"""Waiting until nodes are Ready and pods Running, as the API shows them."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from scaletest.core.access import ApiAccess
from scaletest.core.errors import ClusterError
from scaletest.core.kubernetesapi import ApiError, KubernetesApi

__all__ = ["count_ready", "wait_nodes_ready", "wait_pods_running"]

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


async def wait_pods_running(api: KubernetesApi, timeout_s: float) -> None:
    """Wait until every pod of the cluster that has a node is Running. Raises ClusterError."""
    deadline_s = time.monotonic() + timeout_s
    query = "&fieldSelector=status.phase%3DPending%2Cspec.nodeName%21%3D"
    while rows := await api.table("/api/v1/pods", query):
        if time.monotonic() > deadline_s:
            msg = f"{len(rows)} pods were not Running after {timeout_s:g} s"
            raise ClusterError(msg, hint="see the log of kwok-controller")
        await asyncio.sleep(_POLL_S)
