from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.load.watchstream import (
    REVISION_MODULUS,
    EventCounter,
    InitialEvents,
    JsonEvents,
    ProtobufEvents,
)
from tests.load.test_metadata import field, varint

pieces = st.lists(st.integers(0, 5000), max_size=10)


def feed(counter: EventCounter, wire: bytes, cuts: list[int]) -> None:
    buffer = bytearray(len(wire) + 1)
    bounds = [0, *sorted(cut % (len(wire) + 1) for cut in cuts), len(wire)]
    for low, high in itertools.pairwise(bounds):
        buffer[: high - low] = wire[low:high]
        counter(buffer, 0, high - low)
        buffer[:] = b"\n" * len(buffer)


def event(version: int, padding: int) -> bytes:
    metadata = {"name": "a\nb", "labels": {"resourceVersion": "x"}, "resourceVersion": str(version)}
    return json.dumps({"type": "MODIFIED", "object": {"metadata": metadata, "spec": "y" * padding}}).encode() + b"\n"


@given(events=st.lists(st.integers(0, 3000), max_size=8), cuts=pieces, open_end=st.booleans())
def test_json_events_are_counted_and_the_last_whole_one_tells_its_version(
    events: Any, cuts: Any, open_end: Any
) -> None:
    wire = b"".join(event(100 + index, padding) for index, padding in enumerate(events))
    counter = JsonEvents()

    feed(counter, wire + (event(999, 10)[:-5] if open_end else b""), cuts)

    assert len(events) == counter.count == counter.take_fresh()
    assert 0 == counter.take_fresh()
    assert (str(99 + len(events)) if events else None) == counter.version
    assert counter.error is None


@given(events=st.lists(st.integers(0, 3000), max_size=8), cuts=pieces)
def test_protobuf_events_are_counted_by_their_frames(events: Any, cuts: Any) -> None:
    def frame(version: int, padding: int) -> bytes:
        metadata = field(1, b"name") + field(6, str(version).encode())
        pod = b"k8s\0" + field(1, b"types") + field(2, field(1, metadata) + field(2, b"y" * padding))
        message = field(1, b"ADDED") + field(2, field(1, pod))
        return len(message).to_bytes(4, "big") + message

    counter = ProtobufEvents()
    feed(counter, b"".join(frame(100 + index, padding) for index, padding in enumerate(events)), cuts)

    assert len(events) == counter.count
    assert (str(99 + len(events)) if events else None) == counter.version


def test_an_error_event_gives_its_status() -> None:
    counter = JsonEvents()
    status = {"kind": "Status", "message": "too old resource version", "reason": "Expired", "code": 410}
    feed(counter, json.dumps({"type": "ERROR", "object": status}, separators=(",", ":")).encode() + b"\n", [])

    assert (410, "Expired", "too old resource version") == counter.error


def test_an_error_event_in_protobuf_gives_its_status() -> None:
    status = field(3, b"too old") + field(4, b"Expired") + b"\x30" + varint(410)
    message = field(1, b"ERROR") + field(2, field(1, b"k8s\0" + field(1, b"types") + field(2, status)))
    counter = ProtobufEvents()
    feed(counter, len(message).to_bytes(4, "big") + message, [3, 7])

    assert (410, "Expired", "too old") == counter.error


@given(st.integers(0, 60), st.integers(1, 30), st.booleans())
def test_the_end_of_initial_events_is_found_however_it_is_cut(before: int, size: int, there: bool) -> None:
    mark = b"k8s.io/initial-events-end" if there else b"k8s.io/initial-events-"
    data = bytearray(b"x" * before + mark + b"yyy")
    sink = InitialEvents()
    for start in range(0, len(data), size):
        sink(data, start, min(len(data), start + size))

    assert there == sink.done


def json_event(kind: str, revision: str) -> bytes:
    annotations = {"a": "b", "scaletest.dev/revision": revision}
    return json.dumps({"type": kind, "object": {"metadata": {"annotations": annotations}}}).encode() + b"\n"


def protobuf_event(kind: bytes, revision: bytes) -> bytes:
    entry = field(1, b"scaletest.dev/revision") + field(2, revision)
    meta = field(1, b"name") + field(12, entry)
    event = field(1, kind) + field(2, field(1, b"k8s\x00" + field(2, field(1, meta))))
    return len(event).to_bytes(4, "big") + event


@pytest.mark.parametrize(
    ("sink", "data"),
    [
        (JsonEvents, json_event("MODIFIED", "000001500000")),
        (ProtobufEvents, protobuf_event(b"MODIFIED", b"000001500000")),
    ],
)
def test_the_age_of_an_event_is_the_time_since_its_write(sink: type[EventCounter], data: bytes) -> None:
    events = sink()
    events(bytearray(data), 0, len(data))

    assert [500_000] == events.take_ages_us(2.0)
    assert [] == events.take_ages_us(2.0)
    events(bytearray(data), 0, len(data))
    # The clock may have gone through its twelve digits.
    assert [500_000] == events.take_ages_us(REVISION_MODULUS / 1e6 + 2.0)


@pytest.mark.parametrize(
    ("sink", "data"),
    [
        (JsonEvents, json_event("DELETED", "000001500000")),
        (JsonEvents, json_event("MODIFIED", "17")),
        (JsonEvents, b'{"type":"MODIFIED","object":{}}\n'),
        (ProtobufEvents, protobuf_event(b"DELETED", b"000001500000")),
    ],
)
def test_an_event_that_does_not_say_when_it_was_written_has_no_age(sink: type[EventCounter], data: bytes) -> None:
    events = sink()
    events(bytearray(data), 0, len(data))

    assert [] == events.take_ages_us(2.0)


def test_every_event_of_those_that_come_at_once_has_its_age() -> None:
    events = JsonEvents()
    data = (
        json_event("ADDED", "000000500000")
        + json_event("DELETED", "000000600000")
        + json_event("MODIFIED", "000001500000")
    )
    feed(events, data, [10, 150, 160])

    assert [1_500_000, 500_000] == events.take_ages_us(2.0)


def test_watches_to_which_the_same_event_comes_share_what_is_kept_of_it() -> None:
    first, second = JsonEvents(), JsonEvents()
    for events in (first, second):
        feed(events, json_event("MODIFIED", "000001500000"), [20])

    assert first.last is second.last is not None
    assert [500_000] == first.take_ages_us(2.0) == second.take_ages_us(2.0)
