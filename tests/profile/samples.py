"""Valid profiles that the tests of this room start from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scaletest.profile.loading import LoadedProfile, load_profile
from scaletest.profile.yamlfile import parse_text

SMALL = """\
name: small
summary: The least that a profile needs.
phases:
  - {name: only, for: 1s}
objectives:
  - host.available_memory > 1GiB
"""

FULL = """\
name: full
summary: Every part of the schema once.
parameters:
  nodes: 30
  rollout: 20/s
  kubernetes: "1.31"
  share: 0.5
  gzip: true
controlPlane:
  kubernetes: "{kubernetes}"
  etcd: "3.6"
  apiServers: 1
  heartbeatFactor: 5
  limitBy: watchdog
  limits:
    etcd: {memory: 512MiB, cpu: "{share}"}
    kube-apiserver: {memory: 2GiB}
  args:
    kube-apiserver: {max-requests-inflight: 400, profiling: true, v: "2"}
  env:
    kube-apiserver: {GOGC: "100"}
fleet:
  via: api
  pools:
    - name: gpu
      nodes: "{nodes}"
      podsPerNode: 3
      podSize: 4KB
      labels: {scaletest.dev/pool: gpu, zone: a}
      taints:
        - {key: nvidia.com/gpu, value: present, effect: NoSchedule}
      resources: {nvidia.com/gpu: 8, memory: 512Gi}
    - name: cpu
      nodes: 5
  namespaces: 7
  services: {count: 10, endpoints: 4}
  configMaps: {count: 3, size: 2KB}
  secrets: {count: 4}
  events: {count: 5, size: 1KiB}
  customResources: {count: 6, size: 500B}
flows:
  agents:
    agents: {perNode: 2, rollout: "{rollout}"}
    identity: serviceAccount:telemetry/agent
    steps:
      - {list: pods, fieldSelector: "spec.nodeName={node}", every: 30s, jitter: 10%, timeout: 5s}
      - {label: all, list: services, consistency: quorum, limit: 500, accept: protobuf, gzip: "{gzip}"}
      - {get: configmaps, namespace: kube-system, name: settings, every: 1m30s}
      - {watch: pods, labelSelector: app=dns}
      - {label: health, get: /readyz, every: 10s}
    onError: {first: 500ms, most: 20s, factor: 3.0, jitter: 0.5, honorRetryAfter: false}
    limit: {qps: 5.0, burst: 10}
  singles:
    agents: {count: 4, rollout: 60/m}
    identity: on-call
    steps:
      - {list: nodes, every: 2s}
probes:
  operator:
    get: apps/v1/daemonsets
    namespace: telemetry
    every: 1s
    timeout: 20s
    identities: [system:masters, admin, on-call]
  ready: {nodeReadiness: true, every: 2s}
phases:
  - {name: baseline, for: 20s}
  - {name: rollout, start: [agents, singles], until: "flow.agents.started >= {nodes}", atMost: 120s}
  - name: resize
    do:
      - grow: {pool: gpu, by: 10}
      - shrink: {pool: cpu, by: 2}
    stop: [singles]
    for: 30s
  - {name: after, stop: [agents], for: 10s}
slo:
  operator: probe.operator.p99 < 1s
objectives:
  - probe.operator[admin].success_rate >= 99%
  - flow.agents.list-pods.p99 < 2s
  - flow.agents.all.error_rate < 1%
  - {check: probe.operator.locked_out < 30s, abort: true, delay: 40s}
  - component.kube-apiserver.restarts == 0
  - probe.ready.ready >= 30
observe: {metricsEvery: 10s, processesEvery: 2s}
gate: {fail: ["flow.agents.p99:10%", "error_rate:1%"], repeat: 5}
"""


def full_data() -> dict[str, Any]:
    """Return the values of FULL, to be changed at will."""
    data = parse_text(FULL, "full.yaml").data
    assert isinstance(data, dict)
    return data


def write(directory: Path, text: str | bytes, name: str = "profile.yaml") -> str:
    """Write a profile and return its path."""
    path = directory / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def load(directory: Path, text: str, *overrides: str) -> LoadedProfile:
    """Write a profile and load it."""
    return load_profile(write(directory, text), overrides)
