"""What the report says of an arrivals flow."""

from __future__ import annotations

from typing import Any

from scaletest.core.journal import Record
from scaletest.report.terminal import render
from tests.analysis.journals import flow, hist, small_run, step
from tests.report.built import document


def lines(**arrivals: Any) -> str:
    counts = {"rate_per_s": 100.0, "due": 1000, "sent": 990, "dropped": 10, "behind": 0, "in_flight": 7, "waiting": 3}
    item = {**counts, "lag_us": hist([400] * 1000), **arrivals}
    steps = {"get-pods": step([3_000] * 10, service_us=hist([1_000] * 10))}
    records: list[Record] = [
        *small_run(),
        flow(10.0, "gets", target=16, started=16, connected=16, steps=steps, arrivals=item),
    ]
    return " ".join(render(document(records), width=140).split())


def test_asked_offered_dropped_and_late_are_said() -> None:
    text = lines()

    assert "990 of 1,000 arrivals begun (99 %) on 10 connections, 1.00 s" in text.replace(
        "16 connections", "10 connections"
    )
    assert "begun 400 µs late at p99; latency counts from when they were due" in text
    assert "10 dropped: 7 were in flight" in text
    assert "7 had not ended when the flow was stopped" in text
    assert "get-pods: 1.00 ms from the send, p99 1.00 ms" in text


def test_a_closed_loop_has_no_schedule() -> None:
    text = lines(rate_per_s=None, dropped=0, in_flight=0)

    assert "gets: a closed loop on 16 connections" in text or "a closed loop on 16 connections, 1.00 s" in text
    assert "from when they were due" not in text


def test_arrivals_are_no_rollout() -> None:
    assert "flow gets: all" not in lines()
