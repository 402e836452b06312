"""How long pods take to start, seen by a watch on them.

The official SLI is "startup latency of schedulable stateless pods, excluding time to pull images and run init containers,
measured from pod creation timestamp to when all its containers are reported as started and observed via watch"
(kubernetes/community, sig-scalability/slos/pod_startup_latency.md). Fake nodes pull nothing and pods here have no init containers, so nothing has to be excluded.
A pod counts from when its first event came, or from the end of the second that ``creationTimestamp`` names if that is earlier (the timestamp
has whole seconds): at most the watch's own delay, and never more than a second, is missing. It counts until the event came in which it is Ready, which
needs all containers to run. It is *scheduled* when its condition PodScheduled is True. Pods that are deleted before they are Ready are not counted.

Pure: the time of an event comes in. The wall clock must be the API server's, as it is on one machine.
"""

from __future__ import annotations

import calendar
import json
import time
from typing import Any

from scaletest.core.histogram import Histogram
from scaletest.load.watchstream import JsonEvents

__all__ = ["PodEvents", "PodStartups"]

_RESOLUTION_S = 1.0


class _Pod:
    """A pod that the watch has seen."""

    __slots__ = ("late", "ready", "scheduled", "start_s")

    def __init__(self, start_s: float) -> None:
        self.start_s = start_s
        self.scheduled = False
        self.ready = False
        self.late = False


class PodStartups:
    """What is known of the flow's pods. Times are those of ``time.monotonic()``."""

    def __init__(self, start_within_s: float) -> None:
        self._start_within_s = start_within_s
        self._pods: dict[str, _Pod] = {}
        self._pending: dict[str, _Pod] = {}
        self.ready = 0
        self.late = 0
        """Pods that were not Ready in time, since the last ``take``."""
        self._startup_us = Histogram()
        self._scheduling_us = Histogram()

    @property
    def count(self) -> int:
        """Pods that there are."""
        return len(self._pods)

    @property
    def pending(self) -> int:
        """Pods that are not Ready yet."""
        return len(self._pending)

    def forget(self) -> None:
        """Start over: the watch will name all pods again."""
        self._pods.clear()
        self._pending.clear()
        self.ready = 0

    def see(self, event: dict[str, Any], now_s: float, wall_s: float) -> None:
        """Take in an event that came at ``now_s``, which is ``wall_s`` of the wall clock."""
        kind, seen = event["type"], event["object"]
        if kind not in {"ADDED", "MODIFIED", "DELETED"}:
            return
        uid = seen["metadata"]["uid"]
        if kind == "DELETED":
            self._drop(uid)
            return
        pod = self._pods.get(uid)
        conditions = {item["type"]: item["status"] for item in seen.get("status", {}).get("conditions", ())}
        if pod is None:
            pod = self._pods[uid] = _Pod(_start_s(seen["metadata"]["creationTimestamp"], now_s, wall_s))
            if conditions.get("Ready") == "True":
                # It was so before the watch began.
                pod.scheduled = pod.ready = True
                self.ready += 1
                return
            self._pending[uid] = pod
        if not pod.scheduled and conditions.get("PodScheduled") == "True":
            pod.scheduled = True
            self._scheduling_us.record(_us(now_s - pod.start_s))
        if pod.ready:
            return
        if "deletionTimestamp" in seen["metadata"]:
            self._pending.pop(uid, None)
        elif conditions.get("Ready") == "True":
            pod.ready = True
            self.ready += 1
            self._pending.pop(uid, None)
            if not pod.late:
                self._startup_us.record(_us(now_s - pod.start_s))

    def sweep(self, now_s: float) -> None:
        """Count pods whose time to start is over."""
        # In the order in which they were seen, which may differ a little from that of their creation.
        for pod in self._pending.values():
            if pod.start_s + self._start_within_s > now_s:
                break
            if not pod.late:
                pod.late = True
                self.late += 1

    def take(self) -> dict[str, Any]:
        """Return what the interval that ends now brought, and start the next."""
        data = {
            "pods": self.count, "ready": self.ready, "pending": self.pending, "late": self.late,
            "startup_us": self._startup_us.to_json(), "scheduling_us": self._scheduling_us.to_json(),
        }  # fmt: skip
        self.late = 0
        self._startup_us, self._scheduling_us = Histogram(), Histogram()
        return data

    def _drop(self, uid: str) -> None:
        pod = self._pods.pop(uid, None)
        self._pending.pop(uid, None)
        if pod is not None and pod.ready:
            self.ready -= 1


class PodEvents(JsonEvents):
    """A sink that gives each event of a watch on pods to ``startups``."""

    __slots__ = ("_startups", "_unfinished")

    def __init__(self, startups: PodStartups) -> None:
        super().__init__()
        self._startups = startups
        self._unfinished = b""

    def __call__(self, buffer: bytearray, start: int, end: int) -> None:
        """Take a span of body bytes."""
        super().__call__(buffer, start, end)
        *lines, rest = bytes(buffer[start:end]).split(b"\n")
        if not lines:
            self._unfinished += rest
            return
        now_s, wall_s = time.monotonic(), time.time()
        lines[0] = self._unfinished + lines[0]
        self._unfinished = rest
        for line in lines:
            self._startups.see(json.loads(line), now_s, wall_s)


def _start_s(creation_timestamp: str, now_s: float, wall_s: float) -> float:
    created_s = calendar.timegm(time.strptime(creation_timestamp, "%Y-%m-%dT%H:%M:%SZ")) + _RESOLUTION_S
    return now_s - max(0.0, wall_s - created_s)


def _us(duration_s: float) -> int:
    return int(max(0.0, duration_s) * 1e6)
