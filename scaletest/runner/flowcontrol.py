"""API Priority and Fairness objects for an incident: operators first, agents last.

    scaletest-break-glass   a level of its own for ``admin`` and ``on-call``, matched before every default FlowSchema for users
    scaletest-agents        a level so small that agents execute one request at a time; it borrows no seats from others and
                            rejects what does not fit, since a queue of LISTs is what fills the memory

``system:masters`` needs neither: it is exempt. All objects are applied server-side, so that a second time changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from scaletest.core.kubernetesapi import Json

__all__ = ["GROUP", "flow_control_objects", "service_accounts"]

GROUP: Final = "flowcontrol.apiserver.k8s.io/v1"
BREAK_GLASS: Final = "scaletest-break-glass"
AGENTS: Final = "scaletest-agents"
BREAK_GLASS_PRECEDENCE: Final = 500
"""Before the on-call FlowSchema (600) and every default that takes users; after those for health checks and leader election."""
AGENTS_PRECEDENCE: Final = 550


def service_accounts(identities: Iterable[str]) -> list[tuple[str, str]]:
    """Return namespace and name of each identity that is a ServiceAccount."""
    found = []
    for identity in identities:
        kind, _, account = identity.partition(":")
        namespace, _, name = account.partition("/")
        if kind == "serviceAccount":
            found.append((namespace, name))
    return sorted(set(found))


def flow_control_objects(
    users: Iterable[str], accounts: Iterable[tuple[str, str]], *, operator_shares: int, agent_shares: int
) -> list[tuple[str, Json]]:
    """Return path and body of each object, in the order in which they are applied: a level before its FlowSchema."""
    operators = [{"kind": "User", "user": {"name": user}} for user in users]
    agents = [
        {"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}
        for namespace, name in accounts
    ]
    queue = {"type": "Queue", "queuing": {"queues": 16, "handSize": 4, "queueLengthLimit": 50}}
    objects = [
        _level(BREAK_GLASS, {"nominalConcurrencyShares": operator_shares, "limitResponse": queue}),
        _schema(BREAK_GLASS, BREAK_GLASS_PRECEDENCE, operators),
    ]
    if agents:
        small = {
            "nominalConcurrencyShares": agent_shares,
            "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"},
        }
        objects += [_level(AGENTS, small), _schema(AGENTS, AGENTS_PRECEDENCE, agents)]
    return objects


def _level(name: str, limited: dict[str, Any]) -> tuple[str, Json]:
    body = {
        "apiVersion": GROUP,
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": name},
        "spec": {"type": "Limited", "limited": limited},
    }
    return f"/apis/{GROUP}/prioritylevelconfigurations/{name}", body


def _schema(name: str, precedence: int, subjects: list[dict[str, Any]]) -> tuple[str, Json]:
    everything = {
        "subjects": subjects,
        "resourceRules": [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
        ],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }
    body = {
        "apiVersion": GROUP,
        "kind": "FlowSchema",
        "metadata": {"name": name},
        "spec": {
            "matchingPrecedence": precedence,
            "priorityLevelConfiguration": {"name": name},
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [everything],
        },
    }
    return f"/apis/{GROUP}/flowschemas/{name}", body
