"""What the rules on limiting resources found, in words."""

from __future__ import annotations

import pytest

from scaletest.analysis.limiting import Finding, Resource
from scaletest.report.limits import figures_text, limit_report, limit_text

GIB = 2.0**30


def finding(resource: Resource, subject: str, **values: float) -> Finding:
    return Finding(resource, subject, at_limit=True, values=values)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            finding(Resource.MEMORY, "kube-apiserver", oom_kills=0.0, down_s=60.0, cap_bytes=6 * GIB),
            "memory, kube-apiserver down 60.0 s after it was killed out of memory",
        ),
        (
            finding(Resource.CPU, "kube-apiserver", cores=1.98, quota_cores=2.0, gc_share=0.46),
            "CPU, kube-apiserver 1.98 of 2.00 cores, of which 46 % garbage collection (90% counts as full)",
        ),
        (
            finding(Resource.GC, "kube-apiserver", gc_share=0.46, used_bytes=3.9 * GIB, limit_bytes=4 * GIB),
            "garbage collection 46 % of kube-apiserver's CPU, memory 3.90 GiB of GOMEMLIMIT 4.00 GiB (25% counts as full, at 90% of GOMEMLIMIT)",
        ),
        (
            finding(Resource.IN_FLIGHT, "read-only requests", in_flight=400, limit=400, rejected=1_900),
            "the in-flight limit, 400 of 400 read-only requests in flight, 1,900 rejected",
        ),
        (
            finding(Resource.APF, "agents", seats_in_use=0, seats=3, queued=0, rejected=12),
            "API Priority and Fairness, level agents 12 rejected for want of its 3 seats",
        ),
        (
            finding(Resource.APF, "agents", seats_in_use=240, seats=245, queued=10, rejected=12),
            "API Priority and Fairness, level agents 240 of 245 seats, 10 queued, 12 rejected",
        ),
        (
            finding(Resource.NETWORK, "TCP", listen_overflows=12, memory_pressures=0),
            "the network of this machine, TCP 12 connections dropped by full queues of listeners, socket memory short 0 times",
        ),
        (
            finding(Resource.WATCH_CACHE, "kube-apiserver", terminated_watchers=3, fallbacks=40, mean_wait_s=0.0123),
            "the watch cache: 3 watchers ended, 40 consistent reads it was late for, reads waited 12.3 ms (mean)",
        ),
    ],
)  # fmt: skip
def test_a_limit_is_said_with_its_figures_and_its_rule(found: Finding, said: str) -> None:
    assert said == limit_text(found)
    assert figures_text(found) in said


@pytest.mark.parametrize("resource", list(Resource))
def test_every_resource_is_in_the_report_as_data(resource: Resource) -> None:
    report = limit_report(finding(resource, "x", some=1.0))

    assert (resource.value, True, {"some": 1.0}) == (report.resource, report.at_limit, report.values)


def test_what_was_not_measured_is_left_out() -> None:
    assert "TCP socket memory short 1 times" == figures_text(finding(Resource.NETWORK, "TCP", memory_pressures=1))
    assert "kube-apiserver 1.00 cores" == figures_text(finding(Resource.CPU, "kube-apiserver", cores=1.0))
