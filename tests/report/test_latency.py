"""API latency in the report: SLI, server and client beside each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scaletest.core.journal import Record
from scaletest.report.document import ApiLatencyReport, Document
from scaletest.report.terminal import render
from tests.analysis.journals import flow, latency, record, run_info, small_run, step
from tests.report.built import document

LIST = "LIST pods cluster"
PROFILE: dict[str, Any] = {
    "name": "x",
    "flows": {
        "agents": {"agents": {"count": 10, "rollout": "10/s"}, "steps": [{"list": "pods"}]},
        "lists": {"arrivals": {"rate": "1/s"}, "mix": [{"list": "pods"}]},
    },
}


def built(records: list[Record], profile: Mapping[str, Any] = PROFILE) -> Document:
    info = run_info(profile=dict(profile))
    return document(records, info)


def run(*records: Record) -> list[Record]:
    phase = [record("phase.start", 0.0, phase="only"), record("phase.end", 50.0, phase="only", reason="time")]
    return sorted([*phase, *records, record("run.end", 51.0, status="finished")], key=lambda item: item["t"])


def latency_of(*records: Record) -> ApiLatencyReport:
    found = built(run(*records)).api_latency
    assert found is not None
    return found


def drawn(*records: Record, width: int = 80) -> str:
    return render(built(run(*records)), width=width)


def client(name: str = "agents", *, seconds: float = 45.0, refused: int = 0) -> Record:
    return flow(5.0, name, steps={"list-pods": step([seconds * 1e6] * 10, [100.0] * refused)})


def test_the_three_latencies_of_a_call_stand_beside_each_other() -> None:
    found = latency_of(latency(5.0, {LIST: [0.3] * 10}, {LIST: [14.0] * 10}), client())

    (call,) = found.calls
    assert (call.call, call.sli, call.threshold_s, call.calls) == (LIST, "read_cluster", 30.0, 10)
    assert call.sli_p99_s == pytest.approx(0.398)  # 0.2 to 0.4 s
    assert call.server_p99_s == pytest.approx(14.95)  # 10 to 15 s
    assert call.client_p99_s == pytest.approx(45.0, rel=0.01)
    assert call.clients == ["agents.list-pods"]


def test_a_slo_that_holds_while_clients_wait_is_said_plainly() -> None:
    records = [latency(5.0, {LIST: [0.3] * 10}, {LIST: [14.0] * 10}), client(refused=90)]

    (call,) = latency_of(*records).calls
    assert (call.holds, call.waited, call.client_error_rate) == (True, True, 0.9)
    text = " ".join(drawn(*records).split())
    assert (
        "LIST pods (cluster) meets its SLO, yet clients waited 45.0 s; 90 % of the requests of agents.list-pods failed"
        in text
    )
    assert "official SLOs: 1 of 1 kinds of call meet theirs" in text


def test_nobody_waited_where_all_were_quick() -> None:
    records = [latency(5.0, {LIST: [0.3] * 10}, {LIST: [0.3] * 10}), client(seconds=0.4)]

    assert not latency_of(*records).calls[0].waited
    assert "yet" not in drawn(*records)


def test_a_slo_that_breaks_is_marked_and_comes_first() -> None:
    records = [latency(5.0, {LIST: [50.0], "GET nodes resource": [0.01]}), client(seconds=0.4)]

    found = latency_of(*records)
    assert [call.holds for call in found.calls] == [False, True]
    assert (found.slos, found.slo_violations, found.slo_violations_5m) == (2, 1, None)
    text = drawn(*records)
    assert "official SLOs: 1 of 2 kinds of call meet theirs" in text
    assert "✗" in next(line for line in text.splitlines() if line.startswith("  LIST pods"))


def test_steps_of_several_flows_are_one_client() -> None:
    (call,) = latency_of(latency(5.0, {LIST: [0.3]}), client(), client("lists", seconds=1.0)).calls

    assert call.clients == ["agents.list-pods", "lists.list-pods"]
    assert call.client_requests == 20


def test_a_client_whose_calls_the_server_never_answered_is_there() -> None:
    (call,) = latency_of(latency(5.0), client(refused=3)).calls

    assert (call.calls, call.sli_p99_s, call.holds, call.waited) == (0, None, None, False)


def test_without_a_second_read_of_the_histograms_there_is_no_section() -> None:
    document = built(run(client()))

    assert document.api_latency is None
    assert "API latency" not in render(document, width=80)


def test_quantiles_beyond_the_buckets_are_said_as_bounds() -> None:
    text = drawn(
        latency(5.0, {LIST: [0.001], "GET nodes resource": [70.0]}, {LIST: [0.001], "GET nodes resource": [70.0]})
    )

    assert "≤50 ms   ≤5 ms" in text
    assert text.count("≥60 s") == 2


def test_many_calls_are_cut_to_the_worst() -> None:
    calls = {f"GET things{index}.apps resource": [0.01] for index in range(30)}
    text = drawn(latency(5.0, calls))

    assert "22 more kinds of call" in text
    assert len(latency_of(latency(5.0, calls)).calls) == 30


def test_the_5_minute_form_stands_beside_the_other_from_five_minutes_on() -> None:
    phase = [record("phase.start", 0.0, phase="only"), record("phase.end", 500.0, phase="only", reason="time")]
    document = built([*phase, *(latency(float(t), {LIST: [50.0]}) for t in range(5, 500, 5))])

    assert document.api_latency is not None
    assert document.api_latency.slo_violations_5m == 1
    assert "in the 5-minute form 1 breaks theirs" in " ".join(render(document, width=80).split())
    assert "SLI 5m" in render(document, width=120)


def test_each_phase_has_its_violations() -> None:
    records = [
        record("phase.start", 0.0, phase="one"), record("phase.end", 10.0, phase="one", reason="time"),
        record("phase.start", 10.0, phase="two"), record("phase.end", 20.0, phase="two", reason="time"),
        record("phase.start", 20.0, phase="three"), record("phase.end", 30.0, phase="three", reason="time"),
        latency(5.0, {LIST: [50.0]}), latency(15.0, {LIST: [1.0]}),
    ]  # fmt: skip

    assert [phase.slo_violations for phase in built(records).phases] == [1, 0, None]


def test_the_small_run_shows_a_break_a_wait_and_a_custom_resource() -> None:
    document = built(small_run(), run_info().profile)

    assert document.api_latency is not None
    by_call = {call.call: call for call in document.api_latency.calls}
    assert by_call["PATCH nodes/status resource"].holds is False
    assert by_call["POST widgets.scaletest.dev resource"].sli is None
