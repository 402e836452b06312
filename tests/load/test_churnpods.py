"""How long pods take to start, from the events of a watch."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scaletest.core.histogram import Histogram
from scaletest.load.churnpods import PodEvents, PodStartups

MIDNIGHT_S = 1_796_083_200.0
"""2026-12-01T00:00:00Z; the monotonic clock is taken to be 0 then."""


def event(kind: str, *conditions: str, uid: str = "a", second: int = 0, deleted: bool = False) -> dict[str, Any]:
    metadata = {"uid": uid, "creationTimestamp": f"2026-12-01T00:00:{second:02d}Z"}
    if deleted:
        metadata["deletionTimestamp"] = "2026-12-01T00:01:00Z"
    status = {"conditions": [{"type": name, "status": "True"} for name in conditions]}
    return {"type": kind, "object": {"metadata": metadata, "status": status}}


def see(startups: PodStartups, *events: tuple[float, dict[str, Any]]) -> None:
    for at_s, item in events:
        startups.see(item, at_s, MIDNIGHT_S + at_s)


def seen(data: dict[str, Any], key: str = "startup_us") -> list[float]:
    """Whole tenths of seconds that pods took; no test has more than one."""
    histogram = Histogram.from_json(data[key])
    assert histogram.count <= 1
    return [round(histogram.total / 1e6, 1)] if histogram.count else []


def test_a_pod_counts_from_its_first_event_to_the_one_in_which_it_is_ready() -> None:
    startups = PodStartups(30)
    see(
        startups,
        (0.4, event("ADDED")),
        (0.6, event("MODIFIED", "PodScheduled")),
        (1.4, event("MODIFIED", "PodScheduled", "Ready")),
        (9.0, event("MODIFIED", "PodScheduled", "Ready")),
    )
    data = startups.take()

    assert [1.0] == seen(data)
    assert [0.2] == seen(data, "scheduling_us")
    assert (1, 1, 0, 0) == (data["pods"], data["ready"], data["pending"], data["late"])
    assert [] == seen(startups.take())


def test_a_first_event_that_comes_late_does_not_make_the_start_shorter_than_its_timestamp_says() -> None:
    """Created in the second from 0 to 1, seen at 5 and Ready at 6: at least 5 s."""
    startups = PodStartups(30)
    see(startups, (5.0, event("ADDED", second=0)), (6.0, event("MODIFIED", "Ready", second=0)))

    assert [5.0] == seen(startups.take())


def test_pods_deleted_before_they_were_ready_and_those_ready_before_the_watch_are_not_counted() -> None:
    startups = PodStartups(30)
    see(
        startups,
        (0.0, event("ADDED", uid="deleted")),
        (0.5, event("MODIFIED", uid="deleted", deleted=True)),
        (0.6, event("DELETED", uid="deleted", deleted=True)),
        (0.0, event("ADDED", uid="gone")),
        (0.1, event("DELETED", uid="gone")),
        (0.0, event("ADDED", "PodScheduled", "Ready", uid="old")),
        (0.2, {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}),
        (0.3, {"type": "ERROR", "object": {"kind": "Status", "code": 410}}),
    )
    startups.sweep(100.0)
    data = startups.take()

    assert [] == seen(data) == seen(data, "scheduling_us")
    assert (1, 1, 0, 0) == (data["pods"], data["ready"], data["pending"], data["late"])
    see(startups, (1.0, event("DELETED", "Ready", uid="old")))
    assert (0, 0) == (startups.count, startups.ready)


def test_a_pod_that_is_not_ready_in_time_is_late_once_and_its_start_is_not_counted_later() -> None:
    startups = PodStartups(10)
    see(startups, (1.0, event("ADDED", second=1)), (6.0, event("ADDED", uid="b", second=6)))
    startups.sweep(10.9)
    assert 0 == startups.take()["late"]
    startups.sweep(11.1)
    startups.sweep(12.0)
    data = startups.take()
    assert (1, 2) == (data["late"], data["pending"])
    see(startups, (13.0, event("MODIFIED", "Ready", second=1)))
    data = startups.take()
    assert [] == seen(data)
    assert (0, 1, 1) == (data["late"], data["ready"], data["pending"])


def test_a_watch_that_starts_over_names_all_pods_again() -> None:
    startups = PodStartups(30)
    see(startups, (1.0, event("ADDED", second=1)), (1.0, event("ADDED", uid="gone", second=1)))
    startups.forget()
    see(startups, (4.0, event("ADDED", second=1)), (5.0, event("MODIFIED", "Ready", second=1)))
    startups.sweep(100.0)
    data = startups.take()

    # From the end of the second in which it was created; the one that is gone is not waited for.
    assert [3.0] == seen(data)
    assert (1, 0) == (data["pods"], data["late"])


@given(st.lists(st.integers(1, 400), max_size=12))
def test_events_are_found_wherever_spans_cut_them(cuts: list[int]) -> None:
    events = [event("ADDED", uid=str(uid), second=1) for uid in range(3)]
    events += [event("MODIFIED", "Ready", uid=str(uid), second=1) for uid in range(3)]
    data = bytearray(b"".join(json.dumps(item).encode() + b"\n" for item in events))
    startups = PodStartups(30)
    sink, at = PodEvents(startups), 0
    for cut in [*cuts, len(data)]:
        end = min(len(data), at + cut)
        sink(data, at, end)
        at = end

    assert (3, 3, 6) == (startups.count, startups.ready, sink.count)
