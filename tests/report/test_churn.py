"""What the report says of a churn flow."""

from __future__ import annotations

from typing import Any

from scaletest.core.journal import Record
from scaletest.report.terminal import render
from tests.analysis.journals import flow, hist, small_run, step
from tests.analysis.test_churn import churn
from tests.report.built import document


def lines(**more: Any) -> str:
    arrivals = {"rate_per_s": 2.0, "due": 10, "sent": 10, "dropped": 0, "behind": 0, "in_flight": 0, "waiting": 0}
    records: list[Record] = [
        *small_run(),
        flow(
            10.0, "churn", target=60, started=58, connected=4, steps={"scale-deployment": step([3_000] * 10)},
            arrivals={**arrivals, "lag_us": hist([400] * 10)}, churn=churn([1e6] * 99, moved=12, **more),
        ),
    ]  # fmt: skip
    return " ".join(render(document(records), width=140).split())


def test_what_was_changed_and_how_long_pods_took_is_said() -> None:
    text = lines()

    assert "12 pods created or deleted (12/s), up to 58 of 60 Ready, 1.00 s" in text
    assert "pod start-up of 99: 1.00 s, p99 1.00 s, max 1.00 s; scheduled after 500 ms at p99" in text
    assert "pods were not Ready in time" not in text
    assert "scale-deployment" in text


def test_pods_that_did_not_start_are_said() -> None:
    text = lines(late=5, pending=7)

    assert "p99 not within the time" in text
    assert "5 pods were not Ready in time" in text
    assert "7 pods had not been Ready when the flow was stopped" in text
