"""What a search will do, before anything is started: the loads that it can ask for, and the time that it can take. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from scaletest.analysis.search import Space, expected_trials
from scaletest.observe import pprof
from scaletest.profile.loading import LoadedProfile
from scaletest.profile.parameters import Scalar
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
    """``search.to``."""
    made_end: float
    """The heaviest load that is made as it is: ``search.to``, or what is before it where the nodes of that do not fit."""
    most_nodes: int | None
    """Nodes that fit; None when that is not known."""
    beyond: Load | None = None
    """What the parameter of ``search.beyond`` is up to there; None where no load is derived."""

    def values(self, load: float) -> dict[str, Scalar]:
        """Return the parameters that make a load."""
        share = self._share(load)
        if self.beyond is None or self.spec.beyond is None or share <= 1:
            return {self.spec.parameter: self.load.value(load)}
        own, heavier = self.beyond, parse_load(self.spec.beyond.to)
        number = own.number * share if heavier.number > own.number else own.number / share
        # Four digits: 1.667s, and not 1.6666666666666667s.
        return {
            self.spec.parameter: self.load.value(self.made_end),
            self.spec.beyond.parameter: own.value(float(f"{number:.4g}")),
        }

    def said(self, load: float) -> str:
        """Write a load for people: ``500``; or, where it is derived, what it stands for and how it is made."""
        values = self.values(load)
        if len(values) == 1:
            return self.load.at(load)
        made = ", ".join(f"{name} {value}" for name, value in values.items())
        return f"{self.load.at(load)} (derived: {made})"

    def _share(self, load: float) -> float:
        return load / self.made_end if self.space.end >= self.space.start else self.made_end / load

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
    return spec.at_most_s + spec.step.at_most_s + capture_s + past_s + 3 * spec.recover_within_s


def cpu_profile_s(spec: SearchSpec) -> int:
    """Return the length of the CPU profiles of a search: not longer than a load has to be steady."""
    return max(1, min(pprof.CPU_S, int(spec.step.at_least_s)))


def plan_search(loaded: LoadedProfile, most_nodes: int | None = None) -> SearchPlan | None:
    """Return the plan of a profile's search; None when it has none.

    Where the nodes of the heaviest load do not fit, the search ends at the heaviest that does, or loads are derived from there on.
    """
    spec = loaded.profile.search
    if spec is None:
        return None
    lightest, heaviest = parse_load(loaded.parameters[spec.parameter]), parse_load(spec.to)
    space = Space(lightest.number, heaviest.number, spec.resolution, whole=lightest.whole, factor=spec.factor)
    if most_nodes is not None:
        space = replace(space, end=_fitting_end(loaded, spec.parameter, lightest, space, most_nodes))
    made_end, beyond = space.end, None
    if spec.beyond is not None:
        beyond = parse_load(loaded.parameters[spec.beyond.parameter])
        share = parse_load(spec.beyond.to).number / beyond.number
        share = max(share, 1 / share)
        end = made_end * share if made_end >= space.start else made_end / share
        space = replace(space, end=float(round(end)) if space.whole else end, landing=made_end)
    return SearchPlan(spec, lightest, space, heaviest.number, made_end, most_nodes, beyond)


def _fitting_end(loaded: LoadedProfile, parameter: str, load: Load, space: Space, most_nodes: int) -> float:
    def nodes(value: float) -> int:
        return loaded.at({parameter: load.value(value)}).fleet.node_count

    if nodes(space.end) <= most_nodes or nodes(space.start) > most_nodes:
        return space.end
    fits, too_many = space.start, space.end
    while abs(math.log(too_many / fits)) > 0.01 and not (space.whole and abs(too_many - fits) <= 1):
        middle = space.middle(fits, too_many)
        fits, too_many = (middle, too_many) if nodes(middle) <= most_nodes else (fits, middle)
    return fits
