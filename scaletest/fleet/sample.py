"""The first object of a family, created the ordinary way and left to the cluster's controllers until they are done.

What is read then is what every copy will be: the API server has defaulted and admitted it, KWOK has played it, the
controller-manager has taken its taint off.
"""

from __future__ import annotations

import asyncio
import json
import random
import string
import time
from dataclasses import dataclass, replace
from typing import Final

from scaletest.core.errors import ClusterError
from scaletest.core.kubernetesapi import FIELD_MANAGER, ApiError, KubernetesApi
from scaletest.fleet.etcdstore import EtcdStore
from scaletest.fleet.family import POD, SERVER_MADE, Family, Part, Values
from scaletest.fleet.fields import Json, tokens_of
from scaletest.fleet.ready import TOUCH_AFTER_S, touch
from scaletest.fleet.stamping import StampError, Template, compile_template

__all__ = ["Sample", "json_bytes", "make_sample", "read_templates", "size_note"]

_SETTLE_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.02
_CONTROLLER_MANAGER: Final = "kube-controller-manager"


@dataclass(frozen=True, slots=True)
class Sample:
    """The objects of a family's number 0, one for each part, as the API returned them, and what they were made of."""

    family: Family
    values: Values
    objects: tuple[Json, ...]
    padding: str


async def make_sample(api: KubernetesApi, family: Family, rng: random.Random, *, padding: str | None = None) -> Sample:
    """Create number 0 of a family and wait until it is settled.

    Without a ``padding``, and with a size to reach, the padding is computed. Raises ClusterError when it cannot be
    created or does not settle.
    """
    if padding is not None or family.size_bytes is None:
        return await _create(api, family, padding or "")
    if family.padding_annotation is None:
        return await _create(api, family, _padding_for(family.size_bytes, await _rehearsed(api, family), rng))
    bare = await _create(api, family, "")
    padding = _padding_for(family.size_bytes, bare.objects[0], rng)
    patch = {"metadata": {"annotations": {family.padding_annotation: padding}}}
    padded = await api.merge(family.main.path(bare.values), patch, field_manager=FIELD_MANAGER)
    return replace(bare, objects=(padded, *bare.objects[1:]), padding=padding)


async def _rehearsed(api: KubernetesApi, family: Family) -> Json:
    """Return what the API server would store for number 0 without padding, and store nothing."""
    values, part = family.values(0), family.main
    assert part.manifest is not None
    obj = await api.create(part.collection(values), part.manifest(values, ""), dry_run=True)
    obj["metadata"]["resourceVersion"] = "12345"
    return obj


def _padding_for(size_bytes: int, bare: Json, rng: random.Random) -> str:
    missing_bytes = size_bytes - json_bytes(bare)
    return "".join(rng.choices(string.ascii_letters + string.digits, k=max(missing_bytes, 0)))


def json_bytes(obj: Json) -> int:
    """Size of an object as the API server sends it, without its last newline."""
    return len(json.dumps(obj, separators=(",", ":"), ensure_ascii=False).encode())


def size_note(sample: Sample) -> str | None:
    """Say so when an object is larger than was asked even without any padding."""
    family = sample.family
    actual_bytes = json_bytes(sample.objects[0])
    # Sizes are promised to 3 %.
    if family.size_bytes is None or actual_bytes <= 1.03 * family.size_bytes:
        return None
    return f"{family.size_key}: the {family.title} have {actual_bytes} B each; {family.size_bytes} B is less than that without any padding"


async def _create(api: KubernetesApi, family: Family, padding: str) -> Sample:
    values: dict[str, str] = {role: value for role, value in family.values(0).items() if role not in SERVER_MADE}
    objects: list[Json] = []
    for part in family.parts:
        if part.manifest is not None:
            await _create_part(api, family, part, part.manifest(values, padding), values)
        obj = await _settled(api, family, part, values)
        _learn(family, part, obj, values)
        objects.append(obj)
    objects[0] = await _annotated(api, family, objects[0], values)
    return Sample(family, values, tuple(objects), padding)


async def _create_part(api: KubernetesApi, family: Family, part: Part, manifest: Json, values: Values) -> None:
    try:
        await api.create(part.collection(values), manifest)
    except ApiError as error:
        if error.status != 409:
            raise
        msg = f"the cluster already has {part.path(values)}, which would be the first of the {family.title}"
        raise ClusterError(msg, hint="it holds a fleet already: seed a new cluster, or grow that fleet") from None


async def _settled(api: KubernetesApi, family: Family, part: Part, values: Values) -> Json:
    deadline_s = time.monotonic() + _SETTLE_TIMEOUT_S
    touch_at_s = time.monotonic() + TOUCH_AFTER_S
    path = part.path(values)
    while True:
        try:
            obj = await api.get(path)
            if part.settled(obj):
                return obj
        except ApiError as error:
            if error.status != 404 or part.manifest is not None:
                raise
        if time.monotonic() > deadline_s:
            msg = f"{family.title}: {path} did not become ready within {_SETTLE_TIMEOUT_S:g} s"
            raise ClusterError(msg, hint="are kube-controller-manager and the KWOK controller running?")
        if part.kind is POD and time.monotonic() > touch_at_s:
            await touch(api, path)
            touch_at_s = time.monotonic() + TOUCH_AFTER_S
        await asyncio.sleep(_POLL_S)


def _learn(family: Family, part: Part, obj: Json, values: dict[str, str]) -> None:
    """Take over the values that the server chose; all others must be as asked."""
    try:
        tokens = tokens_of(obj, part.fields)
    except (KeyError, ValueError) as error:
        msg = f"{family.title}: {part.path(values)} is not as expected: {error}"
        raise ClusterError(msg) from None
    for token in tokens:
        if values.setdefault(token.role, token.value) != token.value:
            msg = f"{family.title}: {part.path(values)} has the {token.role} {token.value}, not {values[token.role]}"
            raise ClusterError(msg)


async def _annotated(api: KubernetesApi, family: Family, obj: Json, values: Values) -> Json:
    current = obj["metadata"].get("annotations", {})
    if all(current.get(key) == value for key, value in family.annotations.items()):
        return obj
    patch = {"metadata": {"annotations": dict(family.annotations)}}
    return await api.merge(family.main.path(values), patch, field_manager=_CONTROLLER_MANAGER)


async def read_templates(store: EtcdStore, sample: Sample) -> tuple[Template, ...]:
    """Read the stored bytes of a sample's parts, in the very version that the API returned.

    Raises ClusterError when a token is not where it should be.
    """
    templates: list[Template] = []
    for part, obj in zip(sample.family.parts, sample.objects, strict=True):
        raw = await store.read(part.key(sample.values), int(obj["metadata"]["resourceVersion"]))
        try:
            templates.append(compile_template(raw, tokens_of(obj, part.fields)))
        except StampError as error:
            msg = f"{sample.family.title}: {part.path(sample.values)} cannot be copied: {error}"
            raise ClusterError(msg, hint="fleet.via: api creates every object through the API instead") from None
    return tuple(templates)
