"""Making the other objects of a family from its sample: stamped into etcd, or created one by one through the API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from scaletest.core.errors import ClusterError
from scaletest.core.kubernetesapi import KubernetesApi
from scaletest.fleet.batching import Put, batches
from scaletest.fleet.concurrency import work_through
from scaletest.fleet.etcdstore import EtcdStore
from scaletest.fleet.family import SERVER_MADE, Family, Values
from scaletest.fleet.fields import Json, differences, expected_copy
from scaletest.fleet.sample import Sample, read_templates

__all__ = ["CONNECTIONS", "check_copy", "create_family", "stamp_family"]

CONNECTIONS: Final = 32
"""Requests at once through the API: 32 connections created 7,000 nodes in 17 s; the server has 200 seats for them."""


async def stamp_family(store: EtcdStore, sample: Sample, on_done: Callable[[int], None]) -> list[Values]:
    """Write all other objects of a family as copies of its sample; return the first's and the last's values.

    ``on_done`` gets the number of objects written by each transaction. Raises ClusterError when the sample cannot be
    copied, or a key exists already.
    """
    family = sample.family
    templates = await read_templates(store, sample)
    if family.expires:
        # Written again without its lease, so that it stays as long as its copies.
        await store.write(Put(family.main.key(sample.values).encode(), templates[0].raw))
    to_check: list[Values] = []

    def groups() -> Iterator[tuple[Put, ...]]:
        for number in range(1, family.count):
            values = family.values(number)
            if number in {1, family.count - 1}:
                to_check.append(values)
            yield tuple(
                Put(part.key(values).encode(), template.stamp(values))
                for part, template in zip(family.parts, templates, strict=True)
            )

    parts = len(family.parts)
    await store.create_all(batches(groups()), lambda puts: on_done(puts // parts))
    return to_check


async def check_copy(store: EtcdStore, api: KubernetesApi, sample: Sample, values: Values) -> None:
    """Compare a copy, as the API shows it, with its sample. Raises ClusterError naming the fields that differ."""
    for part, obj in zip(sample.family.parts, sample.objects, strict=True):
        # As it was when it was written: KWOK and the controller-manager may have gone on from there.
        revision = await store.created_at(part.key(values))
        copy = await api.get_at(part.collection(values), part.name_of(values), revision)
        expected = expected_copy(obj, part.fields, values)
        # The items of a list of a built-in kind do not say their kind.
        expected = {key: value for key, value in expected.items() if key in copy or key not in {"kind", "apiVersion"}}
        found = list(differences(expected, copy))
        if found:
            msg = f"{sample.family.title}: the copy {part.path(values)} differs from its sample: {'; '.join(found[:5])}"
            raise ClusterError(msg, hint="fleet.via: api creates every object through the API instead")


async def create_family(api: KubernetesApi, sample: Sample, on_done: Callable[[int], None]) -> None:
    """Create all other objects of a family through the API. Raises the first ClusterError."""

    async def create(number: int) -> None:
        await _create_one(api, sample, number)
        on_done(1)

    await work_through(iter(range(1, sample.family.count)), create, workers=CONNECTIONS)


async def _create_one(api: KubernetesApi, sample: Sample, number: int) -> None:
    family = sample.family
    values = {role: value for role, value in family.values(number).items() if role not in SERVER_MADE}
    for part, model in zip(family.parts, sample.objects, strict=True):
        if part.manifest is None:
            continue
        body = part.manifest(values, sample.padding)
        if part is family.main:
            _complete(family, body, model, values)
        created = await api.create(part.collection(values), body)
        values.setdefault("uid", created["metadata"]["uid"])


def _complete(family: Family, body: Json, model: Json, values: Values) -> None:
    if family.annotations:
        body["metadata"].setdefault("annotations", {}).update(family.annotations)
    if family.posts_status:
        status_fields = {path: role for path, role in family.main.fields.items() if path[0] == "status"}
        body["status"] = expected_copy({"metadata": {}, "status": model["status"]}, status_fields, values)["status"]
