"""What is read from ``/metrics``, and the journal fields it becomes.

The names were read in the sources of Kubernetes 1.31.4 and 1.37.2 (apiserver/pkg/util/flowcontrol/metrics,
apiserver/pkg/endpoints/metrics, apiserver/pkg/storage/cacher/metrics), which agree on all of them, and etcd 3.6. The older spellings
``request_concurrency_limit`` and ``request_concurrency_in_use``, gone by 1.37, are not needed: their
successors ``current_limit_seats`` and ``current_executing_seats`` are there in both.

Both versions also export every metric of Go's runtime (component-base/metrics/legacyregistry): ``/cpu/classes/gc/total:cpu-seconds`` of package
``runtime/metrics`` is ``go_cpu_classes_gc_total_cpu_seconds_total``. Go brings the CPU classes up to date at the end of each collection.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from scaletest.observe.promtext import Sample, select

__all__ = ["APISERVER_NAMES", "ETCD_NAMES", "apiserver_fields", "etcd_fields"]

_FLOW_CONTROL: Final = "apiserver_flowcontrol_"
_APF_GAUGES: Final = {
    f"{_FLOW_CONTROL}current_limit_seats": "seats_limit",
    f"{_FLOW_CONTROL}current_executing_seats": "seats_in_use",
    f"{_FLOW_CONTROL}current_executing_requests": "executing",
    f"{_FLOW_CONTROL}current_inqueue_requests": "queued",
    f"{_FLOW_CONTROL}dispatched_requests_total": "dispatched",
}
_REJECTED: Final = f"{_FLOW_CONTROL}rejected_requests_total"
_INFLIGHT: Final = "apiserver_current_inflight_requests"
_INFLIGHT_KINDS: Final = {"mutating": "mutating", "readOnly": "read_only"}
_REQUESTS: Final = "apiserver_request_total"
_RSS: Final = "process_resident_memory_bytes"
_HEAP: Final = "go_memstats_heap_alloc_bytes"
_CPU: Final = "process_cpu_seconds_total"

_GO: Final = {
    "go_cpu_classes_total_cpu_seconds_total": "cpu_s",
    "go_cpu_classes_idle_cpu_seconds_total": "idle_s",
    "go_cpu_classes_gc_total_cpu_seconds_total": "gc_s",
    "go_cpu_classes_gc_mark_idle_cpu_seconds_total": "gc_idle_s",
}
_GO_MEMORY: Final = "go_memory_classes_total_bytes"
_GO_RELEASED: Final = "go_memory_classes_heap_released_bytes"
_GO_LIMIT: Final = "go_gc_gomemlimit_bytes"
_NO_LIMIT_BYTES: Final = 2**62
"""Go says 2**63 - 1 where GOMEMLIMIT is not set."""

_WATCHERS: Final = "apiserver_terminated_watchers_total"
_CONSISTENT: Final = "apiserver_watch_cache_consistent_read_total"
_READ_WAIT: Final = "apiserver_watch_cache_read_wait_seconds"

_SCALARS: Final = (_RSS, _HEAP, _CPU, *_GO, _GO_MEMORY, _GO_RELEASED, _GO_LIMIT)

APISERVER_NAMES: Final = (
    *_APF_GAUGES, _REJECTED, _INFLIGHT, _REQUESTS, *_SCALARS, _WATCHERS, _CONSISTENT, f"{_READ_WAIT}_sum", f"{_READ_WAIT}_count",
)  # fmt: skip

_FSYNC: Final = "etcd_disk_wal_fsync_duration_seconds"
_COMMIT: Final = "etcd_disk_backend_commit_duration_seconds"
_ETCD_GAUGES: Final = {
    "etcd_mvcc_db_total_size_in_bytes": "db_bytes",
    "etcd_mvcc_db_total_size_in_use_in_bytes": "db_in_use_bytes",
    "etcd_mvcc_put_total": "puts",
}

ETCD_NAMES: Final = (
    *(f"{family}_{part}" for family in (_FSYNC, _COMMIT) for part in ("bucket", "sum", "count")),
    *_ETCD_GAUGES,
)


def apiserver_fields(text: bytes) -> dict[str, Any]:
    """Return the fields of a ``metrics.apiserver`` record. Counters are cumulative since the server started.

    ``memory_bytes`` is the resident size, ``heap_bytes`` Go's live heap and ``cpu_s`` the CPU used. ``go`` has the CPU time that the
    runtime gave out (``cpu_s``), that nothing used (``idle_s``), that garbage collection took (``gc_s``) and what of that was on spare
    processors (``gc_idle_s``), and the memory that counts against GOMEMLIMIT. ``watch_cache`` has watchers that were ended because they did
    not take their events, reads that waited for the cache (``waits``, ``wait_s``), and consistent reads that it could not serve (``fallbacks``).
    Raises ValueError when the text is not an API server's.
    """
    found: dict[str, list[Sample]] = {}
    for sample in select(text, APISERVER_NAMES):
        found.setdefault(sample.name, []).append(sample)
    requests: dict[str, int] = {}
    for sample in found.get(_REQUESTS, ()):
        key = f"{sample.labels.get('verb', '')} {sample.labels.get('code', '')}"
        requests[key] = requests.get(key, 0) + _whole(sample.value)
    scalars = {name: found[name][-1].value for name in _SCALARS if name in found}
    if not requests and not scalars:
        msg = "no metrics of an API server"
        raise ValueError(msg)
    return {
        "apf": _apf(found),
        "inflight": _inflight(found.get(_INFLIGHT, ())),
        "memory_bytes": _whole_or_none(scalars.get(_RSS)),
        "heap_bytes": _whole_or_none(scalars.get(_HEAP)),
        "cpu_s": scalars.get(_CPU),
        "go": _go(scalars),
        "watch_cache": _watch_cache(found),
        "requests": requests,
    }


def _apf(found: Mapping[str, Iterable[Sample]]) -> dict[str, dict[str, Any]]:
    apf: dict[str, dict[str, Any]] = {}
    # Per flow schema where it is a count of requests, per level where it is a limit: summed by level.
    for name, key in _APF_GAUGES.items():
        for sample in found.get(name, ()):
            _level(apf, sample.labels.get("priority_level", ""))[key] += _whole(sample.value)
    for sample in found.get(_REJECTED, ()):
        rejected = _level(apf, sample.labels.get("priority_level", ""))["rejected"]
        reason = sample.labels.get("reason", "")
        rejected[reason] = rejected.get(reason, 0) + _whole(sample.value)
    return apf


def _inflight(samples: Iterable[Sample]) -> dict[str, int]:
    inflight = dict.fromkeys(_INFLIGHT_KINDS.values(), 0)
    for sample in samples:
        kind = _INFLIGHT_KINDS.get(sample.labels.get("request_kind", ""))
        if kind is not None:
            inflight[kind] = _whole(sample.value)
    return inflight


def _watch_cache(found: Mapping[str, Iterable[Sample]]) -> dict[str, float]:
    # A consistent read that the cache was too late for is served from etcd ("true"), or refused ("skipped": 1.37, behind a feature gate).
    late = (sample for sample in found.get(_CONSISTENT, ()) if sample.labels.get("fallback", "false") != "false")
    return {
        "terminated_watchers": sum(_whole(sample.value) for sample in found.get(_WATCHERS, ())),
        "fallbacks": sum(_whole(sample.value) for sample in late),
        "waits": sum(_whole(sample.value) for sample in found.get(f"{_READ_WAIT}_count", ())),
        "wait_s": round(sum(sample.value for sample in found.get(f"{_READ_WAIT}_sum", ())), 6),
    }


def _go(scalars: Mapping[str, float]) -> dict[str, float | None]:
    memory, limit = scalars.get(_GO_MEMORY), scalars.get(_GO_LIMIT)
    # What counts against GOMEMLIMIT: all that the runtime has mapped, but for what it gave back (package runtime/debug).
    held = None if memory is None else memory - scalars.get(_GO_RELEASED, 0.0)
    return {
        **{key: scalars[name] for name, key in _GO.items() if name in scalars},
        "memory_bytes": _whole_or_none(held),
        "memory_limit_bytes": None if limit is None or limit >= _NO_LIMIT_BYTES else _whole(limit),
    }


def etcd_fields(text: bytes) -> dict[str, Any]:
    """Return the fields of a ``metrics.etcd`` record. Raises ValueError when the text is not etcd's."""
    samples = list(select(text, ETCD_NAMES))
    gauges: dict[str, int | None] = dict.fromkeys(_ETCD_GAUGES.values())
    for sample in samples:
        if sample.name in _ETCD_GAUGES:
            gauges[_ETCD_GAUGES[sample.name]] = _whole(sample.value)
    if not samples:
        msg = "no metrics of etcd"
        raise ValueError(msg)
    return {"fsync": _histogram(samples, _FSYNC), "commit": _histogram(samples, _COMMIT), **gauges}


def _histogram(samples: Iterable[Sample], family: str) -> dict[str, Any]:
    buckets: list[list[float]] = []
    count, sum_s = 0, 0.0
    for sample in samples:
        if sample.name == f"{family}_bucket":
            le_s = float(sample.labels.get("le", "nan"))
            # +Inf is no JSON number, and its count is `count`.
            if math.isfinite(le_s):
                buckets.append([le_s, _whole(sample.value)])
        elif sample.name == f"{family}_sum":
            sum_s = sample.value
        elif sample.name == f"{family}_count":
            count = _whole(sample.value)
    return {"count": count, "sum_s": sum_s, "buckets": sorted(buckets)}


def _level(apf: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    level = apf.get(name)
    if level is None:
        level = apf[name] = {**dict.fromkeys(_APF_GAUGES.values(), 0), "rejected": {}}
    return level


def _whole(value: float) -> int:
    return round(value) if math.isfinite(value) else 0


def _whole_or_none(value: float | None) -> int | None:
    return None if value is None else _whole(value)
