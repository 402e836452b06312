"""What is read from ``/metrics``, and the journal fields it becomes.

The names were read in the sources of Kubernetes 1.31.4 and 1.37.2 (apiserver/pkg/util/flowcontrol/metrics,
apiserver/pkg/endpoints/metrics), which agree on all of them, and etcd 3.6. The older spellings
``request_concurrency_limit`` and ``request_concurrency_in_use``, gone by 1.37, are not needed: their
successors ``current_limit_seats`` and ``current_executing_seats`` are there in both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from scaletest.observe.promtext import Sample, select

__all__ = ["APISERVER_NAMES", "ETCD_NAMES", "apiserver_fields", "etcd_fields"]

_APF: Final = "apiserver_flowcontrol_"
_APF_GAUGES: Final = {
    f"{_APF}current_limit_seats": "seats_limit",
    f"{_APF}current_executing_seats": "seats_in_use",
    f"{_APF}current_executing_requests": "executing",
    f"{_APF}current_inqueue_requests": "queued",
    f"{_APF}dispatched_requests_total": "dispatched",
}
_REJECTED: Final = f"{_APF}rejected_requests_total"
_INFLIGHT: Final = "apiserver_current_inflight_requests"
_INFLIGHT_KINDS: Final = {"mutating": "mutating", "readOnly": "read_only"}
_REQUESTS: Final = "apiserver_request_total"
_RSS: Final = "process_resident_memory_bytes"
_HEAP: Final = "go_memstats_heap_alloc_bytes"
_CPU: Final = "process_cpu_seconds_total"

APISERVER_NAMES: Final = (*_APF_GAUGES, _REJECTED, _INFLIGHT, _REQUESTS, _RSS, _HEAP, _CPU)

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

    ``memory_bytes`` is the resident size, ``heap_bytes`` Go's live heap and ``cpu_s`` the CPU used.
    Raises ValueError when the text is not an API server's.
    """
    apf: dict[str, dict[str, Any]] = {}
    inflight = dict.fromkeys(_INFLIGHT_KINDS.values(), 0)
    requests: dict[str, int] = {}
    scalars: dict[str, float] = {}
    for sample in select(text, APISERVER_NAMES):
        name, labels = sample.name, sample.labels
        if name in _APF_GAUGES:
            # Per flow schema where it is a count of requests, per level where it is a limit: summed by level.
            level = _level(apf, labels.get("priority_level", ""))
            level[_APF_GAUGES[name]] += _whole(sample.value)
        elif name == _REJECTED:
            rejected = _level(apf, labels.get("priority_level", ""))["rejected"]
            reason = labels.get("reason", "")
            rejected[reason] = rejected.get(reason, 0) + _whole(sample.value)
        elif name == _INFLIGHT:
            kind = _INFLIGHT_KINDS.get(labels.get("request_kind", ""))
            if kind is not None:
                inflight[kind] = _whole(sample.value)
        elif name == _REQUESTS:
            key = f"{labels.get('verb', '')} {labels.get('code', '')}"
            requests[key] = requests.get(key, 0) + _whole(sample.value)
        else:
            scalars[name] = sample.value
    if not requests and not scalars:
        msg = "no metrics of an API server"
        raise ValueError(msg)
    return {
        "apf": apf,
        "inflight": inflight,
        "memory_bytes": _whole_or_none(scalars.get(_RSS)),
        "heap_bytes": _whole_or_none(scalars.get(_HEAP)),
        "cpu_s": scalars.get(_CPU),
        "requests": requests,
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
