"""Checks of the ``search`` block: by itself, and of its lightest against its heaviest load."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scaletest.core.units import write_duration
from scaletest.profile.places import Issue, Path, nearest
from scaletest.profile.schema import Profile
from scaletest.profile.search import BeyondSpec, SearchSpec, parse_load
from scaletest.profile.stepping import load_flows, refusals

__all__ = ["SEARCH_PHASE", "check_search", "check_steps"]

SEARCH_PHASE: Final = "search"
"""Name of the phase in which the search takes place."""

_PERIODS: Final = 3
"""Periods of an agent that the shortest step has to hold: in one alone, the agents of a rollout have not spread over it."""


def check_search(profile: Profile) -> Iterator[Issue]:
    """Find what is wrong with the block by itself: the parameter is there, and a number like ``to``."""
    search = profile.search
    if search is None:
        return
    for index, phase in enumerate(profile.phases):
        if phase.name == SEARCH_PHASE:
            yield Issue(
                ("phases", index, "name"), f"the search itself is the phase {SEARCH_PHASE!r}", "choose another name"
            )
    yield from _ends(profile, search, ("search",))
    if search.beyond is not None:
        path: Path = ("search", "beyond")
        if search.beyond.parameter == search.parameter:
            yield Issue(
                (*path, "parameter"), "this is the parameter that is searched", "name another, or a heavier search.to"
            )
        else:
            yield from _ends(profile, search.beyond, path)


def _ends(profile: Profile, spec: SearchSpec | BeyondSpec, path: Path) -> Iterator[Issue]:
    name = spec.parameter
    if name not in profile.parameters:
        near = nearest(name, profile.parameters)
        known = f"there is {', '.join(profile.parameters)}" if profile.parameters else "the profile has none"
        hint = f"did you mean {near!r}?" if near else known
        yield Issue((*path, "parameter"), f"there is no parameter {name!r}", hint)
        return
    value = profile.parameters[name]
    try:
        lightest = parse_load(value)
    except ValueError as error:
        yield Issue(("parameters", name), str(error))
        return
    heaviest = parse_load(spec.to)
    if heaviest.unit != lightest.unit or (lightest.whole and not heaviest.whole):
        yield Issue((*path, "to"), f"{name} is {value}, and this is written otherwise: {spec.to}")
    elif heaviest.number == lightest.number:
        yield Issue((*path, "to"), f"{name} is {value} already: there is nothing to search")


def check_steps(near: Profile, far: Profile, parameter: str, place: Path) -> list[Issue]:
    """Find why one control plane cannot go from one load to a heavier one, which another value of the parameter makes.

    ``place`` is where the profile names the parameter.
    """
    assert near.search is not None
    issues = refusals(near, far, parameter, place)
    return issues or list(_short_steps(near, far, near.search))


def _short_steps(near: Profile, far: Profile, search: SearchSpec) -> Iterator[Issue]:
    for name in load_flows(near, far):
        for profile in (near, far):
            periods_s = [step.every_s for step in profile.flows[name].steps if step.every_s is not None]
            needed_s = round(_PERIODS * max(periods_s, default=0.0), 6)
            if needed_s > search.step.at_least_s:
                what = f"{write_duration(search.step.at_least_s)} is less than three periods of flow {name!r}"
                hint = f"at least {write_duration(needed_s)}"
                yield Issue(("search", "step", "atLeast"), what, f"{hint}, or let its agents ask more often")
                return
