"""Arrivals as a profile writes them: what is possible, and what is refused with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from scaletest.profile.arrivals import parse_name_range
from scaletest.profile.schema import FlowSpec, RequestSpec
from tests.profile.samples import load
from tests.profile.test_checks import found, objective, sets

GET: dict[str, Any] = {"get": "pods", "name": "a", "namespace": "n"}


def flow(mix: list[dict[str, Any]] | None = None, more: dict[str, Any] | None = None, **arrivals: Any) -> FlowSpec:
    given_arrivals = arrivals or {"rate": "5/s"}
    return FlowSpec.model_validate({"arrivals": given_arrivals, "mix": [GET] if mix is None else mix, **(more or {})})


def why(error: pytest.ExceptionInfo[ValidationError]) -> str:
    return str(error.value.errors()[0]["msg"])


def test_what_is_left_out_has_a_default() -> None:
    spec = flow()

    assert spec.arrivals is not None
    assert ("poisson", 16, None, 16) == (
        spec.arrivals.process,
        spec.arrivals.connections,
        spec.arrivals.max_in_flight,
        spec.target(7000),
    )
    assert ["get-pods"] == spec.titles


def test_a_flow_reads_back_as_it_was_written() -> None:
    for spec in (
        flow(),
        flow(process="closed", connections=2),
        flow(ramp={"from": "1/s", "to": "10/s", "over": "5s"}, process="even", keepAlive=False),
        flow([{"put": "configmaps", "size": "4KB", "encoding": "protobuf"}], steps=[{"rate": "1/s", "for": "2s"}]),
    ):
        assert spec == FlowSpec.model_validate(spec.model_dump(mode="json", by_alias=True, exclude_none=True))


@pytest.mark.parametrize(
    ("arrivals", "said"),
    [
        ({"process": "even"}, "exactly one of rate, ramp, steps"),
        ({"rate": "1/s", "steps": [{"rate": "1/s", "for": "1s"}]}, "exactly one of rate, ramp, steps"),
        ({"rate": "1/s", "process": "closed"}, "a closed loop has no rate"),
        ({"process": "closed", "maxInFlight": 9}, "leave out maxInFlight"),
        ({"rate": "0/s"}, "more than 0"),
        ({"ramp": {"from": "1/s", "to": "0/s", "over": "1s"}}, "more than 0"),
    ],
)
def test_a_rate_that_cannot_be_is_refused(arrivals: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        flow(**arrivals)

    assert said in why(error)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"get": "pods", "list": "pods"}, "exactly one of get, list"),
        ({"get": "nodes"}, "needs a name: objects of its own can be configmaps"),
        ({"put": "leases"}, "use patch"),
        ({"put": "configmaps", "name": "x"}, "name goes with get or patch"),
        ({"list": "pods", "name": "x"}, "name goes with get or patch"),
        ({"get": "/readyz", "namespace": "x"}, "a path has its own"),
        ({"patch": "/readyz"}, "a path goes with get or list"),
        ({"patch": "pods", "name": "x", "patchType": "apply"}, "leave out name"),
        ({"get": "pods", "name": "x", "limit": 5}, "limit goes with list"),
        ({"delete": "configmaps", "fieldSelector": "a=b"}, "a selector goes with list"),
        ({"delete": "configmaps", "consistency": "quorum"}, "consistency goes with get"),
        ({"create": "leases", "encoding": "protobuf"}, "encoding protobuf goes with"),
        ({"list": "pods", "size": "1KB"}, "size goes with objects"),
        ({"get": "pods", "name": "x-[9-1]"}, "the lower one first"),
        ({"get": "pods", "name": "x-[01-100]"}, "the same number of digits"),
        ({"get": "pods", "name": "X"}, "is no Kubernetes name"),
        ({"get": "a/b/c/d"}, "is not a resource"),
        ({**GET, "weight": 0}, "greater than 0"),
    ],
)
def test_a_request_that_cannot_be_is_refused(request_: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        RequestSpec.model_validate(request_)

    assert said in why(error)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"agents": {"count": 1, "rollout": "1/s"}},
            "exactly one of agents, watchers, arrivals, churn, etcd, locustfile",
        ),
        ({"steps": [{"get": "/readyz"}]}, "steps, limit and onError go with agents"),
        ({"onError": {"first": "1s"}}, "steps, limit and onError go with agents"),
        ({"mix": []}, "a mix of at least one request"),
        ({"mix": [GET, GET]}, "requests must differ in name"),
        ({"daemonSet": "a/b"}, "daemonSet goes with agents"),
    ],
)
def test_parts_of_other_flows_are_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        flow(more=more)

    assert said in why(error)


@given(st.integers(0, 10**6), st.integers(0, 300))
def test_a_range_names_all_its_numbers(first: int, more: int) -> None:
    names = parse_name_range(f"gpu-[{first:07}-{first + more:07}].x")

    assert more + 1 == names.count
    assert [f"gpu-{first:07}.x", f"gpu-{first + more:07}.x"] == [names.name(0), names.name(more)]


PROFILE = """\
name: gets
summary: A GET at a rate.
parameters: {rate: 50/s}
flows:
  gets:
    arrivals: {rate: "{rate}"}
    mix:
      - {get: pods, namespace: default, name: "p-[0-9]", label: pods}
      - {list: nodes}
phases:
  - {name: only, start: [gets], for: 5s}
objectives:
  - flow.gets.start_lag_p99 < 10ms
  - flow.gets.pods.service_p99 < 1s
  - flow.gets.dropped == 0
"""


def test_a_profile_of_arrivals_loads_and_takes_a_parameter_and_a_place_by_label(tmp_path: Path) -> None:
    loaded = load(tmp_path, PROFILE, "rate=90/s", "flows.gets.mix.pods.weight=4")

    spec = loaded.profile.flows["gets"]
    assert spec.arrivals is not None
    assert (90.0, [4.0, 1.0]) == (spec.arrivals.rate_per_s, [request.weight for request in spec.mix])


def arrive(**more: Any) -> dict[str, Any]:
    return {"arrivals": {"rate": "1/s"}, "mix": [{"list": "nodes"}], **more}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            objective("flow.agents.dropped == 0"),
            "dropped is measured for arrivals, and flow 'agents' has none",
        ),
        (objective("flow.agents.service_p99 < 1s"), "service_p99 is measured for arrivals"),
        (sets("flows", "singles", to=arrive(identity="node")), "arrivals are no nodes"),
    ],
)
def test_measures_and_identities_that_arrivals_lack_are_refused(change: Any, said: str) -> None:
    assert said in "\n".join(found(change))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("flow.singles.list-nodes.dropped == 0", "measured for a whole flow"),
        ("flow.singles.other.p99 < 1s", "step of flow 'singles' called 'other'"),
        ("flow.singles.list-nodes.service_p50 < 1s", ""),
        ("flow.singles.achieved > 99%", ""),
    ],
)
def test_objectives_of_arrivals_are_checked(text: str, said: str) -> None:
    def change(data: dict[str, Any]) -> None:
        sets("flows", "singles", to=arrive())(data)
        objective(text)(data)

    assert said in "\n".join(found(change))
    assert bool(said) == bool(found(change))


def test_a_closed_loop_has_no_pacer_to_measure() -> None:
    def change(data: dict[str, Any]) -> None:
        sets("flows", "singles", to=arrive(arrivals={"process": "closed"}))(data)
        objective("flow.singles.start_lag_p99 < 1s")(data)

    assert ["objectives.0.check: start_lag_p99 goes with a rate, and flow 'singles' is a closed loop"] == found(change)


@pytest.mark.parametrize(
    ("request_", "writes"),
    [
        ({"put": "configmaps"}, True),
        ({"create": "secrets"}, True),
        ({"delete": "configmaps"}, True),
        ({"patch": "configmaps"}, True),
        ({"get": "configmaps"}, False),
        ({"list": "pods"}, False),
    ],
)
def test_a_service_account_that_would_write_is_refused_before_the_run(request_: dict[str, Any], writes: bool) -> None:
    def change(data: dict[str, Any]) -> None:
        sets(
            "flows", "gets", to={"identity": "serviceAccount:a/b", "arrivals": {"rate": "1/s"}, "mix": [GET, request_]}
        )(data)
        data["phases"][0].setdefault("start", []).append("gets")

    said = f"a {next(iter(request_))} writes, and ServiceAccounts may only read"
    assert writes == (said in "\n".join(found(change)))
