"""What is said of API latency: how a quantile is written where a bucket bounds it, and what the SLI leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scaletest.report import glyphs
from scaletest.report.document import ApiCallReport, ApiLatencyReport
from scaletest.report.said.remark import Remark

__all__ = ["COLUMNS", "FORM", "about_latency", "calls_shown", "client_text", "is_over", "scope_text", "server_text", "sli_text"]  # fmt: skip

_ROWS: Final = 8
"""Kinds of call listed at most, where not more break their SLO or waited: a control plane at rest makes fifty."""

_HIGHEST_S: Final = 60.0
_LOWEST_SLI_S: Final = 0.05
_LOWEST_SERVER_S: Final = 0.005
"""Highest and lowest bounds of the request histograms: within the first bucket a quantile says no more than that."""

_SCOPES: Final = {"resource": "object", "namespace": "namespace", "cluster": "cluster"}

FORM: Final = "p99 of the whole run (ClusterLoader2's simple query)"
COLUMNS: Final = (
    "SLI: at the API server, without webhooks and APF wait; server: with both; client: of agents from the send, of arrivals from "
    "their intended start"
)


def calls_shown(latency: ApiLatencyReport) -> int:
    """Return how many kinds of call are listed first: the worst stand first."""
    return max(_ROWS, sum(call.holds is False or call.waited for call in latency.calls))


def scope_text(call: ApiCallReport) -> str:
    """Write what a call is about: one object, a namespace, or the cluster."""
    return _SCOPES[call.scope]


def sli_text(value_s: float | None) -> str:
    """Write a quantile of the SLI's histogram."""
    return _bounded(value_s, _LOWEST_SLI_S)


def server_text(value_s: float | None) -> str:
    """Write a quantile of the histogram of request durations."""
    return _bounded(value_s, _LOWEST_SERVER_S)


def client_text(value_s: float | None) -> str:
    """Write a quantile that clients measured."""
    return _bounded(value_s, 0.0)


def _bounded(value_s: float | None, least_s: float) -> str:
    if value_s == _HIGHEST_S:
        return f"≥{_HIGHEST_S:g} s"
    if value_s is not None and value_s <= least_s:
        return f"≤{1000 * least_s:g} ms"
    return glyphs.duration_text(value_s)


def is_over(value_s: float | None, threshold_s: float | None) -> bool:
    """Whether a value is larger than the SLO allows."""
    return value_s is not None and threshold_s is not None and value_s > threshold_s


def about_latency(latency: ApiLatencyReport) -> Iterator[Remark]:
    """Say how many SLOs hold in which form, and where somebody waited or failed although one holds."""
    broken = latency.slo_violations
    if latency.slos:
        said = f"official SLOs: {latency.slos - broken} of {latency.slos} kinds of call meet theirs"
        yield Remark(f"{said}; {_five_minutes(latency)}", "bad" if broken else "good")
    for call in latency.calls:
        if call.waited:
            yield Remark(_waited(call), "warning")
        elif call.client_error_rate and call.client_error_rate > 0.01 and call.holds:
            yield Remark(f"{_name(call)} meets its SLO, and {_failed(call)}", "warning")


def _five_minutes(latency: ApiLatencyReport) -> str:
    if latency.slo_violations_5m is None:
        return "5-minute form not measured: the run is too short"
    return f"in the 5-minute form {latency.slo_violations_5m or 'none'} break{'s' if latency.slo_violations_5m == 1 else ''} theirs"


def _name(call: ApiCallReport) -> str:
    return f"{call.verb} {call.resource} ({scope_text(call)})"


def _waited(call: ApiCallReport) -> str:
    """Say that the SLO holds while somebody waits: what the SLI leaves out."""
    took = f"clients waited {client_text(call.client_p99_s)}" if is_over(call.client_p99_s, call.threshold_s) else ""
    served = (
        f"the server took {client_text(call.server_p99_s)} with APF wait"
        if is_over(call.server_p99_s, call.threshold_s)
        else ""
    )
    said = f"{_name(call)} meets its SLO, yet {' and '.join(part for part in (took, served) if part)}"
    return f"{said}; {_failed(call)}" if call.client_error_rate else said


def _failed(call: ApiCallReport) -> str:
    return f"{glyphs.share_text(call.client_error_rate)} of the requests of {', '.join(call.clients)} failed, and are in no column"
