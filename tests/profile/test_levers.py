"""What each lever stands for in a profile, and what follows for its limits."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from scaletest.profile.actions import LEVERS, Action, LeverName
from scaletest.profile.levers import agent_flows, component_names, expand, most_api_servers, pool_sizes
from scaletest.profile.schema import Profile


def profile(*relief: dict[str, Any], api_servers: int = 1) -> Profile:
    agents = {"agents": {"perNode": 1, "rollout": "1/s"}, "steps": [{"list": "pods"}]}
    return Profile.model_validate(
        {
            "name": "p",
            "summary": "s",
            "controlPlane": {"apiServers": api_servers},
            "fleet": {"pools": [{"name": "gpu", "nodes": 100}, {"name": "cpu", "nodes": 5}]},
            "flows": {"telemetry": {**agents, "daemonSet": "telemetry/agent"}, "other": agents},
            "phases": [
                {"name": "rollout", "start": ["telemetry", "other"], "do": [{"grow": {"pool": "gpu", "by": 10}}], "for": "1s"},
                {"name": "relief", "do": list(relief), "for": "1s"},
            ],
            "objectives": ["host.cpu_idle > 0%"],
        }
    )  # fmt: skip


def parts(lever: LeverName) -> list[dict[str, Any]]:
    action = Action.model_validate({"lever": lever})
    each = expand(action, profile({"lever": lever}), 1)
    return [part.model_dump(exclude_none=True, by_alias=True, exclude_defaults=True) for part in each]


BLOCK = {"block": {"flow": "telemetry"}}
SCALE_DOWN = [{"shrink": {"pool": "gpu", "by": 99}}, {"shrink": {"pool": "cpu", "by": 4}}]
ADD = {"addApiServers": {"count": 1}}


@pytest.mark.parametrize(
    ("lever", "expected"),
    [
        ("none", []),
        ("block-agents", [BLOCK]),
        ("scale-down", SCALE_DOWN),
        ("add-api-servers", [ADD]),
        ("apf", [{"applyFlowControl": {}}]),
        ("all-three", [BLOCK, *SCALE_DOWN, ADD]),
    ],
)
def test_a_lever_stands_for_actions_on_what_there_is(lever: LeverName, expected: list[dict[str, Any]]) -> None:
    assert parts(lever) == expected


def test_every_lever_is_known() -> None:
    assert get_args(LeverName) == LEVERS


def test_any_other_action_stands_for_itself() -> None:
    action = Action.model_validate(BLOCK)

    assert expand(action, profile(BLOCK), 1) == [action]


def test_agents_are_the_flows_of_a_rollout_or_all_where_there_is_none() -> None:
    data = profile().model_dump(by_alias=True, exclude_none=True)
    del data["flows"]["telemetry"]["daemonSet"]

    assert agent_flows(profile(), 1) == ["telemetry"]
    assert agent_flows(profile(), 0) == []
    assert agent_flows(Profile.model_validate(data), 1) == ["telemetry", "other"]


def test_sizes_of_pools_follow_levers_too() -> None:
    scaled = profile({"lever": "scale-down"})

    assert pool_sizes(scaled, 1, before=0) == {"gpu": 110, "cpu": 5}
    assert pool_sizes(scaled, 1) == {"gpu": 11, "cpu": 1}


@pytest.mark.parametrize("lever", LEVERS)
def test_limits_are_shares_of_the_servers_that_a_lever_adds(lever: LeverName) -> None:
    assert most_api_servers(profile({"lever": lever})) == (2 if lever in {"add-api-servers", "all-three"} else 1)
    assert "kube-apiserver-2" in component_names(profile({"lever": lever}))


def test_limits_count_servers_that_are_there_and_servers_that_are_added() -> None:
    assert most_api_servers(profile()) == 1
    assert most_api_servers(profile({"addApiServers": {"count": 2}}, api_servers=3)) == 5


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"block": {"flow": "telemetry"}, "lever": "none"},
        {"lever": "all-four"},
        {"deleteRollout": {"flow": "telemetry", "identity": "node"}},
        {"slowDisk": {"delay": "0s"}},
        {"kill": {"component": "dns"}},
        {"addApiServers": {"count": 0}},
        {"captureProfiles": {"seconds": 0}},
        {"captureProfiles": {"seconds": 61}},
    ],
)
def test_what_is_no_action_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Action.model_validate(wrong)


def test_an_action_has_the_name_that_the_profile_spells() -> None:
    assert Action.model_validate({"addApiServers": {"count": 1}}).name == "addApiServers"
    assert Action.model_validate({"addApiServers": {"count": 1}}).in_background
    assert Action.model_validate({"captureProfiles": {}}).in_background
    assert not Action.model_validate(BLOCK).in_background
