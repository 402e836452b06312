"""What a schema cannot say: that the parts of a profile fit each other.

Phases start flows that exist, objectives name steps and identities that there are, a node agent has nodes. Each check
takes the whole profile and yields issues at the paths where they are to be mended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path as FilePath
from typing import Final

from scaletest.core.units import write_duration
from scaletest.profile.forms import RUN_TIME_WORDS
from scaletest.profile.levers import agent_flows, component_names, pool_sizes, running_flows
from scaletest.profile.objectives import MEASURES, SLI_WINDOW_S, Subject, parse_objective
from scaletest.profile.places import Issue, Path, nearest
from scaletest.profile.schema import FlowSpec, Phase, Profile
from scaletest.profile.search_checks import check_search

__all__ = ["check_profile"]


def check_profile(profile: Profile, directory: FilePath) -> list[Issue]:
    """Find everything that does not fit; ``directory`` is the profile's, to which its file names are relative."""
    issues = [issue for check in _CHECKS for issue in check(profile)]
    return [*issues, *_locustfiles_exist(profile, directory)]


def _missing(path: Path, noun: str, name: str, possible: Iterable[str]) -> Issue:
    names = list(possible)
    near = nearest(name, names)
    listed = f"there is {', '.join(names)}" if names else f"the profile has no {noun}"
    return Issue(path, f"there is no {noun} {name!r}", f"did you mean {near!r}?" if near else listed)


def _names_differ(profile: Profile) -> Iterator[Issue]:
    named: tuple[tuple[Path, str, list[str]], ...] = (
        (("phases",), "phase", [phase.name for phase in profile.phases]),
        (("fleet", "pools"), "pool", [pool.name for pool in profile.fleet.pools]),
    )
    for path, noun, names in named:
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Issue((*path, index, "name"), f"an earlier {noun} has the name {name!r}")


def _flows_are_started(profile: Profile) -> Iterator[Issue]:
    running: set[str] = set()
    started: set[str] = set()
    for index, phase in enumerate(profile.phases):
        for position, name in enumerate(phase.stop):
            path: Path = ("phases", index, "stop", position)
            if name not in profile.flows:
                yield _missing(path, "flow", name, profile.flows)
            elif name not in running or name in phase.stop[:position]:
                yield Issue(path, f"flow {name!r} does not run when this phase begins")
        for position in range(len(phase.start)):
            yield from _start_issues(profile, ("phases", index, "start", position), phase, running)
        running = (running - set(phase.stop)) | set(phase.start)
        started |= set(phase.start)
    for name in profile.flows:
        if name not in started:
            yield Issue(("flows", name), "no phase starts this flow", f"write start: [{name}] in a phase, or remove it")


def _start_issues(profile: Profile, path: Path, phase: Phase, running: set[str]) -> Iterator[Issue]:
    position = path[-1]
    assert isinstance(position, int)
    name = phase.start[position]
    if name not in profile.flows:
        yield _missing(path, "flow", name, profile.flows)
    elif name in phase.stop:
        yield Issue(path, f"flow {name!r} is stopped and started in one phase")
    elif name in running or name in phase.start[:position]:
        yield Issue(path, f"flow {name!r} runs already", "stop it in an earlier phase")


def _pools_hold(profile: Profile) -> Iterator[Issue]:
    """Follow the sizes of the pools through the actions."""
    largest = {pool.name: pool.nodes for pool in profile.fleet.pools}
    for index, phase in enumerate(profile.phases):
        for position, action in enumerate(phase.do):
            resize = action.grow or action.shrink
            if resize is None:
                continue
            path: Path = ("phases", index, "do", position, action.name)
            sizes = pool_sizes(profile, index, before=position)
            if resize.pool not in sizes:
                yield _missing((*path, "pool"), "pool", resize.pool, sizes)
            elif action.shrink is not None and resize.by > sizes[resize.pool]:
                yield Issue((*path, "by"), f"pool {resize.pool!r} has {sizes[resize.pool]:,} nodes at this point")
            elif action.grow is not None:
                largest[resize.pool] = max(largest[resize.pool], sizes[resize.pool] + resize.by)
    for index, pool in enumerate(profile.fleet.pools):
        if not largest[pool.name]:
            yield Issue(("fleet", "pools", index, "nodes"), f"pool {pool.name!r} has no nodes and no action adds any")


def _actions_fit(profile: Profile) -> Iterator[Issue]:
    """Actions are about flows that run, and a rollback about one that can be rolled back."""
    for index, phase in enumerate(profile.phases):
        for position, action in enumerate(phase.do):
            path: Path = ("phases", index, "do", position, action.name)
            about = action.block or action.unblock or action.delete_rollout
            if about is not None:
                yield from _flow_action_issues(profile, (*path, "flow"), index, about.flow)
            if (
                action.delete_rollout is not None
                and (flow := profile.flows.get(action.delete_rollout.flow)) is not None
            ):
                yield from _rollback_issues((*path, "flow"), action.delete_rollout.flow, flow)
            if action.lever in {"block-agents", "all-three"} and not agent_flows(profile, index):
                yield Issue(path, "no flow of agents runs when this phase begins: there is nothing to block")


def _flow_action_issues(profile: Profile, path: Path, phase: int, name: str) -> Iterator[Issue]:
    if name not in profile.flows:
        yield _missing(path, "flow", name, profile.flows)
    elif name not in running_flows(profile, phase):
        what = f"flow {name!r} does not run when the actions of this phase are done"
        yield Issue(path, what, "a phase starts its flows after its actions: start the flow in an earlier phase")


def _rollback_issues(path: Path, name: str, flow: FlowSpec) -> Iterator[Issue]:
    if flow.daemon_set is None:
        yield Issue(
            path, f"flow {name!r} has no daemonSet to delete", f"write daemonSet: NAMESPACE/NAME in flows.{name}"
        )


def _nodes_at(profile: Profile, until: int) -> int:
    """Count the nodes once the actions of the phases up to and including ``until`` are done."""
    return sum(pool_sizes(profile, until).values())


def _clients_have_nodes(profile: Profile) -> Iterator[Issue]:
    for index, phase in enumerate(profile.phases):
        for name in phase.start:
            flow = profile.flows.get(name)
            if flow is None or _nodes_at(profile, index) > 0:
                continue
            path: Path = ("flows", name)
            if flow.churn is not None:
                yield Issue((*path, "churn"), "the fleet has no nodes for its pods when this flow starts")
            elif flow.placed is None:
                continue
            elif flow.placed.per_node is not None:
                yield Issue((*path, flow.kind, "perNode"), "the fleet has no nodes when this flow starts")
            elif flow.identity == "node":
                yield Issue((*path, "identity"), "each client is its node, and the fleet has no nodes")
            elif (step := _step_about_node(flow)) is not None:
                yield Issue((*path, "steps", step), "{node} is a client's node, and the fleet has no nodes")


def _processes_have_nodes(profile: Profile) -> Iterator[Issue]:
    for index, phase in enumerate(profile.phases):
        for name in phase.start:
            flow = profile.flows.get(name)
            if flow is None or flow.placed is None:
                continue
            nodes = _nodes_at(profile, index)
            if 0 < nodes < flow.processes:
                what = f"each process has nodes of its own, and of {nodes} there are too few for {flow.processes} processes"
                yield Issue(("flows", name, flow.kind, "processes"), what)


def _step_about_node(flow: FlowSpec) -> int | None:
    word = f"{{{RUN_TIME_WORDS[0]}}}"
    for index, step in enumerate(flow.steps):
        texts = (step.target, step.namespace, step.name, step.field_selector, step.label_selector)
        if any(word in text for text in texts if text is not None):
            return index
    return None


_NO_NODES: Final = {
    "arrivals": "arrivals", "churn": "operations of a churn", "etcd": "clients of etcd", "locustfile": "users of a locustfile",
}  # fmt: skip


def _only_clients_on_nodes_are_nodes(profile: Profile) -> Iterator[Issue]:
    for name, flow in profile.flows.items():
        if flow.placed is None and flow.identity == "node":
            yield Issue(("flows", name, "identity"), f"{_NO_NODES[flow.kind]} are no nodes")
        writing = "churn" if flow.churn is not None else next((item.verb for item in flow.mix if item.writes), None)
        if writing is not None and flow.identity.startswith("serviceAccount:"):
            hint = "write system:masters, admin or on-call"
            yield Issue(("flows", name, "identity"), f"a {writing} writes, and ServiceAccounts may only read", hint)


def _subjects_exist(profile: Profile) -> Iterator[Issue]:
    places: list[tuple[Path, str]] = [
        *((("phases", index, "until"), phase.until) for index, phase in enumerate(profile.phases) if phase.until),
        *((("slo", name), text) for name, text in profile.slo.items()),
        *((("objectives", index, "check"), objective.check) for index, objective in enumerate(profile.objectives)),
        *(
            (("search", "holds", index), text)
            for index, text in enumerate(profile.search.holds if profile.search else [])
        ),
    ]
    for path, text in places:
        issue = _subject_issue(profile, path, parse_objective(text).subject)
        if issue is not None:
            yield issue


def _subject_issue(profile: Profile, path: Path, subject: Subject) -> Issue | None:
    name = subject.name or ""
    match subject.scope:
        case "flow":
            return _flow_subject_issue(profile, path, subject, name)
        case "probe":
            return _probe_subject_issue(profile, path, subject, name)
        case "component" if name not in (names := component_names(profile)):
            return _no_component(path, name, names)
        case "sli" if subject.window is not None and (longest_s := _longest_s(profile)) <= SLI_WINDOW_S:
            what = f"the phases are over after {write_duration(longest_s)} at the latest: no window of five minutes is in them"
            return Issue(path, what, f"leave out [{subject.window}]: the form for the whole run")
        case "search" if profile.search is None or path[0] != "objectives":
            what = "the profile has no search" if profile.search is None else "a search is measured when it is over"
            return Issue(path, what, "search.MEASURE goes with objectives")
    return None


def _no_component(path: Path, name: str, names: list[str]) -> Issue:
    if name.startswith("kube-apiserver-"):
        known = ", ".join(names)
        hint = f"the run has no more API servers, whatever its actions add; there is {known}"
        return Issue(path, f"there is no component {name!r}", hint)
    return _missing(path, "component", name, names)


def _flow_subject_issue(profile: Profile, path: Path, subject: Subject, name: str) -> Issue | None:
    flow = profile.flows.get(name)
    if flow is None:
        return _missing(path, "flow", name, profile.flows)
    # The requests of a locustfile are named by its code; objects of a flow's own are created and deleted beside its mix.
    titles = flow.titles
    named = flow.locustfile is None and not _makes_objects(flow)
    if subject.step is not None and named and subject.step not in titles:
        return _missing(path, f"step of flow {name!r} called", subject.step, titles)
    measure, closed = subject.measure, flow.paced is not None and flow.paced.is_closed
    paced = flow.paced is not None or flow.churn is not None
    misfits = [
        (
            subject.step is not None and measure in _WHOLE_FLOW | _PACER | _PODS,
            f"{measure} is measured for a whole flow, not for a step",
        ),
        (
            not paced and (measure in _PACER or measure.startswith("service_")),
            f"{measure} is measured for arrivals, and flow {name!r} has none",
        ),
        (flow.churn is None and measure in _PODS, f"{measure} is measured for churn, and flow {name!r} has none"),
        (closed and measure in _PACER, f"{measure} goes with a rate, and flow {name!r} is a closed loop"),
    ]
    return next((Issue(path, what) for wrong, what in misfits if wrong), None)


_WHOLE_FLOW: Final = frozenset({"started", "connected", "most_started"})
_PACER: Final = frozenset({"start_lag_p99", "dropped", "achieved"})
_PODS: Final = frozenset(name for name in MEASURES["flow"] if name.startswith("pod"))


def _makes_objects(flow: FlowSpec) -> bool:
    return any(request.is_own for request in flow.mix)


def _probe_subject_issue(profile: Profile, path: Path, subject: Subject, name: str) -> Issue | None:
    probe = profile.probes.get(name)
    if probe is None:
        return _missing(path, "probe", name, profile.probes)
    if subject.identity is not None and subject.identity not in probe.identities:
        return _missing(path, f"identity of probe {name!r} called", subject.identity, probe.identities)
    if subject.measure in {"ready", "not_ready"} and not probe.node_readiness:
        return Issue(path, f"only a nodeReadiness probe counts nodes, and {name!r} is none")
    return None


def _variant_is_no_parameter(profile: Profile) -> Iterator[Issue]:
    """A matrix has an axis of this name for the variants."""
    if profile.variants and "variant" in profile.parameters:
        yield Issue(("parameters", "variant"), "the profile has variants", "choose another name")


def _conditions_can_come(profile: Profile) -> Iterator[Issue]:
    started: set[str] = set()
    for index, phase in enumerate(profile.phases):
        started |= set(phase.start)
        subject = _condition(phase)
        if (
            subject is not None
            and subject.scope == "flow"
            and subject.name in profile.flows
            and subject.name not in started
        ):
            yield Issue(("phases", index, "until"), f"flow {subject.name!r} has not been started by then")


def _condition(phase: Phase) -> Subject | None:
    return parse_objective(phase.until).subject if phase.until is not None else None


def _longest_s(profile: Profile) -> float:
    return sum(phase.longest_s for phase in profile.phases)


def _delays_are_within(profile: Profile) -> Iterator[Issue]:
    longest_s = _longest_s(profile)
    for index, objective in enumerate(profile.objectives):
        if objective.abort and objective.delay_s >= longest_s:
            what = f"the phases are over after {write_duration(longest_s)} at the latest: this would never abort"
            yield Issue(("objectives", index, "delay"), what)


def _waits_are_within(profile: Profile) -> Iterator[Issue]:
    for index, phase in enumerate(profile.phases):
        if phase.longest_s > 7 * 86_400:
            yield Issue(("phases", index, "for" if phase.until is None else "atMost"), "a phase of more than 7 days")
    if not any(phase.longest_s for phase in profile.phases):
        yield Issue(("phases",), "the phases take no time: nothing would be measured")


def _locustfiles_exist(profile: Profile, directory: FilePath) -> Iterator[Issue]:
    for name, flow in profile.flows.items():
        if flow.locustfile is None:
            continue
        path: Path = ("flows", name, "locustfile", "path")
        file = directory / flow.locustfile.path
        try:
            is_file = file.is_file()
        except (OSError, ValueError):
            is_file = False
        if not is_file:
            yield Issue(path, f"no such file: {file}", "the path is relative to the profile")


_CHECKS: Final[tuple[Callable[[Profile], Iterator[Issue]], ...]] = (
    _names_differ,
    _flows_are_started,
    _pools_hold,
    _actions_fit,
    _clients_have_nodes,
    _processes_have_nodes,
    _only_clients_on_nodes_are_nodes,
    _subjects_exist,
    _conditions_can_come,
    _variant_is_no_parameter,
    _delays_are_within,
    _waits_are_within,
    check_search,
)
