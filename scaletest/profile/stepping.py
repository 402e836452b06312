"""From one load of a search to the next, on one control plane: what has to change in the cluster and in the flows.

A load is the profile with another value of the searched parameter. Two such profiles may differ in

- how many agents, watches or pods, at what rate, or how many arrivals a second a flow has: the flow is *retargeted* while it runs;
- anything else about a flow but who it is: the flow is *restarted*;
- how many nodes a pool has: the fleet grows or shrinks, and agents that stand on nodes with it;
- ``search.holds``, which is judged as it is at that load; ``summary``, ``slo`` and ``phases``, which are read once, at the lightest load.

All else would need another control plane or another fleet, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from scaletest.profile.levers import pool_sizes, running_flows
from scaletest.profile.parameters import AS_WRITTEN
from scaletest.profile.places import Issue, Path, leaves
from scaletest.profile.schema import Phase, Profile

__all__ = ["StepChange", "flows_at_the_end", "load_flows", "refusals", "step_change"]

_READ_ONCE: Final = AS_WRITTEN | {"summary", "slo", "phases"}
_TARGETS: Final = frozenset({
    ("agents", "count"), ("agents", "perNode"), ("agents", "rollout"), ("arrivals", "rate"), ("etcd", "rate"),
    ("watchers", "count"), ("watchers", "perNode"), ("watchers", "rollout"),
    ("churn", "pods"), ("churn", "podsPerNode"), ("churn", "rate"),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class StepChange:
    """What is done to get from one load to another."""

    retarget: tuple[str, ...] = ()
    """Flows whose number or rate changes."""
    restart: tuple[str, ...] = ()
    """Flows that are stopped and started."""
    pools: Mapping[str, int] | None = None
    """New sizes of the pools that change."""


def step_change(before: Profile, after: Profile) -> StepChange:
    """Return the change between two loads of a search that ``refusals`` has nothing against."""
    paths = list(_differences(before, after))
    flows = {str(path[1]) for path in paths if path[0] == "flows"}
    restart = {str(path[1]) for path in paths if path[0] == "flows" and path[2:4] not in _TARGETS}
    sizes = {pool.name: pool.nodes for pool in before.fleet.pools}
    pools = {pool.name: pool.nodes for pool in after.fleet.pools if pool.nodes != sizes[pool.name]}
    return StepChange(tuple(sorted(flows - restart)), tuple(sorted(restart)), pools)


def refusals(before: Profile, after: Profile, parameter: str, place: Path) -> list[Issue]:
    """Return why two loads cannot follow each other on one control plane; also when nothing that runs differs.

    ``place`` is where the profile names the parameter.
    """
    issues = [
        Issue(path, f"{{{parameter}}} is searched, and {why}", hint)
        for path in _differences(before, after)
        if (found := _refusal(path)) is not None
        for why, hint in [found]
    ]
    change = step_change(before, after) if not issues else StepChange()
    running = flows_at_the_end(before)
    idle = [name for name in (*change.retarget, *change.restart) if name not in running]
    issues += [
        Issue(
            ("flows", name),
            f"{{{parameter}}} is searched, and this flow does not run when the search begins",
            "start it in a phase and do not stop it",
        )
        for name in idle
    ]
    if not issues and not (change.retarget or change.restart or change.pools):
        what = f"the load does not depend on {{{parameter}}}"
        issues.append(Issue(place, what, "use it in a flow or as the nodes of a pool"))
    if change.pools and pool_sizes(before, len(before.phases) - 1) != {
        pool.name: pool.nodes for pool in before.fleet.pools
    }:
        what = f"{{{parameter}}} is the size of a pool that a phase resizes"
        issues.append(Issue(place, what, "leave grow and shrink out of the phases"))
    return issues


def flows_at_the_end(profile: Profile) -> list[str]:
    """Return the flows that run when the last phase has ended."""
    after = Phase.model_validate({"name": "after", "for": "0s"})
    extended = profile.model_copy(update={"phases": [*profile.phases, after]})
    return running_flows(extended, len(profile.phases))


def load_flows(before: Profile, after: Profile) -> list[str]:
    """Return the running flows that make the load: those that the parameter changes, and all on nodes where it changes the nodes.

    Where that is none (a fleet that grows under the load of others), all that run.
    """
    change, running = step_change(before, after), flows_at_the_end(before)
    changed = {*change.retarget, *change.restart}
    if change.pools:
        specs = before.flows
        changed |= {name for name in running if specs[name].follows_nodes}
    return [name for name in running if name in changed] or running


def _differences(before: Profile, after: Profile) -> Iterator[Path]:
    old = dict(leaves(_values(before)))
    new = dict(leaves(_values(after)))
    for path in dict.fromkeys([*old, *new]):
        if path and path[0] not in _READ_ONCE and path[:2] != ("search", "holds") and old.get(path) != new.get(path):
            yield path


def _values(profile: Profile) -> dict[str, Any]:
    return profile.model_dump(mode="json", by_alias=True, exclude_none=True)


def _refusal(path: Path) -> tuple[str, str] | None:
    """Return why a place cannot depend on the searched parameter, and what to do; None when it can."""
    if path[0] == "flows" and path[2:] != ("identity",):
        return None
    if path[:2] == ("fleet", "pools") and path[3:] == ("nodes",):
        return None
    if path == ("controlPlane", "apiServers"):
        return (
            "a control plane loses no API server",
            "run a search for each number: --matrix controlPlane.apiServers=1,2",
        )
    return _REFUSED.get(str(path[0]), ("this stays the same for the whole run", "write a value"))


_REFUSED: Final = {
    "flows": ("a flow stays who it is", "make a flow of each identity"),
    "controlPlane": (
        "the control plane stays as it was started",
        "run a search for each value: --matrix KEY=VALUE,VALUE",
    ),
    "fleet": (
        "of the fleet only the number of nodes can change",
        "let it depend on the nodes (podsPerNode), or write a value",
    ),
    "objectives": (
        "objectives are judged once, over the run",
        "write search.capacity >= N, or move it to search.holds",
    ),
}
