from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaletest.core.errors import ProfileError
from scaletest.profile.overrides import apply_overrides, parse_override
from tests.profile.samples import FULL, full_data, load


def overridden(*overrides: str) -> dict[str, Any]:
    result = apply_overrides(full_data(), overrides)

    assert [] == result.problems

    data = result.data
    assert isinstance(data, dict)
    return data


def problem(*overrides: str) -> str:
    (found,) = apply_overrides(full_data(), overrides).problems
    return str(found)


def at(data: Any, *path: str | int) -> Any:
    for part in path:
        data = data[part]
    return data


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("nodes=100", ("parameters", "nodes"), 100),
        ("parameters.nodes=100", ("parameters", "nodes"), 100),
        ("rollout=100/s", ("parameters", "rollout"), "100/s"),
        ("share=1", ("parameters", "share"), 1.0),
        ("gzip=false", ("parameters", "gzip"), False),
        ("kubernetes=1.30", ("parameters", "kubernetes"), "1.30"),
        ("kubernetes='1.30'", ("parameters", "kubernetes"), "1.30"),
        ("controlPlane.kubernetes=1.30", ("controlPlane", "kubernetes"), "1.30"),
        ("name=other", ("name",), "other"),
        ("summary=true", ("summary",), "true"),
        ("summary=a: b # c", ("summary",), "a: b # c"),
        ('summary=""', ("summary",), ""),
        ("fleet.pools.gpu.nodes=100", ("fleet", "pools", 0, "nodes"), 100),
        ("fleet.pools.1.nodes=100", ("fleet", "pools", 1, "nodes"), 100),
        ("fleet.pools.cpu.nodes={nodes}", ("fleet", "pools", 1, "nodes"), "{nodes}"),
        ("fleet.pools.gpu.resources.nvidia.com/gpu=4", ("fleet", "pools", 0, "resources", "nvidia.com/gpu"), 4),
        ("fleet.pools.gpu.labels.zone=7", ("fleet", "pools", 0, "labels", "zone"), "7"),
        ("fleet.pools.cpu.labels={a: b}", ("fleet", "pools", 1, "labels"), {"a": "b"}),
        ("flows.agents.steps.0.every=5s", ("flows", "agents", "steps", 0, "every"), "5s"),
        ("flows.agents.steps.all.limit=5", ("flows", "agents", "steps", 1, "limit"), 5),
        ("flows.agents.steps.all.limit=null", ("flows", "agents", "steps", 1, "limit"), None),
        ("objectives.0=host.cpu_idle > 1%", ("objectives", 0), "host.cpu_idle > 1%"),
        ("objectives.0.abort=true", ("objectives", 0, "abort"), True),
        ("phases.rollout.atMost=5s", ("phases", 1, "atMost"), "5s"),
        ("controlPlane.limits.kube-scheduler.memory=1GiB", ("controlPlane", "limits", "kube-scheduler", "memory"), "1GiB"),
        ("controlPlane.args.etcd.quota-backend-bytes=1000", ("controlPlane", "args", "etcd", "quota-backend-bytes"), 1000),
        ("controlPlane.env.etcd.GOGC=50", ("controlPlane", "env", "etcd", "GOGC"), "50"),
        ("probes.operator.identities=[admin]", ("probes", "operator", "identities"), ["admin"]),
        ("slo.new=host.cpu_idle > 1%", ("slo", "new"), "host.cpu_idle > 1%"),
        ("  nodes = 100 ", ("parameters", "nodes"), 100),
    ],
)  # fmt: skip
def test_an_override_sets_its_place(override: str, path: tuple[str | int, ...], value: object) -> None:
    found = at(overridden(override), *path)

    assert (type(value), value) == (type(found), found)


def test_an_objective_written_as_text_becomes_a_mapping_when_a_part_is_set() -> None:
    data = overridden("objectives.1.abort=true")

    assert {"check": "flow.agents.list-pods.p99 < 2s", "abort": True} == data["objectives"][1]


def test_the_last_override_of_a_key_wins() -> None:
    assert 3 == overridden("nodes=2", "nodes=3")["parameters"]["nodes"]
    assert {"a": "2"} == overridden("fleet.pools.cpu.labels.b=1", "fleet.pools.cpu.labels={a: '2'}")["fleet"]["pools"][
        1
    ]["labels"]


def test_the_values_given_are_not_changed() -> None:
    data = full_data()
    apply_overrides(data, ["nodes=100", "fleet.pools.gpu.podsPerNode=1"])

    assert full_data() == data


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("ndoes=1", "--set ndoes=1: ndoes: there is no 'ndoes': did you mean 'nodes'?"),
        ("fleet.pool.gpu.nodes=1", "there is no 'pool' in fleet: did you mean 'fleet.pools'?"),
        ("fleet.pools.gup.nodes=1", "there is no 'gup' in fleet.pools: did you mean 'fleet.pools.gpu'?"),
        ("fleet.pools.gpu.node=1", "did you mean 'fleet.pools.0.nodes'? (possible in fleet.pools.0: name, nodes, podsPerNode"),
        ("fleet.pools.gpu.pods_per_node=1", "did you mean 'fleet.pools.0.podsPerNode'?"),
        ("fleet.pools.2.nodes=1", "there is no '2' in fleet.pools (possible in fleet.pools: gpu, cpu)"),
        ("fleet.pools.-1.nodes=1", "there is no '-1' in fleet.pools"),
        ("flows.agent.steps.0.every=1s", "there is no 'agent' in flows: did you mean 'flows.agents'?"),
        ("flows.new={}", "there is no 'new' in flows (possible in flows: agents, singles)"),
        ("flows.agents.steps.9.every=1s", "(possible in flows.agents.steps: 0, all, 2, 3, health)"),
        ("objectives.6=x", "(possible in objectives: 0, 1, 2, 3, 4, 5)"),
        ("controlPlane.limits.apiserver.memory=1GiB", "did you mean 'controlPlane.limits.kube-apiserver'?"),
        ("name.first=x", "name is a plain value: nothing is under it"),
        ("parameters.new=1", "there is no 'new' in parameters"),
        ("nodes", "--set nodes: nodes: not KEY=VALUE"),
        ("=5", "not KEY=VALUE"),
        ("", "not KEY=VALUE"),
        ("a..b=5", "not KEY=VALUE"),
        ("nodes=", "no value"),
        ("nodes=many", "--set nodes=many: nodes: nodes is a whole number (default 30), not 'many'"),
        ("nodes=1.5", "nodes is a whole number (default 30), not 1.5"),
        ("nodes=true", "nodes is a whole number (default 30), not true"),
        ("nodes=[1]", "nodes is a whole number (default 30), not a list"),
        ("gzip=1", "gzip is true or false (default true), not 1"),
        ("share=half", "share is a number (default 0.5), not 'half'"),
        ("rollout=[1]", "rollout is text (default '20/s'), not a list"),
        ("phases=[1, 2", "--set phases=[1, 2: phases: not valid YAML: a bracket is not closed"),
        ("summary='open", "summary: not valid YAML: a quote is opened and not closed"),
        ("fleet.pools.gpu.labels={a: 1, a: 2}", "the key is given twice"),
    ],
)  # fmt: skip
def test_an_override_that_cannot_be_says_why(override: str, said: str) -> None:
    assert said in problem(override)
    assert problem(override).startswith(f"--set {override.strip()}")


def test_all_overrides_that_cannot_be_are_found() -> None:
    assert 3 == len(apply_overrides(full_data(), ["a=1", "nodes=2", "b", "share=x"]).problems)


def test_parsing_keeps_key_value_and_text() -> None:
    override = parse_override(" a.b = x=y ")

    assert ("a.b", "x=y", "x=y") == (override.key, override.text, override.value)
    assert "--set a.b=x=y" == str(override)


def test_a_value_under_a_place_that_is_no_mapping_is_refused() -> None:
    data = {**full_data(), "fleet": "nothing"}
    (found,) = apply_overrides(data, ["fleet.via=api"]).problems

    assert "fleet is 'nothing' in the file: set fleet as a whole" == found.what


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("rollout=80", "--set rollout=80: flows.agents.agents.rollout: '80' is not a rate"),
        ("flows.agents.steps.0.every=5", "--set flows.agents.steps.0.every=5: flows.agents.steps.0.every: 5 is not a duration"),
        ("phases.baseline.until=host.cpu_idle > 1%", "phases.0: a phase has exactly one of for, until"),
        ("flows.agents.steps.0.every={x}", "--set flows.agents.steps.0.every={x}: flows.agents.steps.0.every: unknown parameter {x}"),
        ("phases.1.start=[agent]", "--set phases.1.start=[agent]: phases.1.start.0: there is no flow 'agent'"),
        ("nodes=-1", "--set nodes=-1: fleet.pools.0.nodes: must be at least 0, not -1"),
    ],
)  # fmt: skip
def test_a_value_that_the_schema_refuses_is_blamed_on_its_override(tmp_path: Path, override: str, said: str) -> None:
    with pytest.raises(ProfileError) as caught:
        load(tmp_path, FULL, override)

    assert said in str(caught.value)


def test_setting_a_parameter_that_nothing_uses_is_refused(tmp_path: Path) -> None:
    text = FULL.replace("  share: 0.5\n", "  share: 0.5\n  idle: 1\n")

    assert ["nothing uses this parameter"] == [warning.what for warning in load(tmp_path, text).warnings]
    with pytest.raises(ProfileError, match="nothing in the profile uses this parameter"):
        load(tmp_path, text, "idle=2")


def test_a_parameter_whose_only_use_another_override_replaces_may_be_set(tmp_path: Path) -> None:
    loaded = load(tmp_path, FULL, "share=0.25", "controlPlane.limits.etcd.cpu=2")

    assert 2.0 == loaded.profile.control_plane.limits["etcd"].cpu_cores
