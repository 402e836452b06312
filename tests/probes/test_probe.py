from __future__ import annotations

import asyncio

import pytest

from scaletest.core.apiclient import Answer, FakeApiClient
from scaletest.probes.probe import Observation, make_probe, probe_path
from scaletest.probes.readiness import TABLE_PATH, NodeCounts
from scaletest.profile.schema import ProbeSpec

TABLE = b'{"columnDefinitions":[{"name":"Status"}],"rows":[{"cells":["Ready"]},{"cells":["NotReady"]}]}'


def observe(spec: ProbeSpec, answer: Answer) -> tuple[Observation, str]:
    async def script(_: str) -> Answer:
        return answer

    client = FakeApiClient(script)
    return asyncio.run(make_probe(spec, client).observe()), client.paths[0]


def spec(**keys: object) -> ProbeSpec:
    return ProbeSpec.model_validate(keys)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"get": "apps/v1/daemonsets", "namespace": "telemetry"}, "/apis/apps/v1/namespaces/telemetry/daemonsets"),
        ({"get": "pods"}, "/api/v1/pods"),
        ({"get": "/readyz?verbose"}, "/readyz?verbose"),
    ],
)
def test_an_operator_asks_for_the_resource_of_the_profile(keys: dict[str, object], expected: str) -> None:
    assert expected == probe_path(spec(**keys))


def test_an_answer_becomes_the_fields_of_a_probe_record() -> None:
    observation, path = observe(spec(get="pods"), Answer("http_429", 0.0123456789, 429, "Too many requests", b"..."))

    expected = {"latency_s": 0.012346, "ok": False, "status": 429, "outcome": "http_429", "reason": "Too many requests"}
    assert expected == observation.fields("probe")
    assert path == "/api/v1/pods"


def test_counted_nodes_are_in_the_fields_of_a_node_record() -> None:
    observation, path = observe(spec(nodeReadiness=True), Answer("ok", 0.5, 200, None, TABLE))

    assert observation == Observation("ok", 0.5, 200, None, NodeCounts(1, 1))
    counted = {key: observation.fields("probe.nodes")[key] for key in ("ok", "ready", "not_ready", "total")}
    assert counted == {"ok": True, "ready": 1, "not_ready": 1, "total": 2}
    assert path == TABLE_PATH


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [(Answer("timeout", 20.0), "timeout"), (Answer("ok", 0.1, 200, None, b"{}"), "error")],
)
def test_nodes_that_could_not_be_counted_are_null(answer: Answer, outcome: str) -> None:
    observation, _ = observe(spec(nodeReadiness=True), answer)

    fields = observation.fields("probe.nodes")
    assert {fields[key] for key in ("ready", "not_ready", "total")} == {None}
    assert (fields["ok"], fields["outcome"]) == (False, outcome)
