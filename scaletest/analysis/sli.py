"""The official SLIs of API calls: which calls count, for what threshold, and by which statistic.

Definition: kubernetes/community, sig-scalability/slos/api_call_latency.md. Statistic and exclusions where that text leaves them open:
ClusterLoader2's APIResponsivenessPrometheus (kubernetes/perf-tests, clusterloader2/pkg/measurement/common/slos).

    SLI             calls                                             SLO, p99
    mutating        POST, PUT, PATCH (also apply), DELETE of one object   1 s
    read_resource   GET of one object                                 1 s
    read_namespace  LIST in one namespace                             30 s
    read_cluster    LIST of several namespaces, or of what has none   30 s

Each kind of call (verb, resource, subresource, scope) meets the threshold by itself. 30 s for a namespace is the official text of today:
it was 5 s, the bound by which ClusterLoader2 still counts "slow calls" of namespaced LISTs, without judging them.

Latency is from the request's arrival to the last byte of its answer, without webhooks and without the wait in queues of API Priority
and Fairness (apiserver_request_sli_duration_seconds). Requests that are rejected there are in no SLI.

Not counted: streams (WATCH, WATCH-LIST) and CONNECT; the subresources log, exec, portforward, attach, proxy; dry runs; what is about no
resource (/healthz, discovery, /metrics); the deletion of a collection, which is not of a single object; custom resources and
aggregated APIs; virtual resources, whose answer is computed and nothing stored (reviews of authentication and authorization,
componentstatuses).

Two forms:

    whole run   p99 of all calls of the run, or of a span: ClusterLoader2's ``useSimpleLatencyQuery``, for short runs.
    5 minutes   the official form, with ClusterLoader2's ``quantile_over_time(0.99, …)``: p99 over each window of the last five minutes, then
                the p99 of these over time. As there, windows that begin before the measurement does are left out.

The third official SLI, pod start-up latency (5 s), is not told by these metrics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scaletest.analysis.latency import LatencyFamily
from scaletest.analysis.series import Span, quantile_over_time
from scaletest.core.apicalls import ApiCall
from scaletest.profile.objectives import SLI_NAMES

__all__ = ["P99", "SLIS", "CallLatency", "Sli", "latencies", "sli_of", "violations"]

P99: Final = 0.99


@dataclass(frozen=True, slots=True)
class Sli:
    """An official SLI of API calls."""

    name: str
    threshold_s: float
    """SLO: at most, at p99."""


SLIS: Final = {
    name: Sli(name, threshold_s) for name, threshold_s in zip(SLI_NAMES, (1.0, 1.0, 30.0, 30.0), strict=True)
}

_MUTATING: Final = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE"})
_READ_ONLY: Final = frozenset({"GET", "LIST"})
_STREAMING: Final = frozenset({"log", "exec", "portforward", "attach", "proxy"})
"""ClusterLoader2's filter: ``subresource!~"log|exec|portforward|attach|proxy"``."""

_VIRTUAL_GROUPS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
_VIRTUAL: Final = frozenset({"componentstatuses"})

_BUILT_IN_GROUPS: Final = frozenset({
    "", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "autoscaling", "batch",
    "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "extensions",
    "flowcontrol.apiserver.k8s.io", "imagepolicy.k8s.io", "internal.apiserver.k8s.io", "lifecycle.k8s.io", "networking.k8s.io",
    "node.k8s.io", "policy", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
    "storagemigration.k8s.io",
})  # fmt: skip
"""Groups of k8s.io/api v0.37.2, and the two that kube-apiserver serves itself: all others are custom or aggregated. Their metrics
cannot be told from built-in ones by any label."""


def sli_of(call: ApiCall) -> Sli | None:
    """Return the SLI that a kind of call counts in; None for one that the official definition leaves out."""
    if call.subresource in _STREAMING or call.resource in _VIRTUAL:
        return None
    if call.group in _VIRTUAL_GROUPS or call.group not in _BUILT_IN_GROUPS:
        return None
    if call.verb in _MUTATING and call.scope == "resource":
        return SLIS["mutating"]
    return SLIS[f"read_{call.scope}"] if call.verb in _READ_ONLY else None


@dataclass(frozen=True, slots=True)
class CallLatency:
    """A quantile of one kind of call."""

    call: ApiCall
    value_s: float
    samples: int
    """Calls, or windows of five minutes."""

    @property
    def sli(self) -> Sli | None:
        """The SLI that the call counts in."""
        return sli_of(self.call)

    @property
    def breaks(self) -> bool:
        """Whether the value breaks the SLO."""
        return self.sli is not None and self.value_s > self.sli.threshold_s


def latencies(
    family: LatencyFamily, q: float, span: Span, *, windows_from_s: float | None = None
) -> dict[str, CallLatency]:
    """Return a quantile of every kind of call over a span, by its text form: the whole-run form.

    With ``windows_from_s`` the 5-minute form: of the windows that end within the span and begin at that time or later.
    """
    if windows_from_s is None:
        found = ((name, item.quantile_s(q), item.count) for name, item in family.within(span).items())
    else:
        windows = family.windows(q, span, windows_from_s)
        found = ((name, quantile_over_time(P99, values), len(values)) for name, values in windows.items())
    return {
        name: CallLatency(ApiCall.parse(name), value, samples)
        for name, value, samples in found
        if not math.isnan(value)
    }


def violations(calls: Mapping[str, CallLatency]) -> list[CallLatency]:
    """Return the kinds of call that break their SLO, by their p99."""
    return [item for item in calls.values() if item.breaks]
