from __future__ import annotations

from typing import Any

import pytest

from scaletest.load.requests import Step, compile_steps, request_bytes
from scaletest.profile.schema import StepSpec


def compiled(*steps: dict[str, object]) -> tuple[Step, ...]:
    return compile_steps([StepSpec.model_validate(step) for step in steps], flow="f")


@pytest.mark.parametrize(
    ("step", "version", "expected"),
    [
        ({"list": "pods"}, None, "/api/v1/pods?resourceVersion=0"),
        ({"list": "pods"}, "7", "/api/v1/pods?resourceVersion=0"),
        ({"list": "pods", "consistency": "quorum"}, "7", "/api/v1/pods"),
        ({"list": "pods", "consistency": "exact"}, "7", "/api/v1/pods?resourceVersion=7&resourceVersionMatch=Exact"),
        ({"list": "pods", "consistency": "exact"}, None, "/api/v1/pods?resourceVersion=0"),
        (
            {"list": "apps/v1/daemonsets", "namespace": "n"},
            None,
            "/apis/apps/v1/namespaces/n/daemonsets?resourceVersion=0",
        ),
        (
            {"list": "pods", "fieldSelector": "spec.nodeName={node},a!=b", "labelSelector": "k in (x,y)", "limit": 5},
            None,
            "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1%2Ca%21%3Db&labelSelector=k%20in%20%28x%2Cy%29&limit=5&resourceVersion=0",
        ),
        ({"get": "nodes", "name": "{node}"}, None, "/api/v1/nodes/node-1?resourceVersion=0"),
        ({"get": "nodes", "name": "{node}", "consistency": "quorum"}, None, "/api/v1/nodes/node-1"),
        ({"get": "/version"}, "7", "/version"),
        ({"get": "/stats/{node}?a=b c"}, None, "/stats/node-1?a=b%20c"),
        ({"list": "/api/v1/pods?limit=3"}, None, "/api/v1/pods?limit=3&resourceVersion=0"),
        (
            {"watchList": "pods"},
            "7",
            "/api/v1/pods?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersion=0&resourceVersionMatch=NotOlderThan&timeoutSeconds=300",
        ),
        ({"watch": "pods"}, "7", "/api/v1/pods?resourceVersion=7&watch=1&allowWatchBookmarks=true&timeoutSeconds=300"),
        ({"watch": "pods"}, None, "/api/v1/pods?resourceVersion=0&watch=1&allowWatchBookmarks=true&timeoutSeconds=300"),
        (
            {"watch": "pods", "consistency": "quorum"},
            None,
            "/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=300",
        ),
    ],
)
def test_paths_say_what_the_step_asks_for(step: Any, version: Any, expected: Any) -> None:
    watch_s = 300 if "watch" in step else 0

    assert expected == compiled(step)[0].path("node-1", version, watch_s=watch_s)


def test_a_continue_token_rules_a_version_out_and_is_quoted() -> None:
    step = compiled({"list": "pods", "limit": 2})[0]

    assert "/api/v1/pods?limit=2&continue=a%2Bb%3D%3D" == step.path("n", None, next_page="a+b==")
    assert "/api/v1/pods?resourceVersion=0" == step.path("n", None, whole=True)


def test_a_version_is_kept_only_when_a_later_request_needs_it() -> None:
    assert [False] == [step.keeps_version for step in compiled({"list": "pods"})]
    assert [True, False] == [step.keeps_version for step in compiled({"list": "pods"}, {"watch": "pods"})]
    assert [False, False] == [step.keeps_version for step in compiled({"list": "pods"}, {"watch": "nodes"})]
    exact = compiled({"list": "nodes"}, {"list": "pods", "consistency": "exact"})
    assert [True, True] == [step.keeps_version for step in exact]


def test_a_request_is_a_get_with_its_headers() -> None:
    step = compiled({"list": "pods", "accept": "protobuf", "gzip": True})[0]

    raw = request_bytes("/x", host="127.0.0.1:6443", headers=step.headers, authorization="Authorization: Bearer t\r\n")

    assert raw == (
        b"GET /x HTTP/1.1\r\nHost: 127.0.0.1:6443\r\nUser-Agent: scaletest/f\r\n"
        b"Accept: application/vnd.kubernetes.protobuf,application/json\r\nAccept-Encoding: gzip\r\n"
        b"Authorization: Bearer t\r\n\r\n"
    )
