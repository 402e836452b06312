"""What a run will do, need and take, before anything is started; and whether it fits this machine. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scaletest.controlplane.heartbeat import Heartbeat, heartbeat_for
from scaletest.controlplane.host import Host
from scaletest.controlplane.limits import default_limits, floor_bytes, memory_needed_bytes, nodes_that_fit
from scaletest.controlplane.plan import Limits
from scaletest.core.errors import ResourceShortage
from scaletest.core.units import format_bytes, format_count
from scaletest.profile.levers import most_api_servers
from scaletest.profile.schema import COMPONENTS, ComponentName, FleetSpec, Profile
from scaletest.runner.searchplan import longest_s

__all__ = ["RunPlan", "make_plan", "refuse_if_too_large"]

_SET_UP_S = 15.0
"""Control plane 4 to 6 s, fleet 1 to 5 s, end 2 to 4 s, on two idle cores."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The plan of a run on a given host."""

    profile: Profile
    host: Host
    most_nodes: int
    """Nodes of the fleet with everything that phases add."""
    heartbeat: Heartbeat
    limits: Mapping[ComponentName, Limits]
    needed_bytes: Mapping[ComponentName, int]
    """Memory that each component is estimated to hold when the fleet stands."""
    fitting_nodes: int
    """Largest number of such nodes that fits under the limits."""
    floor_bytes: int
    api_servers: int
    """Most API servers that the run can have at a time; ``limits`` and ``needed_bytes`` are of one."""

    @property
    def set_up_s(self) -> float:
        """Time of set-up and end."""
        return _SET_UP_S

    @property
    def longest_s(self) -> float:
        """The longest that the run can take, once binaries are at hand."""
        search_s = longest_s(self.profile.search) if self.profile.search is not None else 0.0
        return _SET_UP_S + sum(phase.longest_s for phase in self.profile.phases) + search_s

    @property
    def all_needed_bytes(self) -> int:
        """Memory of the whole control plane when the fleet stands."""
        return sum(self.needed_bytes.values()) + (self.api_servers - 1) * self.needed_bytes["kube-apiserver"]


def make_plan(profile: Profile, host: Host) -> RunPlan:
    """Work out limits, heartbeats and needs. Raises ResourceShortage when the host has no room for an API server."""
    spec, fleet = profile.control_plane, profile.fleet
    grown = sum(action.grow.by for phase in profile.phases for action in phase.do if action.grow)
    nodes = fleet.node_count + grown
    pods_per_node = fleet.pod_count / fleet.node_count if fleet.node_count else 0.0
    pod_bytes = max((pool.pod_bytes for pool in fleet.pools), default=0)
    other_bytes = sum(_object_bytes(fleet))
    api_servers = most_api_servers(profile)
    limits = default_limits(host, api_servers=api_servers, overrides=spec.limits)
    return RunPlan(
        profile=profile,
        host=host,
        most_nodes=nodes,
        heartbeat=heartbeat_for(nodes=nodes, cores=host.cores, factor=spec.heartbeat_factor),
        limits=limits,
        needed_bytes=memory_needed_bytes(
            nodes=nodes,
            pods=round(nodes * pods_per_node),
            pod_bytes=pod_bytes,
            other_object_bytes=other_bytes,
        ),
        fitting_nodes=nodes_that_fit(
            limits, pods_per_node=pods_per_node, pod_bytes=pod_bytes, other_object_bytes=other_bytes
        ),
        floor_bytes=floor_bytes(host),
        api_servers=api_servers,
    )


def refuse_if_too_large(plan: RunPlan, available_bytes: int) -> None:
    """Raise ResourceShortage when the fleet, or what the limits promise, does not fit; say how many nodes would."""
    if plan.most_nodes > plan.fitting_nodes:
        tight = max(COMPONENTS, key=lambda name: plan.needed_bytes[name] / plan.limits[name].memory_bytes)
        msg = (
            f"too little memory for {format_count(plan.most_nodes)} nodes: {tight} would need about "
            f"{format_bytes(plan.needed_bytes[tight])} and a quarter to spare, and has "
            f"{format_bytes(plan.limits[tight].memory_bytes)}"
        )
        hint = f"About {format_count(plan.fitting_nodes)} such nodes fit on this machine; or raise the limit in the profile."
        raise ResourceShortage(msg, hint=hint)
    for name, limits in plan.limits.items():
        if limits.memory_bytes > plan.host.memory_bytes:
            have, asked = format_bytes(plan.host.memory_bytes), format_bytes(limits.memory_bytes)
            msg = f"{name} is to get {asked} of memory and this machine has {have}"
            raise ResourceShortage(msg, hint=f"Lower controlPlane.limits.{name}.memory.")
    room = available_bytes - plan.floor_bytes
    if plan.all_needed_bytes > room:
        share = max(0.0, room / plan.all_needed_bytes)
        msg = (
            f"too little free memory: the control plane will hold about {format_bytes(plan.all_needed_bytes)}, and of "
            f"{format_bytes(available_bytes)} available {format_bytes(plan.floor_bytes)} must stay free"
        )
        hint = f"Free some memory, or use fewer nodes: about {format_count(int(plan.most_nodes * share))} fit now."
        raise ResourceShortage(msg, hint=hint)


def _object_bytes(fleet: FleetSpec) -> Iterator[int]:
    for objects in (fleet.config_maps, fleet.secrets, fleet.events, fleet.custom_resources):
        if objects is not None:
            yield objects.count * objects.size_bytes
    if fleet.services is not None:
        # A headless Service takes about 1 KB of JSON, an endpoint in its slice about 250 bytes.
        yield fleet.services.count * (1_000 + 250 * fleet.services.endpoints)
