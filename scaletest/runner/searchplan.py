"""What a search will do, before anything is started: the loads that it can ask for, and the time that it can take. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from scaletest.analysis.search import Space, expected_trials
from scaletest.observe import pprof
from scaletest.profile.loading import LoadedProfile
from scaletest.profile.schema import SearchSpec
from scaletest.profile.search import Load, parse_load

__all__ = ["SearchPlan", "cpu_profile_s", "longest_s", "plan_search"]

_OVERHEAD_S = 15.0
"""Of a step, beside its time at full load: agents stop, the control plane calms down, nodes come and go, agents start. Seen: 5 to 30 s."""

_CAPTURES = 2
"""Loads of which profiles are captured: the first that fails, and the one that is confirmed to."""


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The plan of a search on a given host."""

    spec: SearchSpec
    load: Load
    """The lightest load."""
    space: Space
    asked_end: float
    """The heaviest load that the profile names; the space ends before it where the nodes of that do not fit."""
    most_nodes: int | None
    """Nodes that fit; None when that is not known."""

    @property
    def trials(self) -> int:
        """Steps of the search at most, while none contradicts another and all count."""
        return expected_trials(self.space)

    @property
    def shortest_s(self) -> float:
        """The time of that many steps that all settle at once."""
        return self.trials * (self.spec.step.at_least_s + _OVERHEAD_S) + _CAPTURES * cpu_profile_s(self.spec)

    @property
    def longest_s(self) -> float:
        """The longest that search, steps past it and the way back can take."""
        return longest_s(self.spec)


def longest_s(spec: SearchSpec) -> float:
    """Return the longest that search, steps past it and the way back can take."""
    past_s = len(spec.past) * (spec.step.at_least_s + spec.recover_within_s)
    capture_s = pprof.longest_s(cpu_profile_s(spec))
    return spec.at_most_s + spec.step.at_most_s + capture_s + past_s + 2 * spec.recover_within_s


def cpu_profile_s(spec: SearchSpec) -> int:
    """Return the length of the CPU profiles of a search: not longer than a load has to be steady."""
    return max(1, min(pprof.CPU_S, int(spec.step.at_least_s)))


def plan_search(loaded: LoadedProfile, most_nodes: int | None = None) -> SearchPlan | None:
    """Return the plan of a profile's search; None when it has none.

    Where the nodes of the heaviest load do not fit, the search ends at the heaviest that does.
    """
    spec = loaded.profile.search
    if spec is None:
        return None
    lightest, heaviest = parse_load(loaded.parameters[spec.parameter]), parse_load(spec.to)
    space = Space(lightest.number, heaviest.number, spec.resolution, whole=lightest.whole, factor=spec.factor)
    if most_nodes is not None:
        space = replace(space, end=_fitting_end(loaded, spec.parameter, lightest, space, most_nodes))
    return SearchPlan(spec, lightest, space, heaviest.number, most_nodes)


def _fitting_end(loaded: LoadedProfile, parameter: str, load: Load, space: Space, most_nodes: int) -> float:
    def nodes(value: float) -> int:
        return loaded.at(parameter, load.value(value)).fleet.node_count

    if nodes(space.end) <= most_nodes or nodes(space.start) > most_nodes:
        return space.end
    fits, too_many = space.start, space.end
    while abs(math.log(too_many / fits)) > 0.01 and not (space.whole and abs(too_many - fits) <= 1):
        middle = space.middle(fits, too_many)
        fits, too_many = (middle, too_many) if nodes(middle) <= most_nodes else (fits, middle)
    return fits
