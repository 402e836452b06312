"""Levers: named sets of actions against an overload, worked out for a given profile. Pure.

    none              nothing, for comparison
    block-agents      cut the network path of the agents that run
    scale-down        end nine tenths of the machines of every pool
    add-api-servers   one more API server on the same etcd
    apf               API Priority and Fairness objects that put operators before agents
    all-three         what OpenAI did on 11 December 2024: scale down, block, and add API servers, at once

*Agents* are the flows that belong to a DaemonSet; where none does, all flows of agents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from scaletest.profile.actions import LEVERS, Action, LeverName
from scaletest.profile.schema import COMPONENTS, Profile

__all__ = ["agent_flows", "component_names", "expand", "most_api_servers", "pool_sizes", "running_flows"]

SCALE_DOWN_TENTHS: Final = 9
"""A tenth of the nodes stays. Halving does not help: 7,000 agents ask for fifty times what one API server on one core can
list, so either nearly all of them go or the pods that they list do."""

ADDED_API_SERVERS: Final = 1
"""Each takes its share of memory and CPU from the first, in every variant: with more, the shares of a laptop get too small."""


def expand(action: Action, profile: Profile, phase: int) -> list[Action]:
    """Return the actions that an action of phase number ``phase`` stands for: itself, or those of its lever."""
    if action.lever is None:
        return [action]
    return list(_LEVERS[action.lever](profile, phase))


def running_flows(profile: Profile, phase: int) -> list[str]:
    """Return the flows that run when the actions of a phase are done: its own are started after them."""
    running: set[str] = set()
    for earlier in profile.phases[:phase]:
        running = (running - set(earlier.stop)) | set(earlier.start)
    running -= set(profile.phases[phase].stop)
    return [name for name in profile.flows if name in running]


def agent_flows(profile: Profile, phase: int) -> list[str]:
    """Return the running flows that are the agents of a rollout, or all running flows of agents where none is."""
    running = [name for name in running_flows(profile, phase) if profile.flows[name].agents is not None]
    return [name for name in running if profile.flows[name].daemon_set is not None] or running


def pool_sizes(profile: Profile, phase: int, *, before: int | None = None) -> dict[str, int]:
    """Return the sizes of the pools before action number ``before`` of a phase (None: after all of them)."""
    sizes = {pool.name: pool.nodes for pool in profile.fleet.pools}
    for index in range(phase + 1):
        actions = profile.phases[index].do
        for action in actions if index < phase else actions[:before]:
            for change in _scale_down(sizes) if action.lever in _SCALING else [action]:
                _resize(sizes, change)
    return sizes


def most_api_servers(profile: Profile) -> int:
    """Return the most API servers that the run can have: its limits are shares of that.

    The variants of a matrix get the limits of the one with the most servers.
    """
    return _servers(profile, _ADDING)


def _servers(profile: Profile, adding: Collection[LeverName | None]) -> int:
    """Return the API servers of the start and those that actions add, with levers of which some add one each."""
    actions = [action for phase in profile.phases for action in phase.do]
    added = sum(action.add_api_servers.count for action in actions if action.add_api_servers is not None)
    levers = sum(ADDED_API_SERVERS for action in actions if action.lever in adding)
    return profile.control_plane.api_servers + added + levers


def component_names(profile: Profile) -> list[str]:
    """Return every component that the run can have: those of the start, and the API servers that actions may add.

    Further API servers are numbered from 2 on: ``kube-apiserver-2``. Each lever counts as one that adds servers: so an objective about
    an added one fits all variants of a profile that takes its lever from a parameter.
    """
    return [*COMPONENTS, *(f"kube-apiserver-{number}" for number in range(2, _servers(profile, LEVERS) + 1))]


def _resize(sizes: dict[str, int], action: Action) -> None:
    if action.grow is not None and action.grow.pool in sizes:
        sizes[action.grow.pool] += action.grow.by
    if action.shrink is not None and action.shrink.pool in sizes:
        sizes[action.shrink.pool] = max(0, sizes[action.shrink.pool] - action.shrink.by)


def _scale_down(sizes: dict[str, int]) -> list[Action]:
    gone = {pool: nodes * SCALE_DOWN_TENTHS // 10 for pool, nodes in sizes.items()}
    return [Action.model_validate({"shrink": {"pool": pool, "by": by}}) for pool, by in gone.items() if by]


def _nothing(_profile: Profile, _phase: int) -> Iterator[Action]:
    return iter(())


def _block(profile: Profile, phase: int) -> Iterator[Action]:
    for flow in agent_flows(profile, phase):
        yield Action.model_validate({"block": {"flow": flow}})


def _shrink(profile: Profile, phase: int) -> Iterator[Action]:
    lever = next(index for index, action in enumerate(profile.phases[phase].do) if action.lever in _SCALING)
    yield from _scale_down(pool_sizes(profile, phase, before=lever))


def _add(_profile: Profile, _phase: int) -> Iterator[Action]:
    yield Action.model_validate({"addApiServers": {"count": ADDED_API_SERVERS}})


def _apf(_profile: Profile, _phase: int) -> Iterator[Action]:
    yield Action.model_validate({"applyFlowControl": {}})


def _all_three(profile: Profile, phase: int) -> Iterator[Action]:
    # What takes effect at once comes first.
    yield from _block(profile, phase)
    yield from _shrink(profile, phase)
    yield from _add(profile, phase)


_LEVERS: Final = {
    "none": _nothing,
    "block-agents": _block,
    "scale-down": _shrink,
    "add-api-servers": _add,
    "apf": _apf,
    "all-three": _all_three,
}
_SCALING: Final[frozenset[LeverName | None]] = frozenset({"scale-down", "all-three"})
_ADDING: Final[frozenset[LeverName | None]] = frozenset({"add-api-servers", "all-three"})
