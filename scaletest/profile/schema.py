"""The schema of a profile: what the YAML may say, with units, defaults and meanings.

Field descriptions are the text of ``docs/guide/profile-reference.md``, which is generated from here.
YAML keys are camelCase; Python names carry the unit that a value has after parsing.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from scaletest.core.resources import parse_resource
from scaletest.profile.actions import Action
from scaletest.profile.arrivals import ArrivalsSpec, RequestSpec
from scaletest.profile.churn import CHURN_STEPS, ChurnSpec
from scaletest.profile.etcd import EtcdSpec
from scaletest.profile.forms import (
    CapBytes,
    Condition,
    DurationS,
    EnvName,
    FlagName,
    KubeName,
    LabelKey,
    LabelValue,
    Name,
    ObjectBytes,
    OnlyTrue,
    PeriodS,
    PodBytes,
    PositiveDurationS,
    PositiveRatePerS,
    Quantity,
    Share,
    StepLabel,
    Version,
)
from scaletest.profile.gate import GateSpec
from scaletest.profile.model import Model, refuse
from scaletest.profile.names import COMPONENTS, ComponentName, check_identity
from scaletest.profile.rates import PacedSpec
from scaletest.profile.search import BeyondSpec, SearchSpec, SearchStepSpec
from scaletest.profile.variants import VariantSpec

__all__ = [
    "COMPONENTS",
    "Action",
    "AgentsSpec",
    "ArrivalsSpec",
    "BackoffSpec",
    "BeyondSpec",
    "ChurnSpec",
    "ComponentName",
    "ControlPlaneSpec",
    "EtcdSpec",
    "FleetSpec",
    "FlowSpec",
    "GateSpec",
    "LimitSpec",
    "LocustfileSpec",
    "Model",
    "ObjectiveSpec",
    "ObjectsSpec",
    "ObserveSpec",
    "PacedSpec",
    "Phase",
    "PoolSpec",
    "ProbeSpec",
    "Profile",
    "RequestSpec",
    "SearchSpec",
    "SearchStepSpec",
    "ServicesSpec",
    "StepSpec",
    "Taint",
    "VariantSpec",
    "WatchersSpec",
]


LEAST_WATCH_S: Final = 300.0
"""A reflector's ``minWatchTimeout``: its watches last 5 to 10 minutes."""


class LimitSpec(Model):
    """Memory and CPU limits of one component."""

    memory_bytes: CapBytes | None = Field(
        None, alias="memory", description="Memory cap; the component is killed at it and restarted. Default: by host."
    )
    cpu_cores: float | None = Field(
        None, alias="cpu", ge=0.01, le=1_024, description="CPU quota in cores. Default: by host."
    )


class ControlPlaneSpec(Model):
    """The control plane under test."""

    kubernetes: Version = Field("1.37", description="Kubernetes version; a minor resolves to a pinned patch.")
    etcd: Version = Field("3.6", description="etcd version, resolved likewise.")
    api_servers: int = Field(1, ge=1, le=8, description="Number of API servers on the one etcd.")
    heartbeat_factor: Literal["auto"] | Annotated[int, Field(ge=1, le=60)] = Field(
        "auto",
        description=(
            "How many times rarer than a kubelet's the nodes' heartbeats are, 1 to 60: 1 renews each lease every 10 s. "
            "`auto` takes the smallest of 1, 2, 5, 10, 20 whose cost stays under 15 % of the host's cores."
        ),
    )
    limit_by: Literal["auto", "cgroup", "watchdog"] = Field(
        "auto", description="What enforces memory caps: control groups, or a watchdog that kills at the cap."
    )
    limits: dict[ComponentName, LimitSpec] = Field(default_factory=dict, description="Limits by component.")
    args: dict[ComponentName, dict[FlagName, str | int | bool]] = Field(
        default_factory=dict, description="Extra command-line flags by component, without the leading dashes."
    )
    env: dict[ComponentName, dict[EnvName, str]] = Field(
        default_factory=dict, description="Extra environment variables by component (GOGC, GOMEMLIMIT)."
    )


class Taint(Model):
    """A node taint."""

    key: LabelKey = Field(description="Key of the taint.")
    value: LabelValue = Field("", description="Value of the taint.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        description="What it does to pods that do not tolerate it."
    )


class PoolSpec(Model):
    """A pool of equal fake nodes and the pods that stand on them."""

    name: Name = Field(description="Node names are NAME-00000 and so on.")
    nodes: int = Field(ge=0, le=100_000, description="Number of nodes.")
    pods_per_node: int = Field(0, ge=0, le=1_000, description="Running pods on every node.")
    pod_bytes: PodBytes = Field(
        3_100, alias="podSize", description="JSON size of one pod, reached by padding an annotation."
    )
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict, description="Labels of every node.")
    taints: list[Taint] = Field(default_factory=list, description="Taints of every node.")
    resources: dict[LabelKey, Quantity] = Field(
        default_factory=dict, description="Capacity beside or instead of cpu 32, memory 256Gi, pods 110."
    )


class ServicesSpec(Model):
    """Headless Services, each with one EndpointSlice."""

    count: int = Field(ge=0, le=100_000, description="Number of Services.")
    endpoints: int = Field(10, ge=0, le=1_000, description="Endpoints in each slice.")


class ObjectsSpec(Model):
    """Objects of one kind."""

    count: int = Field(ge=0, le=1_000_000, description="Number of objects.")
    size_bytes: ObjectBytes = Field(1_000, alias="size", description="JSON size of one object, about.")


class FleetSpec(Model):
    """Fake nodes and the objects that stand in the cluster before the first phase."""

    via: Literal["etcd", "api"] = Field(
        "etcd", description="`etcd` stamps objects straight into etcd (fast); `api` creates each through the API."
    )
    pools: list[PoolSpec] = Field(default_factory=list, description="Pools of nodes.")
    namespaces: int = Field(1, ge=1, le=10_000, description="Namespaces over which pods and objects are spread.")
    services: ServicesSpec | None = Field(None, description="Services with EndpointSlices.")
    config_maps: ObjectsSpec | None = Field(None, description="ConfigMaps.")
    secrets: ObjectsSpec | None = Field(None, description="Secrets.")
    events: ObjectsSpec | None = Field(None, description="Events (without the API server's one-hour lease).")
    custom_resources: ObjectsSpec | None = Field(None, description="Objects of the CRD widgets.scaletest.dev.")

    @property
    def node_count(self) -> int:
        """Nodes of all pools."""
        return sum(pool.nodes for pool in self.pools)

    @property
    def pod_count(self) -> int:
        """Pods of all pools."""
        return sum(pool.nodes * pool.pods_per_node for pool in self.pools)


class StepSpec(Model):
    """One request that an agent makes: exactly one of ``list``, ``get``, ``watch``, ``watchList``, with a resource or a path.

    ``{node}`` in a path, name, namespace or selector is the agent's node.
    """

    list_: str | None = Field(None, alias="list", description="Resource (`pods`, `apps/v1/daemonsets`) or `/path`.")
    get: str | None = Field(None, description="Resource (with `name`) or `/path`.")
    watch: str | None = Field(None, description="Resource or `/path`; kept on a second connection.")
    watch_list: str | None = Field(
        None, description="Resource: a watch that sends the state first, until its initial events end."
    )
    label: StepLabel | None = Field(None, description="Name of the step in reports; default: verb and resource.")
    namespace: KubeName | None = Field(None, description="Namespace; none: the whole cluster.")
    name: KubeName | None = Field(None, description="Object to GET.")
    consistency: Literal["any", "exact", "quorum"] = Field(
        "any",
        description=(
            "`any`: `resourceVersion=0`, from the watch cache. `quorum`: none given, the newest. "
            "`exact`: the version that the agent's last LIST returned (a GET: not older than it)."
        ),
    )
    field_selector: str | None = Field(None, description="For example `spec.nodeName={node}`.")
    label_selector: str | None = Field(None, description="For example `app in (dns, proxy)`.")
    limit: int | None = Field(None, ge=1, description="Page size of a LIST; `continue` is followed to the end.")
    accept: Literal["json", "protobuf"] = Field("json", description="Encoding asked for.")
    gzip: bool = Field(False, description="Whether the client accepts gzip.")
    every_s: PositiveDurationS | None = Field(
        None, alias="every", description="Repeat period; none: once, after connecting."
    )
    jitter: Share = Field(0.0, description="Every period is drawn from period × (1 ± jitter).")
    timeout_s: PositiveDurationS = Field(60.0, alias="timeout", description="Client time-out of one request.")
    lasts_s: PositiveDurationS = Field(
        LEAST_WATCH_S,
        alias="lasts",
        description="How long the server is asked to keep a watch: this to twice as long, drawn each time. Default: as client-go's reflectors.",
    )

    @model_validator(mode="after")
    def _one_verb(self) -> Self:
        given = [verb for verb in ("list_", "get", "watch", "watch_list") if getattr(self, verb) is not None]
        if len(given) != 1:
            msg = "a step has exactly one of list, get, watch, watchList"
            raise ValueError(msg)
        refuse(self._misfits())
        if not self.is_path:
            parse_resource(self.target)
        return self

    def _misfits(self) -> list[tuple[bool, str]]:
        selects = self.field_selector is not None or self.label_selector is not None
        return [
            (self.get is not None and not self.is_path and self.name is None, "get of a resource needs a name"),
            (self.name is not None and self.get is None, "name goes with get"),
            (
                self.is_path and (self.namespace is not None or self.name is not None),
                "a path has its own namespace and name",
            ),
            (self.limit is not None and self.list_ is None, "limit goes with list"),
            (self.get is not None and selects, "a selector goes with list, watch or watchList"),
            (self.watch_list is not None and self.is_path, "watchList takes a resource, no path"),
            (
                self.watch_list is not None and self.consistency == "exact",
                "a watchList is of a state not older than any (any) or than now (quorum)",
            ),
            (self.watch is not None and self.every_s is not None, "a watch stays open: it has no every"),
            (self.every_s is None and self.jitter > 0, "jitter goes with every"),
            (self.watch is None and self.lasts_s != LEAST_WATCH_S, "lasts goes with watch"),
            (self.lasts_s < 1, "a watch lasts 1s or more: the server counts in seconds"),
        ]

    @property
    def verb(self) -> Literal["list", "get", "watch", "watchList"]:
        """The verb of the step, as the profile writes it."""
        if self.list_ is not None:
            return "list"
        if self.get is not None:
            return "get"
        return "watch" if self.watch is not None else "watchList"

    @property
    def target(self) -> str:
        """Resource or path."""
        return self.list_ or self.get or self.watch or self.watch_list or ""

    @property
    def is_path(self) -> bool:
        """Whether the target is a URL path and not a resource."""
        return self.target.startswith("/")

    @property
    def title(self) -> str:
        """Name in journals and reports; letters, digits, - and _ only, so that objectives can name it."""
        return self.label or re.sub(
            r"[^A-Za-z0-9_-]+", "-", f"{self.verb.lower()}-{self.target.strip('/').split('/')[-1]}"
        )


class BackoffSpec(Model):
    """What an agent does after a failed request: client-go's reflector back-off."""

    first_s: PositiveDurationS = Field(0.8, alias="first", description="First wait.")
    most_s: PositiveDurationS = Field(30.0, alias="most", description="Longest wait.")
    factor: float = Field(2.0, ge=1.0, le=100.0, description="Growth from wait to wait.")
    jitter: float = Field(1.0, ge=0.0, le=100.0, description="A wait is drawn from wait × (1 to 1 + jitter).")
    honor_retry_after: bool = Field(
        True, description="Whether a 429 or 5xx with Retry-After is first retried up to 10 times, as client-go does."
    )

    @model_validator(mode="after")
    def _first_before_most(self) -> Self:
        if self.first_s > self.most_s:
            msg = "first must not be longer than most"
            raise ValueError(msg)
        return self


class ClientLimitSpec(Model):
    """A client-side rate limit, as client-go's token bucket."""

    qps: float = Field(ge=0.001, le=1e6, description="Requests per second, on average.")
    burst: int = Field(ge=1, le=1_000_000, description="Requests that may follow each other at once.")


class PlacedSpec(Model):
    """Clients that stand on nodes: so many on each, or a number of them over all."""

    per_node: int | None = Field(None, ge=1, le=100, description="How many on every node of the fleet.")
    count: int | None = Field(None, ge=1, le=200_000, description="How many, when not by node.")
    processes: int = Field(1, ge=1, le=64, description="Processes that they are spread over, each with its nodes.")

    @model_validator(mode="after")
    def _count_or_per_node(self) -> Self:
        if (self.per_node is None) == (self.count is None):
            msg = "write exactly one of perNode, count"
            raise ValueError(msg)
        return self

    def total(self, nodes: int) -> int:
        """Clients for a fleet of ``nodes``."""
        return self.count if self.count is not None else (self.per_node or 0) * nodes


class AgentsSpec(PlacedSpec):
    """One client per node, closed loop."""

    rollout_per_s: PositiveRatePerS = Field(alias="rollout", description="Agents started per second, evenly spaced.")


class WatchersSpec(PlacedSpec):
    """Standing watches, each with a TLS connection of its own."""

    rollout_per_s: PositiveRatePerS | None = Field(
        None,
        alias="rollout",
        description="Watches begun per second, evenly spaced; none: as fast as they open, 16 at a time.",
    )


class LocustfileSpec(Model):
    """A user's own locustfile."""

    path: str = Field(min_length=1, description="Locustfile, relative to the profile.")
    users: int = Field(ge=1, le=100_000, description="Number of Locust users.")
    spawn_per_s: PositiveRatePerS = Field(alias="spawn", description="Users started per second.")


_KINDS: Final = {
    "agents": "agents",
    "watchers": "watches",
    "arrivals": "connections",
    "churn": "pods",
    "etcd": "connections",
    "locustfile": "users",
}
"""Kinds of flows, and what each counts as its target."""


class FlowSpec(Model):
    """One class of API traffic with an identity."""

    agents: AgentsSpec | None = Field(None, description="Closed loop: one client per node.")
    watchers: WatchersSpec | None = Field(None, description="Standing watches.")
    arrivals: ArrivalsSpec | None = Field(None, description="Open loop: a mix of requests at a given rate.")
    churn: ChurnSpec | None = Field(
        None, description="Deployments, Jobs and pods that are created, changed and deleted at a rate."
    )
    etcd: EtcdSpec | None = Field(None, description="Key-value traffic straight to etcd.")
    locustfile: LocustfileSpec | None = Field(None, description="Users of a locustfile.")
    identity: str = Field(
        "admin",
        description=(
            "`system:masters` (exempt from APF), `admin` (an ordinary cluster-admin), `on-call` (with its own "
            "FlowSchema), `serviceAccount:NAMESPACE/NAME`, or `node` (each agent is its node). `etcd` flows have none."
        ),
    )
    steps: list[StepSpec] = Field(
        default_factory=list, description="What each agent does; of watchers, each has one of them, in turn."
    )
    mix: list[RequestSpec] = Field(default_factory=list, description="What arrives, by weight.")
    on_error: BackoffSpec = Field(default_factory=BackoffSpec, description="Back-off after a failure.")
    limit: ClientLimitSpec | None = Field(None, description="Client-side rate limit of each agent.")
    daemon_set: str | None = Field(
        None,
        description=(
            "`NAMESPACE/NAME` of the DaemonSet that stands for the rollout: created through the API before the flow starts, "
            "and what `deleteRollout` deletes. It selects no node, for the agents are the load driver's."
        ),
    )

    @field_validator("identity")
    @classmethod
    def _identity_form(cls, value: str) -> str:
        return check_identity(value)

    @field_validator("daemon_set")
    @classmethod
    def _daemon_set_form(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}/[a-z0-9][a-z0-9.-]{0,200}", value):
            msg = f"{value!r} is no DaemonSet: write NAMESPACE/NAME"
            raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        refuse(self._misfits())
        titles = self.titles
        if len(set(titles)) != len(titles):
            what = "steps" if self.placed is not None else "requests"
            msg = f"{what} must differ in name: give a label ({', '.join(titles)})"
            raise ValueError(msg)
        return self

    def _misfits(self) -> list[tuple[bool, str]]:
        kinds = [kind for kind in _KINDS if getattr(self, kind) is not None]
        of_agents = bool(self.steps) or self.limit is not None or self.on_error != BackoffSpec()
        return [
            (self.daemon_set is not None and self.agents is None, "daemonSet goes with agents"),
            (len(kinds) != 1, f"a flow has exactly one of {', '.join(_KINDS)}"),
            (self.agents is not None and not self.steps, "agents need at least one step"),
            (
                self.watchers is not None and {step.verb for step in self.steps} != {"watch"},
                "watchers need at least one step, and all of them are watches",
            ),
            (self.watchers is not None and self.limit is not None, "limit goes with agents"),
            (self.arrivals is not None and not self.mix, "arrivals need a mix of at least one request"),
            (self.mix != [] and self.arrivals is None, "mix goes with arrivals"),
            (
                self.arrivals is not None and of_agents,
                "arrivals are written in mix, and none waits for another: steps, limit and onError go with agents",
            ),
            (
                self.churn is not None and of_agents,
                "churn makes its own requests: steps, limit and onError go with agents",
            ),
            (
                self.etcd is not None and (of_agents or self.identity != "admin"),
                "etcd knows no identities, and its operations are written in etcd: identity, steps, limit and onError go with others",
            ),
            (
                self.locustfile is not None and (bool(self.steps) or self.limit is not None),
                "a locustfile makes its own requests: steps and limit go with agents",
            ),
        ]

    @property
    def titles(self) -> list[str]:
        """Names of the steps or requests; a locustfile's come from its code."""
        own = self.etcd.titles if self.etcd is not None else CHURN_STEPS if self.churn is not None else ()
        return [step.title for step in self.steps] + [request.title for request in self.mix] + list(own)

    @property
    def placed(self) -> AgentsSpec | WatchersSpec | None:
        """The clients that stand on nodes, where the flow has such."""
        return self.agents or self.watchers

    @property
    def kind(self) -> str:
        """Which kind of flow it is."""
        return next(kind for kind in _KINDS if getattr(self, kind) is not None)

    @property
    def unit(self) -> str:
        """What ``target`` counts."""
        return _KINDS[self.kind]

    @property
    def paced(self) -> PacedSpec | None:
        """The schedule of its requests; None for flows that have none."""
        return self.arrivals or self.etcd

    @property
    def processes(self) -> int:
        """Processes that make the flow; where it is one, and not of etcd, that is the load driver."""
        several = self.placed or self.arrivals or self.etcd
        return several.processes if several is not None else 1

    @property
    def has_own_processes(self) -> bool:
        """Whether others than the load driver make it."""
        return self.etcd is not None or self.processes > 1

    @property
    def follows_nodes(self) -> bool:
        """Whether the target depends on the number of nodes."""
        if self.churn is not None:
            return self.churn.pods_per_node is not None
        return self.placed is not None and self.placed.per_node is not None

    def target(self, nodes: int) -> int:
        """Agents or watches for a fleet of ``nodes``, connections, pods of a churn, or a locustfile's users."""
        if self.placed is not None:
            return self.placed.total(nodes)
        if self.arrivals is not None:
            return self.arrivals.connections
        if self.churn is not None:
            return self.churn.total(nodes)
        if self.etcd is not None:
            return self.etcd.all_connections
        return self.locustfile.users if self.locustfile is not None else 0


class ProbeSpec(Model):
    """A small periodic measurement from the outside: exactly one of ``get``, ``nodeReadiness``."""

    get: str | None = Field(None, description="Resource or `/path` that operators ask for.")
    node_readiness: OnlyTrue | None = Field(None, description="Count Ready nodes (system:masters, table form).")
    namespace: KubeName | None = Field(None, description="Namespace of the resource.")
    every_s: PeriodS = Field(1.0, alias="every", description="Period, at least 10 ms.")
    timeout_s: PositiveDurationS = Field(
        20.0, alias="timeout", description="No 2xx within this time is no good answer."
    )
    identities: list[str] = Field(default_factory=lambda: ["system:masters"], min_length=1, description="Who asks.")

    @field_validator("identities")
    @classmethod
    def _identity_forms(cls, value: list[str]) -> list[str]:
        for identity in value:
            if check_identity(identity) == "node":
                msg = "a probe cannot be a node"
                raise ValueError(msg)
        if len(set(value)) != len(value):
            msg = f"the identities must differ: {', '.join(value)}"
            raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.get is None) == (self.node_readiness is None):
            msg = "a probe has exactly one of get, nodeReadiness"
            raise ValueError(msg)
        if self.get is None and (self.namespace is not None or self.identities != ["system:masters"]):
            msg = "nodeReadiness asks for all nodes as system:masters: it takes no namespace and no identities"
            raise ValueError(msg)
        if self.get is not None and self.get.startswith("/"):
            if self.namespace is not None:
                msg = "a path has its own namespace"
                raise ValueError(msg)
        elif self.get is not None:
            parse_resource(self.get)
        return self


class Phase(Model):
    """A named span of the run; ends by time (``for``) or by condition (``until``, at most ``atMost``)."""

    name: Name = Field(description="Name of the phase.")
    for_s: DurationS | None = Field(None, alias="for", description="Length.")
    until: Condition | None = Field(None, description="Condition that ends the phase, written as an objective.")
    at_most_s: PositiveDurationS | None = Field(None, alias="atMost", description="Longest time to wait for `until`.")
    start: list[Name] = Field(default_factory=list, description="Flows to start.")
    stop: list[Name] = Field(default_factory=list, description="Flows to stop.")
    do: list[Action] = Field(
        default_factory=list, description="Actions, begun in order when the phase begins, before its flows start."
    )

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.for_s is None) == (self.until is None):
            msg = "a phase has exactly one of for, until"
            raise ValueError(msg)
        if (self.until is None) != (self.at_most_s is None):
            msg = "until goes with atMost"
            raise ValueError(msg)
        return self

    @property
    def longest_s(self) -> float:
        """The longest that the phase can take, actions aside."""
        return self.for_s if self.for_s is not None else self.at_most_s or 0.0


class ObjectiveSpec(Model):
    """An objective; written as a string, or as a mapping when it may end the run early."""

    check: Condition = Field(description="The objective: `flow.agents.error_rate < 1%`.")
    abort: bool = Field(False, description="End the run as failed as soon as it does not hold.")
    delay_s: DurationS = Field(0.0, alias="delay", description="Not before this long into the run.")

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return {"check": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _delay_with_abort(self) -> Self:
        if self.delay_s > 0 and not self.abort:
            msg = "delay goes with abort: true"
            raise ValueError(msg)
        return self


class ObserveSpec(Model):
    """How often the control plane and the host are looked at."""

    metrics_every_s: PeriodS = Field(5.0, alias="metricsEvery", description="Period of /metrics scrapes.")
    processes_every_s: PeriodS = Field(1.0, alias="processesEvery", description="Period of process samples.")


class Profile(Model):
    """A profile: control plane, fleet, flows, probes, phases, objectives."""

    name: Name = Field(description="Name of the profile.")
    summary: str = Field(min_length=1, description="One or two sentences: what it shows.")
    parameters: dict[str, str | int | float | bool] = Field(
        default_factory=dict, description="Values that `--set NAME=VALUE` may change; used elsewhere as `{NAME}`."
    )
    sizes: dict[Name, dict[str, Any]] = Field(
        default_factory=dict,
        description=(
            "Named sizes: for each, values by the keys that `--set` takes (`{quick: {nodes: 50}}`). `--size NAME` applies them, "
            "and `--set` goes over them."
        ),
    )
    variants: dict[Name, VariantSpec] = Field(
        default_factory=dict,
        description=(
            "Named variants, the first one is what the others are compared with. `run` runs all of them as a matrix, `--variant NAME,NAME` "
            "some, `--variant NAME` one; `--set` goes over them, and they go over a size."
        ),
    )
    control_plane: ControlPlaneSpec = Field(
        default_factory=ControlPlaneSpec, description="The control plane under test."
    )
    fleet: FleetSpec = Field(default_factory=FleetSpec, description="What stands in the cluster.")
    flows: dict[Name, FlowSpec] = Field(default_factory=dict, description="Flows by name.")
    probes: dict[Name, ProbeSpec] = Field(default_factory=dict, description="Probes by name.")
    phases: list[Phase] = Field(min_length=1, description="Phases, in order.")
    search: SearchSpec | None = Field(None, description="Search for the saturation point, after the last phase.")
    slo: dict[str, Condition] = Field(default_factory=dict, description="Thresholds drawn on the timeline, by name.")
    objectives: list[ObjectiveSpec] = Field(min_length=1, description="What decides the verdict.")
    observe: ObserveSpec = Field(default_factory=ObserveSpec, description="How often things are looked at.")
    gate: GateSpec = Field(default_factory=GateSpec, description="How much worse than a baseline runs may become.")
