"""The schema of an ``etcd`` flow: key-value traffic straight to etcd."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from scaletest.profile.forms import PositiveDurationS, SizeBytes, StepLabel, size_between
from scaletest.profile.model import Model, refuse
from scaletest.profile.rates import PacedSpec

__all__ = [
    "PUT_TITLE",
    "REVOKE_TITLE",
    "SHORTEST_KEY_BYTES",
    "STAMP_BYTES",
    "WATCH_TITLE",
    "EtcdOperationSpec",
    "EtcdSpec",
]

SHORTEST_KEY_BYTES: Final = 64
"""``/scaletest/FLOW/PROCESS/NUMBER``, with a flow's name of 42 letters."""

STAMP_BYTES: Final = 14
"""Of every value: when it was written, for those who watch it."""

MOST_TXN_KEYS: Final = 128
"""etcd's limit on the operations of a transaction (``--max-txn-ops``)."""

WATCH_TITLE: Final = "watch"
"""Step of the standing watches."""

PUT_TITLE: Final = "put"
"""Step of the puts that a delete needs, where the operations have none."""

REVOKE_TITLE: Final = "revoke"
"""Step of the leases that are taken back."""

KeyBytes = Annotated[SizeBytes, size_between(SHORTEST_KEY_BYTES, 10**4)]
# etcd takes 1.5 MiB in a request (--max-request-bytes).
ValueBytes = Annotated[SizeBytes, size_between(STAMP_BYTES, 10**6)]

_OF_KEYS: Final = frozenset({"range", "txn"})


class EtcdOperationSpec(Model):
    """A kind of request to etcd."""

    op: Literal["put", "range", "txn", "delete", "lease"] = Field(
        description=(
            "`put` writes a key, `range` reads, `txn` compares and writes keys in one transaction, `delete` takes a key away (when "
            "none is there, one is put instead), `lease` grants a lease (when as many are held as there are keys, the oldest is revoked instead: step `revoke`)."
        ),
    )
    weight: float = Field(1.0, gt=0, le=1e6, description="Share in the mix, relative to the others.")
    label: StepLabel | None = Field(None, description="Name in reports; default: `op`.")
    keys: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="Keys that a `range` (at most `keys` of the flow) or a `txn` (at most 128) is about. Default: 1.",
    )
    consistency: Literal["linearizable", "serializable"] = Field(
        "linearizable",
        description="Of a `range`: `linearizable` asks etcd's leader for the newest, `serializable` is answered from what the member has.",
    )
    ttl_s: PositiveDurationS | None = Field(
        None, alias="ttl", description="Of a `lease`: its time to live, in whole seconds. Default: 60s."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse(self._misfits())
        return self

    def _misfits(self) -> list[tuple[bool, str]]:
        return [
            (self.keys is not None and self.op not in _OF_KEYS, "keys goes with range or txn"),
            (self.op == "txn" and (self.keys or 1) > MOST_TXN_KEYS, f"a transaction has at most {MOST_TXN_KEYS} keys"),
            (self.consistency != "linearizable" and self.op != "range", "consistency goes with range"),
            (self.ttl_s is not None and self.op != "lease", "ttl goes with lease"),
            (self.ttl_s is not None and self.ttl_s % 1 != 0, "etcd counts the time of a lease in whole seconds"),
        ]

    @property
    def title(self) -> str:
        """Name in journals and reports."""
        return self.label or self.op


class EtcdSpec(PacedSpec):
    """Key-value traffic straight to etcd, on its own schedule or in a closed loop. Keys are the flow's own, and go with it."""

    of_each: ClassVar[str] = "of each client"

    operations: list[EtcdOperationSpec] = Field(min_length=1, description="What is asked, by weight.")
    clients: int | None = Field(
        None, ge=1, le=100_000, description="Of a closed loop: requests in flight. Default: 16."
    )
    connections: int | None = Field(
        None, ge=1, le=1_000, description="HTTP/2 connections that all share. Default: one for each process."
    )
    processes: int = Field(1, ge=1, le=64, description="Processes that make the load, each with its share of it.")
    keys: int = Field(1_000, ge=1, le=100_000, description="Keys of the flow; they are there before the first arrival.")
    key_bytes: KeyBytes = Field(SHORTEST_KEY_BYTES, alias="keySize", description="Length of a key.")
    value_bytes: ValueBytes = Field(256, alias="valueSize", description="Size of a value.")
    watches: int = Field(
        0,
        ge=0,
        le=10_000,
        description="Standing watches, each on one of the keys: their events count as the step `watch`.",
    )
    timeout_s: PositiveDurationS = Field(10.0, alias="timeout", description="Client time-out, from the intended start.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse(self._misfits())
        return self

    def _misfits(self) -> list[tuple[bool, str]]:
        titles = self.titles
        widest = max((operation.keys or 1 for operation in self.operations), default=1)
        return [
            (self.clients is not None and not self.is_closed, "clients goes with process: closed"),
            (self.is_closed and self.in_flight < self.processes, "each process needs at least one client"),
            (self.all_connections < self.processes, "each process needs a connection of its own"),
            (
                self.keys < self.processes * widest,
                "each process has its share of the keys: they are fewer than an operation asks for",
            ),
            (len(set(titles)) != len(titles), f"operations must differ in name: give a label ({', '.join(titles)})"),
        ]

    @property
    def in_flight(self) -> int:
        """Clients of a closed loop."""
        return 16 if self.clients is None else self.clients

    @property
    def all_connections(self) -> int:
        """Connections of all processes."""
        return self.processes if self.connections is None else self.connections

    @property
    def titles(self) -> list[str]:
        """Names of the steps: of the operations, of what they need besides, and of the watches."""
        ops = {item.op for item in self.operations}
        needed = [PUT_TITLE] if "delete" in ops and "put" not in ops else []
        needed += [REVOKE_TITLE] if "lease" in ops else []
        return [item.title for item in self.operations] + needed + ([WATCH_TITLE] if self.watches else [])
