from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.load.metadata import protobuf_field
from scaletest.load.operations import Call, Mix, Template
from scaletest.load.ownobjects import DIGIT, NAME, REVISION, OwnObjects, object_body, protobuf_body
from scaletest.profile.arrivals import OWN_KINDS
from scaletest.profile.schema import RequestSpec

HOST = "127.0.0.1:6443"


def mix_of(*specs: dict[str, Any], objects: int = 10, authorization: str = "") -> Mix:
    return Mix([RequestSpec.model_validate(spec) for spec in specs], "f", authorization, objects)


def filled(*specs: dict[str, Any]) -> Mix:
    """A mix whose objects are all there."""
    mix = mix_of(*specs)
    for create, count in mix.creations():
        for _ in range(count):
            create.ended(create.call(0.0, Random(1)), "201")
    return mix


def encoded(mix: Mix, seed: int = 1) -> tuple[str, dict[str, str], bytes]:
    """Request line, headers and body of the next call."""
    call = mix.draw(0.0, Random(seed))
    head, _, body = call.operation.encode(call, HOST).partition(b"\r\n\r\n")
    line, *headers = head.decode().split("\r\n")
    return line, dict(header.split(": ", 1) for header in headers), body


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ({"get": "/readyz"}, "GET /readyz"),
        ({"get": "pods", "name": "a", "namespace": "n"}, "GET /api/v1/namespaces/n/pods/a?resourceVersion=0"),
        (
            {"get": "apps/v1/deployments", "name": "a", "namespace": "n", "subresource": "scale", "consistency": "quorum"},
            "GET /apis/apps/v1/namespaces/n/deployments/a/scale",
        ),
        ({"list": "nodes"}, "GET /api/v1/nodes?resourceVersion=0"),
        ({"list": "pods", "consistency": "quorum", "limit": 500}, "GET /api/v1/pods?limit=500"),
        (
            {"list": "pods", "fieldSelector": "spec.nodeName=x", "labelSelector": "a in (b)"},
            "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dx&labelSelector=a%20in%20%28b%29&resourceVersion=0",
        ),
        ({"list": "/api/v1/pods?limit=1"}, "GET /api/v1/pods?limit=1"),
        ({"patch": "nodes", "name": "n", "subresource": "status"}, "PATCH /api/v1/nodes/n/status"),
    ],
)  # fmt: skip
def test_a_read_or_patch_is_written_as_the_api_wants_it(spec: dict[str, Any], line: str) -> None:
    assert f"{line} HTTP/1.1" == encoded(mix_of(spec))[0]


def test_encodings_gzip_and_authorization_are_headers() -> None:
    mix = mix_of({"list": "pods", "accept": "protobuf", "gzip": True}, authorization="Authorization: Bearer t\r\n")
    headers = encoded(mix)[1]

    assert "application/vnd.kubernetes.protobuf,application/json" == headers["Accept"]
    assert "gzip" == headers["Accept-Encoding"]
    assert "Bearer t" == headers["Authorization"]
    assert "scaletest/f" == headers["User-Agent"]
    assert HOST == headers["Host"]


def test_the_length_of_a_body_is_that_of_its_header() -> None:
    for spec in (
        {"create": "configmaps"},
        {"put": "secrets", "size": "5KB"},
        {"patch": "leases"},
        {"patch": "deployments", "subresource": "scale"},
        {"patch": "pods", "patchType": "apply"},
        {"put": "configmaps", "encoding": "protobuf"},
    ):
        _, headers, body = encoded(filled({**spec, "label": "it"}))
        if "create" not in spec:
            assert len(body) == int(headers["Content-Length"]), spec
            assert b"~" not in body, spec


def test_a_scale_is_a_number_that_changes() -> None:
    mix = filled({"patch": "deployments", "subresource": "scale"})

    assert [1, 2, 3] == [json.loads(encoded(mix)[2])["spec"]["replicas"] for _ in range(3)]


@pytest.mark.parametrize("resource", OWN_KINDS)
@pytest.mark.parametrize("size", [None, 10, 3_000])
def test_an_object_has_about_the_size_asked_for(resource: str, size: int | None) -> None:
    body = object_body(resource, "flow", size)
    least = len(object_body(resource, "flow", 1))

    assert abs(len(body) - max(size or 1_000, least)) < 40
    assert OWN_KINDS[resource] == json.loads(body)["kind"]


@pytest.mark.parametrize(("resource", "kind"), [("v1/configmaps", b"ConfigMap"), ("v1/secrets", b"Secret")])
def test_protobuf_holds_the_same(resource: str, kind: bytes) -> None:
    body = protobuf_body(resource, "flow", 2_000)
    unknown = body.removeprefix(b"k8s\x00")

    assert 1_990 < len(body) < 2_010
    assert kind == protobuf_field(unknown, 1, 2)
    assert f"scaletest-flow-{NAME}".encode() == protobuf_field(unknown, 2, 1, 1)
    assert b"revision" == protobuf_field(unknown, 2, 2, 1)
    assert REVISION.encode() == protobuf_field(unknown, 2, 2, 2)


def test_marks_are_as_long_as_what_replaces_them() -> None:
    template = Template(f"{NAME}|{REVISION}|{DIGIT}|".encode())

    assert b"000042|000000000123|      3|" == template.fill(b"000042", 123, 3)


@given(st.lists(st.sampled_from(["get", "create", "delete", "patch"]), max_size=80), st.randoms())
def test_at_most_so_many_objects_are_ever_there(verbs: list[str], random: Random) -> None:
    mix = mix_of(*({verb: "configmaps", "label": verb} for verb in ("get", "create", "delete", "patch")), objects=5)
    by_verb = {operation.name: operation for operation in mix._operations}
    there: set[int] = set()
    in_flight: list[Call] = []
    for verb in verbs:
        call = by_verb[verb].call(0.0, random)
        in_flight.append(call)
        if len(in_flight) > random.randrange(4):
            ended = in_flight.pop(random.randrange(len(in_flight)))
            ended.operation.ended(ended, answer(ended, there))
        assert len(there) <= 5
    for call in in_flight:
        call.operation.ended(call, answer(call, there))
    objects = by_verb["get"].objects
    assert objects is not None
    assert len(there) == objects.present


def answer(call: Call, there: set[int]) -> str:
    """What an API server answers, which holds these objects."""
    match call.operation.spec.verb, call.index in there:
        case "create", exists:
            there.add(call.index)
            return "409" if exists else "201"
        case "delete", exists:
            there.discard(call.index)
            return "200" if exists else "404"
        case _, exists:
            return "200" if exists else "404"


def test_an_object_that_turns_out_missing_is_created_again() -> None:
    objects = OwnObjects(2)
    for _ in range(2):
        index = objects.take_absent()
        assert index is not None
        objects.put_back(index, present=True)

    objects.is_missing(1)

    assert 1 == objects.present
    assert 1 == objects.take_absent()


def test_a_failed_create_leaves_its_object_absent() -> None:
    mix = mix_of({"create": "configmaps"}, objects=1)
    call = mix.draw(0.0, Random(1))
    call.operation.ended(call, "503")

    assert "create-configmaps" == mix.draw(0.0, Random(1)).operation.name


def test_all_objects_are_removed_by_their_label() -> None:
    mix = mix_of({"put": "configmaps", "label": "a"}, {"patch": "leases", "namespace": "n"})

    lines = [operation.encode(Call(operation, 0.0), HOST).split(b" HTTP")[0].decode() for operation in mix.removals()]

    assert [
        "DELETE /api/v1/namespaces/default/configmaps?labelSelector=scaletest.dev%2Fflow%3Df",
        "DELETE /apis/coordination.k8s.io/v1/namespaces/n/leases?labelSelector=scaletest.dev%2Fflow%3Df",
    ] == lines
