"""The API latency section of the terminal report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from scaletest.report import drawing, glyphs
from scaletest.report.document import ApiCallReport, ApiLatencyReport, Document

__all__ = ["draw_latency"]

WIDE: Final = 100
_ROWS: Final = 8
"""Kinds of call listed at most, where not more break their SLO or waited: a control plane at rest makes fifty."""

_HIGHEST_S: Final = 60.0
_LOWEST_SLI_S: Final = 0.05
_LOWEST_SERVER_S: Final = 0.005
"""Highest and lowest bounds of the request histograms: within the first bucket a quantile says no more than that."""

_SCOPES: Final = {"resource": "object", "namespace": "namespace", "cluster": "cluster"}


def draw_latency(document: Document, width: int) -> Iterator[drawing.Drawn]:
    """Draw the three latencies of each kind of call, the worst first."""
    latency = document.api_latency
    if latency is None or not latency.calls:
        return
    yield drawing.title("API latency", "p99 of the whole run (ClusterLoader2's simple query)")
    wide = width >= WIDE
    table = drawing.table("call", "scope", *(("calls",) if wide else ()), "SLI", *(("SLI 5m",) if wide else ()), "server", "client", "SLO", "", left=2)  # fmt: skip
    shown = max(_ROWS, sum(call.holds is False or call.waited for call in latency.calls))
    for call in latency.calls[:shown]:
        drawing.row(table, *_cells(call, wide=wide))
    yield table
    if len(latency.calls) > shown:
        yield drawing.line(f"{len(latency.calls) - shown} more kinds of call: --format json has all", "dim")
    yield drawing.line(
        "SLI: at the API server, without webhooks and APF wait; server: with both; client: of agents from the send, of arrivals from "
        "their intended start",
        "dim",
    )
    yield from _summary(latency)


def _cells(call: ApiCallReport, *, wide: bool) -> Iterator[str | Text]:
    yield f"{call.verb} {call.resource}"
    yield _SCOPES[call.scope]
    if wide:
        yield drawing.count(call.calls)
    yield _duration(call.sli_p99_s, over=call.holds is False, least_s=_LOWEST_SLI_S)
    if wide:
        yield _duration(call.sli_5m_p99_s, least_s=_LOWEST_SLI_S)
    yield _duration(call.server_p99_s, over=_over(call.server_p99_s, call.threshold_s), least_s=_LOWEST_SERVER_S)
    yield _duration(call.client_p99_s, over=_over(call.client_p99_s, call.threshold_s))
    yield glyphs.NOTHING if call.threshold_s is None else f"{call.threshold_s:g} s"
    match call.holds:
        case None:
            yield glyphs.NOTHING
        case True:
            yield Text(glyphs.GOOD, "yellow" if call.waited else "green")
        case False:
            yield Text(glyphs.BAD, "red")


def _over(value_s: float | None, threshold_s: float | None) -> bool:
    return value_s is not None and threshold_s is not None and value_s > threshold_s


def _duration(value_s: float | None, *, over: bool = False, least_s: float = 0.0) -> Text:
    if value_s == _HIGHEST_S:
        text = f"≥{_HIGHEST_S:g} s"
    elif value_s is not None and value_s <= least_s:
        text = f"≤{1000 * least_s:g} ms"
    else:
        text = glyphs.duration_text(value_s)
    return Text(text, "yellow" if over else "")


def _summary(latency: ApiLatencyReport) -> Iterator[drawing.Drawn]:
    broken = latency.slo_violations
    if latency.slos:
        said = f"official SLOs: {latency.slos - broken} of {latency.slos} kinds of call meet theirs"
        yield drawing.line(f"{said}; {_five_minutes(latency)}", "red" if broken else "green")
    for call in latency.calls:
        if call.waited:
            yield drawing.line(_waited(call), "yellow")
        elif call.client_error_rate and call.client_error_rate > 0.01 and call.holds:
            yield drawing.line(f"{_name(call)} meets its SLO, and {_failed(call)}", "yellow")


def _five_minutes(latency: ApiLatencyReport) -> str:
    if latency.slo_violations_5m is None:
        return "5-minute form not measured: the run is too short"
    return f"in the 5-minute form {latency.slo_violations_5m or 'none'} break{'s' if latency.slo_violations_5m == 1 else ''} theirs"


def _name(call: ApiCallReport) -> str:
    return f"{call.verb} {call.resource} ({_SCOPES[call.scope]})"


def _waited(call: ApiCallReport) -> str:
    """Say that the SLO holds while somebody waits: what the SLI leaves out."""
    took = f"clients waited {_duration(call.client_p99_s)}" if _over(call.client_p99_s, call.threshold_s) else ""
    served = (
        f"the server took {_duration(call.server_p99_s)} with APF wait"
        if _over(call.server_p99_s, call.threshold_s)
        else ""
    )
    said = f"{_name(call)} meets its SLO, yet {' and '.join(part for part in (took, served) if part)}"
    return f"{said}; {_failed(call)}" if call.client_error_rate else said


def _failed(call: ApiCallReport) -> str:
    return f"{glyphs.share_text(call.client_error_rate)} of the requests of {', '.join(call.clients)} failed, and are in no column"
