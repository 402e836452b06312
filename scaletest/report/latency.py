"""The report's part on API latency: official SLI, server and client side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from scaletest.analysis.clientcalls import client_steps
from scaletest.analysis.flows import StepTotals
from scaletest.analysis.series import EVER, contains
from scaletest.analysis.sli import P99, CallLatency, latencies, sli_of, violations
from scaletest.analysis.state import RunState
from scaletest.core.apicalls import ApiCall
from scaletest.report import document as doc

__all__ = ["tell_latency"]


def tell_latency(state: RunState, profile: Mapping[str, Any]) -> doc.ApiLatencyReport | None:
    """Tell what each kind of call took; None where no histogram was read twice while the run was measured."""
    span = state.measured
    reads = sum(contains(span, t_s) for t_s in state.latency.times_s)
    if not reads:
        return None
    families = state.latency.families
    sli = latencies(families["sli"], P99, span)
    sli_5m = latencies(families["sli"], P99, span, windows_from_s=span[0])
    server = latencies(families["request"], P99, span) | latencies(families["watch_list"], P99, span)
    steps = client_steps(profile)
    names = dict.fromkeys([*sli, *server, *steps])
    calls = [
        _call(name, sli.get(name), sli_5m.get(name), server.get(name), _clients(state, steps.get(name, ())))
        for name in names
    ]
    counted_5m = [item for item in sli_5m.values() if item.sli is not None]
    return doc.ApiLatencyReport(
        form="whole run",
        reads=reads,
        slos=sum(item.sli is not None for item in sli.values()),
        slo_violations=len(violations(sli)),
        slo_violations_5m=len(violations(sli_5m)) if counted_5m else None,
        calls=sorted((call for call in calls if call.calls or call.client_requests), key=_badness, reverse=True),
    )


def _badness(call: doc.ApiCallReport) -> tuple[bool, bool, bool, float]:
    slowest_s = max(item or 0.0 for item in (call.sli_p99_s, call.server_p99_s, call.client_p99_s))
    return call.holds is False, call.waited, call.sli is not None, slowest_s / (call.threshold_s or 30.0)


def _clients(state: RunState, steps: tuple[()] | list[tuple[str, str]]) -> tuple[list[str], StepTotals]:
    found = {
        f"{flow}.{step}": totals
        for flow, step in steps
        if flow in state.flows and (totals := state.flows[flow].totals(EVER).steps.get(step)) is not None
    }
    return list(found), StepTotals.merged(list(found.values()))


def _call(
    name: str,
    sli: CallLatency | None,
    sli_5m: CallLatency | None,
    server: CallLatency | None,
    clients: tuple[list[str], StepTotals],
) -> doc.ApiCallReport:
    call = ApiCall.parse(name)
    of_sli = sli_of(call)
    seen, totals = clients
    client_s = totals.latency_us.quantile(P99) / 1e6 if totals.latency_us.count else None
    server_s = server.value_s if server is not None else None
    holds = None if sli is None or of_sli is None else not sli.breaks
    outside = [item for item in (server_s, client_s) if item is not None]
    return doc.ApiCallReport(
        call=name,
        verb=call.verb,
        resource=call.target,
        scope=call.scope,
        sli=of_sli.name if of_sli is not None else None,
        threshold_s=of_sli.threshold_s if of_sli is not None else None,
        calls=max((item.samples for item in (sli, server) if item is not None), default=0),
        sli_p99_s=sli.value_s if sli is not None else None,
        sli_5m_p99_s=sli_5m.value_s if sli_5m is not None else None,
        server_p99_s=server_s,
        client_p99_s=client_s,
        client_requests=totals.requests,
        client_error_rate=totals.failed / totals.requests if totals.requests else None,
        clients=seen,
        holds=holds,
        waited=bool(holds) and of_sli is not None and max(outside, default=-math.inf) > of_sli.threshold_s,
    )
