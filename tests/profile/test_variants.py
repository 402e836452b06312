"""Variants that a profile names: what they change, in which order values win, and whom mistakes are blamed on."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaletest.core.errors import ProfileError, UsageError
from scaletest.profile.builtin import built_in_profiles
from scaletest.profile.loading import LoadedProfile, load_profile, variant_names
from scaletest.profile.render import to_yaml
from tests.profile.samples import FULL

VARIANTS = """\
sizes:
  quick: {nodes: 7, kubernetes: "1.37"}
variants:
  plain: {summary: As it is.}
  fewer: {summary: "Has {nodes} nodes.", set: {nodes: 3, fleet.pools.cpu.nodes: 4}}
"""


def write(tmp_path: Path, variants: str = VARIANTS) -> str:
    path = tmp_path / "full.yaml"
    path.write_text(FULL + variants)
    return str(path)


def load(tmp_path: Path, *overrides: str, variant: str | None = "fewer", size: str | None = None) -> LoadedProfile:
    return load_profile(write(tmp_path), overrides, size=size, variant=variant)


def told(path: str, *overrides: str) -> str:
    with pytest.raises(ProfileError) as caught:
        load_profile(path, overrides, variant="fewer")
    return "\n".join(map(str, caught.value.problems))


def nodes(loaded: LoadedProfile) -> list[int]:
    return [pool.nodes for pool in loaded.profile.fleet.pools]


def test_a_variant_sets_parameters_and_keys_over_a_size_and_under_set(tmp_path: Path) -> None:
    assert [3, 4] == nodes(load(tmp_path))
    assert [3, 4] == nodes(load(tmp_path, size="quick"))
    assert "1.37" == load(tmp_path, size="quick").profile.control_plane.kubernetes
    assert [9, 4] == nodes(load(tmp_path, "nodes=9"))


def test_without_a_variant_and_with_one_that_sets_nothing_the_profile_is_as_it_stands(tmp_path: Path) -> None:
    assert load(tmp_path, variant=None).profile == load(tmp_path, variant="plain").profile


def test_a_value_says_that_it_came_from_the_variant(tmp_path: Path) -> None:
    origins = load(tmp_path).provenance

    assert "--variant fewer: fleet.pools.cpu.nodes=4" == str(origins["fleet.pools.1.nodes"])


def test_the_names_are_told_in_order_without_loading_the_profile(tmp_path: Path) -> None:
    assert ["plain", "fewer"] == variant_names(write(tmp_path))
    assert [] == variant_names("smoke")
    assert [] == variant_names(write(tmp_path, "variants: 5\n"))


def test_a_summary_is_no_text_for_parameters_and_is_written_back_as_it_stands(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    again = tmp_path / "again.yaml"
    again.write_text(to_yaml(loaded.resolved))

    assert "Has {nodes} nodes." == loaded.profile.variants["fewer"].summary
    assert loaded.profile == load_profile(str(again)).profile


def test_an_unknown_variant_is_told_with_the_nearest_and_all(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no variant 'few'") as caught:
        load(tmp_path, variant="few")

    assert "did you mean fewer? variants: plain, fewer" == caught.value.hint


@pytest.mark.parametrize(
    ("variant", "words"),
    [
        ("{summary: x, set: {node: 7}}", "--variant fewer: node=7: node: there is no 'node': did you mean 'nodes'?"),
        ("{summary: x, set: {nodes: many}}", "--variant fewer: nodes=many: nodes: nodes is a whole number"),
        ("{set: {nodes: 3}}", "variants.fewer.summary: is required and missing"),
        ("{summary: x, values: {}}", "variants.fewer.values: unknown key"),
    ],
)
def test_mistakes_in_a_variant_are_blamed_on_it(tmp_path: Path, variant: str, words: str) -> None:
    assert words in told(write(tmp_path, f"variants:\n  fewer: {variant}\n"))


def test_a_variant_is_changed_by_its_name_and_not_by_a_value(tmp_path: Path) -> None:
    assert "choose one by --variant NAME" in told(write(tmp_path), "variants.fewer.summary=x")


def test_a_profile_with_variants_has_no_parameter_of_that_name(tmp_path: Path) -> None:
    text = FULL.replace("parameters:\n", "parameters:\n  variant: x\n").replace(
        "summary: ", 'summary: "{variant}" # ', 1
    )

    path = tmp_path / "full.yaml"
    path.write_text(text + VARIANTS)
    assert "parameters.variant: the profile has variants" in told(str(path))


def test_the_variants_of_built_in_profiles_are_valid_and_differ() -> None:
    named = {entry.name: variant_names(entry.name) for entry in built_in_profiles() if variant_names(entry.name)}

    assert len(named["what-if-agent"]) >= 6
    for name, variants in named.items():
        found = [load_profile(name, variant=variant).profile for variant in variants]
        assert len(found) == len({profile.model_dump_json() for profile in found})
