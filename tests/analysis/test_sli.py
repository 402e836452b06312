"""The official SLIs: which calls count, their thresholds and forms, and objectives about them."""

from __future__ import annotations

import pytest

from scaletest.analysis.evaluate import measure
from scaletest.analysis.measured import Measured
from scaletest.analysis.sli import sli_of
from scaletest.analysis.state import RunState
from scaletest.core.apicalls import ApiCall
from scaletest.core.journal import Record
from scaletest.profile.objectives import parse_objective
from tests.analysis.journals import apf_level, apiserver, latency, record


@pytest.mark.parametrize(
    ("call", "sli", "threshold_s"),
    [
        ("POST pods resource", "mutating", 1.0),
        ("PUT leases.coordination.k8s.io resource", "mutating", 1.0),
        ("PATCH nodes/status resource", "mutating", 1.0),
        ("APPLY flowschemas.flowcontrol.apiserver.k8s.io/status resource", "mutating", 1.0),
        ("DELETE pods resource", "mutating", 1.0),
        ("POST pods/binding resource", "mutating", 1.0),
        ("GET nodes resource", "read_resource", 1.0),
        ("GET deployments.apps/scale resource", "read_resource", 1.0),
        ("LIST pods namespace", "read_namespace", 30.0),
        ("LIST pods cluster", "read_cluster", 30.0),
        ("LIST customresourcedefinitions.apiextensions.k8s.io cluster", "read_cluster", 30.0),
    ],
)
def test_a_call_counts_in_its_sli(call: str, sli: str, threshold_s: float) -> None:
    found = sli_of(ApiCall.parse(call))

    assert found is not None
    assert (found.name, found.threshold_s) == (sli, threshold_s)


@pytest.mark.parametrize(
    "call",
    [
        "WATCH pods cluster",
        "WATCHLIST pods cluster",
        "CONNECT pods/exec resource",
        "GET pods/log resource",
        "POST pods/portforward resource",
        "GET services/proxy resource",
        "DELETE pods namespace",  # a collection: not of a single object
        "DELETE nodes cluster",
        "POST tokenreviews.authentication.k8s.io resource",
        "POST selfsubjectaccessreviews.authorization.k8s.io resource",
        "LIST componentstatuses cluster",
        "LIST widgets.scaletest.dev cluster",
        "LIST volumesnapshots.snapshot.storage.k8s.io cluster",
        "LIST nodes.metrics.k8s.io cluster",
    ],
)
def test_what_the_definition_leaves_out_counts_in_none(call: str) -> None:
    assert sli_of(ApiCall.parse(call)) is None


def phase(end_s: float = 100.0) -> list[Record]:
    return [record("phase.start", 0.0, phase="only"), record("phase.end", end_s, phase="only", reason="time")]


def of(subject: str, *records: Record, span: tuple[float, float] | None = None) -> Measured:
    unit = "1s" if not subject.endswith("violations") else "1"
    return measure(RunState().apply_all(records), parse_objective(f"{subject} < {unit}").subject, span)


SLOW_PATCH = "PATCH nodes/status resource"
CALLS = {
    "PUT leases.coordination.k8s.io resource": [0.01] * 100,
    SLOW_PATCH: [0.01] * 98 + [1.9] * 2,
    "POST widgets.scaletest.dev resource": [9.0],
    "DELETE pods namespace": [9.0],
    "LIST pods namespace": [4.0],
    "LIST pods cluster": [25.0],
}


def test_an_sli_is_that_of_its_worst_kind_of_call() -> None:
    worst = of("sli.mutating.p99", *phase(), latency(1.0, CALLS))

    assert worst.value == pytest.approx(1.75)  # half-way through the bucket from 1.5 s to 2 s
    assert worst.samples == 100
    assert of("sli.mutating.p50", *phase(), latency(1.0, CALLS)).value < 0.05
    assert of("sli.read_namespace.p99", *phase(), latency(1.0, CALLS)).value == pytest.approx(3.99)


def test_an_sli_of_one_resource() -> None:
    leases = of("sli.mutating.leases.coordination.k8s.io.p99", *phase(), latency(1.0, CALLS))

    assert leases.value == pytest.approx(0.0495)
    assert of("sli.mutating.nodes/status.p99", *phase(), latency(1.0, CALLS)).value == pytest.approx(1.75)


def test_server_latency_is_with_the_wait_in_queues() -> None:
    records = [*phase(), latency(1.0, {"LIST pods cluster": [0.3]}, {"LIST pods cluster": [44.9]})]

    assert of("sli.read_cluster.p99", *records).value < 0.4
    assert of("sli.read_cluster.server_p99", *records).value > 30


def test_violations_are_the_kinds_of_call_that_break_their_slo() -> None:
    found = of("sli.slo_violations", *phase(), latency(1.0, CALLS | {"GET nodes resource": [1.1]}))

    assert found == Measured(2.0, 5)
    assert of("sli.slo_violations", *phase(), latency(1.0, {"LIST pods cluster": [29.0]})) == Measured(0.0, 1)


def test_a_p99_exactly_at_the_threshold_meets_the_slo() -> None:
    # The definition says "<= 1s"; no observation lies above the bound, and the quantile is below it.
    assert of("sli.slo_violations", *phase(), latency(1.0, {"GET nodes resource": [1.0]})).value == 0


def test_the_5_minute_form_is_of_windows_within_the_measured_time() -> None:
    quick = [latency(float(t), {SLOW_PATCH: [0.01] * 100}) for t in range(5, 900, 5)]
    burst = [latency(500.1, {SLOW_PATCH: [8.5] * 100})]
    records = sorted([*phase(900.0), *quick, *burst], key=lambda item: item["t"])

    # 100 slow calls of 17,900 are few; of the 6,000 of a window of five minutes they are 1.6 %, in half of all windows.
    assert of("sli.mutating.p99", *records).value < 0.1
    windowed = of("sli.mutating[5m].p99", *records)
    assert 8 < windowed.value < 10
    assert windowed.samples == 60  # ends at 300, 310 … 890 s
    assert of("sli[5m].slo_violations", *records) == Measured(1.0, 1)
    assert of("sli.slo_violations", *records).value == 0


def test_the_5_minute_form_of_a_short_run_is_not_measured_and_says_what_to_write() -> None:
    found = of("sli.mutating[5m].p99", *phase(), latency(1.0, CALLS))

    assert found.why_nan == (
        "the 5-minute form needs five minutes of measurement, and there were 1m40s; sli.mutating.p99 is the form for the whole run"
    )


@pytest.mark.parametrize(
    ("subject", "records", "why"),
    [
        ("sli.mutating.p99", [], "histograms were read less than twice"),
        ("sli.slo_violations", [], "histograms were read less than twice"),
        ("sli.mutating.p99", [latency(1.0)], "no mutating call in this time"),
        ("sli.slo_violations", [latency(1.0, {"LIST widgets.scaletest.dev cluster": [1]})], "no call that counts in an SLI"),
        ("sli.mutating.pods.p99", [latency(1.0, CALLS)], "no mutating call of pods; measured were: leases.coordination.k8s.io, nodes/status"),
    ],
)  # fmt: skip
def test_what_was_not_measured_says_why(subject: str, records: list[Record], why: str) -> None:
    found = of(subject, *phase(), *records)

    assert why in (found.why_nan or "")


def test_waits_of_a_priority_level() -> None:
    scrape = apiserver(1.0, exempt=apf_level(), tiny=apf_level())
    records = [*phase(), scrape, latency(1.0, wait={"tiny": [0.0] * 50 + [4.9] * 50})]

    assert of("apf.tiny.wait_p99", *records).value == pytest.approx(4.94)
    assert "no request of priority level exempt" in (of("apf.exempt.wait_p99", *records).why_nan or "")
