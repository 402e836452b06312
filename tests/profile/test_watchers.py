"""Flows of standing watches, as profiles write them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from scaletest.profile.loading import load_profile
from scaletest.profile.schema import FlowSpec

STEP = {"watch": "pods"}


def test_watches_are_counted_or_stand_on_every_node() -> None:
    counted = FlowSpec.model_validate({"watchers": {"count": 7_000}, "steps": [STEP]})
    placed = FlowSpec.model_validate({"watchers": {"perNode": 2, "rollout": "500/s"}, "steps": [STEP]})

    assert ("watches", 7_000, 100) == (counted.unit, counted.target(50), placed.target(50))
    assert counted.placed is not None
    assert placed.placed is not None
    assert (None, 500.0) == (counted.placed.rollout_per_s, placed.placed.rollout_per_s)
    assert 300.0 == counted.steps[0].lasts_s


@pytest.mark.parametrize(
    ("flow", "said"),
    [
        ({"watchers": {}}, "exactly one of perNode, count"),
        ({"watchers": {"count": 1, "perNode": 1}}, "exactly one of perNode, count"),
        ({"watchers": {"count": 1}, "steps": []}, "all of them are watches"),
        ({"watchers": {"count": 1}, "steps": [STEP, {"list": "pods"}]}, "all of them are watches"),
        ({"watchers": {"count": 1}, "limit": {"qps": 1, "burst": 1}}, "limit goes with agents"),
        ({"watchers": {"count": 1}, "agents": {"count": 1, "rollout": "1/s"}}, "exactly one of agents, watchers"),
        ({"watchers": {"count": 1}, "daemonSet": "a/b"}, "daemonSet goes with agents"),
        ({"watchers": {"count": 1}, "steps": [STEP | {"lasts": "500ms"}]}, "a watch lasts 1s or more"),
        (
            {"agents": {"count": 1, "rollout": "1/s"}, "steps": [{"list": "pods", "lasts": "5s"}]},
            "lasts goes with watch",
        ),
    ],
)
def test_what_does_not_fit_watches_is_refused(flow: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        FlowSpec.model_validate({"steps": [STEP]} | flow)


def test_the_search_of_writes_that_are_watched_can_be_one_of_watches_instead() -> None:
    writes = load_profile("saturation-watch")
    instead = ["search.parameter=watches", "search.to=19000", "watches=500", "writes=4/s"]
    watches = load_profile("saturation-watch", instead)

    assert 40 == writes.at({"writes": "40/s"}).flows["writes"].arrivals.rate_per_s  # type: ignore[union-attr]
    assert 900 == watches.at({"watches": 900}).flows["watches"].target(0)
