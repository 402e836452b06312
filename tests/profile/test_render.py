from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.profile.builtin import built_in_profiles
from scaletest.profile.loading import load_profile
from scaletest.profile.render import to_yaml, to_yaml_with_origins
from scaletest.profile.yamlfile import parse_text
from tests.profile.samples import FULL, SMALL, load

SCALARS = st.one_of(
    st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"))),
    st.integers(-(10**17), 10**17),
    st.floats(0, 1e15, allow_nan=False),
    st.booleans(),
    st.sampled_from(
        ["1.30", "on", "null", "1e3", "-.5", "+.5", "0o7", "12:30", "~", "a\nb\n", " x ", "{x}", "# no", "5."]
    ),
)


@given(st.dictionaries(st.text(alphabet="abcxyz019.-_", min_size=1), SCALARS))
def test_what_is_written_reads_back_with_its_types(values: dict[str, object]) -> None:
    document = parse_text(to_yaml({"parameters": values}), "p")
    found = document.data["parameters"]

    assert [] == document.problems
    assert values == found
    assert [type(value) for value in values.values()] == [type(value) for value in found.values()]


@pytest.mark.parametrize("text", [SMALL, FULL, FULL.replace("Every part", "A {{literal}} brace,\n  every part")])
def test_a_profile_that_was_written_loads_as_the_same_profile(tmp_path: Path, text: str) -> None:
    loaded = load(tmp_path, text)
    again = load(tmp_path, to_yaml(loaded.resolved))

    assert loaded.profile == again.profile
    assert loaded.resolved == again.resolved


def test_origins_stand_beside_the_values_and_do_not_change_them(tmp_path: Path) -> None:
    loaded = load(tmp_path, FULL, "nodes=7")
    text = to_yaml_with_origins(loaded.resolved, loaded.provenance)

    assert loaded.profile == load(tmp_path, text).profile
    assert len(loaded.provenance) == sum(" # " in line for line in text.splitlines())


@pytest.mark.parametrize("name", [entry.name for entry in built_in_profiles()])
def test_every_built_in_profile_is_valid_named_like_its_file_and_reads_back(tmp_path: Path, name: str) -> None:
    loaded = load_profile(name)

    assert name == loaded.profile.name
    assert [] == loaded.warnings
    assert loaded.profile == load(tmp_path, to_yaml(loaded.resolved, loaded.searched)).profile
