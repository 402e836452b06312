"""Which kind of API call each step of a profile's flows makes, so that clients' latencies stand beside the server's.

A LIST in pages is one step and several calls; a request of the mix that makes or removes objects of the flow's own in place of another
is counted by its own name, and has no step in the profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from scaletest.core.apicalls import ApiCall, call_of_path
from scaletest.core.resources import parse_resource
from scaletest.profile.arrivals import RequestSpec
from scaletest.profile.schema import FlowSpec, StepSpec

__all__ = ["client_steps"]

_METHODS: Final = {"get": "GET", "create": "POST", "put": "PUT", "patch": "PATCH", "delete": "DELETE"}
"""Verbs about one object."""


def client_steps(profile: Mapping[str, Any]) -> dict[str, list[tuple[str, str]]]:
    """Return the (flow, step) pairs of a resolved profile by the kind of call that they make.

    A flow that this version does not understand has none, nor have a locustfile and watches.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    flows = profile.get("flows")
    for name, data in flows.items() if isinstance(flows, Mapping) else ():
        try:
            spec = FlowSpec.model_validate(data)
        except ValidationError:
            continue
        for step, call in _calls(spec):
            if call is not None:
                found.setdefault(str(call), []).append((str(name), step))
    return found


def _calls(spec: FlowSpec) -> Iterator[tuple[str, ApiCall | None]]:
    for step in spec.steps:
        yield step.title, _of_step(step)
    for request in spec.mix:
        yield request.title, _of_request(request)


def _of_step(step: StepSpec) -> ApiCall | None:
    if step.verb == "watch":
        return None
    return call_of_path(step.target) if step.is_path else _call(step.verb, step.target, step.namespace)


def _of_request(request: RequestSpec) -> ApiCall | None:
    if request.is_path:
        return call_of_path(request.target)
    verb = "apply" if request.patch_type == "apply" else request.verb
    return _call(verb, request.target, request.namespace, request.subresource or "")


def _call(verb: str, target: str, namespace: str | None, subresource: str = "") -> ApiCall:
    resource = parse_resource(target)
    if verb in {"list", "watchList"}:
        return ApiCall(verb.upper(), resource.group, resource.plural, "", "namespace" if namespace else "cluster")
    return ApiCall(_METHODS.get(verb, verb.upper()), resource.group, resource.plural, subresource, "resource")
