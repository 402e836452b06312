"""The report as data: what ``--format json`` prints, and what the terminal report is drawn from.

The published schema ``report.schema.json`` is generated from these models. Keys stay as they are within one
``schema_version``; new ones may be added. Times are seconds since the run began, durations seconds, sizes bytes.
A number that was not measured is null.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

__all__ = [
    "REPORT_SCHEMA_VERSION",
    "Apf",
    "ApiCallReport",
    "ApiLatencyReport",
    "CaptureReport",
    "CheckResult",
    "ComponentReport",
    "CpuReport",
    "Document",
    "EtcdReport",
    "Failure",
    "FlowReport",
    "FunctionReport",
    "GeneratorReport",
    "GoroutinesReport",
    "HeapReport",
    "HostReport",
    "IncidentLine",
    "IncidentReport",
    "JournalReport",
    "LawReport",
    "LeverReport",
    "LimitReport",
    "Lockout",
    "NodesReport",
    "ObjectiveReport",
    "PhaseReport",
    "ProbeReport",
    "ProfileGroup",
    "RunReport",
    "SaturationReport",
    "SearchStepReport",
    "ServerReport",
    "SloReport",
    "StepReport",
    "StoryLine",
    "Timeline",
    "VerdictReport",
    "WaitingReport",
]

REPORT_SCHEMA_VERSION: Final = 1


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(_finite)]
"""A number, or null where nothing was measured; JSON has neither NaN nor infinity."""


class Part(BaseModel):
    """Base of all parts."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RunReport(Part):
    """What was run."""

    id: str
    directory: str = Field(description="Run directory, as it was named on the command line.")
    matrix: str | None = Field(description="Name of the matrix that it is of; null of any other run.")
    variant: str | None = Field(description="Its variant in that matrix.")
    profile: str
    summary: str
    started_at: str = Field(description="UTC, ISO 8601.")
    duration_s: float = Field(description="From the start of set-up to the last record.")
    nodes: int = Field(description="Nodes that the profile asks for.")
    argv: list[str]
    versions: dict[str, str]
    host: dict[str, Any]
    facts: dict[str, str] = Field(description="What a reader has to know to read the numbers.")


class VerdictReport(Part):
    """The verdict."""

    outcome: Literal["pass", "fail", "invalid", "incomplete"]
    exit_code: int = Field(description="Exit code of `scaletest run`.")
    reasons: list[str] = Field(description="Why it is no pass, the deciding reason first.")


class JournalReport(Part):
    """How whole the journal is."""

    records: int
    broken_lines: int = Field(description="Lines that were no record.")
    newer_lines: int = Field(description="Lines that a newer version wrote; passed over.")
    malformed: dict[str, int] = Field(description="Records with a field missing or impossible, by kind; passed over.")
    lost_records: int = Field(description="Records that could not be written.")
    growing: bool = Field(description="The run has no end yet, and the journal was written to in the last seconds.")


class ObjectiveReport(Part):
    """An objective."""

    objective: str
    holds: bool
    value: Number = Field(description="In base units; null when not measured, or when a probe got no answer.")
    said: str = Field(description="The value for people, or why there is none.")
    samples: int = Field(description="Requests, observations or samples behind the value.")


class PhaseReport(Part):
    """A phase, and the run's main numbers in it."""

    name: str
    start_s: float
    end_s: Number = Field(description="Null when the run was killed in it.")
    duration_s: float
    ended_by: str | None = Field(description="time, condition, at_most or cut.")
    requests_per_s: Number = Field(description="Requests of all flows per second of the phase.")
    error_rate: Number
    latency_p99_s: Number = Field(description="Of the good answers of all flows.")
    probe_p99_s: Number = Field(description="Worst identity of all probes; null also when too many failed.")
    probe_success_rate: Number = Field(description="Worst identity of all probes.")
    api_server_memory_bytes: Number
    api_server_cores: Number
    slo_violations: int | None = Field(
        description="Kinds of API call that broke their official SLO in the phase; null when none was measured."
    )


class StoryLine(Part):
    """Something that happened."""

    t_s: float
    level: Literal["info", "good", "warning", "bad"]
    text: str


class IncidentLine(Part):
    """A line of the one timeline of an incident: a milestone, or another event of the story."""

    t_s: float
    since_rollout_s: Number = Field(description="T+; null without a rollout.")
    level: Literal["info", "good", "warning", "bad"]
    milestone: str | None = Field(
        description="rollout, started, slo_broken, slo_holds, lockout, killed, lease_lost, ended, not_ready, rollback, "
        "rollback_failed, rollback_done, lever, first_answer, good_again or recovered; null for another event."
    )
    text: str


class SloReport(Part):
    """A condition of the profile's `slo`, over windows that trail by `window_s`."""

    name: str
    condition: str
    broken_s: Number = Field(
        description="End of the first window over which it did not hold; null when it always held."
    )
    holds_from_s: Number = Field(description="From when on it held to the end; null when it did not.")
    measured: bool


class LimitReport(Part):
    """What one rule found of one resource."""

    resource: Literal[
        "memory", "gc", "cpu", "host_cpu", "apf", "in_flight", "etcd_space", "etcd_fsync", "etcd_cpu", "network", "generator",
        "watch_cache",
    ]  # fmt: skip
    subject: str
    at_limit: bool
    values: dict[str, float] = Field(description="Figures in base units; those that were measured.")


class LeverReport(Part):
    """A phase in which levers were pulled."""

    phase: str
    levers: list[str]
    start_s: float
    recovered: bool | None = Field(
        description="Whether at its end all operators had been answered, each time within 1 s, for 10 s; null where none asked."
    )
    did: list[str] = Field(description="What its actions did, or why they could not.")
    looked_at_from_s: float = Field(description="The limits are of the time from here to the end of the phase.")
    limits: list[LimitReport] = Field(
        description="Unless the operators recovered: what every rule found; the first at its limit is the limiting one."
    )
    said: str | None = Field(description="Why the lever did not help; null when it did.")


class IncidentReport(Part):
    """The run as an incident."""

    flow: str | None = Field(description="The flow that was rolled out.")
    rollout_s: Number
    first_breach_s: Number = Field(description="When the first SLO was broken.")
    recovered: bool | None = Field(description="Null where no SLO was broken and nobody locked out.")
    recovered_s: Number = Field(
        description="From when on every SLO held and every operator was answered within 1 s; null when not so at the end."
    )
    window_s: float = Field(description="Conditions of `slo` are evaluated over the time from so long before.")
    timeline: list[IncidentLine]
    slos: list[SloReport]
    levers: list[LeverReport]


class StepReport(Part):
    """One step of a flow over the run. Latencies are of good (2xx) answers; of arrivals, from when they were due."""

    step: str
    requests: int
    rate_per_s: Number
    good: int
    failed: int
    outcomes: dict[str, int]
    bytes: int
    bytes_per_s: Number
    events: int
    p50_s: Number
    p95_s: Number
    p99_s: Number
    max_s: Number
    failed_p50_s: Number = Field(description="Median time until a failure.")
    failed_max_s: Number
    service_p50_s: Number = Field(description="Of arrivals: from the send to the last byte of the body.")
    service_p99_s: Number
    event_p50_s: Number = Field(description="Of a watch: from the write of an object by arrivals until its event came.")
    event_p99_s: Number
    event_max_s: Number
    reconnects: int = Field(
        description="Watches opened again, and kept connections that the server had closed and that were replaced silently."
    )
    ended_early: int = Field(description="Times that a watch ended before the time that it had asked for.")
    ended_early_p50_s: Number = Field(description="How long those watches stood (median).")


class ArrivalsReport(Part):
    """What the pacer of an arrivals flow did over the run."""

    closed: bool = Field(description="A closed loop: no schedule, each connection asks again when it was answered.")
    due: int = Field(description="Arrivals whose time came.")
    sent: int = Field(description="Of them, those that were sent and have ended.")
    dropped: int = Field(description="Those that came when the most were in flight, and were not sent.")
    most_in_flight: int = Field(description="Most in flight at the end of an interval.")
    in_flight_at_end: int = Field(description="Those that had not ended when the flow was stopped.")
    achieved: Number = Field(description="Share of those due that were begun.")
    start_lag_p50_s: Number = Field(description="How late the pacer began them.")
    start_lag_p99_s: Number
    start_lag_max_s: Number


class ChurnReport(Part):
    """What became of the pods of a churn flow over the run."""

    moved: int = Field(description="Pods that operations which were answered well create or delete.")
    moved_per_s: Number
    started: int = Field(description="Pods that were Ready in time.")
    late: int = Field(description="Pods that were not; quantiles of start-up take them as infinitely long.")
    pending_at_end: int = Field(description="Pods that had not been Ready when the flow was stopped.")
    startup_p50_s: Number = Field(description="From a pod's creation until a watch saw it Ready.")
    startup_p99_s: Number = Field(description="Null when it is infinite.")
    startup_max_s: Number = Field(description="Of those that were Ready in time.")
    scheduling_p50_s: Number = Field(description="From a pod's creation until a watch saw it scheduled.")
    scheduling_p99_s: Number


class FlowReport(Part):
    """A flow over the run."""

    flow: str
    identity: str | None
    unit: str = Field(
        description="What `target`, `started` and `connected` count: agents, watches, connections, users."
    )
    target: int
    started: int = Field(description="Most started at one time.")
    connected: int = Field(description="Most connected (watches: open) at one time.")
    active_s: float = Field(description="Time that the flow ran; rates are per second of it.")
    connections: int = Field(description="Connections made.")
    connect_p99_s: Number = Field(description="TCP and TLS.")
    exceptions: int = Field(description="Exceptions of a locustfile that were no failed request.")
    steps: list[StepReport]
    arrivals: ArrivalsReport | None = Field(description="Of a flow of arrivals or churn.")
    churn: ChurnReport | None = Field(description="Of a churn flow.")


class Lockout(Part):
    """A span in which an identity got no good answer."""

    start_s: float
    end_s: float
    open: bool = Field(description="No good answer came before the end.")


class ServerReport(Part):
    """One identity at one API server."""

    server: str
    observations: int
    success_rate: Number
    p50_s: Number
    p99_s: Number
    max_s: Number
    longest_lockout_s: float


class ProbeReport(Part):
    """One identity of a probe, at its best API server. A failed request is infinitely long in p50, p99 and max: null."""

    probe: str
    identity: str
    observations: int
    success_rate: Number
    p50_s: Number
    p99_s: Number
    max_s: Number
    outcomes: dict[str, int] = Field(description="Over all servers.")
    longest_lockout_s: float
    lockouts: list[Lockout] = Field(description="While every API server locked the identity out.")
    servers: list[ServerReport]


class NodesReport(Part):
    """Node readiness as a probe saw it."""

    probe: str
    ready: int = Field(description="Latest.")
    not_ready: int = Field(description="Latest.")
    total: int = Field(description="Latest.")
    most_not_ready: int


class ComponentReport(Part):
    """A process of the control plane or of scaletest itself."""

    component: str
    memory_max_bytes: Number
    memory_cap_bytes: int | None
    memory_by: str | None = Field(description="What enforces the cap: cgroup_v1, cgroup_v2, watchdog.")
    cpu_mean_cores: Number
    cpu_max_cores: Number = Field(description="Between two samples.")
    cpu_quota_cores: float | None
    cpu_by: str | None = Field(description="What enforces the quota: cgroup_v1, cgroup_v2, none.")
    restarts: int
    oom_kills: int


class Apf(Part):
    """A priority level of API Priority and Fairness."""

    level: str
    seats_limit: Number
    seats_max: Number
    queued_max: Number
    dispatched: Number
    rejected: dict[str, float]


class ApiCallReport(Part):
    """A kind of API call over the run: p99 as the official SLI counts it, as the server took, and as its clients saw it.

    Server-side values are interpolated in the API server's buckets, as PromQL's histogram_quantile; 60 stands for 60 s and more.
    """

    call: str = Field(description="Verb, resource, scope: `LIST pods cluster`, `PATCH nodes/status resource`.")
    verb: str
    resource: str = Field(description="With group and subresource: `deployments.apps/scale`.")
    scope: Literal["resource", "namespace", "cluster"]
    sli: Literal["mutating", "read_resource", "read_namespace", "read_cluster"] | None = Field(
        description="Official SLI that it counts in; null for calls that the definition leaves out."
    )
    threshold_s: Number = Field(description="SLO: p99 at most.")
    calls: int = Field(
        description="Calls that the API servers answered; those that they rejected (429) are not among them."
    )
    sli_p99_s: Number = Field(description="Without webhooks and APF wait, whole-run form.")
    sli_5m_p99_s: Number = Field(description="Likewise, 5-minute form; null in runs of less than five minutes.")
    server_p99_s: Number = Field(description="With webhooks and APF wait.")
    client_p99_s: Number = Field(
        description="2xx answers to the flows' steps that make such calls: of agents from the send, of arrivals from when they were due."
    )
    client_requests: int
    client_error_rate: Number = Field(
        description="Share of the steps' requests without a 2xx answer: in no latency here."
    )
    clients: list[str] = Field(description="Steps that make such calls: `FLOW.STEP`.")
    holds: bool | None = Field(description="Whether the SLO holds, in the whole-run form; null without one.")
    waited: bool = Field(description="The SLO holds, and server or clients took longer than it allows at p99.")


class ApiLatencyReport(Part):
    """API latency by the official SLIs, and beside them what clients saw."""

    form: Literal["whole run"] = Field(
        description="Form that decides `holds`: p99 of all calls of the run (ClusterLoader2's simple latency query)."
    )
    reads: int = Field(description="Reads of the servers' histograms.")
    slos: int = Field(description="Kinds of call with an official SLO.")
    slo_violations: int = Field(description="Those that break it.")
    slo_violations_5m: int | None = Field(
        description="Likewise in the 5-minute form: p99 over time of the p99 over windows of five minutes; null when there was none."
    )
    calls: list[ApiCallReport] = Field(description="The worst first.")


class EtcdReport(Part):
    """etcd, by its own metrics."""

    fsync_p50_s: Number
    fsync_p99_s: Number
    commit_p99_s: Number
    db_max_bytes: Number
    db_in_use_max_bytes: Number
    puts: float


class HostReport(Part):
    """The host."""

    cores: int | None
    memory_bytes: int | None
    available_min_bytes: Number
    cpu_idle_share: Number
    cpu_steal_share: Number


class CheckResult(Part):
    """One check of the measurement's validity."""

    check: str
    grade: Literal["good", "warning", "bad"]
    said: str
    remedy: str | None


class GeneratorReport(Part):
    """The load generator."""

    lag_p50_s: Number
    lag_p99_s: Number
    lag_max_s: Number
    cpu_mean_cores: Number = Field(description="Of the process tree.")
    cpu_max_cores: Number = Field(description="Of the driver process itself, between two of its reports.")
    memory_max_bytes: Number = Field(description="Of the process tree.")
    sockets_max: int


class Failure(Part):
    """A sample of failed answers."""

    t_s: float
    flow: str
    step: str
    outcome: str
    status: int | None
    reason: str | None
    message: str | None
    node: str | None


class Timeline(Part):
    """The run in slots of equal length; each value is the slot's largest, null where nothing was measured."""

    start_s: float
    slot_s: float
    requests_per_s: list[Number]
    latency_p99_s: list[Number] = Field(description="Of the good answers of all flows.")
    probe_s: list[Number] = Field(description="Slowest good answer of all probes.")
    api_server_memory_bytes: list[Number]


class SearchStepReport(Part):
    """A load of a search, measured over the steady part of its step."""

    step: int
    kind: Literal["search", "past", "back"]
    value: float
    load: str = Field(description="The value with its unit.")
    derived: bool = Field(description="Made by fewer, who worked harder, and stands for so many.")
    factor: float | None = Field(description="Multiple of the load that held; null in the search itself.")
    why: str
    outcome: Literal["held", "failed", "not counted"]
    reason: str | None = Field(description="Why it failed, or does not count.")
    start_s: float
    end_s: Number
    steady_from_s: Number
    steady_until_s: Number
    dropped_s: float = Field(description="Warm-up that was not judged.")
    settled: bool
    nodes: int
    answers_per_s: Number = Field(description="2xx answers to the flows that make the load.")
    bytes_per_s: Number
    events_per_s: Number = Field(
        description="Events that came to standing watches; latencies are then those of events."
    )
    latency_p50_s: Number
    latency_p99_s: Number
    error_rate: Number
    operator_p99_s: Number = Field(description="Of the worst identity; null also where there was no answer.")
    operator_success_rate: Number
    api_server_memory_bytes: Number = Field(description="The most that one API server held.")
    api_server_cpu_cores: Number = Field(description="Of all API servers together.")
    killed: list[str] = Field(description="Components that were killed at their memory cap, or restarted.")


class LawReport(Part):
    """A law fitted to the curve: an estimate."""

    law: Literal["agents", "usl"]
    formula: str
    predicted: Number = Field(description="The load at which the law has the limit; null where it has none.")
    measured: Number = Field(description="The largest load that held.")
    inputs: dict[str, float]
    worst_residual: Number = Field(description="Largest distance of a measured point from the law, as a share.")
    said: str


class SaturationReport(Part):
    """A search for the saturation point."""

    parameter: str
    unit: str
    holds: list[str]
    flows: list[str] = Field(description="Flows that make the load.")
    beyond: str | None = Field(description="Parameter that makes derived loads; null where no load is derived.")
    made_as_it_is: Number = Field(description="The largest load that holds and is not derived.")
    reason: Literal["found", "never failed", "never held", "generator limit", "out of time", "cut short"]
    said: str
    capacity: Number = Field(description="The largest load that holds; where none failed, the largest that was tried.")
    fails_at: Number
    width: Number = Field(description="Width of the interval between the two, as a share of its smaller end.")
    confirmed: bool = Field(description="Whether both ends of the interval were tried twice.")
    contradictions: int
    goodput: Literal["answers", "bytes", "events"] = Field(description="What goodput is compared by.")
    steps: list[SearchStepReport]
    limit_said: str | None
    limits: list[LimitReport] = Field(description="Every rule on what is at its limit, at the load `limits_at`.")
    limits_at: Number = Field(
        description="The smallest load that failed, or a heavier one where that had nothing at its limit."
    )
    past: Literal["graceful", "degraded", "collapsed", "metastable"] | None
    past_reasons: list[str]
    recovered_after_s: Number
    recovery_waited_s: Number
    back_said: str | None
    laws: list[LawReport]


class FunctionReport(Part):
    """A function in a profile: what was sampled in it (flat), and in it or what it called (cum)."""

    function: str = Field(description="With its import path.")
    flat: float
    flat_share: Number
    cum: float
    cum_share: Number


class ProfileGroup(Part):
    """Functions of a group of packages: a sample belongs to its innermost frame that is of any group."""

    group: str
    value: float
    share: Number


class CpuReport(Part):
    """CPU profiles of all API servers, added up; values in seconds."""

    duration_s: float = Field(description="Time over which it was sampled.")
    cpu_s: float = Field(description="CPU time that was sampled.")
    cores: Number = Field(description="The one by the other.")
    groups: list[ProfileGroup]
    functions: list[FunctionReport] = Field(description="The largest flat first.")
    cumulative: list[FunctionReport] = Field(description="The largest cum first.")


class HeapReport(Part):
    """Heap in use of all API servers, added up, as of the last garbage collection; values in bytes."""

    bytes: float
    groups: list[ProfileGroup]
    functions: list[FunctionReport] = Field(description="The largest flat first.")
    cumulative: list[FunctionReport] = Field(description="The largest cum first.")


class WaitingReport(Part):
    """Goroutines that wait alike."""

    function: str = Field(description="Innermost function outside Go's standard library.")
    waits_in: str = Field(description="Innermost function outside its runtime.")
    count: int


class GoroutinesReport(Part):
    """Goroutines of all API servers."""

    count: int
    waiting: list[WaitingReport] = Field(description="The most first.")


class CaptureReport(Part):
    """Profiles that were captured of the API servers at one time."""

    capture: str
    step: int | None = Field(description="Step of a search; null for an action.")
    load: str | None = Field(description="The load of that step.")
    t_s: float
    took_s: float
    servers: list[str]
    files: list[str] = Field(description="Within the run directory, for `go tool pprof`.")
    cpu: CpuReport | None
    heap: HeapReport | None
    goroutines: GoroutinesReport | None
    problems: list[str] = Field(description="What could not be captured or read, and why.")


class Document(Part):
    """A report on one run."""

    schema_version: Literal[1]
    run: RunReport
    verdict: VerdictReport
    objectives: list[ObjectiveReport]
    journal: JournalReport
    phases: list[PhaseReport]
    story: list[StoryLine]
    incident: IncidentReport | None = Field(description="Null where nothing of an incident happened.")
    saturation: SaturationReport | None = Field(description="Null where the profile has no search.")
    profiles: list[CaptureReport] = Field(description="Where the time of the API servers went, in order of time.")
    timeline: Timeline | None
    flows: list[FlowReport]
    failures: list[Failure]
    probes: list[ProbeReport]
    nodes: list[NodesReport]
    components: list[ComponentReport]
    apf: list[Apf]
    api_latency: ApiLatencyReport | None = Field(description="Null when no histogram was read twice.")
    api_requests: dict[str, float] = Field(description="Requests that the API servers answered, by verb and code.")
    api_requests_by_server: dict[str, float] = Field(
        description="Requests that each API server answered, from the first look at its metrics on."
    )
    metrics_gaps: dict[str, dict[str, int]] = Field(
        description="Scrapes of /metrics that failed, by target, then by outcome: timeout, refused, ..."
    )
    etcd: EtcdReport | None
    host: HostReport
    generator: GeneratorReport | None
    validity: list[CheckResult]
