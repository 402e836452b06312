from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.probes.readiness import NodeCounts, count_nodes

READY = st.sampled_from(["Ready", "Ready,SchedulingDisabled"])
NOT_READY = st.sampled_from(["NotReady", "NotReady,SchedulingDisabled", "Unknown", "Unknown,SchedulingDisabled", ""])


def table(states: list[str], *, columns: tuple[str, ...] = ("Name", "Status", "Roles", "Age")) -> dict[str, Any]:
    """A table as the API server sends it with includeObject=None."""
    at = columns.index("Status")
    rows = [
        {"cells": ["n" if column != at else state for column in range(len(columns))], "object": None}
        for state in states
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "columnDefinitions": [{"name": name, "type": "string"} for name in columns],
        "rows": rows,
    }


@given(ready=st.lists(READY), not_ready=st.lists(NOT_READY), columns=st.permutations(["Name", "Status", "Age"]))
def test_every_row_is_counted_by_its_status_wherever_the_column_is(
    ready: list[str], not_ready: list[str], columns: list[str]
) -> None:
    body = json.dumps(table(not_ready + ready, columns=tuple(columns))).encode()

    expected = NodeCounts(len(ready), len(not_ready))
    assert expected == count_nodes(body)
    assert expected.total == len(ready) + len(not_ready)


def test_a_table_without_rows_has_no_nodes() -> None:
    body = json.dumps({**table([]), "rows": None}).encode()

    assert count_nodes(body) == NodeCounts(0, 0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'{"kind":"NodeList","items":[]}',
        json.dumps(table(["Ready"])).encode()[:-20],
        b'{"columnDefinitions":[{"name":"Name"}],"rows":[]}',
        b'{"columnDefinitions":[{"name":"Name"},{"name":"Status"}],"rows":[{"cells":["a"]}]}',
        b'{"columnDefinitions":[{"name":"Status"}],"rows":[7]}',
        b"\xff\xfe\x00",
    ],
)
def test_anything_else_is_refused_with_a_reason(body: bytes) -> None:
    with pytest.raises(ValueError, match="not a table of nodes"):
        count_nodes(body)
