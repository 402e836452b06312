"""The schema of an ``arrivals`` flow: a rate in time, and the mix of requests that arrive."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from scaletest.core.resources import parse_resource
from scaletest.profile.forms import (
    Form,
    KubeName,
    ObjectBytes,
    PositiveDurationS,
    StepLabel,
)
from scaletest.profile.model import Model, refuse
from scaletest.profile.rates import PacedSpec

__all__ = ["OWN_KINDS", "ArrivalsSpec", "NameRange", "RequestSpec", "parse_name_range"]

OWN_KINDS: Final = {
    "v1/configmaps": "ConfigMap",
    "v1/secrets": "Secret",
    "v1/pods": "Pod",
    "coordination.k8s.io/v1/leases": "Lease",
    "apps/v1/deployments": "Deployment",
    "scaletest.dev/v1/widgets": "Widget",
}
"""Resources of which a flow can make objects of its own, with their kinds."""

_PROTOBUF_WRITES = frozenset({"v1/configmaps", "v1/secrets"})
_PUT_WITHOUT_VERSION = frozenset({"v1/configmaps", "v1/secrets", "apps/v1/deployments"})
_SHORT_PUT = "configmaps, secrets or deployments"
_SHORT_OWN = "configmaps, secrets, pods, leases, deployments or scaletest.dev/v1/widgets"
_RANGE = re.compile(r"([^\[\]]*)(?:\[(\d{1,7})-(\d{1,7})\])?([^\[\]]*)", re.ASCII)
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)


class NameRange:
    """Names that differ in a number: ``gpu-[00000-06999]`` is gpu-00000 to gpu-06999."""

    __slots__ = ("count", "first", "prefix", "suffix", "width")

    def __init__(self, prefix: str, first: int, last: int, width: int, suffix: str) -> None:
        self.prefix = prefix
        self.first = first
        self.count = last - first + 1
        self.width = width
        self.suffix = suffix

    def name(self, index: int) -> str:
        """Return the name at an index from 0 to ``count`` - 1."""
        number = f"{self.first + index:0{self.width}d}" if self.width else ""
        return f"{self.prefix}{number}{self.suffix}"


def parse_name_range(text: str) -> NameRange:
    """Parse ``NAME`` or ``PREFIX[FIRST-LAST]SUFFIX``. Raises ValueError."""
    match = _RANGE.fullmatch(text)
    if match is None:
        msg = f"{text!r} is no name: write NAME or PREFIX[000-999]"
        raise ValueError(msg)
    prefix, first, last, suffix = match[1], match[2], match[3], match[4]
    if first is None:
        names = NameRange(prefix, 0, 0, 0, suffix)
    else:
        if len(first) != len(last) or int(first) > int(last):
            msg = f"{text!r}: both ends of a range have the same number of digits, the lower one first"
            raise ValueError(msg)
        names = NameRange(prefix, int(first), int(last), len(first), suffix)
    if not _NAME.fullmatch(names.name(0)):
        msg = f"{text!r} is no Kubernetes name: use lower-case letters, digits, hyphens and dots"
        raise ValueError(msg)
    return names


def _names(text: str) -> str:
    parse_name_range(text)
    return text


Names = Annotated[str, AfterValidator(_names), Form("name, or range of names (`gpu-[00000-06999]`)")]


class ArrivalsSpec(PacedSpec):
    """Requests that arrive on their own schedule, whether or not earlier ones were answered (an open model)."""

    connections: int = Field(
        16,
        ge=1,
        le=20_000,
        description="Connections, opened before the first arrival; an arrival may wait for a free one.",
    )
    processes: int = Field(1, ge=1, le=64, description="Processes that make the load, each with its share of it.")
    keep_alive: bool = Field(True, description="Whether connections are kept; if not, each request opens its own.")
    objects: int = Field(
        100,
        ge=1,
        le=100_000,
        description="Objects of its own, for each resource and namespace that the mix asks for without a name.",
    )

    @model_validator(mode="after")
    def _enough_for_all(self) -> Self:
        have = {"connections": self.connections, "maxInFlight": self.most_in_flight, "objects": self.objects}
        refuse(
            [
                (
                    count < self.processes,
                    f"each process has its share of {name}: {count} are fewer than {self.processes} processes",
                )
                for name, count in have.items()
            ]
        )
        return self


_VERBS = ("get", "list", "watchList", "create", "put", "patch", "delete")


class RequestSpec(Model):
    """A kind of request of the mix: exactly one verb, with a resource or (GET, LIST) a path.

    Without a ``name``, GET, PUT, PATCH and DELETE are about objects of the flow's own.
    """

    get: str | None = Field(None, description="Resource or `/path`.")
    list_: str | None = Field(None, alias="list", description="Resource or `/path`.")
    watch_list: str | None = Field(
        None, description="Resource: a watch that sends the state first, until its initial events end."
    )
    create: str | None = Field(None, description="Resource; when all `objects` are there, one is deleted instead.")
    put: str | None = Field(None, description="Resource.")
    patch: str | None = Field(None, description="Resource.")
    delete: str | None = Field(None, description="Resource; when none is there, one is created instead.")
    weight: float = Field(1.0, gt=0, le=1e6, description="Share in the mix, relative to the others.")
    label: StepLabel | None = Field(None, description="Name in reports; default: verb and resource.")
    namespace: KubeName | None = Field(
        None, description="Namespace; none: the whole cluster, or for objects of its own `default`."
    )
    name: Names | None = Field(None, description="Object that there is; of a range, one is drawn for each request.")
    subresource: Literal["status", "scale"] | None = Field(None, description="Part of the object (GET, PUT, PATCH).")
    patch_type: Literal["merge", "apply", "strategic"] | None = Field(
        None, description="How a PATCH is written; default `merge`. `apply` is server-side apply."
    )
    consistency: Literal["any", "quorum"] = Field(
        "any", description="`any`: `resourceVersion=0`, from the watch cache. `quorum`: none given, the newest."
    )
    field_selector: str | None = Field(None, description="Of a LIST: `spec.nodeName=gpu-00000`.")
    label_selector: str | None = Field(None, description="Of a LIST: `app in (dns, proxy)`.")
    limit: int | None = Field(None, ge=1, description="Page size of a LIST; each page is a request.")
    accept: Literal["json", "protobuf", "cbor"] = Field("json", description="Encoding asked for.")
    encoding: Literal["json", "protobuf"] = Field(
        "json", description="Encoding of what is written (protobuf: ConfigMaps and Secrets, create and PUT)."
    )
    gzip: bool = Field(False, description="Whether the client accepts gzip.")
    size_bytes: ObjectBytes | None = Field(
        None, alias="size", description="JSON size of an object of the flow's own, about. Default: 1KB."
    )
    timeout_s: PositiveDurationS = Field(60.0, alias="timeout", description="Client time-out, from the intended start.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [verb for verb in _VERBS if getattr(self, _field_of(verb)) is not None]
        if len(given) != 1:
            msg = f"a request has exactly one of {', '.join(_VERBS)}"
            raise ValueError(msg)
        refuse(self._misfits())
        if self.is_own and self.resource not in OWN_KINDS:
            msg = f"{self.verb} {self.target} needs a name: objects of its own can be {_SHORT_OWN}"
            raise ValueError(msg)
        return self

    def _misfits(self) -> list[tuple[bool, str]]:
        selects = self.field_selector is not None or self.label_selector is not None
        about_objects = self.verb in {"get", "put", "patch"}
        reads = self.verb in {"get", "list", "watchList"}
        return [
            (self.is_path and self.verb not in {"get", "list"}, "a path goes with get or list"),
            (
                self.is_path and (self.namespace is not None or self.name is not None or self.subresource is not None),
                "a path has its own namespace, name and subresource",
            ),
            (self.name is not None and self.verb not in {"get", "patch"}, "name goes with get or patch"),
            (self.subresource is not None and not about_objects, "subresource goes with get, put or patch"),
            (self.verb == "put" and self.subresource is not None, "write a subresource by patch"),
            # The others take no PUT without their resourceVersion, or (pods) none of their spec.
            (
                self.verb == "put" and self.resource not in _PUT_WITHOUT_VERSION,
                f"put goes with {_SHORT_PUT}; use patch",
            ),
            (self.patch_type is not None and self.verb != "patch", "patchType goes with patch"),
            (
                self.patch_type == "apply" and (self.name is not None or self.subresource is not None),
                "apply writes whole objects of its own: leave out name and subresource",
            ),
            (selects and self.verb not in {"list", "watchList"}, "a selector goes with list or watchList"),
            (self.limit is not None and self.verb != "list", "limit goes with list"),
            (self.consistency == "quorum" and not reads, "consistency goes with get, list or watchList"),
            (
                self.encoding == "protobuf"
                and (self.verb not in {"create", "put"} or self.resource not in _PROTOBUF_WRITES),
                "encoding protobuf goes with create or put of configmaps or secrets",
            ),
            (self.size_bytes is not None and not self.is_own, "size goes with objects of the flow's own"),
        ]

    @property
    def resource(self) -> str:
        """The resource with its group and version; a path as it is."""
        return self.target if self.is_path else str(parse_resource(self.target))

    @property
    def writes(self) -> bool:
        """Whether it changes objects."""
        return self.verb in {"create", "put", "patch", "delete"}

    @property
    def verb(self) -> str:
        """The verb as the profile writes it."""
        return next(verb for verb in _VERBS if getattr(self, _field_of(verb)) is not None)

    @property
    def target(self) -> str:
        """Resource or path."""
        value = getattr(self, _field_of(self.verb))
        assert isinstance(value, str)
        return value

    @property
    def is_path(self) -> bool:
        """Whether the target is a URL path and not a resource."""
        return self.target.startswith("/")

    @property
    def is_own(self) -> bool:
        """Whether the request is about objects of the flow's own."""
        if self.verb in {"create", "put", "delete"}:
            return True
        return self.verb in {"get", "patch"} and self.name is None and not self.is_path

    @property
    def title(self) -> str:
        """Name in journals and reports; letters, digits, - and _ only, so that objectives can name it."""
        parts = [self.verb.lower(), self.target.strip("/").split("/")[-1], self.subresource or ""]
        return self.label or re.sub(r"[^A-Za-z0-9_-]+", "-", "-".join(part for part in parts if part))


def _field_of(verb: str) -> str:
    return {"list": "list_", "watchList": "watch_list"}.get(verb, verb)
