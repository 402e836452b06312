from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from scaletest.core.resources import Resource, parse_resource


@pytest.mark.parametrize(
    ("text", "resource"),
    [
        ("pods", Resource("", "v1", "pods")),
        ("v1/pods", Resource("", "v1", "pods")),
        ("daemonsets", Resource("apps", "v1", "daemonsets")),
        ("apps/v1/daemonsets", Resource("apps", "v1", "daemonsets")),
        ("leases", Resource("coordination.k8s.io", "v1", "leases")),
        ("scaletest.dev/v1/widgets", Resource("scaletest.dev", "v1", "widgets")),
    ],
)
def test_resources_are_read_short_or_whole(text: str, resource: Resource) -> None:
    assert resource == parse_resource(text)


@pytest.mark.parametrize(
    ("resource", "namespace", "name", "path"),
    [
        (Resource("", "v1", "pods"), None, None, "/api/v1/pods"),
        (Resource("", "v1", "pods"), "a", None, "/api/v1/namespaces/a/pods"),
        (Resource("", "v1", "nodes"), None, "n", "/api/v1/nodes/n"),
        (Resource("apps", "v1", "daemonsets"), "a", "b", "/apis/apps/v1/namespaces/a/daemonsets/b"),
    ],
)
def test_a_resource_has_its_url_path(resource: Resource, namespace: str | None, name: str | None, path: str) -> None:
    assert path == resource.path(namespace=namespace, name=name)


@pytest.mark.parametrize(
    "text", ["", "podz", "/", "v1/", "/pods", "a//b", "a/b/c/d", "apps/v1/", "api/v1/nodes", "apis/apps/v1/x"]
)
def test_what_is_no_resource_says_the_accepted_forms(text: str) -> None:
    with pytest.raises(ValueError, match="write pods, v1/pods or apps/v1/daemonsets"):
        parse_resource(text)


WORD = st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789.-", min_size=1)


@given(WORD, WORD, WORD)
def test_what_a_resource_writes_reads_back(group: str, version: str, plural: str) -> None:
    assume(group not in {"api", "apis"})
    resource = Resource(group, version, plural)

    assert resource == parse_resource(str(resource))
