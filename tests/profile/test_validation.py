from __future__ import annotations

from typing import Any

import pytest

from scaletest.profile.loading import resolve
from scaletest.profile.places import dotted
from scaletest.profile.validation import validate
from scaletest.profile.yamlfile import parse_text
from tests.profile.samples import SMALL, full_data


def small(**changes: Any) -> dict[str, Any]:
    data = parse_text(SMALL, "small.yaml").data
    assert isinstance(data, dict)
    return {**data, **changes}


def said(data: dict[str, Any]) -> list[str]:
    profile, issues = validate(data)

    assert profile is None

    return [f"{dotted(issue.path)}: {issue.what}{f' ({issue.hint})' if issue.hint else ''}" for issue in issues]


def flow(**changes: Any) -> dict[str, Any]:
    return small(flows={"f": {"agents": {"count": 1, "rollout": "1/s"}, "steps": [{"list": "pods"}], **changes}})


def step(**keys: Any) -> dict[str, Any]:
    return flow(steps=[keys])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (small(sumary="x"), "sumary: unknown key (did you mean 'summary'? keys of a profile: name, summary, parameters,"),
        (small(fleet={"pools": [{"name": "a", "nodes": 1, "pods_per_node": 1}]}),
         "fleet.pools.0.pods_per_node: unknown key (did you mean 'podsPerNode'? keys of fleet.pools.0: name, nodes,"),
        (small(controlPlane={"limits": {"apiserver": {}}}),
         "controlPlane.limits.apiserver: unknown key (did you mean 'kube-apiserver'? keys of controlPlane.limits: etcd,"),
        (small(fleet={"pools": [{"nodes": 1}]}), "fleet.pools.0.name: is required and missing"),
        (small(fleet={"pools": [{"name": "a", "nodes": "1"}]}),
         "fleet.pools.0.nodes: must be a whole number, not '1' (leave out the quotes)"),
        (small(fleet={"pools": [{"name": "a", "nodes": True}]}), "fleet.pools.0.nodes: must be a whole number, not true"),
        (small(fleet={"pools": [{"name": "a", "nodes": 1.0}]}), "fleet.pools.0.nodes: must be a whole number, not 1.0"),
        (small(fleet={"pools": [{"name": "a", "nodes": {"nodes": None}}]}),
         'fleet.pools.0.nodes: must be a whole number, not a mapping (a parameter stands in quotes: "{nodes}")'),
        (small(fleet={"pools": [{"name": "a", "nodes": 100_001}]}), "fleet.pools.0.nodes: must be at most 100,000, not 100001"),
        (small(fleet={"pools": {"a": 1}}), "fleet.pools: must be a list, not a mapping"),
        (small(fleet=[]), "fleet: must be a mapping, not a list"),
        (small(fleet=None), "fleet: must be a mapping, not nothing"),
        (small(fleet={"via": "etc"}), "fleet.via: must be 'etcd' or 'api', not 'etc' (did you mean 'etcd'?)"),
        (small(controlPlane={"kubernetes": 1.3}),
         'controlPlane.kubernetes: put the version in quotes: "1.3" (without them 1.30 is the number 1.3)'),
        (small(controlPlane={"kubernetes": "latest"}),
         "controlPlane.kubernetes: 'latest' is not a version: write 1.37 or 1.37.2"),
        (small(controlPlane={"heartbeatFactor": 99}), "controlPlane.heartbeatFactor: must be 'auto' or at most 60, not 99"),
        (small(controlPlane={"limits": {"etcd": {"memory": 5}}}),
         "controlPlane.limits.etcd.memory: 5 is not a size: write 512B, 3KB, 64MiB, 2GiB or 1TiB"),
        (small(controlPlane={"limits": {"etcd": {"memory": "1KB"}}}),
         "controlPlane.limits.etcd.memory: must be from 16MiB to 16TiB"),
        (small(controlPlane={"args": {"etcd": {"--x": 1}}}), "controlPlane.args.etcd.--x: '--x' is not a flag"),
        (small(controlPlane={"args": {"etcd": {"x": [1]}}}),
         "controlPlane.args.etcd.x: must be text or a whole number or true or false, not a list"),
        (small(controlPlane={"env": {"etcd": {"GOGC": 50}}}),
         "controlPlane.env.etcd.GOGC: must be text, not 50 (put it in quotes)"),
        (small(name="Bad_Name"), "name: 'Bad_Name' is not a name: use lower-case letters, digits and hyphens"),
        (small(summary=""), "summary: the text must not be empty"),
        (small(phases=[]), "phases: the list needs at least 1 item"),
        (small(phases=[{"name": "a"}]), "phases.0: a phase has exactly one of for, until"),
        (small(phases=[{"name": "a", "for": "1s", "until": "host.cpu_idle > 1%", "atMost": "1s"}]),
         "phases.0: a phase has exactly one of for, until"),
        (small(phases=[{"name": "a", "until": "host.cpu_idle > 1%"}]), "phases.0: until goes with atMost"),
        (small(phases=[{"name": "a", "until": "host.cpu_idle > 1%", "atMost": "0s"}]),
         "phases.0.atMost: must be more than 0"),
        (small(observe={"metricsEvery": "9ms"}),
         "observe.metricsEvery: must be at least 10ms: looked at more often, the looking would be the load"),
        (small(observe={"processesEvery": "0s"}), "observe.processesEvery: must be at least 10ms"),
        (small(probes={"p": {"get": "pods", "every": "1us"}}), "probes.p.every: must be at least 10ms"),
        (small(phases=[{"name": "a", "for": False}]), "phases.0.for: False is not a duration"),
        (small(phases=[{"name": "a", "for": "1s", "do": [{}]}]), "phases.0.do.0: an action has exactly one of grow, shrink"),
        (small(objectives=["soon"]), "objectives.0: 'soon' is not an objective: write e.g. 'probe.operator.p99 < 1s'"),
        (small(objectives=["host.cpu_idle > 101%"]), "objectives.0: host.cpu_idle is compared with a share (1%)"),
        (small(objectives=["flow.a.p98 < 1s"]), "objectives.0: flow has no measure 'p98': use one of p50, p90,"),
        (small(objectives=[{"check": "host.cpu_idle > 1%", "delay": "1s"}]), "objectives.0: delay goes with abort: true"),
        (small(objectives=[5]), "objectives.0: must be a mapping, not 5"),
        (small(slo={"x": "soon"}), "slo.x: 'soon' is not an objective"),
        (small(probes={"p": {}}), "probes.p: a probe has exactly one of get, nodeReadiness"),
        (small(probes={"p": {"nodeReadiness": False}}), "probes.p.nodeReadiness: must be true, or left out"),
        (small(probes={"p": {"nodeReadiness": True, "namespace": "x"}}), "probes.p: nodeReadiness asks for all nodes"),
        (small(probes={"p": {"get": "pods", "identities": ["node"]}}), "probes.p.identities: a probe cannot be a node"),
        (small(probes={"p": {"get": "pods", "identities": ["admin", "admin"]}}), "probes.p.identities: the identities must differ"),
        (small(probes={"p": {"get": "/x", "namespace": "y"}}), "probes.p: a path has its own namespace"),
        (flow(identity="root"), "flows.f.identity: 'root' is no identity: use system:masters, admin,"),
        (flow(identity="serviceAccount:x"), "flows.f.identity: 'serviceAccount:x' is no identity"),
        (flow(steps=[]), "flows.f: agents need at least one step"),
        (flow(agents={"rollout": "1/s"}), "flows.f.agents: write exactly one of perNode, count"),
        (flow(agents={"count": 1, "rollout": "0/s"}), "flows.f.agents.rollout: must be more than 0"),
        (flow(locustfile={"path": "x", "users": 1, "spawn": "1/s"}), "flows.f: a flow has exactly one of agents, watchers, arrivals, churn, etcd, locustfile"),
        (flow(onError={"first": "31s"}), "flows.f.onError: first must not be longer than most"),
        (flow(onError={"factor": 0.5}), "flows.f.onError.factor: must be at least 1.0, not 0.5"),
        (flow(steps=[{"list": "pods"}, {"list": "v1/pods"}]), "flows.f: steps must differ in name: give a label"),
        (step(list="pods", get="pods"), "flows.f.steps.0: a step has exactly one of list, get, watch, watchList"),
        (step(watchList="pods", consistency="exact"), "flows.f.steps.0: a watchList is of a state not older than any"),
        (step(watchList="/api/v1/pods"), "flows.f.steps.0: watchList takes a resource, no path"),
        (step(list="podz"), "flows.f.steps.0: 'podz' is not a resource: write pods, v1/pods or apps/v1/daemonsets"),
        (step(get="pods"), "flows.f.steps.0: get of a resource needs a name"),
        (step(list="pods", name="x"), "flows.f.steps.0: name goes with get"),
        (step(list="/api/v1/pods", namespace="x"), "flows.f.steps.0: a path has its own namespace and name"),
        (step(watch="pods", limit=5), "flows.f.steps.0: limit goes with list"),
        (step(watch="pods", every="5s"), "flows.f.steps.0: a watch stays open: it has no every"),
        (step(get="pods", name="x", fieldSelector="a=b"), "flows.f.steps.0: a selector goes with list, watch or watchList"),
        (step(list="pods", jitter="10%"), "flows.f.steps.0: jitter goes with every"),
        (step(list="pods", every="5s", jitter="150%"), "flows.f.steps.0.jitter: '150%' is not a share from 0% to 100%"),
        (step(list="pods", every="-5s"), "flows.f.steps.0.every: '-5s' is not a duration"),
        (step(list="pods", label="a.b"), "flows.f.steps.0.label: 'a.b' is not a label"),
        (step(list="pods", namespace="Kube_System"), "flows.f.steps.0.namespace: 'Kube_System' is not a Kubernetes name"),
    ],
)  # fmt: skip
def test_a_mistake_is_said_in_plain_words_at_its_place(data: dict[str, Any], expected: str) -> None:
    (found,) = said(data)

    assert found.startswith(expected)


def test_all_mistakes_are_found_at_once() -> None:
    data = small(
        name=5, sumary="x", phases=[{"name": "a", "for": "1x"}, {"name": "b", "for": 2}], objectives=["x", "y"]
    )

    assert {"name", "sumary", "phases.0.for", "phases.1.for", "objectives.0", "objectives.1"} == {
        line.split(":")[0] for line in said(data)
    }


def test_no_word_of_the_validation_library_reaches_people() -> None:
    texts = " ".join(
        said(small(name=[], summary={}, fleet=5, flows=[], probes="x", phases={}, slo=[], objectives=None))
    )

    assert "Input should" not in texts
    assert "valid dictionary" not in texts


def test_a_whole_profile_reads_back_from_its_plain_values() -> None:
    data = full_data()
    data["fleet"]["pools"][0]["nodes"] = 30
    data["flows"]["agents"]["agents"]["rollout"] = "20/s"
    data["controlPlane"]["kubernetes"] = "1.31"
    data["controlPlane"]["limits"]["etcd"]["cpu"] = 0.5
    data["flows"]["agents"]["steps"][1]["gzip"] = True
    data["phases"][1]["until"] = "flow.agents.started >= 30"
    profile, issues = validate(data)

    assert [] == issues
    assert profile is not None
    assert (profile, []) == validate(resolve(profile))


@pytest.mark.parametrize("rule", ["p99", "p99:", ":10%", "p99:10%%", "p99:much"])
def test_a_rule_of_the_gate_is_checked_when_the_profile_is_read(rule: str) -> None:
    (problem,) = said(small(gate={"fail": [rule]}))
    assert problem.startswith("gate.fail.0: ")
