"""The text of ``scaletest run --dry-run``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scaletest.controlplane import registry
from scaletest.controlplane.binaries import Plan
from scaletest.controlplane.record import ClusterRecord
from scaletest.core.units import format_bytes, format_count, format_duration, format_share
from scaletest.profile.schema import EtcdSpec, FlowSpec, PacedSpec, Phase
from scaletest.runner.plan import RunPlan
from scaletest.runner.searchplan import SearchPlan

__all__ = ["plan_text"]


def plan_text(
    plan: RunPlan, search: SearchPlan | None, control_plane: Sequence[Plan] | ClusterRecord, run_dir: str
) -> str:
    """Return what the run would do, need and take: on a control plane of its own, or on one that runs already."""
    return "\n".join(_lines(plan, search, control_plane, run_dir))


def _lines(
    plan: RunPlan, search: SearchPlan | None, control_plane: Sequence[Plan] | ClusterRecord, run_dir: str
) -> Iterator[str]:
    profile = plan.profile
    yield f"{profile.name}: {profile.summary.strip()}"
    yield ""
    if isinstance(control_plane, ClusterRecord):
        yield from _standing(control_plane, plan)
    else:
        yield from _own(control_plane, plan)
    yield ""
    yield "Flows"
    for title, flow in profile.flows.items():
        yield f"  {title:<26} {_flow_text(flow, plan.most_nodes)}"
    yield ""
    set_up = "" if isinstance(control_plane, ClusterRecord) else " with set-up"
    longest_s = sum(phase.longest_s for phase in profile.phases) + (plan.set_up_s if set_up else 0.0)
    yield f"Phases, at most {format_duration(longest_s)}{set_up}"
    for phase in profile.phases:
        yield f"  {phase.name:<26} {_phase_text(phase)}"
    yield ""
    if search is not None:
        yield from _search_lines(search)
        yield ""
    yield "Objectives"
    for objective in profile.objectives:
        yield f"  {objective.check}"
    yield ""
    yield f"Results would go to {run_dir}"


def _standing(record: ClusterRecord, plan: RunPlan) -> Iterator[str]:
    """Tell of a cluster that runs: its versions and limits hold, not those of the profile."""
    yield f"Control plane: cluster {record.name}, {registry.status_of(record)}, made {record.created_at}"
    for name, version in record.versions.items():
        yield f"  {name:<26} {version}"
    yield f"  heartbeats                 {record.heartbeat}"
    servers = len(record.servers)
    yield f"  API servers                {servers}" + (f" ({', '.join(record.servers)})" if servers > 1 else "")
    yield "  what the profile says of versions, limits, arguments and environment does not apply"
    yield ""
    yield "Limits"
    for name, limits in record.limits.items():
        cores = f", {limits['cpu_cores']:g} cores" if limits.get("cpu_cores") is not None else ""
        yield f"  {name:<26} {format_bytes(limits['memory_bytes']):>9}{cores}"
    yield ""
    yield "Fleet"
    fleet = plan.profile.fleet
    yield f"  {format_count(fleet.node_count)} nodes, {format_count(fleet.pod_count)} pods: those that the cluster holds, else made"


def _own(binaries: Sequence[Plan], plan: RunPlan) -> Iterator[str]:
    profile = plan.profile
    yield "Control plane"
    for binary in binaries:
        yield f"  {binary.component:<26} {binary.version:<9} {binary.how}"
    factor = plan.heartbeat
    yield (
        f"  heartbeats                 factor {factor.factor}: a lease every {factor.renew_interval_s:g} s, "
        f"about {factor.cost_cores:.2g} cores"
    )
    yield ""
    yield "Fleet"
    yield f"  {format_count(plan.most_nodes)} nodes, {format_count(profile.fleet.pod_count)} pods (via {profile.fleet.via})"
    yield ""
    yield f"Memory: needs about {format_bytes(plan.all_needed_bytes)} when the fleet stands, under these limits"
    for name, limits in plan.limits.items():
        cpu = f", {limits.cpu_cores:g} cores" if limits.cpu_cores is not None else ""
        yield (
            f"  {name:<26} {format_bytes(plan.needed_bytes[name]):>9} of {format_bytes(limits.memory_bytes):>9}{cpu}"
        )
    yield f"  about {format_count(plan.fitting_nodes)} such nodes fit; ended under {format_bytes(plan.floor_bytes)} available"


def _flow_text(flow: FlowSpec, nodes: int) -> str:
    if flow.locustfile is not None:
        return f"{format_count(flow.locustfile.users)} users of {flow.locustfile.path} as {flow.identity}"
    if flow.arrivals is not None:
        mix = ", ".join(flow.titles)
        return f"{_arrivals_text(flow.arrivals)} on {format_count(flow.arrivals.connections)} connections as {flow.identity}: {mix}"
    if flow.etcd is not None:
        return _etcd_text(flow.etcd)
    if flow.churn is not None:
        churn = flow.churn
        return f"{format_count(churn.total(nodes))} pods of which {churn.rate_per_s:g}/s are created or deleted as {flow.identity}"
    assert flow.placed is not None
    steps = ", ".join(step.title for step in flow.steps)
    rate_per_s = flow.placed.rollout_per_s
    rate = "as fast as they open" if rate_per_s is None else f"at {rate_per_s:g}/s"
    return f"{format_count(flow.placed.total(nodes))} {flow.unit} {rate} as {flow.identity}: {steps}"


def _etcd_text(spec: EtcdSpec) -> str:
    loop = (
        f"{format_count(spec.in_flight)} clients in {_arrivals_text(spec)}" if spec.is_closed else _arrivals_text(spec)
    )
    processes = f" of {spec.processes} processes" if spec.processes > 1 else ""
    titles = ", ".join(operation.title for operation in spec.operations)
    watches = f", {format_count(spec.watches)} watches" if spec.watches else ""
    return f"{loop} on {format_count(spec.all_connections)} connections{processes} to etcd: {titles}{watches}"


def _arrivals_text(spec: PacedSpec) -> str:
    if spec.is_closed:
        return "a closed loop"
    if spec.ramp is not None:
        rates = f"{spec.ramp.from_per_s:g}/s to {spec.ramp.to_per_s:g}/s over {format_duration(spec.ramp.over_s)}"
    elif spec.steps is not None:
        rates = ", ".join(f"{step.rate_per_s:g}/s" for step in spec.steps)
    else:
        rates = f"{spec.rate_per_s:g}/s"
    return f"{spec.process} arrivals at {rates}"


def _search_lines(search: SearchPlan) -> Iterator[str]:
    spec, space, unit = search.spec, search.space, search.load.unit
    yield f"Search, {format_duration(search.shortest_s)} or more, at most {format_duration(search.longest_s)}"
    capped = (
        f" ({format_count(search.asked_end)} has more nodes than fit)" if search.made_end != search.asked_end else ""
    )
    ends = f"from {format_count(space.start)}{unit} to {format_count(search.made_end)}{unit}{capped}"
    yield f"  {spec.parameter:<26} {ends}, {space.factor:g} times from load to load, then halved to {format_share(spec.resolution)}"
    if spec.beyond is not None:
        more = f"derived, {spec.beyond.parameter} up to {spec.beyond.to}"
        yield f"  {'beyond that':<26} to {format_count(space.end)}{unit} ({more})"
    step = f"of {format_duration(spec.step.at_least_s)} to {format_duration(spec.step.at_most_s)}"
    yield f"  {'steps':<26} up to {search.trials} {step}; more where steps contradict each other"
    for text in spec.holds:
        yield f"  {'holds':<26} {text}"
    past = ", ".join(f"{factor:g}" for factor in spec.past)
    if past:
        yield f"  {'then':<26} {past} times what held, {format_duration(spec.step.at_least_s)} each"
    yield f"  {'then':<26} back to {spec.back:g} times, watched for {format_duration(spec.recover_within_s)} at most"


def _phase_text(phase: Phase) -> str:
    parts = [f"start {flow}" for flow in phase.start] + [f"stop {flow}" for flow in phase.stop]
    parts += [f"lever {action.lever}" if action.lever else action.name for action in phase.do]
    end = f"for {format_duration(phase.for_s)}" if phase.for_s is not None else f"until {phase.until}"
    most = f" (at most {format_duration(phase.at_most_s)})" if phase.at_most_s is not None else ""
    return "; ".join([*parts, end + most])
