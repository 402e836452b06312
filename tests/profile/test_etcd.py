"""The ``etcd`` flow as a profile writes it: what is possible, and what is refused with the reason."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from scaletest.profile.schema import FlowSpec

PUT: dict[str, Any] = {"op": "put"}


def flow(*operations: dict[str, Any], more: dict[str, Any] | None = None, **etcd: Any) -> FlowSpec:
    rate = {} if {"process", "ramp", "steps"} & etcd.keys() else {"rate": "5/s"}
    return FlowSpec.model_validate({"etcd": rate | etcd | {"operations": list(operations) or [PUT]}, **(more or {})})


def test_what_is_left_out_has_a_default() -> None:
    spec = flow()

    assert spec.etcd is not None
    assert (1, 1, 1_000, 64, 256) == (
        spec.etcd.processes, spec.etcd.all_connections, spec.etcd.keys, spec.etcd.key_bytes, spec.etcd.value_bytes,
    )  # fmt: skip
    assert (["put"], "connections", 1) == (spec.titles, spec.unit, spec.target(7_000))


def test_a_flow_reads_back_as_it_was_written() -> None:
    for spec in (
        flow(),
        flow(process="closed", clients=32, processes=2),
        flow(ramp={"from": "1/s", "to": "10/s", "over": "5s"}, process="even", valueSize="4KB", timeout="2s"),
        flow(PUT, {"op": "range", "keys": 10, "consistency": "serializable"}, {"op": "lease", "ttl": "30s"}, watches=3),
    ):
        assert spec == FlowSpec.model_validate(spec.model_dump(mode="json", by_alias=True, exclude_none=True))


def test_steps_are_what_is_asked_and_what_that_needs() -> None:
    assert ["take", "put", "watch"] == flow({"op": "delete", "label": "take"}, watches=1).titles
    assert ["delete", "write"] == flow({"op": "delete"}, {"op": "put", "label": "write"}).titles
    assert ["lease", "revoke"] == flow({"op": "lease"}).titles


@pytest.mark.parametrize(
    ("operations", "etcd", "said"),
    [
        ([PUT], {"process": "even"}, "exactly one of rate, ramp, steps"),
        ([PUT], {"process": "closed", "maxInFlight": 9}, "one request in flight of each client"),
        ([PUT], {"clients": 4}, "clients goes with process: closed"),
        ([PUT], {"process": "closed", "clients": 1, "processes": 2}, "at least one client"),
        ([PUT], {"connections": 1, "processes": 2}, "a connection of its own"),
        ([{"op": "range", "keys": 501}], {"processes": 2}, "its share of the keys"),
        ([{"op": "txn", "keys": 129}], {}, "at most 128 keys"),
        ([{"op": "put", "keys": 2}], {}, "keys goes with range or txn"),
        ([{"op": "put", "ttl": "5s"}], {}, "ttl goes with lease"),
        ([{"op": "lease", "ttl": "1500ms"}], {}, "whole seconds"),
        ([{"op": "txn", "consistency": "serializable"}], {}, "consistency goes with range"),
        ([PUT, PUT], {}, "give a label (put, put)"),
        ([{"op": "lease"}, {"op": "put", "label": "revoke"}], {}, "give a label"),
        ([PUT], {"keySize": "63B"}, "must be from 64B"),
        ([PUT], {"valueSize": "2MB"}, "must be from 14B to 1MB"),
        ([PUT], {"more": {"identity": "on-call"}}, "etcd knows no identities"),
        ([PUT], {"more": {"mix": [{"get": "/ok"}]}}, "mix goes with arrivals"),
        (
            [PUT],
            {"more": {"arrivals": {"rate": "1/s"}}},
            "exactly one of agents, watchers, arrivals, churn, etcd, locustfile",
        ),
    ],
)
def test_what_cannot_be_is_refused(operations: list[dict[str, Any]], etcd: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        flow(*operations, **etcd)

    assert said in str(error.value.errors()[0]["msg"])
