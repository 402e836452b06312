"""What a churn flow may say, and what objectives may ask of it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from scaletest.profile.schema import ChurnSpec, FlowSpec, Profile
from scaletest.profile.stepping import load_flows, refusals, step_change
from tests.profile.test_checks import found, objective, sets


def churn(**more: Any) -> dict[str, Any]:
    return {"churn": {"pods": 100}, **more}


def test_defaults_are_the_official_loads() -> None:
    spec = ChurnSpec.model_validate({"podsPerNode": 30})

    assert [(250, 0.25), (30, 0.25), (5, 0.5)] == [(size.pods, size.share) for size in spec.sizes]
    assert (10.0, None) == (spec.rate_per_s, spec.rollout_per_s)
    assert (150_000, 50) == (spec.total(5_000), spec.namespaces_for(spec.total(5_000)))


def test_a_churn_reads_back_as_it_was_written() -> None:
    flow = FlowSpec.model_validate(churn(identity="admin"))

    assert flow == FlowSpec.model_validate(flow.model_dump(mode="json", by_alias=True, exclude_none=True))
    assert ("pods", 100) == (flow.unit, flow.target(7))
    assert not flow.follows_nodes
    assert {"create-job", "scale-deployment", "watch-pods"} < set(flow.titles)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"churn": {}}, "exactly one of pods, podsPerNode"),
        ({"churn": {"pods": 1, "podsPerNode": 1}}, "exactly one of pods, podsPerNode"),
        ({"churn": {"pods": 1, "sizes": [{"pods": 5, "share": "50%"}]}}, "must be 100 % together"),
        ({"churn": {"pods": 1, "jobs": "60%", "barePods": "50%"}}, "not be more than 100 %"),
        (churn(steps=[{"list": "pods"}]), "churn makes its own requests"),
        (churn(mix=[{"list": "pods"}]), "mix goes with arrivals"),
        (
            churn(arrivals={"rate": "1/s"}, mix=[{"list": "pods"}]),
            "exactly one of agents, watchers, arrivals, churn, etcd, locustfile",
        ),
    ],
)
def test_mistakes_are_said(data: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        FlowSpec.model_validate(data)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("flow.agents.pod_startup_p99 < 5s", "pod_startup_p99 is measured for churn, and flow 'agents' has none"),
        ("flow.singles.create-job.pod_startup_p99 < 5s", "measured for a whole flow"),
        ("flow.singles.create-jobs.p99 < 5s", "step of flow 'singles' called 'create-jobs'"),
        ("flow.singles.create-job.p99 < 1s", ""),
        ("flow.singles.pod_startup_p99 < 5s", ""),
        ("flow.singles.pods_moved >= 9/s", ""),
        ("flow.singles.achieved >= 99%", ""),
    ],
)
def test_objectives_of_churn_are_checked(text: str, said: str) -> None:
    def change(data: dict[str, Any]) -> None:
        sets("flows", "singles", to=churn())(data)
        objective(text)(data)

    assert said in "\n".join(found(change))
    assert bool(said) == bool(found(change))


@pytest.mark.parametrize(
    ("identity", "said"),
    [("node", "operations of a churn are no nodes"), ("serviceAccount:a/b", "ServiceAccounts may only read")],
)
def test_who_cannot_write_is_refused(identity: str, said: str) -> None:
    assert said in "\n".join(found(sets("flows", "singles", to=churn(identity=identity))))


def searched(nodes: int, rate: str = "10/s", connections: int = 4) -> Profile:
    return Profile.model_validate({
        "name": "s", "summary": "s", "fleet": {"pools": [{"name": "gpu", "nodes": nodes}]},
        "flows": {"churn": {"churn": {"podsPerNode": 2, "rate": rate, "connections": connections}}},
        "phases": [{"name": "one", "for": "1s", "start": ["churn"]}], "objectives": ["flow.churn.started > 0"],
    })  # fmt: skip


def test_a_search_changes_a_running_churn() -> None:
    assert ("churn",) == step_change(searched(5), searched(5, "20/s")).retarget
    assert ("churn",) == step_change(searched(5), searched(5, connections=8)).restart
    grown = step_change(searched(5), searched(9))
    assert ((), {"gpu": 9}) == (grown.retarget, grown.pools)
    assert ["churn"] == load_flows(searched(5), searched(9))
    assert [] == refusals(searched(5), searched(9), "nodes", ("search", "parameter"))
