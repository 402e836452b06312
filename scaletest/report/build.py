"""Build the report's document from what a run directory says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from scaletest.analysis import saturation
from scaletest.analysis.evaluate import lockouts_of, measure
from scaletest.analysis.flows import ArrivalTotals, ChurnTotals, FlowInterval, FlowSeries, StepTotals
from scaletest.analysis.incident import analyse
from scaletest.analysis.limiting import API_SERVER
from scaletest.analysis.lockouts import latency_quantile, lockouts, longest_s
from scaletest.analysis.series import EVER, Span, contains
from scaletest.analysis.state import PhaseSpan, RunState
from scaletest.analysis.verdict import Verdict, format_measured
from scaletest.core.histogram import Histogram
from scaletest.core.texts import encodable
from scaletest.profile.objectives import Subject
from scaletest.report import document as doc
from scaletest.report.incident import tell_incident
from scaletest.report.latency import tell_latency
from scaletest.report.profiles import tell_captures
from scaletest.report.rundir import LoadedRun
from scaletest.report.saturation import tell_saturation
from scaletest.report.story import tell
from scaletest.report.timeline import timeline

__all__ = ["build"]

_OWN_PROCESSES: Final = ("supervisor", "driver", "cli")


def build(run: LoadedRun) -> doc.Document:
    """Build the report of a run."""
    state = run.state
    return doc.Document(
        schema_version=doc.REPORT_SCHEMA_VERSION,
        run=_run(run),
        verdict=_verdict(run.verdict),
        objectives=_objectives(run.verdict),
        journal=_journal(run),
        phases=[_phase(state, phase) for phase in state.phases],
        story=tell(state),
        # A search overloads on purpose: what is an incident elsewhere is a step of it.
        incident=None if state.search is not None else tell_incident(state, analyse(state, run.info.profile)),
        saturation=tell_saturation(saturation.analyse(state, run.info.profile)),
        profiles=tell_captures(run),
        timeline=timeline(state),
        flows=[
            _flow(name, series, state.flow_units.get(name, "agents"), run.info.profile)
            for name, series in state.flows.items()
        ],
        failures=[doc.Failure(**_fields(sample)) for sample in state.flow_samples],
        probes=_probes(state),
        nodes=_nodes(state),
        components=_components(state),
        apf=_apf(state),
        api_latency=tell_latency(state, run.info.profile),
        api_requests=dict(sorted(state.api_servers.requests(state.measured).items())),
        api_requests_by_server=state.api_servers.requests_by_server(state.measured),
        metrics_gaps=_gaps(state),
        etcd=_etcd(state),
        host=_host(state),
        generator=_generator(state),
        validity=[
            doc.CheckResult(check=item.name, grade=item.grade.value, said=item.said, remedy=item.remedy)
            for item in run.verdict.checks
        ],
    )


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def _run(run: LoadedRun) -> doc.RunReport:
    info = run.info
    return doc.RunReport(
        id=info.id,
        directory=encodable(str(run.directory)),
        matrix=run.matrix and run.matrix.matrix,
        variant=run.matrix and run.matrix.variant,
        profile=str(info.profile.get("name", "?")),
        summary=str(info.profile.get("summary", "")),
        started_at=info.started_at,
        duration_s=run.state.last_t_s,
        nodes=_node_total(info.profile),
        argv=[str(word) for word in info.argv],
        versions={str(name): str(version) for name, version in info.versions.items()},
        host=dict(info.host),
        facts={str(title): str(fact) for title, fact in info.facts.items()},
    )


def _node_total(profile: Mapping[str, Any]) -> int:
    try:
        return sum(int(pool["nodes"]) for pool in profile["fleet"]["pools"])
    except (KeyError, TypeError, ValueError):
        return 0


def _verdict(verdict: Verdict) -> doc.VerdictReport:
    return doc.VerdictReport(
        outcome=verdict.outcome.value, exit_code=int(verdict.exit_code), reasons=list(verdict.reasons)
    )


def _objectives(verdict: Verdict) -> list[doc.ObjectiveReport]:
    return [
        doc.ObjectiveReport(
            objective=result.text,
            holds=result.holds,
            value=result.measured.value,
            said=format_measured(result),
            samples=result.measured.samples,
        )
        for result in verdict.objectives
    ]


def _journal(run: LoadedRun) -> doc.JournalReport:
    return doc.JournalReport(
        records=run.journal.records,
        broken_lines=run.journal.broken_lines,
        newer_lines=run.journal.newer_lines,
        malformed=dict(run.state.malformed),
        lost_records=run.state.lost_records,
        growing=run.journal.growing,
    )


def _phase(state: RunState, phase: PhaseSpan) -> doc.PhaseReport:
    span = phase.span
    duration_s = (state.last_t_s if phase.end_s is None else phase.end_s) - phase.start_s
    flows = [series.totals(span).step(None) for series in state.flows.values()]
    whole = StepTotals.merged([step for step in flows if step is not None])
    probes = [(name, measure_) for name in state.probes for measure_ in ("p99", "success_rate")]
    values = {key: measure(state, Subject("probe", key[0], None, None, key[1]), span).value for key in probes}
    measured = {key: value for key, value in values.items() if not math.isnan(value)}
    component = state.components.get(API_SERVER)
    return doc.PhaseReport(
        name=phase.name,
        start_s=phase.start_s,
        end_s=phase.end_s,
        duration_s=duration_s,
        ended_by=phase.reason,
        requests_per_s=whole.requests / duration_s if duration_s > 0 and state.flows else None,
        error_rate=whole.failed / whole.requests if whole.requests else None,
        latency_p99_s=_seconds(whole.latency_us, 0.99),
        probe_p99_s=max((value for (_, name), value in measured.items() if name == "p99"), default=None),
        probe_success_rate=min(
            (value for (_, name), value in measured.items() if name == "success_rate"), default=None
        ),
        api_server_memory_bytes=component.most_memory_bytes(span) if component else None,
        api_server_cores=component.process.mean_cores(span) if component else None,
        slo_violations=_slo_violations(state, span),
    )


def _slo_violations(state: RunState, span: Span) -> int | None:
    value = measure(state, Subject("sli", None, None, None, "slo_violations"), span).value
    return None if math.isnan(value) else round(value)


def _seconds(latency_us: Histogram, q: float) -> float | None:
    return latency_us.quantile(q) / 1e6 if latency_us.count else None


def _flow(name: str, series: FlowSeries, unit: str, profile: Mapping[str, Any]) -> doc.FlowReport:
    totals = series.totals(EVER)
    flows = profile.get("flows")
    spec = flows.get(name) if isinstance(flows, Mapping) else None
    connect_us = Histogram.merged(step.connect_us for step in totals.steps.values())
    return doc.FlowReport(
        flow=name,
        # etcd asks nobody who they are.
        identity=str(spec.get("identity", "admin")) if isinstance(spec, Mapping) and not spec.get("etcd") else None,
        unit=unit,
        target=max(item.target for item in series.intervals),
        started=max(item.started for item in series.intervals),
        connected=max(item.connected for item in series.intervals),
        active_s=totals.covered_s,
        connections=connect_us.count,
        connect_p99_s=_seconds(connect_us, 0.99),
        exceptions=sum(item.exceptions for item in series.intervals),
        steps=[_step(title, step, totals.covered_s) for title, step in totals.steps.items()],
        arrivals=_arrivals(totals.arrivals, series.intervals[-1]) if totals.arrivals is not None else None,
        churn=_churn(totals.churn, totals.covered_s, series.intervals[-1]) if totals.churn is not None else None,
    )


def _arrivals(totals: ArrivalTotals, last: FlowInterval) -> doc.ArrivalsReport:
    lag = totals.lag_us
    closed = last.arrivals is None or last.arrivals.rate_per_s is None
    return doc.ArrivalsReport(
        closed=closed,
        due=totals.due,
        sent=totals.sent,
        dropped=totals.dropped,
        most_in_flight=totals.most_in_flight,
        in_flight_at_end=last.arrivals.in_flight if last.arrivals is not None else 0,
        achieved=None if closed or math.isnan(totals.achieved) else totals.achieved,
        start_lag_p50_s=_seconds(lag, 0.50),
        start_lag_p99_s=_seconds(lag, 0.99),
        start_lag_max_s=_seconds(lag, 1.0),
    )


def _churn(totals: ChurnTotals, active_s: float, last: FlowInterval) -> doc.ChurnReport:
    return doc.ChurnReport(
        moved=totals.moved,
        moved_per_s=totals.moved / active_s if active_s > 0 else None,
        started=totals.startup_us.count,
        late=totals.late,
        pending_at_end=last.churn.pending if last.churn is not None else 0,
        startup_p50_s=_finite(totals.startup_s(0.50)),
        startup_p99_s=_finite(totals.startup_s(0.99)),
        startup_max_s=_seconds(totals.startup_us, 1.0),
        scheduling_p50_s=_seconds(totals.scheduling_us, 0.50),
        scheduling_p99_s=_seconds(totals.scheduling_us, 0.99),
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _step(title: str, step: StepTotals, active_s: float) -> doc.StepReport:
    return doc.StepReport(
        step=title,
        requests=step.requests,
        rate_per_s=step.requests / active_s if active_s > 0 else None,
        good=step.good,
        failed=step.failed,
        outcomes=dict(sorted(step.outcomes.items(), key=lambda item: -item[1])),
        bytes=step.bytes,
        bytes_per_s=step.bytes / active_s if active_s > 0 else None,
        events=step.events,
        p50_s=_seconds(step.latency_us, 0.50),
        p95_s=_seconds(step.latency_us, 0.95),
        p99_s=_seconds(step.latency_us, 0.99),
        max_s=_seconds(step.latency_us, 1.0),
        failed_p50_s=_seconds(step.failed_us, 0.50),
        failed_max_s=_seconds(step.failed_us, 1.0),
        service_p50_s=_seconds(step.service_us, 0.50),
        service_p99_s=_seconds(step.service_us, 0.99),
        event_p50_s=_seconds(step.event_us, 0.50),
        event_p99_s=_seconds(step.event_us, 0.99),
        event_max_s=_seconds(step.event_us, 1.0),
        reconnects=step.reconnects,
        ended_early=step.early_us.count,
        ended_early_p50_s=_seconds(step.early_us, 0.50),
    )


def _probes(state: RunState) -> list[doc.ProbeReport]:
    return [
        _probe(state, probe, identity)
        for probe, series in state.probes.items()
        for identity in dict.fromkeys(identity for identity, _ in series)
    ]


def _probe(state: RunState, probe: str, identity: str) -> doc.ProbeReport:
    def value(name: str) -> float:
        return measure(state, Subject("probe", probe, None, identity, name)).value

    spans = lockouts_of(state, probe, identity)
    outcomes: dict[str, int] = {}
    for (of_identity, _), observations in state.probes[probe].items():
        for item in observations:
            if of_identity == identity and contains(state.measured, item.sent_s):
                outcomes[item.outcome] = outcomes.get(item.outcome, 0) + 1
    return doc.ProbeReport(
        probe=probe,
        identity=identity,
        observations=sum(outcomes.values()),
        success_rate=value("success_rate"),
        p50_s=value("p50"),
        p99_s=value("p99"),
        max_s=value("max"),
        outcomes=outcomes,
        longest_lockout_s=longest_s(spans),
        lockouts=[doc.Lockout(start_s=start, end_s=end, open=end >= state.end_s) for start, end in spans],
        servers=_servers(state, probe, identity),
    )


def _servers(state: RunState, probe: str, identity: str) -> list[doc.ServerReport]:
    reports: list[doc.ServerReport] = []
    for (of_identity, server), observations in sorted(state.probes[probe].items()):
        if of_identity != identity:
            continue
        seen = [item for item in observations if contains(state.measured, item.sent_s)]
        ended = [item for item in seen if not item.unfinished]
        reports.append(
            doc.ServerReport(
                server=server,
                observations=len(seen),
                success_rate=sum(item.ok for item in ended) / len(ended) if ended else None,
                p50_s=latency_quantile(seen, 0.50),
                p99_s=latency_quantile(seen, 0.99),
                max_s=latency_quantile(seen, 1.0),
                longest_lockout_s=longest_s(lockouts(seen, state.end_s)),
            )
        )
    return reports


def _nodes(state: RunState) -> list[doc.NodesReport]:
    reports: list[doc.NodesReport] = []
    for probe, counts in state.node_counts.items():
        latest = max(counts, key=lambda item: item.sent_s)
        most = max(item.not_ready for item in counts)
        reports.append(
            doc.NodesReport(
                probe=probe,
                ready=latest.ready,
                not_ready=latest.not_ready,
                total=latest.total,
                most_not_ready=most,
            )
        )
    return reports


def _components(state: RunState) -> list[doc.ComponentReport]:
    names = sorted(state.components, key=lambda name: (name in _OWN_PROCESSES, name))
    return [_component(state, name, state.measured) for name in names]


def _component(state: RunState, name: str, span: Span) -> doc.ComponentReport:
    component = state.components[name]
    limit = component.limit
    return doc.ComponentReport(
        component=name,
        memory_max_bytes=component.most_memory_bytes(span),
        memory_cap_bytes=limit.memory_bytes if limit else None,
        memory_by=limit.memory_by if limit else None,
        cpu_mean_cores=component.process.mean_cores(span),
        cpu_max_cores=component.process.most_cores(span),
        cpu_quota_cores=limit.cpu_cores if limit else None,
        cpu_by=limit.cpu_by if limit else None,
        restarts=component.restarts(span),
        oom_kills=component.oom_kills(span),
    )


def _apf(state: RunState) -> list[doc.Apf]:
    metrics, span = state.api_servers, state.measured
    reports: list[doc.Apf] = []
    for level in sorted(metrics.levels):
        samples = metrics.level(level, span)
        if samples:
            reports.append(
                doc.Apf(
                    level=level,
                    seats_limit=max(item.seats_limit for item in samples),
                    seats_max=max(item.seats_in_use for item in samples),
                    queued_max=max(item.queued for item in samples),
                    dispatched=metrics.dispatched(level, span),
                    rejected=metrics.rejected(level, span),
                )
            )
    return reports


def _gaps(state: RunState) -> dict[str, dict[str, int]]:
    gaps: dict[str, dict[str, int]] = {}
    for t_s, target, outcome in state.gaps:
        if contains(state.measured, t_s):
            outcomes = gaps.setdefault(target, {})
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return gaps


def _etcd(state: RunState) -> doc.EtcdReport | None:
    span = state.measured
    samples = state.etcd.within(span)
    if not samples:
        return None
    return doc.EtcdReport(
        fsync_p50_s=state.etcd.fsync_quantile_s(0.50, span)[0],
        fsync_p99_s=state.etcd.fsync_quantile_s(0.99, span)[0],
        commit_p99_s=state.etcd.commit_quantile_s(0.99, span)[0],
        db_max_bytes=max((item.db_bytes for item in samples if not math.isnan(item.db_bytes)), default=None),
        db_in_use_max_bytes=max(
            (item.db_in_use_bytes for item in samples if not math.isnan(item.db_in_use_bytes)), default=None
        ),
        puts=sum(item.puts for item in samples),
    )


def _host(state: RunState) -> doc.HostReport:
    host, span = state.host, state.measured
    return doc.HostReport(
        cores=host.cores,
        memory_bytes=host.total_bytes,
        available_min_bytes=host.least_available_bytes(span),
        cpu_idle_share=host.cpu_share(span, "idle"),
        cpu_steal_share=host.cpu_share(span, "steal"),
    )


def _generator_value(state: RunState, name: str) -> float:
    return measure(state, Subject("generator", None, None, None, name)).value


def _generator(state: RunState) -> doc.GeneratorReport | None:
    if not state.generator:
        return None
    span = state.measured
    lag = state.lag_us(span)
    return doc.GeneratorReport(
        lag_p50_s=_seconds(lag, 0.50),
        lag_p99_s=_seconds(lag, 0.99),
        lag_max_s=_seconds(lag, 1.0),
        cpu_mean_cores=_generator_value(state, "cpu"),
        memory_max_bytes=_generator_value(state, "memory"),
        cpu_max_cores=max(series.most_cores(span) for _, series in state.generator_processes),
        sockets_max=max(item.sockets for item in state.generator),
    )
