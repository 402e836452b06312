from __future__ import annotations

from typing import Any

import pytest

from scaletest.analysis.clientcalls import client_steps


def agents(**step: Any) -> dict[str, Any]:
    return {"flows": {"a": {"agents": {"count": 1, "rollout": "1/s"}, "steps": [{"label": "it", **step}]}}}


def arrivals(**request: Any) -> dict[str, Any]:
    return {"flows": {"a": {"arrivals": {"rate": "1/s"}, "mix": [{"label": "it", **request}]}}}


@pytest.mark.parametrize(
    ("profile", "call"),
    [
        (agents(list="pods"), "LIST pods cluster"),
        (agents(list="apps/v1/daemonsets", namespace="x"), "LIST daemonsets.apps namespace"),
        (agents(get="nodes", name="{node}"), "GET nodes resource"),
        (agents(get="/api/v1/nodes/{node}"), "GET nodes resource"),
        (arrivals(create="configmaps"), "POST configmaps resource"),
        (arrivals(put="configmaps"), "PUT configmaps resource"),
        (arrivals(delete="leases"), "DELETE leases.coordination.k8s.io resource"),
        (arrivals(patch="nodes", name="n", subresource="status"), "PATCH nodes/status resource"),
        (arrivals(patch="configmaps", patchType="apply"), "APPLY configmaps resource"),
        (arrivals(list="scaletest.dev/v1/widgets"), "LIST widgets.scaletest.dev cluster"),
        (arrivals(watchList="pods"), "WATCHLIST pods cluster"),
    ],
)
def test_a_step_is_found_by_the_call_that_the_server_counts(profile: dict[str, Any], call: str) -> None:
    assert client_steps(profile) == {call: [("a", "it")]}


@pytest.mark.parametrize(
    "profile",
    [
        {},
        {"flows": None},
        {"flows": {"a": {"locustfile": {"path": "x.py", "users": 1, "spawn": "1/s"}}}},
        {"flows": {"a": {"agents": {"telepathy": True}}}},
        agents(watch="pods"),
        agents(get="/healthz"),
    ],
)
def test_what_cannot_be_told_has_no_call(profile: dict[str, Any]) -> None:
    assert client_steps(profile) == {}


def test_steps_of_several_flows_that_make_one_call_are_found_together() -> None:
    profile = {"flows": {"a": agents(list="pods")["flows"]["a"], "b": arrivals(list="pods")["flows"]["a"]}}

    assert client_steps(profile) == {"LIST pods cluster": [("a", "it"), ("b", "it")]}
