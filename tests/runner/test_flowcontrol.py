"""API Priority and Fairness objects for an incident."""

from __future__ import annotations

from scaletest.runner.flowcontrol import flow_control_objects, service_accounts


def test_only_service_accounts_are_agents_each_once() -> None:
    identities = ["serviceAccount:telemetry/agent", "admin", "node", "serviceAccount:telemetry/agent"]

    assert service_accounts(identities) == [("telemetry", "agent")]


def test_operators_are_matched_before_agents_and_agents_borrow_nothing() -> None:
    objects = flow_control_objects(["alice"], [("telemetry", "agent")], operator_shares=30, agent_shares=1)

    kinds = [(body["kind"], body["metadata"]["name"]) for _, body in objects]
    glass, glass_flow, agents, agents_flow = (body["spec"] for _, body in objects)
    assert kinds == [
        ("PriorityLevelConfiguration", "scaletest-break-glass"),
        ("FlowSchema", "scaletest-break-glass"),
        ("PriorityLevelConfiguration", "scaletest-agents"),
        ("FlowSchema", "scaletest-agents"),
    ]
    assert glass["limited"]["nominalConcurrencyShares"] == 30
    assert (agents["limited"]["nominalConcurrencyShares"], agents["limited"]["borrowingLimitPercent"]) == (1, 0)
    assert glass_flow["matchingPrecedence"] < agents_flow["matchingPrecedence"] < 9000
    assert glass_flow["rules"][0]["subjects"] == [{"kind": "User", "user": {"name": "alice"}}]


def test_without_service_accounts_there_is_no_level_for_agents() -> None:
    assert len(flow_control_objects(["alice"], [], operator_shares=1, agent_shares=1)) == 2
