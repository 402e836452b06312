"""Named sizes of a profile: what they change, who wins over them, and whom mistakes are blamed on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from scaletest.core.errors import ProfileError, UsageError
from scaletest.profile.builtin import built_in_profiles
from scaletest.profile.loading import LoadedProfile, load_profile
from scaletest.profile.render import to_yaml
from tests.profile.samples import FULL

SIZES = """\
sizes:
  quick: {nodes: 7, kubernetes: "1.37", controlPlane.limits.kube-apiserver.memory: 1GiB, fleet.pools.cpu.nodes: 4}
  large: {nodes: 700}
"""


def load(tmp_path: Path, *overrides: str, size: str | None = "quick", sizes: str = SIZES) -> LoadedProfile:
    path = tmp_path / "full.yaml"
    path.write_text(FULL + sizes)
    return load_profile(str(path), overrides, size=size)


def told(tmp_path: Path, *overrides: str, sizes: str) -> str:
    with pytest.raises(ProfileError) as caught:
        load(tmp_path, *overrides, sizes=sizes)
    return "\n".join(map(str, caught.value.problems))


def test_a_size_sets_parameters_and_keys(tmp_path: Path) -> None:
    profile = load(tmp_path).profile

    assert [7, 4] == [pool.nodes for pool in profile.fleet.pools]
    assert "1.37" == profile.control_plane.kubernetes
    assert 1 << 30 == profile.control_plane.limits["kube-apiserver"].memory_bytes


def test_without_a_size_nothing_is_changed(tmp_path: Path) -> None:
    assert 30 == load(tmp_path, size=None).profile.fleet.pools[0].nodes


def test_set_wins_over_a_size(tmp_path: Path) -> None:
    loaded = load(tmp_path, "nodes=9", "controlPlane.limits.kube-apiserver.memory=3GiB")

    assert [9, 4] == [pool.nodes for pool in loaded.profile.fleet.pools]
    assert 3 << 30 == loaded.profile.control_plane.limits["kube-apiserver"].memory_bytes


def test_every_value_says_that_it_came_from_the_size(tmp_path: Path) -> None:
    origins = load(tmp_path, "kubernetes=1.36").provenance

    assert "--size quick: fleet.pools.cpu.nodes=4" == str(origins["fleet.pools.1.nodes"])
    assert str(origins["fleet.pools.0.nodes"]).endswith("via {nodes} from --size quick: nodes=7")
    assert str(origins["controlPlane.kubernetes"]).endswith("from --set kubernetes=1.36")


def test_a_profile_in_a_size_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    loaded = load(tmp_path, sizes='sizes:\n  quick: {summary: "{{nodes}} of {nodes}"}\n')
    again = tmp_path / "again.yaml"
    again.write_text(to_yaml(loaded.resolved))

    assert loaded.profile == load_profile(str(again)).profile
    assert loaded.profile == load_profile(str(again), size="quick").profile
    assert "{nodes} of 30" == loaded.profile.summary


def test_an_unknown_size_is_told_with_the_nearest_and_all(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no size 'quik'") as caught:
        load(tmp_path, size="quik")

    assert "did you mean quick? sizes: quick, large" == caught.value.hint


def test_a_profile_without_sizes_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no sizes, so none called 'quick'"):
        load(tmp_path, sizes="")


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ("{node: 7}", "--size quick: node=7: node: there is no 'node': did you mean 'nodes'?"),
        ("{nodes: many}", "--size quick: nodes=many: nodes: nodes is a whole number (default 30), not 'many'"),
        ("{kubernetes: 1.30}", "kubernetes is text (default '1.31'), not 1.3"),
        ("{controlPlane.kubernetes: 1.30}", "put the version in quotes"),
        (
            "{fleet.pools.cpu.nodes: -1}",
            "--size quick: fleet.pools.cpu.nodes=-1: fleet.pools.1.nodes: must be at least 0",
        ),
        ("{nodes: [1]}", "nodes is a whole number (default 30), not a list"),
        ("5", "sizes.quick: must be a mapping, not 5"),
    ],
)
def test_mistakes_in_a_size_are_blamed_on_it(tmp_path: Path, size: str, words: str) -> None:
    assert words in told(tmp_path, sizes=f"sizes:\n  quick: {size}\n")


def test_a_size_cannot_be_changed_by_a_value(tmp_path: Path) -> None:
    assert "--size NAME" in told(tmp_path, "sizes.quick.nodes=9", sizes=SIZES)


def test_the_sizes_of_built_in_profiles_are_valid() -> None:
    sizes = [(entry.name, size) for entry in built_in_profiles() for size in _sizes(entry.path)]

    assert ("openai-outage", "quick") in sizes
    for name, size in sizes:
        assert load_profile(name, size=size).profile != load_profile(name).profile


def _sizes(path: Path) -> list[str]:
    data: dict[str, Any] = yaml.safe_load(path.read_text())
    return list(data.get("sizes", {}))
