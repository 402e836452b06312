"""A saturation search in words and as data: what it found, what gave out, what lies past it, what the laws would have said."""

from __future__ import annotations

import math
from collections.abc import Iterator

from scaletest.analysis.flows import NO_SPACE
from scaletest.analysis.limiting import Finding, Resource
from scaletest.analysis.saturation import Attribution, Point, Saturation
from scaletest.analysis.search import Conclusion, Outcome, Reason
from scaletest.analysis.searchlog import SearchLog, StepKind
from scaletest.core.units import format_bytes, format_count, format_duration, format_share
from scaletest.report import document as doc
from scaletest.report.limits import figures_text, limit_report, limit_text

__all__ = ["load_text", "made_as_it_is", "tell_saturation"]


def tell_saturation(found: Saturation | None) -> doc.SaturationReport | None:
    """Tell a search; None where the run had none."""
    if found is None:
        return None
    log, conclusion = found.log, found.found
    return doc.SaturationReport(
        parameter=log.parameter,
        unit=log.unit,
        holds=list(log.holds),
        flows=list(log.flows),
        beyond=log.beyond,
        made_as_it_is=made_as_it_is(log, conclusion),
        reason=conclusion.reason.value,
        said=" ".join(_said(log, conclusion)),
        capacity=conclusion.holds,
        fails_at=conclusion.fails,
        width=conclusion.width,
        confirmed=conclusion.confirmed,
        contradictions=conclusion.contradictions,
        goodput=found.goodput.value,
        steps=[_step(found, point) for point in found.points],
        limit_said=None if found.attribution is None else _limit(found, found.attribution),
        limits=[] if found.attribution is None else [limit_report(item) for item in found.attribution.evidence],
        limits_at=None if found.attribution is None else found.attribution.value,
        past=None if found.past is None else found.past.behaviour.value,
        past_reasons=list(found.past.reasons) if found.past else [],
        recovered_after_s=found.back.recovered_after_s if found.back else None,
        recovery_waited_s=found.back.waited_s if found.back else None,
        back_said=_back(found),
        laws=list(_laws(found)),
    )


def made_as_it_is(log: SearchLog, found: Conclusion) -> float | None:
    """Return the largest load that holds and is not derived; None when there is none."""
    if found.holds is None or not log.is_derived(found.holds):
        return found.holds
    held = [trial.value for trial in log.trials if trial.outcome is Outcome.HELD and not log.is_derived(trial.value)]
    return max(held, key=log.space.key, default=None)


def load_text(log: SearchLog, value: float) -> str:
    """Write a load with its unit."""
    number = format_count(value) if log.space.whole else f"{value:.4g}"
    return f"{number}{log.unit}"


def _said(log: SearchLog, found: Conclusion) -> Iterator[str]:
    name = log.parameter
    if found.holds is not None and found.fails is not None:
        holds, fails = load_text(log, found.holds), load_text(log, found.fails)
        yield f"{name} = {holds} holds, {fails} fails: an interval of {format_share(found.width)}."
        if not found.confirmed:
            yield f"Not confirmed: tried {_times(found.holds_trials)} and {_times(found.fails_trials)}."
        if found.contradictions:
            steps = "1 step contradicts" if found.contradictions == 1 else f"{found.contradictions} steps contradict"
            yield f"{steps} another: the interval has room for that."
    elif found.holds is not None:
        yield f"Not saturated up to {name} = {load_text(log, found.holds)}."
    elif found.fails is not None:
        yield f"Nothing held: {name} = {load_text(log, found.fails)} already failed."
    else:
        yield f"Nothing was found out about {name}."
    yield from _derived(log, found)
    yield from _why(log, found)


def _derived(log: SearchLog, found: Conclusion) -> Iterator[str]:
    landing = log.space.landing
    if landing is None or found.holds is None or not log.is_derived(found.holds):
        return
    made = made_as_it_is(log, found)
    measured = f"measured: {load_text(log, made)} or more; " if made is not None else ""
    yield f"That is derived ({measured}beyond {load_text(log, landing)}, the load is made by that many, with {log.beyond} to match)."


def _why(log: SearchLog, found: Conclusion) -> Iterator[str]:
    match found.reason:
        case Reason.NEVER_FAILED:
            end = "search.to" if log.beyond is None else "search.beyond.to"
            yield f"That is where the search ends: give it a heavier {end}."
        case Reason.NEVER_HELD:
            yield "That is where the search begins: start it with a lighter load, or ask for less in search.holds."
        case Reason.GENERATOR_LIMIT:
            loads = ", ".join(load_text(log, value) for value in found.unusable)
            if any(NO_SPACE in step.reason for step in log.of_kind(StepKind.SEARCH) if not step.counted):
                yield f"etcd's quota was used up ({NO_SPACE}) at {loads}: this says nothing of the rate that it could take."
                return
            yield f"The load generator could not make {loads}: this says nothing of the control plane beyond it."
        case Reason.OUT_OF_TIME:
            yield "The time for the search was over (search.atMost)."
        case Reason.CUT:
            yield "The search was cut short."


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _step(found: Saturation, point: Point) -> doc.SearchStepReport:
    step = point.step
    return doc.SearchStepReport(
        step=step.number,
        kind=step.kind.value,
        value=step.value,
        load=load_text(found.log, step.value),
        derived=found.log.is_derived(step.value),
        factor=step.factor,
        why=step.why,
        outcome=str(step.outcome),
        reason=step.reason or None,
        start_s=step.start_s,
        end_s=step.end_s,
        steady_from_s=step.steady[0] if step.steady else None,
        steady_until_s=step.steady[1] if step.steady else None,
        dropped_s=step.dropped_s,
        settled=step.settled,
        nodes=step.nodes,
        answers_per_s=point.answers_per_s,
        bytes_per_s=point.bytes_per_s,
        events_per_s=point.events_per_s,
        latency_p50_s=point.p50_s,
        latency_p99_s=point.p99_s,
        error_rate=point.error_rate,
        operator_p99_s=point.operator_p99_s,
        operator_success_rate=point.operator_success,
        api_server_memory_bytes=point.memory_bytes,
        api_server_cpu_cores=point.cpu_cores,
        killed=list(point.kills),
    )


def _limit(found: Saturation, at: Attribution) -> str:
    load = load_text(found.log, at.value)
    if at.value != found.found.fails and found.found.fails is not None:
        load = f"{load} (not yet at {load_text(found.log, found.found.fails)})"
    if at.limit is None:
        near = "; ".join(figures_text(item) for item in _one_of_each(at.evidence)) or "nothing was measured"
        return f"No resource at its limit at {load}: {near}."
    others = [item for item in _one_of_each(at.evidence) if item.resource is not at.limit.resource]
    also = [figures_text(item) for item in others if item.at_limit]
    cleared = [figures_text(item) for item in others if not item.at_limit]
    behind = f" Behind it: {'; '.join(also)}." if also else ""
    clear = f" Not at their limit: {'; '.join(cleared)}." if cleared else ""
    return f"What gave out at {load}: {limit_text(at.limit)}.{behind}{clear}"


def _one_of_each(evidence: tuple[Finding, ...]) -> list[Finding]:
    first: dict[Resource, Finding] = {}
    for item in evidence:
        first.setdefault(item.resource, item)
    return list(first.values())


def _back(found: Saturation) -> str | None:
    if found.back is None:
        return None
    load = load_text(found.log, found.back.value)
    if found.back.recovered_after_s is None and not found.back.taken_back:
        return f"Back at {load}: not all of the load could be taken back, so that nothing is known of a recovery."
    if found.back.recovered_after_s is None:
        return f"Back at {load}: not everything held again within {format_duration(found.back.waited_s)}."
    return f"Back at {load}: everything held again from {format_duration(found.back.recovered_after_s)} on."


def _laws(found: Saturation) -> Iterator[doc.LawReport]:
    law = found.law
    if law is not None and math.isfinite(law.limit):
        errors = [abs(item.relative) for item in law.residuals]
        at = "" if found.law_capacity_from is None else f" at {load_text(found.log, found.law_capacity_from)}"
        parts = [format_bytes(law.fixed_bytes)] if law.fixed_bytes else []
        parts += [f"{format_bytes(law.bytes_per_agent)} × N"] if law.bytes_per_agent else []
        answer = " + ".join(parts)
        yield doc.LawReport(
            law="agents",
            formula=f"N* = {law.formula}",
            predicted=law.limit,
            measured=found.found.holds,
            inputs={
                "m": float(law.servers), "C_bytes_per_s": law.capacity_bytes_per_s, "T_s": law.period_s,
                "fixed_bytes": law.fixed_bytes, "bytes_per_agent": law.bytes_per_agent,
            },
            worst_residual=max(errors, default=math.nan),
            said=(
                f"C = {format_bytes(law.capacity_bytes_per_s)}/s, the most that was delivered (measured{at}); "
                f"T = {format_duration(law.period_s)}; an answer is {answer}"
            ),
        )  # fmt: skip
    usl = found.usl
    if usl is not None:
        peak = (
            f"peak {found.goodput.written(usl.peak)} at {load_text(found.log, round(usl.peak_load))}"
            if math.isfinite(usl.peak_load)
            else "no peak"
        )
        yield doc.LawReport(
            law="usl",
            formula="X(N) = λN / (1 + σ(N-1) + κN(N-1))",
            predicted=usl.peak_load,
            measured=found.found.holds,
            inputs={"lambda": usl.per_client, "sigma": usl.contention, "kappa": usl.coherence},
            worst_residual=usl.worst_residual,
            said=f"σ = {usl.contention:.3g}, κ = {usl.coherence:.3g}: {peak}",
        )
