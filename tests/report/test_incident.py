"""An incident in the terminal: one timeline with T+, and why a lever did not help."""

from __future__ import annotations

from typing import Any

import pytest

from scaletest.analysis.incident import Kind
from scaletest.core.journal import Record
from scaletest.report.document import Document, IncidentReport
from scaletest.report.incident import _TELLERS
from scaletest.report.terminal import render
from tests.analysis.journals import GIB, apf_level, apiserver, big_run, host, probe, process, record
from tests.analysis.outages import outage, outage_info
from tests.report import built
from tests.report.golden import check_golden


def document(records: list[Record], **profile: Any) -> Document:
    return built.document(records, outage_info(**profile))


def incident(records: list[Record], **profile: Any) -> IncidentReport:
    found = document(records, **profile).incident
    assert found is not None
    return found


def drawn(records: list[Record], width: int) -> str:
    text = render(document(records), width=width)
    return text[text.index("Incident") : text.index("\nPhases")]


@pytest.mark.parametrize("width", [80, 140])
def test_golden(width: int) -> None:
    actual = drawn(outage(), width)

    check_golden(f"incident_over-{width}.txt", actual)
    assert max(map(len, actual.splitlines())) <= width


def test_there_is_one_timeline_and_it_has_every_event_once() -> None:
    text = render(document(outage()), width=100)

    assert "\nStory" not in text
    assert text.count("killed out of memory at 4.00 GiB") == 2
    assert text.count("phase relief") == 1
    assert text.count("block-agents is pulled") == 1
    assert text.count("rollback of telemetry tried") == 2
    assert "control plane ready" not in text


def test_a_run_without_an_incident_keeps_its_story() -> None:
    calm = document(big_run(nodes_count=100, minutes=0.5))
    text = render(calm, width=100)

    assert calm.incident is None
    assert "\nStory" in text
    assert "control plane ready" in text


def test_what_went_wrong_during_set_up_stays_in_the_timeline() -> None:
    warning = record("note", 3.0, level="warning", text="the disk is slow")

    assert "the disk is slow" in [line.text for line in incident([warning, *outage()]).timeline]


def test_other_actions_are_told_by_their_end_or_while_they_last_by_their_begin() -> None:
    texts = [line.text for line in incident(outage()).timeline]
    assert ["action block done in 4.00 ms: 50 connections closed"] == [item for item in texts if "action" in item]

    cut = [item for item in outage() if item["t"] < 87.009]
    assert "action block flow telemetry" in [line.text for line in incident(cut).timeline]


def test_times_before_the_rollout_are_negative_and_without_one_there_are_none() -> None:
    first = incident(outage()).timeline[0]
    assert first.text == "phase baseline: 20.0 s"
    assert first.since_rollout_s == pytest.approx(-20.02)
    assert "T-20 s" in drawn(outage(), 100)

    without = outage(rollout=False, lever=None)
    assert {None} == {line.since_rollout_s for line in incident(without).timeline}
    assert "T+" not in drawn(without, 100)
    assert "T-" not in drawn(without, 100)


def test_every_kind_of_milestone_has_its_text() -> None:
    assert set(Kind) == {*_TELLERS, Kind.RECOVERED}


def helpless(*more: Record) -> str:
    """What is said of a lever in whose phase operators get no answer, while the records say why."""
    records = [
        record("phase.start", 0.0, phase="relief"),
        record("action.start", 0.1, action="lever", detail="apf"),
        record("action.start", 0.1, action="applyFlowControl", detail={}),
        *(probe(float(t), 1.0, outcome="timeout") for t in range(1, 80)),
        record(
            "action.end", 99.9, action="applyFlowControl", detail="", ok=False, error="no answer", proof={"objects": 2}
        ),
        record("phase.end", 100.0, phase="relief", reason="at_most"),
    ]
    (lever,) = incident(sorted([*records, *more], key=lambda item: float(item["t"]))).levers
    assert lever.recovered is False
    assert lever.said is not None
    return lever.said


LIMIT = record(
    "component.limit",
    0.0,
    component="kube-apiserver",
    memory_bytes=4 * GIB,
    cpu_cores=2.0,
    memory_by="cgroup_v2",
    cpu_by="cgroup_v2",
)


def used(memory: float, cores: float) -> list[Record]:
    return [process(float(t), kube_apiserver=(1, memory, cores * t)) for t in range(1, 100)]


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([LIMIT, *used(3.8 * GIB, 0.1)], "in the last 60.0 s: memory, kube-apiserver memory 3.80 GiB of 4.00 GiB (95 %) (90% counts as full)."),
        ([LIMIT, *used(GIB, 1.9)], "in the last 60.0 s: CPU, kube-apiserver 1.90 of 2.00 cores (90% counts as full)."),
        ([host(t, busy=t, idle=0.01 * t) for t in (50.0, 90.0)], "in the last 60.0 s: CPU, host 0.99 % idle (under 5% counts as full)."),
        (
            [apiserver(90.0, workload_low=apf_level(seats_limit=245, seats_in_use=245, queued=1900))],
            "in the last 60.0 s: API Priority and Fairness, level workload-low 245 of 245 seats, 1,900 queued, 0 rejected.",
        ),
        (
            [LIMIT, *used(GIB, 0.5), apiserver(90.0, workload_low=apf_level(seats_limit=245))],
            "kube-apiserver memory 1.00 GiB of 4.00 GiB (25 %); kube-apiserver 0.50 of 2.00 cores; level workload-low 1 of 245 seats, 0 queued, 0 rejected.",
        ),
        ([], "No resource at its limit in the last 60.0 s: nothing was measured."),
    ],
)  # fmt: skip
def test_a_lever_that_did_not_help_says_what_it_did_and_what_stayed_at_its_limit(
    records: list[Record], said: str
) -> None:
    text = helpless(*records)

    assert text.startswith(
        "Lever apf in phase relief: operators had not recovered after 1m40s. applyFlowControl failed: no answer (2 objects)."
    )
    assert text.endswith(said)
