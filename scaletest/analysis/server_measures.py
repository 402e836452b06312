"""Measures of objectives that come from the servers' own metrics: ``sli``, ``apf`` and ``etcd``."""

from __future__ import annotations

import math
from typing import Final

from scaletest.analysis.measured import Measured, known, never, of
from scaletest.analysis.series import Span, contains
from scaletest.analysis.sli import P99, latencies, violations
from scaletest.analysis.state import RunState
from scaletest.core.units import format_duration
from scaletest.profile.objectives import SLI_WINDOW_S, Subject

__all__ = ["measure_apf", "measure_etcd", "measure_sli"]

_QUANTILES: Final = {"p50": 0.50, "p90": 0.90, "p99": P99}
_SERVER: Final = "server_"


def measure_sli(state: RunState, subject: Subject, span: Span | None) -> Measured:
    """Measure the kind of call that is worst, or count those that break their SLO."""
    span = span or state.measured
    if not state.latency.was_read(span):
        return never("the API server's latency histograms were read less than twice in this time")
    windows_from_s = state.measured[0] if subject.window else None
    if subject.measure == "slo_violations":
        calls = latencies(state.latency.families["sli"], P99, span, windows_from_s=windows_from_s)
        counted = [item for item in calls.values() if item.sli is not None]
        if not counted:
            return _no_call(state, subject, "no call that counts in an SLI")
        return Measured(float(len(violations(calls))), len(counted))
    family = "request" if subject.measure.startswith(_SERVER) else "sli"
    q = _QUANTILES[subject.measure.removeprefix(_SERVER)]
    calls = latencies(state.latency.families[family], q, span, windows_from_s=windows_from_s)
    of_sli = [item for item in calls.values() if item.sli is not None and item.sli.name == subject.name]
    wanted = [item for item in of_sli if subject.step in {None, item.call.target}]
    if wanted:
        worst = max(wanted, key=lambda item: item.value_s)
        return Measured(worst.value_s, worst.samples)
    if subject.step is not None and of_sli:
        return never(f"no {subject.name} call of {subject.step}; {known({item.call.target for item in of_sli})}")
    return _no_call(state, subject, f"no {subject.name} call")


def _no_call(state: RunState, subject: Subject, what: str) -> Measured:
    if not subject.window:
        return never(f"{what} in this time")
    start_s = state.measured[0]
    measured_s = state.end_s - start_s if math.isfinite(start_s) else 0.0
    if measured_s < SLI_WINDOW_S:
        whole = str(subject).replace(f"[{subject.window}]", "")
        return never(
            f"the 5-minute form needs five minutes of measurement, and there were {format_duration(max(0.0, measured_s))}; "
            f"{whole} is the form for the whole run"
        )
    return never(f"{what} in a window of five minutes that ends in this time")


def measure_apf(state: RunState, subject: Subject, span: Span | None) -> Measured:
    """Measure a priority level."""
    span = span or state.measured
    name = subject.name or ""
    if name not in state.api_servers.levels:
        return never(f"no priority level {name} was seen; {known(state.api_servers.levels)}")
    samples = state.api_servers.level(name, span)
    if not samples:
        return never(f"priority level {name} was not seen in this time")
    match subject.measure:
        case "queued":
            return Measured(max(item.queued for item in samples), len(samples))
        case "seats":
            return Measured(max(item.seats_in_use for item in samples), len(samples))
        case "wait_p99":
            return _wait(state, name, span)
        case _:
            return _rejected(state, name, span)


def _rejected(state: RunState, level: str, span: Span) -> Measured:
    scrapes = sum(contains(span, t_s) for t_s, _ in state.api_servers.increases)
    if not scrapes:
        return never("the API server's metrics were read less than twice")
    return Measured(sum(state.api_servers.rejected(level, span).values()), scrapes)


def _wait(state: RunState, level: str, span: Span) -> Measured:
    waits = state.latency.families["wait"].within(span).get(level)
    if waits is None:
        return never(f"no request of priority level {level} began or was rejected in this time")
    return of(waits.quantile_s(P99), waits.count, "no wait was counted")


def measure_etcd(state: RunState, subject: Subject, span: Span | None) -> Measured:
    """Measure etcd."""
    span = span or state.measured
    match subject.measure:
        case "fsync_p99":
            value, count = state.etcd.fsync_quantile_s(0.99, span)
        case "commit_p99":
            value, count = state.etcd.commit_quantile_s(0.99, span)
        case _:
            sizes = [item.db_bytes for item in state.etcd.within(span) if not math.isnan(item.db_bytes)]
            value, count = max(sizes, default=math.nan), len(sizes)
    return of(value, count, "etcd's metrics were read less than twice in this time")
