from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.core.apicalls import SCOPES, ApiCall, call_of_path

_WORDS = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)


@given(
    st.builds(
        ApiCall,
        st.sampled_from(["GET", "LIST", "POST", "APPLY"]),
        st.just("") | st.lists(_WORDS, min_size=1, max_size=3).map(".".join),
        _WORDS,
        st.just("") | _WORDS,
        st.sampled_from(SCOPES),
    )
)
def test_the_text_of_a_call_says_all_of_it(call: ApiCall) -> None:
    assert ApiCall.parse(str(call)) == call


@pytest.mark.parametrize("text", ["", "LIST pods", "LIST pods somewhere", "LIST  cluster", " pods cluster", "a b c d"])
def test_another_text_is_no_call(text: str) -> None:
    with pytest.raises(ValueError):
        ApiCall.parse(text)


@pytest.mark.parametrize(
    ("path", "call"),
    [
        ("/api/v1/pods?resourceVersion=0", "LIST pods cluster"),
        ("/api/v1/nodes/n-1", "GET nodes resource"),
        ("/api/v1/nodes/{node}/status", "GET nodes/status resource"),
        ("/api/v1/namespaces", "LIST namespaces cluster"),
        ("/api/v1/namespaces/kube-system", "GET namespaces resource"),
        ("/api/v1/namespaces/kube-system/status", "GET namespaces/status resource"),
        ("/api/v1/namespaces/kube-system/pods", "LIST pods namespace"),
        ("/apis/apps/v1/namespaces/a/deployments/b/scale", "GET deployments.apps/scale resource"),
        ("/apis/apps/v1/daemonsets", "LIST daemonsets.apps cluster"),
        ("/healthz", None),
        ("/api/v1", None),
        ("/apis", None),
        ("/apis/apps/v1/daemonsets/a/b/c", None),
    ],
)
def test_a_path_is_the_call_that_the_api_server_counts_it_as(path: str, call: str | None) -> None:
    found = call_of_path(path)

    assert (None if found is None else str(found)) == call
