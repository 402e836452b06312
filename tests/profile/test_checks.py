from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scaletest.profile.checks import check_profile
from scaletest.profile.parameters import substitute
from scaletest.profile.places import dotted
from scaletest.profile.schema import Profile
from tests.profile.samples import full_data

Change = Callable[[dict[str, Any]], object]


def found(change: Change, directory: Path = Path()) -> list[str]:
    data = full_data()
    data["fleet"]["pools"][0]["nodes"] = 30
    change(data)
    filled = substitute(data, data["parameters"]).data
    return [f"{dotted(issue.path)}: {issue.what}" for issue in check_profile(Profile.model_validate(filled), directory)]


def sets(*path: str | int, to: object) -> Change:
    def change(data: dict[str, Any]) -> None:
        place: Any = data
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = to

    return change


def objective(text: str) -> Change:
    return sets("objectives", 0, to=text)


def locustfile(path: str) -> Change:
    return sets("flows", "singles", to={"locustfile": {"path": path, "users": 1, "spawn": "1/s"}})


def no_nodes(**flow: Any) -> Change:
    def change(data: dict[str, Any]) -> None:
        data["fleet"]["pools"] = []
        data["phases"][2].pop("do")
        data["phases"][1]["start"] = ["agents"]
        data["phases"][2].pop("stop")
        data["flows"].pop("singles")
        data["flows"]["agents"] = {**data["flows"]["agents"], **flow}

    return change


def adds_servers(*actions: dict[str, Any], name: str = "kube-apiserver-2") -> Change:
    def change(data: dict[str, Any]) -> None:
        objective(f"component.{name}.memory < 2GiB")(data)
        data["phases"][2]["do"] = [*data["phases"][2].get("do", []), *actions]

    return change


@pytest.mark.parametrize("number", [2, 3])
def test_objectives_may_be_about_api_servers_that_actions_add(number: int) -> None:
    name = f"kube-apiserver-{number}"
    added, lever = {"addApiServers": {"count": 2}}, {"lever": "add-api-servers"}

    assert [] == found(adds_servers(added, name=name))
    assert [] == found(adds_servers(lever, lever, name=name))
    assert [] != found(adds_servers(name=name))
    assert [] != found(adds_servers(added, name="kube-apiserver-4"))
    assert [] != found(adds_servers(added, name="etcd-2"))
    assert [] != found(adds_servers(added, name="kube-apiserver-1"))


def test_an_api_server_that_nothing_adds_is_refused_with_those_that_there_are() -> None:
    data = full_data()
    adds_servers({"addApiServers": {"count": 1}}, name="kube-apiserver-3")(data)
    profile = Profile.model_validate(substitute(data, data["parameters"]).data)

    (issue,) = check_profile(profile, Path())

    assert "there is no component 'kube-apiserver-3'" == issue.what
    assert "kwok-controller, kube-apiserver-2" in (issue.hint or "")


def test_a_profile_whose_parts_fit_has_no_issues() -> None:
    assert [] == found(lambda _: None)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (sets("phases", 1, "start", to=["agent", "agents", "singles"]), "phases.1.start.0: there is no flow 'agent'"),
        (sets("phases", 3, "stop", to=["agents", "x"]), "phases.3.stop.1: there is no flow 'x'"),
        (sets("phases", 3, "start", to=["agents"]), "phases.3.start.0: flow 'agents' is stopped and started in one phase"),
        (sets("phases", 2, "start", to=["agents"]), "phases.2.start.0: flow 'agents' runs already"),
        (sets("phases", 1, "start", to=["agents", "singles", "agents"]), "phases.1.start.2: flow 'agents' runs already"),
        (sets("phases", 0, "stop", to=["agents"]), "phases.0.stop.0: flow 'agents' does not run when this phase begins"),
        (sets("phases", 3, "stop", to=["agents", "agents"]), "phases.3.stop.1: flow 'agents' does not run when this phase"),
        (sets("phases", 3, "name", to="baseline"), "phases.3.name: an earlier phase has the name 'baseline'"),
        (sets("fleet", "pools", 1, to={"name": "gpu", "nodes": 5}), "fleet.pools.1.name: an earlier pool has the name 'gpu'"),
        (sets("phases", 2, "do", 0, "grow", "pool", to="gup"), "phases.2.do.0.grow.pool: there is no pool 'gup'"),
        (sets("phases", 2, "do", 1, "shrink", "by", to=6), "phases.2.do.1.shrink.by: pool 'cpu' has 5 nodes at this point"),
        (objective("flow.agent.p99 < 1s"), "objectives.0.check: there is no flow 'agent'"),
        (objective("flow.agents.al.p99 < 1s"), "objectives.0.check: there is no step of flow 'agents' called 'al'"),
        (objective("flow.agents.all.started > 1"), "objectives.0.check: started is measured for a whole flow"),
        (objective("probe.operators.p99 < 1s"), "objectives.0.check: there is no probe 'operators'"),
        (objective("probe.operator[root].p99 < 1s"), "objectives.0.check: there is no identity of probe 'operator' called 'root'"),
        (objective("probe.operator.ready > 1"), "objectives.0.check: only a nodeReadiness probe counts nodes"),
        (objective("component.apiserver.restarts == 0"), "objectives.0.check: there is no component 'apiserver'"),
        (objective("sli[5m].slo_violations == 0"), "objectives.0.check: the phases are over after 180s at the latest: no window of five"),
        (sets("slo", "operator", to="probe.x.p99 < 1s"), "slo.operator: there is no probe 'x'"),
        (sets("phases", 1, "until", to="probe.x.p99 < 1s"), "phases.1.until: there is no probe 'x'"),
        (sets("objectives", 3, "delay", to="180s"), "objectives.3.delay: the phases are over after 180s at the latest"),
        (sets("phases", 3, "for", to="169h"), "phases.3.for: a phase of more than 7 days"),
        (locustfile("none.py"), "flows.singles.locustfile.path: no such file: none.py"),
        (locustfile("a\0b"), "flows.singles.locustfile.path: no such file: "),
        (
            sets("flows", "agents", "agents", "processes", to=64),
            "flows.agents.agents.processes: each process has nodes of its own, and of 35 there are too few for 64 processes",
        ),
        (no_nodes(), "flows.agents.agents.perNode: the fleet has no nodes when this flow starts"),
        (no_nodes(agents={"count": 1, "rollout": "1/s"}, identity="node"), "flows.agents.identity: each client is its node"),
        (no_nodes(agents={"count": 1, "rollout": "1/s"}), "flows.agents.steps.0: {node} is a client's node, and the fleet"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_are_found(change: Change, expected: str) -> None:
    issues = found(change)

    assert issues
    assert issues[0].startswith(expected)


def test_a_flow_that_no_phase_starts_is_found() -> None:
    issues = found(sets("flows", "idle", to={"agents": {"count": 1, "rollout": "1/s"}, "steps": [{"list": "pods"}]}))

    assert ["flows.idle: no phase starts this flow"] == issues


def test_a_condition_on_a_flow_that_starts_later_is_found() -> None:
    issues = found(sets("phases", 0, to={"name": "wait", "until": "flow.agents.started > 1", "atMost": "1s"}))

    assert ["phases.0.until: flow 'agents' has not been started by then"] == issues


def test_a_pool_without_nodes_is_an_issue_unless_it_grows() -> None:
    assert [] == found(sets("fleet", "pools", 0, "nodes", to=0))
    assert ["fleet.pools.2.nodes: pool 'idle' has no nodes and no action adds any"] == found(
        lambda data: data["fleet"]["pools"].append({"name": "idle", "nodes": 0, "podsPerNode": 3})
    )


def test_phases_without_any_time_are_an_issue() -> None:
    def change(data: dict[str, Any]) -> None:
        data["phases"] = [{"name": "a", "for": "0s", "start": ["agents", "singles"]}]
        data["objectives"] = ["host.cpu_idle > 1%"]

    assert ["phases: the phases take no time: nothing would be measured"] == found(change)


def test_a_locustfile_is_looked_for_beside_the_profile(tmp_path: Path) -> None:
    (tmp_path / "users.py").write_text("")

    assert [] == found(locustfile("users.py"), tmp_path)


def test_steps_of_a_locustfile_flow_may_have_any_name(tmp_path: Path) -> None:
    (tmp_path / "users.py").write_text("")

    def change(data: dict[str, Any]) -> None:
        locustfile("users.py")(data)
        objective("flow.singles.anything.p99 < 1s")(data)

    assert [] == found(change, tmp_path)


def acts(*actions: dict[str, Any], phase: int = 1) -> Change:
    return sets("phases", phase, "do", to=list(actions))


@pytest.mark.parametrize(
    ("change", "issue"),
    [
        (acts({"block": {"flow": "nobody"}}), "phases.1.do.0.block.flow: there is no flow 'nobody'"),
        (
            acts({"unblock": {"flow": "agents"}}, phase=0),
            "phases.0.do.0.unblock.flow: flow 'agents' does not run when the actions of this phase are done",
        ),
        (
            acts({"lever": "all-three"}, phase=0),
            "phases.0.do.0.lever: no flow of agents runs when this phase begins: there is nothing to block",
        ),
    ],
)
def test_actions_are_about_flows_that_run(change: Change, issue: str) -> None:
    assert issue in found(change)


def test_a_rollback_needs_a_daemon_set() -> None:
    def roll_back(data: dict[str, Any]) -> None:
        data["flows"]["agents"].pop("daemonSet", None)
        data["phases"].append({"name": "last", "start": ["agents"], "for": "1s"})
        data["phases"].append({"name": "back", "do": [{"deleteRollout": {"flow": "agents"}}], "for": "1s"})

    assert [issue for issue in found(roll_back) if "daemonSet" in issue] == [
        f"phases.{len(full_data()['phases']) + 1}.do.0.deleteRollout.flow: flow 'agents' has no daemonSet to delete"
    ]
