from __future__ import annotations

from pathlib import Path

import pytest

from scaletest.core.errors import ExitCode, ProfileError, UsageError
from scaletest.profile.loading import load_profile
from scaletest.profile.schema import Profile
from tests.profile.samples import FULL, SMALL, load, write


def problems(directory: Path, text: str | bytes, *overrides: str) -> list[str]:
    path = write(directory, text)
    with pytest.raises(ProfileError) as caught:
        load_profile(path, overrides)

    assert ExitCode.USAGE == caught.value.exit_code

    return [str(problem).replace(path, "FILE") for problem in caught.value.problems]


def test_a_profile_is_loaded_with_its_parameters_filled_in(tmp_path: Path) -> None:
    loaded = load(tmp_path, FULL)

    assert 30 == loaded.profile.fleet.pools[0].nodes
    assert "1.31" == loaded.profile.control_plane.kubernetes
    assert "flow.agents.started >= 30" == loaded.profile.phases[1].until
    assert "spec.nodeName={node}" == loaded.profile.flows["agents"].steps[0].field_selector
    assert {"nodes": 30, "rollout": "20/s", "kubernetes": "1.31", "share": 0.5, "gzip": True} == loaded.parameters
    assert tmp_path == loaded.directory


def test_the_resolved_values_read_back_as_the_same_profile(tmp_path: Path) -> None:
    loaded = load(tmp_path, FULL, "nodes=17", "flows.singles.agents.rollout=100/m")

    assert loaded.profile == Profile.model_validate(loaded.resolved)
    assert "1m30s" != loaded.resolved["flows"]["agents"]["steps"][2]["every"]
    assert "90s" == loaded.resolved["flows"]["agents"]["steps"][2]["every"]
    assert "100/m" != loaded.resolved["flows"]["singles"]["agents"]["rollout"]


def test_every_value_has_an_origin(tmp_path: Path) -> None:
    origins = load(tmp_path, FULL, "nodes=17", "fleet.pools.cpu.nodes=6", "share=1").provenance
    line = FULL.splitlines().index('      nodes: "{nodes}"') + 1

    assert f"profile.yaml:{line} via {{nodes}} from --set nodes=17" == str(origins["fleet.pools.0.nodes"])
    assert "--set fleet.pools.cpu.nodes=6" == str(origins["fleet.pools.1.nodes"])
    assert "default" == str(origins["fleet.pools.1.podsPerNode"])
    assert "profile.yaml:1" == str(origins["name"])
    assert "--set nodes=17" == str(origins["parameters.nodes"])
    assert str(origins["objectives.0.check"]).startswith("profile.yaml:")
    assert "default" == str(origins["objectives.0.abort"])
    assert str(origins["objectives.3.abort"]).startswith("profile.yaml:")
    assert str(origins["flows.agents.agents.rollout"]).endswith("via {rollout}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "FILE: is empty"),
        ("# only a comment\n", "FILE: is empty"),
        ("- a\n- b\n", "FILE:1: is a list, not a mapping (key: value)"),
        ("\njust text\n", "FILE:2: is a single value, not a mapping (key: value)"),
        (b"\xff\xfe", "FILE:1: is not UTF-8 (byte 0xff)"),
        (b"a\0b", "FILE: is not a text file"),
    ],
)
def test_a_file_that_holds_no_mapping_is_refused(tmp_path: Path, text: str | bytes, said: str) -> None:
    assert [said] == problems(tmp_path, text)


def test_all_problems_come_sorted_by_line(tmp_path: Path) -> None:
    text = SMALL.replace("for: 1s", "for: 1") + "naem: x\nslo: {a: b}\nname: again\nobserve: {metricsEvery: {x}}\n"
    found = problems(tmp_path, text, "bad")

    assert [
        "--set bad: bad",
        "FILE:4: phases.0.for",
        "FILE:7: naem",
        "FILE:8: slo.a",
        "FILE:9: name",
        "FILE:10: observe.metricsEvery",
    ] == [": ".join(line.split(": ")[:2]) for line in found]


def test_parts_that_do_not_fit_are_said_with_their_lines(tmp_path: Path) -> None:
    found = problems(tmp_path, SMALL.replace("for: 1s}", "for: 1s, start: [x],\n     stop: [y]}"))

    assert [
        "FILE:4: phases.0.start.0: there is no flow 'x' (the profile has no flow)",
        "FILE:5: phases.0.stop.0: there is no flow 'y' (the profile has no flow)",
    ] == found


def test_an_unquoted_parameter_is_explained(tmp_path: Path) -> None:
    text = FULL.replace('nodes: "{nodes}"', "nodes: {nodes}")

    assert 'must be a whole number, not a mapping (a parameter stands in quotes: "{nodes}")' in "".join(
        problems(tmp_path, text)
    )


def test_a_version_without_quotes_is_explained(tmp_path: Path) -> None:
    text = SMALL + "controlPlane: {kubernetes: 1.30}\n"

    assert [
        'FILE:7: controlPlane.kubernetes: put the version in quotes: "1.3" (without them 1.30 is the number 1.3)'
    ] == problems(tmp_path, text)


def test_a_parameter_that_nothing_uses_is_a_warning(tmp_path: Path) -> None:
    (warning,) = load(tmp_path, SMALL + "parameters: {idle: 1}\n").warnings

    assert str(warning).endswith("profile.yaml:7: parameters.idle: nothing uses this parameter")


@pytest.mark.parametrize("parameters", ["[1]", "5", "{a: [1]}", "{a: null}", "{a: {b: 1}}", "{node: 1}", "{name: 1}", "{a b: 1}", "{a: '{b}'}"])  # fmt: skip
def test_parameters_that_are_no_plain_values_are_refused(tmp_path: Path, parameters: str) -> None:
    (found,) = problems(tmp_path, SMALL + f"parameters: {parameters}\n")

    assert found.startswith("FILE:7: parameters")


def test_an_unknown_name_gives_the_nearest_and_the_list() -> None:
    with pytest.raises(UsageError) as caught:
        load_profile("smok")

    assert "there is no built-in profile 'smok'" == caught.value.message
    assert (caught.value.hint or "").startswith("did you mean smoke? built in: ")


def test_a_name_of_a_file_here_gets_its_path_as_the_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, SMALL, "mine.yaml")
    monkeypatch.chdir(tmp_path)

    assert "small" == load_profile("mine.yaml").profile.name
    assert "small" == load_profile("./mine.yaml").profile.name
    with pytest.raises(UsageError) as caught:
        load_profile("mine")

    assert "the file here is ./mine.yaml" == caught.value.hint


def test_the_smoke_profile_is_small_short_and_without_warnings() -> None:
    loaded = load_profile("smoke")

    assert "smoke" == loaded.profile.name
    assert [] == loaded.warnings
    assert 50 == loaded.profile.fleet.node_count
    assert 60 > sum(phase.longest_s for phase in loaded.profile.phases)
    assert {"nodes", "rollout", "kubernetes"} == set(loaded.parameters)


def test_the_smoke_profile_takes_other_sizes_and_versions() -> None:
    loaded = load_profile("smoke", ["nodes=3", "rollout=1/s", "kubernetes=1.31"])

    assert 3 == loaded.profile.fleet.node_count
    assert "1.31" == loaded.profile.control_plane.kubernetes
    assert "probe.ready.ready >= 3" == loaded.profile.objectives[5].check
