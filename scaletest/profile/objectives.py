"""Objectives and conditions: ``probe.operator[admin].p99 < 1s``.

    objective  = subject SP operator SP quantity
    subject    = scope "." measure
    scope      = "flow" "." name ["." step] | "probe" "." name ["[" identity "]"]
               | "component" "." name | "generator" | "host" | "apf" "." level | "etcd" | "search"
               | "sli" ["." sli ["." resource]] ["[5m]"]
    operator   = "<" | "<=" | ">" | ">=" | "==" | "!="
    quantity   = number with the unit of the measure: 1s, 1%, 2GiB, 80/s, 50

Parsing is here, evaluation in ``scaletest.analysis``. An unknown scope, measure or a wrong unit is
an error when the profile is read, not a surprise after the run.
"""

from __future__ import annotations

import enum
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from scaletest.core import units
from scaletest.profile.places import nearest

__all__ = [
    "MEANINGS",
    "MEASURES",
    "SLI_NAMES",
    "SLI_WINDOW",
    "SLI_WINDOW_S",
    "Dimension",
    "Objective",
    "Subject",
    "parse_objective",
]

_COUNT = re.compile(r"[0-9][0-9_]{0,17}(\.[0-9]{1,17})?")


class Dimension(enum.Enum):
    """What a measure is measured in; decides how its threshold is written."""

    DURATION = "a duration (500ms, 1s)"
    SHARE = "a share (1%)"
    BYTES = "a size (2GiB)"
    RATE = "a rate (80/s)"
    COUNT = "a number (50)"

    def parse(self, text: str) -> float:
        """Parse a threshold in base units: seconds, fraction, bytes, per second, count."""
        match self:
            case Dimension.DURATION:
                return units.parse_duration_s(text)
            case Dimension.SHARE:
                return units.parse_share(text)
            case Dimension.BYTES:
                return float(units.parse_bytes(text))
            case Dimension.RATE:
                return units.parse_rate_per_s(text)
            case Dimension.COUNT:
                if text.startswith("-") and _COUNT.fullmatch(text[1:]):
                    msg = f"{text} is too small: at least 0"
                    raise ValueError(msg)
                if not _COUNT.fullmatch(text):
                    msg = f"{text!r} is not a number: write 50, 20_000 or 0.5"
                    raise ValueError(msg)
                return float(text.replace("_", ""))

    def format(self, value: float) -> str:
        """Format a value of this dimension for people."""
        match self:
            case Dimension.DURATION:
                return units.format_duration(value)
            case Dimension.SHARE:
                return units.format_share(value)
            case Dimension.BYTES:
                return units.format_bytes(value)
            case Dimension.RATE:
                return f"{units.format_count(value)}/s"
            case Dimension.COUNT:
                return units.format_count(value)


_QUANTILES: Final = dict.fromkeys(("p50", "p90", "p95", "p99", "p999", "max", "mean"), Dimension.DURATION)

MEASURES: Final[dict[str, dict[str, Dimension]]] = {
    "flow": {
        **_QUANTILES,
        "error_rate": Dimension.SHARE,
        "rate": Dimension.RATE,
        "requests": Dimension.COUNT,
        "errors": Dimension.COUNT,
        "bytes": Dimension.BYTES,
        "started": Dimension.COUNT,
        "connected": Dimension.COUNT,
        "most_started": Dimension.COUNT,
        "service_p50": Dimension.DURATION,
        "service_p95": Dimension.DURATION,
        "service_p99": Dimension.DURATION,
        "event_p50": Dimension.DURATION,
        "event_p99": Dimension.DURATION,
        "event_max": Dimension.DURATION,
        "events": Dimension.COUNT,
        "reconnects": Dimension.COUNT,
        "ended_early": Dimension.COUNT,
        "pod_startup_p50": Dimension.DURATION,
        "pod_startup_p99": Dimension.DURATION,
        "pod_scheduling_p99": Dimension.DURATION,
        "pods_moved": Dimension.RATE,
        "start_lag_p99": Dimension.DURATION,
        "dropped": Dimension.COUNT,
        "achieved": Dimension.SHARE,
    },
    "probe": {
        **_QUANTILES,
        "success_rate": Dimension.SHARE,
        "locked_out": Dimension.DURATION,
        "recovered": Dimension.DURATION,
        "observations": Dimension.COUNT,
        "ready": Dimension.COUNT,
        "not_ready": Dimension.COUNT,
    },
    "component": {
        "memory": Dimension.BYTES,
        "memory_share": Dimension.SHARE,
        "cpu": Dimension.COUNT,
        "restarts": Dimension.COUNT,
        "oom_kills": Dimension.COUNT,
    },
    "generator": {
        "lag_p99": Dimension.DURATION,
        "cpu": Dimension.COUNT,
        "memory": Dimension.BYTES,
        "unread_share": Dimension.SHARE,
    },
    "host": {"available_memory": Dimension.BYTES, "cpu_idle": Dimension.SHARE},
    "sli": {
        "slo_violations": Dimension.COUNT,
        "p50": Dimension.DURATION,
        "p90": Dimension.DURATION,
        "p99": Dimension.DURATION,
        "server_p50": Dimension.DURATION,
        "server_p90": Dimension.DURATION,
        "server_p99": Dimension.DURATION,
    },
    "apf": {
        "rejected": Dimension.COUNT,
        "queued": Dimension.COUNT,
        "seats": Dimension.COUNT,
        "wait_p99": Dimension.DURATION,
    },
    "etcd": {"fsync_p99": Dimension.DURATION, "commit_p99": Dimension.DURATION, "db_size": Dimension.BYTES},
    "search": {
        "capacity": Dimension.COUNT,
        "fails_at": Dimension.COUNT,
        "width": Dimension.SHARE,
        "recovery": Dimension.DURATION,
    },
}
"""Measures by scope."""

MEANINGS: Final[dict[str, dict[str, str]]] = {
    "flow": {
        "p50": "latency of 2xx answers, from the start of a request (of arrivals: from when it was due) to the last byte of its body",
        "error_rate": "share of requests without a 2xx answer (of etcd: without OK)",
        "rate": "requests per second of the time that the flow ran",
        "requests": "requests that ended",
        "errors": "requests that ended without a 2xx answer",
        "bytes": "bytes of bodies received",
        "started": "agents or watches started and not stopped since, or pods of a churn that are Ready (latest)",
        "connected": "agents that hold a connection, watches that are open, or connections of arrivals, churn and etcd (latest)",
        "most_started": "largest number of agents or watches, or of Ready pods of a churn, at one time",
        "service_p50": "arrivals, churn and etcd only: time of 2xx answers from the send, without waiting for a connection",
        "service_p95": "likewise",
        "service_p99": "likewise",
        "event_p50": "watches only: from the write of an object, by the `arrivals` of the same run, or of a key by the `etcd` flow, until its event came",
        "event_p99": "likewise",
        "event_max": "likewise",
        "events": "watches only: events that came, bookmarks among them",
        "reconnects": "watches that were opened again, and kept connections that the server had closed and that were replaced silently",
        "ended_early": "watches only: times that one ended before the time that it had asked for (`lasts`)",
        "pod_startup_p50": "churn only: from a pod's creation until a watch saw it Ready; a pod that was not within `startWithin` is infinitely long",
        "pod_startup_p99": "likewise",
        "pod_scheduling_p99": "churn only: from a pod's creation until a watch saw it scheduled; of those that were",
        "pods_moved": "churn only: pods per second that operations which were answered 2xx create or delete",
        "start_lag_p99": "arrivals, churn and etcd only: how late the load driver began them",
        "dropped": "arrivals and etcd only: those that came when `maxInFlight` were under way, and were not sent; of churn: operations for which no group was free",
        "achieved": "arrivals, churn and etcd only: share of those due that were begun in time, dropped ones not among them",
    },
    "probe": {
        "p50": "latency; an observation without a good answer (2xx within the time-out) is infinitely long, and `mean` is "
        "of good answers. Without an identity: of the worst one",
        "success_rate": "share of good answers, of the worst identity",
        "locked_out": "longest time between two good answers with none between them",
        "recovered": "time, up to the latest answer, in which every answer was good and came within 1 s; 0 when the latest did "
        "not. Of the worst identity, each at its best API server",
        "observations": "requests sent",
        "ready": "nodes that are Ready (latest; `nodeReadiness` only)",
        "not_ready": "nodes that are not Ready (latest; `nodeReadiness` only)",
    },
    "component": {
        "memory": "largest resident memory",
        "memory_share": "largest resident memory, as a share of its cap",
        "cpu": "CPU use on average, in cores",
        "restarts": "restarts",
        "oom_kills": "kills at the memory cap",
    },
    "generator": {
        "lag_p99": "how late the load driver's event loop wakes up",
        "cpu": "CPU use of the driver's process tree on average, in cores",
        "memory": "largest resident memory of the driver's process tree",
        "unread_share": "largest share of sockets with bytes waiting to be read that lasted 10 s",
    },
    "host": {
        "available_memory": "smallest available memory of the host",
        "cpu_idle": "idle share of the host's CPU on average",
    },
    "sli": {
        "slo_violations": "kinds of call whose p99 breaks the official SLO (written `sli.slo_violations`, or with `[5m]`)",
        "p50": "official SLI: latency at the API server without webhooks and APF wait, of the worst kind of call. Of one: "
        "`sli.mutating.nodes/status.p99`, `sli.read_cluster.deployments.apps.p99`",
        "server_p50": "likewise with webhooks and APF wait",
        "server_p90": "likewise",
        "server_p99": "likewise",
    },
    "apf": {
        "rejected": "requests that API Priority and Fairness rejected at this level",
        "queued": "largest number of requests in the level's queues, of one server",
        "seats": "largest number of seats in use, of one server",
        "wait_p99": "time that requests waited in the level's queues, until they began or were rejected",
    },
    "etcd": {
        "fsync_p99": "time of a write-ahead log fsync",
        "commit_p99": "time of a backend commit",
        "db_size": "largest size of the database",
    },
    "search": {
        "capacity": "largest load that holds, as the number in it (of `80/s`: 80); where none failed, the largest tried",
        "fails_at": "smallest load that fails",
        "width": "width of the interval between the two, as a share of its smaller end",
        "recovery": "time until all holds again once the load has gone back; never measured where it does not",
    },
}
"""What each measure means, for the profile reference; the other latencies stand under ``p50``."""

_NAMED_SCOPES: Final = {"flow": (1, 2), "probe": (1, 1), "component": (1, 1), "apf": (1, 1)}

SLI_NAMES: Final = ("mutating", "read_resource", "read_namespace", "read_cluster")
"""Official SLIs of API calls; ``scaletest.analysis.sli`` defines them."""

SLI_WINDOW: Final = "5m"
SLI_WINDOW_S: Final = 300.0
"""The 5-minute form of an SLI."""

_OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip

_OBJECTIVE = re.compile(r"\s*(?P<subject>[^<>=!]+?)\s*(?P<op><=|>=|==|!=|<|>)\s*(?P<value>\S.*?)\s*")
_SUBJECT = re.compile(r"(?P<path>[A-Za-z0-9_.\-/]+?)(?:\[(?P<bracket>[^\]]+)\])?\.(?P<measure>[a-z_0-9]+)")


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured: ``probe.operator[admin].p99``."""

    scope: str
    name: str | None
    step: str | None
    identity: str | None
    measure: str
    window: str | None = None
    """``5m`` for the 5-minute form of an SLI."""

    @property
    def dimension(self) -> Dimension:
        """The dimension of the measure."""
        return MEASURES[self.scope][self.measure]

    def __str__(self) -> str:
        path = ".".join(part for part in (self.scope, self.name, self.step) if part)
        bracket = self.identity or self.window
        return f"{path}{f'[{bracket}]' if bracket else ''}.{self.measure}"


@dataclass(frozen=True, slots=True)
class Objective:
    """A subject compared with a threshold in base units."""

    subject: Subject
    op: str
    threshold: float

    def holds(self, value: float) -> bool:
        """Whether a measured value meets the objective; NaN never does."""
        return not math.isnan(value) and _OPERATORS[self.op](value, self.threshold)

    def __str__(self) -> str:
        return f"{self.subject} {self.op} {self.subject.dimension.format(self.threshold)}"


def parse_objective(text: str) -> Objective:
    """Parse an objective or condition. Raises ValueError that says what is wrong and what is possible."""
    match = _OBJECTIVE.fullmatch(text)
    if match is None:
        msg = f"{text!r} is not an objective: write e.g. 'probe.operator.p99 < 1s'"
        raise ValueError(msg)
    subject = _parse_subject(match["subject"])
    try:
        threshold = subject.dimension.parse(match["value"])
    except ValueError as error:
        msg = f"{subject} is compared with {subject.dimension.value}: {error}"
        raise ValueError(msg) from None
    return Objective(subject, match["op"], threshold)


def _parse_subject(text: str) -> Subject:
    match = _SUBJECT.fullmatch(text)
    if match is None:
        msg = f"{text!r} names no measure: write e.g. 'flow.agents.error_rate' or 'probe.operator[admin].p99'"
        raise ValueError(msg)
    scope, *names = match["path"].split(".")
    measure, bracket = match["measure"], match["bracket"]
    if scope not in MEASURES:
        msg = f"unknown scope {scope!r}: use one of {', '.join(MEASURES)}"
        raise ValueError(msg)
    if measure not in MEASURES[scope]:
        msg = f"{scope} has no measure {measure!r}: use one of {', '.join(MEASURES[scope])}"
        raise ValueError(msg)
    if scope == "sli":
        return _sli_subject(text, names, bracket, measure)
    low, high = _NAMED_SCOPES.get(scope, (0, 0))
    if not low <= len(names) <= high or "/" in match["path"]:
        form = {0: scope, 1: f"{scope}.NAME"}[low]
        msg = f"{text!r}: write {form}.MEASURE"
        raise ValueError(msg)
    if bracket and scope != "probe":
        msg = f"{text!r}: only a probe takes an identity in brackets"
        raise ValueError(msg)
    return Subject(scope, names[0] if names else None, names[1] if len(names) > 1 else None, bracket, measure)


def _sli_subject(text: str, names: list[str], bracket: str | None, measure: str) -> Subject:
    if bracket not in {None, SLI_WINDOW}:
        msg = f"{text!r}: an SLI takes [{SLI_WINDOW}] in brackets, or nothing for the whole run"
        raise ValueError(msg)
    if measure == "slo_violations":
        if names:
            msg = f"{text!r}: slo_violations counts those of all SLIs: write sli.slo_violations"
            raise ValueError(msg)
        return Subject("sli", None, None, None, measure, bracket)
    if not names:
        msg = f"{text!r}: write sli.SLI.MEASURE; SLIs are {', '.join(SLI_NAMES)}"
        raise ValueError(msg)
    if names[0] not in SLI_NAMES:
        near = nearest(names[0], SLI_NAMES)
        msg = f"unknown SLI {names[0]!r}: {f'did you mean {near!r}? ' if near else ''}There are {', '.join(SLI_NAMES)}"
        raise ValueError(msg)
    return Subject("sli", names[0], ".".join(names[1:]) or None, None, measure, bracket)
