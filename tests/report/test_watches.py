"""What the report says of standing watches."""

from __future__ import annotations

from typing import Any

from scaletest.core.journal import Record
from scaletest.report.terminal import render
from tests.analysis.journals import flow, hist, record, small_run, step
from tests.report.built import document


def lines(**counts: Any) -> str:
    steps = {"watch-pods": step([2_000] * 10, **counts)}
    records: list[Record] = [
        *small_run(),
        record("flow.start", 29.0, flow="standing", target=10, unit="watches"),
        flow(30.0, "standing", target=10, started=10, connected=9, steps=steps),
    ]
    return " ".join(render(document(records), width=140).split())


def test_watches_are_open_and_their_events_have_a_latency() -> None:
    text = lines(events=300, event_us=hist([4_000] * 200), reconnects=7)

    assert "standing: 10 of 10 watches started, 9 open, 1.00 s" in text
    assert "all 10 watches of standing started" in text
    assert "watch-pods: 300 events, 4.00 ms after the write, p99 4.00 ms, max 4.00 ms" in text
    assert "watch-pods: 7 reconnects" in text
    assert "before their time" not in text


def test_a_watch_that_ends_early_now_and_then_is_counted() -> None:
    assert "watch-pods: 4 watches ended before their time, half of them within 2.00 s" in lines(
        early_us=hist([2e6] * 4)
    )


def test_watches_that_the_server_keeps_closing_are_said_to_be() -> None:
    said = "watch-pods: the server keeps closing watches: 35 ended before their time, 3.5 for each, half of them within 300 ms"
    assert said in lines(early_us=hist([3e5] * 35), reconnects=35)
