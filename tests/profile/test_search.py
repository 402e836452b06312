"""The search block: what it takes, what it refuses and where, and what changes from load to load."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaletest.core.errors import ProfileError
from scaletest.profile.loading import LoadedProfile
from scaletest.profile.search import Load, parse_load
from scaletest.profile.stepping import StepChange, load_flows, step_change
from tests.profile.samples import load

SEARCH = """\
name: search-test
summary: A search over {nodes} nodes.
parameters:
  nodes: 50
  period: 10s
  rate: 100/s
  servers: 1
fleet:
  pools:
    - {name: gpu, nodes: "{nodes}", podsPerNode: 2}
flows:
  telemetry:
    agents: {perNode: 1, rollout: 100/s}
    steps:
      - {list: pods, every: "{period}", jitter: 50%}
  gets:
    arrivals: {rate: "{rate}"}
    mix: [{get: /version}]
probes:
  operator: {get: apps/v1/daemonsets, namespace: telemetry}
phases:
  - {name: warm-up, start: [telemetry, gets], until: "flow.telemetry.started >= {nodes}", atMost: 30s}
search:
  parameter: nodes
  to: 4000
  holds: [probe.operator.p99 < 1s, "flow.telemetry.connected >= {nodes}"]
objectives:
  - search.capacity >= 500
"""


def loaded(directory: Path, *changes: tuple[str, str]) -> LoadedProfile:
    text = SEARCH
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return load(directory, text)


def problems(directory: Path, *changes: tuple[str, str]) -> list[str]:
    with pytest.raises(ProfileError) as caught:
        loaded(directory, *changes)
    assert all(problem.line for problem in caught.value.problems)
    return [f"{problem.key}: {problem.what}" for problem in caught.value.problems]


def change(directory: Path, parameter: str, value: str | int) -> StepChange:
    profile = loaded(directory, ("parameter: nodes\n  to: 4000", f"parameter: {parameter}\n  to: {value}"))
    return step_change(profile.profile, profile.at({parameter: value}))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (500, Load(500, whole=True)),
        ("500", Load(500, whole=True)),
        (1.5, Load(1.5, whole=False)),
        ("80/s", Load(80, whole=False, unit="/s")),
        ("0.5s", Load(0.5, whole=False, unit="s")),
        ("3KB", Load(3, whole=False, unit="KB")),
    ],
)
def test_a_load_is_a_number_and_what_is_written_after_it(value: str | float, expected: Load) -> None:
    assert expected == parse_load(value)


@pytest.mark.parametrize("value", ["fast", "1m30s", 0, -5, "", True])
def test_what_is_no_positive_number_is_no_load(value: str | float) -> None:
    with pytest.raises(ValueError, match=r"must be more than 0|is no number"):
        parse_load(value)


def test_a_load_is_written_as_its_parameter_is() -> None:
    assert ["750", "7.5s"] == [parse_load(500).at(750.0), parse_load("10s").at(7.5)]
    assert [750, "7.5s", 7.5] == [
        parse_load(500).value(750.0),
        parse_load("10s").value(7.5),
        parse_load(1.0).value(7.5),
    ]


def test_nodes_resize_their_pool_and_agents_go_with_them(tmp_path: Path) -> None:
    profile = loaded(tmp_path)
    far = profile.at({"nodes": 4000})

    assert StepChange(pools={"gpu": 4000}) == step_change(profile.profile, far)
    assert ["telemetry"] == load_flows(profile.profile, far)
    assert far.search is not None
    assert "flow.telemetry.connected >= 4000" == far.search.holds[1]


def test_a_period_restarts_the_flow(tmp_path: Path) -> None:
    assert StepChange(restart=("telemetry",), pools={}) == change(tmp_path, "period", "1s")


def test_a_rate_retargets_the_flow(tmp_path: Path) -> None:
    assert StepChange(retarget=("gets",), pools={}) == change(tmp_path, "rate", "5000/s")


PARAMETER = "parameter: nodes\n  to: 4000"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([(PARAMETER, "parameter: node\n  to: 4000")], "search.parameter: there is no parameter 'node'"),
        ([(PARAMETER, "parameter: nodes\n  to: 50")], "search.to: nodes is 50 already: there is nothing to search"),
        (
            [(PARAMETER, "parameter: nodes\n  to: 100/s")],
            "search.to: nodes is 50, and this is written otherwise: 100/s",
        ),
        (
            [(PARAMETER, "parameter: period\n  to: 1000")],
            "search.to: period is 10s, and this is written otherwise: 1000",
        ),
        (
            [(PARAMETER, "parameter: nodes\n  to: many")],
            "search: 'many' is no number that can be searched: write 500, 80/s or 10s",
        ),
        ([("nodes: 50\n", "nodes: a few\n")], None),
        (
            [("to: 4000", "to: 4000\n  beyond: {parameter: perod, to: 1s}")],
            "search.beyond.parameter: there is no parameter 'perod'",
        ),
        (
            [("to: 4000", "to: 4000\n  beyond: {parameter: nodes, to: 5000}")],
            "search.beyond.parameter: this is the parameter that is searched",
        ),
        (
            [("to: 4000", "to: 4000\n  beyond: {parameter: period, to: 200ms}")],
            "search.beyond.to: period is 10s, and this is written otherwise: 200ms",
        ),
        (
            [("to: 4000", "to: 4000\n  beyond: {parameter: servers, to: 3}")],
            "search.beyond.parameter: the load does not depend on {servers}",
        ),
        (
            [(PARAMETER, "parameter: nodes\n  to: 900000")],
            "search.to: no profile with nodes = 900000: fleet.pools.0.nodes: must be at most 100,000, not 900000",
        ),
        (
            [(PARAMETER, "parameter: servers\n  to: 4")],
            "search.parameter: the load does not depend on {servers}",
        ),
        (
            [
                (PARAMETER, "parameter: servers\n  to: 4"),
                ("fleet:\n", 'controlPlane: {apiServers: "{servers}"}\nfleet:\n'),
            ],
            "controlPlane.apiServers: {servers} is searched, and a control plane loses no API server",
        ),
        (
            [("podsPerNode: 2", 'podsPerNode: "{nodes}"'), ("to: 4000", "to: 900")],
            "fleet.pools.0.podsPerNode: {nodes} is searched, and of the fleet only the number of nodes can change",
        ),
        (
            [("search.capacity >= 500", '"flow.telemetry.started >= {nodes}"')],
            "objectives.0.check: {nodes} is searched, and objectives are judged once, over the run",
        ),
        (
            [
                (PARAMETER, "parameter: rate\n  to: 900/s"),
                ("start: [telemetry, gets]", "start: [telemetry]"),
                ("objectives:", "objectives:"),
            ],
            "flows.gets: no phase starts this flow",
        ),
        ([("name: warm-up", "name: search")], "phases.0.name: the search itself is the phase 'search'"),
        ([("probe.operator.p99", "probe.operators.p99")], "search.holds.0: there is no probe 'operators'"),
        (
            [("probe.operator.p99 < 1s", "search.capacity > 1")],
            "search.holds.0: a search is measured when it is over",
        ),
    ],
)
def test_a_mistake_is_said_at_its_place(tmp_path: Path, changes: list[tuple[str, str]], expected: str | None) -> None:
    found = problems(tmp_path, *changes)

    if expected is not None:
        assert any(item.startswith(expected) for item in found), found


def test_a_step_shorter_than_three_periods_is_refused(tmp_path: Path) -> None:
    found = problems(tmp_path, ("period: 10s", "period: 20s"))

    assert ["search.step.atLeast: 30s is less than three periods of flow 'telemetry'"] == found


def test_a_flow_that_does_not_run_any_more_cannot_make_the_load(tmp_path: Path) -> None:
    found = problems(
        tmp_path, (PARAMETER, "parameter: rate\n  to: 900/s"), ("search:\n", "  - {name: end, stop: [gets], for: 1s}\nsearch:\n")
    )  # fmt: skip

    assert "{rate} is searched, and this flow does not run when the search begins" in found[0]


def test_an_objective_of_a_search_needs_one(tmp_path: Path) -> None:
    text = SEARCH[: SEARCH.index("search:\n")] + SEARCH[SEARCH.index("objectives:") :]
    with pytest.raises(ProfileError) as caught:
        load(tmp_path, text)

    assert "the profile has no search" == caught.value.problems[0].what
