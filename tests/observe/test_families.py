from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from scaletest.observe.families import APISERVER_NAMES, ETCD_NAMES, apiserver_fields, etcd_fields

DATA = Path(__file__).parent / "data"
LEVELS = {
    "catch-all", "exempt", "global-default", "leader-election", "node-high", "system", "workload-high", "workload-low",
    "tiny",
}  # fmt: skip


def recorded(name: str) -> bytes:
    return (DATA / f"{name}.txt").read_bytes()


@pytest.mark.parametrize("version", ["1.31.4", "1.37.2"])
def test_a_recorded_scrape_has_every_level_with_its_seats(version: str) -> None:
    apf = apiserver_fields(recorded(f"apiserver-{version}"))["apf"]

    assert set(apf) == LEVELS
    # 600 seats are shared out; the level `tiny` was made with one share, and may neither lend nor borrow.
    assert apf["tiny"]["seats_limit"] == 3
    assert apf["exempt"]["seats_in_use"] == 1  # the scrape itself
    assert apf["exempt"]["executing"] == 1


@pytest.mark.parametrize(
    ("version", "dispatched", "rejected"), [("1.31.4", 513, 1887), ("1.37.2", 539, 1861)], ids=["1.31.4", "1.37.2"]
)
def test_a_recorded_scrape_tells_what_was_dispatched_and_rejected(version: str, dispatched: int, rejected: int) -> None:
    fields = apiserver_fields(recorded(f"apiserver-{version}"))

    assert fields["apf"]["tiny"]["dispatched"] == dispatched
    assert fields["apf"]["tiny"]["rejected"] == {"concurrency-limit": rejected}
    assert fields["requests"]["LIST 429"] == rejected
    assert fields["apf"]["workload-low"]["dispatched"] == 3


def test_a_recorded_scrape_tells_memory_in_flight_and_requests_summed_over_resources() -> None:
    fields = apiserver_fields(recorded("apiserver-1.37.2"))

    assert (fields["memory_bytes"], fields["heap_bytes"], fields["cpu_s"]) == (307310592, 155529736, 17.77)
    assert fields["inflight"] == {"mutating": 1, "read_only": 4}
    assert fields["requests"]["POST 201"] == 216


@pytest.mark.parametrize("version", ["1.31.4", "1.37.2"])
def test_every_name_asked_for_is_in_both_versions(version: str) -> None:
    text = (recorded(f"apiserver-{version}") + recorded(f"runtime-{version}")).decode()

    missing = [name for name in APISERVER_NAMES if f"\n{name}" not in text]
    # In a quiet moment no request waits in a queue and no watcher is ended, and the family has no sample.
    assert set(missing) <= {"apiserver_flowcontrol_current_inqueue_requests", "apiserver_terminated_watchers_total"}


@pytest.mark.parametrize(
    ("version", "cpu_s", "waits", "wait_s"),
    [("1.31.4", (15.518, 5.985, 1.842, 1.091), 843, 1.28), ("1.37.2", (18.417, 10.052, 1.092, 0.661), 156, 2.223)],
)
def test_a_recorded_scrape_tells_garbage_collection_and_the_watch_cache(
    version: str, cpu_s: tuple[float, ...], waits: int, wait_s: float
) -> None:
    fields = apiserver_fields(recorded(f"apiserver-{version}") + recorded(f"runtime-{version}"))
    go, cache = fields["go"], fields["watch_cache"]

    assert cpu_s == tuple(round(go[key], 3) for key in ("cpu_s", "idle_s", "gc_s", "gc_idle_s"))
    assert 200e6 < go["memory_bytes"] < 300e6
    assert go["memory_limit_bytes"] is None  # 2**63 - 1: not set
    assert (0, 0, waits) == (cache["terminated_watchers"], cache["fallbacks"], cache["waits"])
    assert wait_s == pytest.approx(cache["wait_s"], abs=0.001)


def test_watchers_and_reads_of_all_resources_are_added_up_in_the_labels_of_both_versions() -> None:
    text = b"""\
apiserver_terminated_watchers_total{resource="pods"} 2
apiserver_terminated_watchers_total{group="apps",resource="daemonsets"} 3
apiserver_watch_cache_consistent_read_total{fallback="false",resource="/pods",success="false"} 100
apiserver_watch_cache_consistent_read_total{fallback="true",resource="/pods",success="true"} 4
apiserver_watch_cache_consistent_read_total{fallback="skipped",group="",resource="nodes",success="false"} 5
go_gc_gomemlimit_bytes 4.294967296e+09
go_memory_classes_heap_released_bytes 1e+09
go_memory_classes_total_bytes 3e+09
process_resident_memory_bytes 1.5e+09
"""
    fields = apiserver_fields(text)

    assert {"terminated_watchers": 5, "fallbacks": 9, "waits": 0, "wait_s": 0} == fields["watch_cache"]
    assert {"memory_bytes": 2_000_000_000, "memory_limit_bytes": 2**32} == fields["go"]


def test_flow_schemas_of_one_level_are_added_up() -> None:
    text = b"""\
apiserver_flowcontrol_current_inqueue_requests{flow_schema="a",priority_level="workload-low"} 2
apiserver_flowcontrol_current_inqueue_requests{flow_schema="b",priority_level="workload-low"} 40
apiserver_flowcontrol_rejected_requests_total{flow_schema="a",priority_level="workload-low",reason="queue-full"} 5
apiserver_flowcontrol_rejected_requests_total{flow_schema="b",priority_level="workload-low",reason="queue-full"} 6
apiserver_flowcontrol_rejected_requests_total{flow_schema="b",priority_level="workload-low",reason="time-out"} 7
process_resident_memory_bytes 1.5e+09
"""

    fields = apiserver_fields(text)
    assert fields["apf"] == {
        "workload-low": {
            "seats_limit": 0, "seats_in_use": 0, "executing": 0, "queued": 42, "dispatched": 0,
            "rejected": {"queue-full": 11, "time-out": 7},
        }
    }  # fmt: skip
    assert (fields["memory_bytes"], fields["heap_bytes"]) == (1_500_000_000, None)


def test_etcd_gives_its_histograms_without_the_infinite_bucket() -> None:
    fields = etcd_fields(recorded("etcd-3.6.16"))

    fsync = fields["fsync"]
    assert (fsync["count"], round(fsync["sum_s"], 6)) == (1165, 1.036594)
    assert fsync["buckets"][:2] == [[0.001, 1007], [0.002, 1097]]
    assert fsync["buckets"][-1] == [8.192, 1165]
    assert fields["commit"]["count"] == 760
    assert all(math.isfinite(le_s) for le_s, _ in fsync["buckets"])
    assert (fields["db_bytes"], fields["db_in_use_bytes"], fields["puts"]) == (770048, 770048, 945)


def test_buckets_grow_with_their_bound() -> None:
    for family in ("fsync", "commit"):
        buckets = etcd_fields(recorded("etcd-3.6.16"))[family]["buckets"]

        assert buckets == sorted(buckets)
        assert [count for _, count in buckets] == sorted(count for _, count in buckets)


def test_the_fields_are_json() -> None:
    for fields in (apiserver_fields(recorded("apiserver-1.31.4")), etcd_fields(recorded("etcd-3.6.16"))):
        assert json.loads(json.dumps(fields, allow_nan=False)) == fields


def test_another_programs_metrics_are_refused() -> None:
    with pytest.raises(ValueError, match="no metrics of an API server"):
        apiserver_fields(b"up 1\n")
    with pytest.raises(ValueError, match="no metrics of etcd"):
        etcd_fields(recorded("apiserver-1.31.4").replace(b"etcd_", b"other_"))


def test_names_are_not_asked_for_twice() -> None:
    assert len(set(APISERVER_NAMES)) == len(APISERVER_NAMES)
    assert len(set(ETCD_NAMES)) == len(ETCD_NAMES)
