"""The text of ``scaletest run --dry-run``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scaletest.controlplane.binaries import Plan
from scaletest.core.units import format_bytes, format_count, format_duration
from scaletest.profile.schema import FlowSpec, Phase
from scaletest.runner.plan import RunPlan

__all__ = ["plan_text"]


def plan_text(plan: RunPlan, binaries: Iterable[Plan], run_dir: str) -> str:
    """Return what the run would do, need and take."""
    return "\n".join(_lines(plan, binaries, run_dir))


def _lines(plan: RunPlan, binaries: Iterable[Plan], run_dir: str) -> Iterator[str]:
    profile = plan.profile
    yield f"{profile.name}: {profile.summary.strip()}"
    yield ""
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
    yield ""
    yield "Flows"
    for title, flow in profile.flows.items():
        yield f"  {title:<26} {_flow_text(flow, plan.most_nodes)}"
    yield ""
    yield f"Phases, at most {format_duration(plan.longest_s)} with set-up"
    for phase in profile.phases:
        yield f"  {phase.name:<26} {_phase_text(phase)}"
    yield ""
    yield "Objectives"
    for objective in profile.objectives:
        yield f"  {objective.check}"
    yield ""
    yield f"Results would go to {run_dir}"


def _flow_text(flow: FlowSpec, nodes: int) -> str:
    if flow.locustfile is not None:
        return f"{format_count(flow.locustfile.users)} users of {flow.locustfile.path} as {flow.identity}"
    assert flow.agents is not None
    steps = ", ".join(step.title for step in flow.steps)
    agents = format_count(flow.agents.total(nodes))
    return f"{agents} agents at {flow.agents.rollout_per_s:g}/s as {flow.identity}: {steps}"


def _phase_text(phase: Phase) -> str:
    parts = [f"start {flow}" for flow in phase.start] + [f"stop {flow}" for flow in phase.stop]
    parts += [f"lever {action.lever}" if action.lever else action.name for action in phase.do]
    end = f"for {format_duration(phase.for_s)}" if phase.for_s is not None else f"until {phase.until}"
    most = f" (at most {format_duration(phase.at_most_s)})" if phase.at_most_s is not None else ""
    return "; ".join([*parts, end + most])
