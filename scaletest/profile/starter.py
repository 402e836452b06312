"""The text of a first profile of one's own: three answers, and comments that explain each block to somebody who will change it."""

from __future__ import annotations

import enum
import math
import re
import unicodedata
from dataclasses import dataclass
from typing import Final

__all__ = ["MOST_NODES", "Goal", "Load", "Start", "name_from", "starter"]

MOST_NODES: Final = 20_000

_ROLLOUT_PER_S: Final = 50
_SEARCHED_NODES: Final = 4
"""How many times the nodes asked for a search goes up to: far enough to see what lies past them."""
_RATE_PER_S: Final = 20
_LONGEST_NAME: Final = 42


class Load(enum.StrEnum):
    """What loads the control plane."""

    AGENT = "agent"
    CONTROLLER = "controller"
    CHURN = "churn"


class Goal(enum.StrEnum):
    """What a run is to find out."""

    LATENCY = "latency"
    SLO = "slo"
    CAPACITY = "capacity"


@dataclass(frozen=True, slots=True)
class Start:
    """The answers."""

    name: str
    load: Load
    nodes: int
    goal: Goal
    kubernetes: str
    """Version."""
    file: str
    """As the commands in the comments name it."""


_SUMMARIES: Final = {
    (Load.AGENT, Goal.LATENCY): "An agent on every node: are operators still answered within a second?",
    (Load.AGENT, Goal.SLO): "An agent on every node: do API calls meet the official Kubernetes SLOs?",
    (Load.AGENT, Goal.CAPACITY): "An agent on every node: how many nodes can have it?",
    (
        Load.CONTROLLER,
        Goal.LATENCY,
    ): "A controller that reads and writes: are operators still answered within a second?",
    (Load.CONTROLLER, Goal.SLO): "A controller that reads and writes: do API calls meet the official Kubernetes SLOs?",
    (Load.CONTROLLER, Goal.CAPACITY): "A controller that reads and writes: how many requests a second can it make?",
    (Load.CHURN, Goal.LATENCY): "Workloads that come and go: are operators still answered within a second?",
    (
        Load.CHURN,
        Goal.SLO,
    ): "Workloads that come and go: do API calls and pod start-up meet the official Kubernetes SLOs?",
    (Load.CHURN, Goal.CAPACITY): "Workloads that come and go: how many nodes can the cluster have?",
}

_PARAMETERS: Final = {
    Load.AGENT: """\
  period: @PERIOD@            # how often each agent asks
  rollout: 50/s          # agents started per second
""",
    Load.CONTROLLER: """\
  rate: 20/s             # requests per second
""",
    Load.CHURN: """\
  pods: 60               # of the workloads that come and go
  churn: 5/s             # pods created or deleted per second
""",
}

_FLOWS: Final = {
    Load.AGENT: """\
# The traffic: one client per node, each on connections of its own, as the pods of a DaemonSet are. Put your agent's requests here.
flows:
  agent:
    agents: {perNode: 1, rollout: "{rollout}"}
    # Who it is decides which level of API Priority and Fairness its requests fall into, and so who waits for whom.
    identity: serviceAccount:default/agent
    steps:
      # The pods of its own node. Without the selector, every agent would ask for every pod: cost grows with nodes x nodes.
      - {label: own-pods, list: pods, fieldSelector: "spec.nodeName={node}", every: "{period}", jitter: 20%}
      # Changes to them, on a connection that stays open.
      - {label: watch-pods, watch: pods, fieldSelector: "spec.nodeName={node}"}
    # client-go's own: a failed request is tried again later and later.
    onError: {first: 0.8s, most: 30s}
""",
    Load.CONTROLLER: """\
# The traffic. Put your controller's requests here: docs/guide/flows.md has all that it can ask.
flows:
  # What fills and refreshes its cache: it lists and then watches, as an informer does.
  cache:
    agents: {count: 1, rollout: 1/s}
    # Who it is decides which level of API Priority and Fairness its requests fall into, and so who waits for whom.
    identity: serviceAccount:default/controller
    steps:
      - {label: list-pods, list: pods, consistency: any}
      - {label: watch-pods, watch: pods}
  # What it does then: requests that come at a rate, whether or not earlier ones were answered.
  controller:
    arrivals: {rate: "{rate}", connections: 8, objects: 50}
    # ServiceAccounts may only read here. This one may write, and like them has no priority over others.
    identity: admin
    mix:
      - {get: configmaps, label: read, weight: 2}
      - {patch: configmaps, label: write, weight: 1}
""",
    Load.CHURN: """\
# The traffic: Deployments, Jobs and pods are created, scaled, rolled and deleted, in the shape of the official load test. The real
# controller-manager and scheduler do the work; KWOK's nodes run the pods.
flows:
  churn:
    churn: {pods: "{pods}", rate: "{churn}"}
    identity: admin
""",
}

_PHASES: Final = {
    Load.AGENT: """\
  - {name: rollout, start: [agent], until: "flow.agent.started >= {nodes}", atMost: @ROLLOUT@s}
""",
    Load.CONTROLLER: """\
  - {name: start, start: [cache, controller], for: 10s}
""",
    Load.CHURN: """\
  - {name: start, start: [churn], until: "flow.churn.most_started >= {pods}", atMost: 120s}
""",
}

_STOPPED: Final = {Load.AGENT: "agent", Load.CONTROLLER: "cache, controller", Load.CHURN: "churn"}
_FLOW: Final = {Load.AGENT: "agent", Load.CONTROLLER: "controller", Load.CHURN: "churn"}

_HOLDS: Final = {
    Goal.LATENCY: """\
  # Whoever operates the cluster is answered within a second, and so is what loads it.
  - probe.operator.p99 < 1s
  - flow.@FLOW@.p99 < 1s
  - flow.@FLOW@.error_rate < 1%
""",
    Goal.SLO: """\
  # Every kind of API call meets its SLO: writes and reads of one object within 1 s at p99, lists within 30 s.
  - sli.slo_violations == 0
  # What the SLI leaves out: the time in queues, and requests that fail.
  - flow.@FLOW@.p99 < 5s
  - flow.@FLOW@.error_rate < 1%
""",
}
_POD_STARTUP: Final = """\
  # And pods start within 5 s at p99.
  - flow.churn.pod_startup_p99 < 5s
"""


def name_from(stem: str) -> str:
    """Return the name of a profile from that of its file, letters without their accents; empty where nothing of it can be in a name."""
    plain = unicodedata.normalize("NFKD", stem.casefold()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_LONGEST_NAME].strip("-")


def starter(start: Start) -> str:
    """Return the text of the profile: valid as it stands."""
    parts = [
        _head(start),
        _parameters(start),
        _control_plane(),
        _fleet(),
        _FLOWS[start.load],
        _probes(),
        _phases(start),
    ]
    parts.append(_search(start) if start.goal is Goal.CAPACITY else _objectives(start))
    text = "\n".join(parts)
    rollout_s = 60 + 2 * math.ceil(start.nodes / _ROLLOUT_PER_S)
    # A step of a search has room for three periods.
    period = "10s" if start.goal is Goal.CAPACITY else "30s"
    filled = {"@FLOW@": _FLOW[start.load], "@ROLLOUT@": str(rollout_s), "@PERIOD@": period}
    return re.sub("@[A-Z]+@", lambda mark: filled[mark[0]], text)


def _head(start: Start) -> str:
    commands = {
        f"scaletest profiles validate {start.file}": "after every change: what is wrong, with line and key",
        f"scaletest run {start.file} --dry-run": "the plan, the memory it needs, the time it takes",
        f"scaletest run {start.file}": "a control plane, the load, the verdict",
        "scaletest open": "the report of the last run as a page",
    }
    width = max(map(len, commands))
    lines = "".join(f"#   {command:<{width}}  # {what}\n" for command, what in commands.items())
    return f"""\
# {_SUMMARIES[start.load, start.goal]}
#
{lines}#
# Every key is in docs/guide/profile-reference.md.

name: {start.name}
summary: "{_SUMMARIES[start.load, start.goal]}"
"""


def _parameters(start: Start) -> str:
    lightest = start.nodes
    comment = "fake nodes"
    if start.goal is Goal.CAPACITY and start.load is not Load.CONTROLLER:
        lightest = max(1, start.nodes // 10)
        comment = "fake nodes: the search begins here"
    return f"""\
# What --set may change:  scaletest run {start.file} --set nodes={2 * lightest}. A parameter is used as "{{nodes}}", in quotes.
parameters:
  {f"nodes: {lightest}":<22} # {comment}
{_PARAMETERS[start.load]}  {f'kubernetes: "{start.kubernetes}"':<22} # in quotes: without them 1.30 would be the number 1.3
"""


def _control_plane() -> str:
    return """\
# Real etcd, API server, controller-manager and scheduler of this version. Limits follow from the machine; to set one:
#   limits: {kube-apiserver: {memory: 2GiB, cpu: 1}}
controlPlane:
  kubernetes: "{kubernetes}"
"""


def _fleet() -> str:
    return """\
# What stands in the cluster before the first phase: make it look like yours, since the cost of a list is the size of what it lists.
fleet:
  namespaces: 5
  pools:
    - {name: node, nodes: "{nodes}", podsPerNode: 3}
  services: {count: 20, endpoints: 5}
  configMaps: {count: 50, size: 1KB}
"""


def _probes() -> str:
    return """\
# What somebody sees who operates the cluster meanwhile: asked from the outside, on connections of their own.
probes:
  operator:
    get: apps/v1/daemonsets
    namespace: default
    every: 1s
    identities: [system:masters, admin]
"""


def _phases(start: Start) -> str:
    text = f"""\
# One after the other. A phase ends after `for`, or when `until` holds, but not later than `atMost`.
phases:
  - {{name: baseline, for: 10s}}
{_PHASES[start.load]}"""
    if start.goal is Goal.CAPACITY:
        return text
    return f"""{text}  - {{name: steady, for: 60s}}
  - {{name: after, stop: [{_STOPPED[start.load]}], for: 5s}}
"""


def _held(start: Start) -> str:
    goal = Goal.LATENCY if start.goal is Goal.CAPACITY else start.goal
    return _HOLDS[goal] + (_POD_STARTUP if start.load is Load.CHURN and goal is Goal.SLO else "")


def _objectives(start: Start) -> str:
    return f"""\
# What decides the verdict.
objectives:
{_held(start)}  - component.kube-apiserver.restarts == 0
  # The load generator checks itself: when it is late, its latencies mean nothing.
  - generator.lag_p99 < 100ms

# How much worse than before it may become, when you change something:
#   scaletest gate {start.file} --against kubernetes=1.36        runs both in turns
#   scaletest baseline save main latest ; scaletest gate {start.file} --baseline main
gate:
  fail: ["p99:20%", "apiserver.memory:15%"]
"""


def _search(start: Start) -> str:
    if start.load is Load.CONTROLLER:
        parameter, to, wanted = "rate", f"{250 * _RATE_PER_S}/s", _RATE_PER_S
    else:
        parameter, wanted = "nodes", start.nodes
        to = str(max(2, min(MOST_NODES, _SEARCHED_NODES * start.nodes)))
    return f"""\
# After the phases: the largest value of a parameter at which everything in `holds` holds. The load is raised step by step, then the
# limit is closed in on; `past` looks what happens beyond it.
search:
  parameter: {parameter}
  to: {to}
  resolution: 10%
  step: {{atLeast: 30s, atMost: 75s}}
  holds:
{_indented(_held(start))}  past: [1.25, 1.5]

# What decides the verdict.
objectives:
  - search.capacity >= {wanted}
  - host.available_memory >= 1GiB
"""


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())
