from __future__ import annotations

from pathlib import Path

from scaletest.profile.builtin import built_in_profiles, find_profile
from tests.profile.samples import SMALL, write


def test_the_built_in_profiles_have_names_and_summaries() -> None:
    entries = built_in_profiles()

    assert "smoke" in [entry.name for entry in entries]
    assert all(entry.summary for entry in entries)


def test_profiles_are_listed_by_name_and_a_broken_one_does_not_hide_the_others(tmp_path: Path) -> None:
    write(tmp_path, SMALL.replace("needs.", "needs,\n  on two lines."), "b.yaml")
    write(tmp_path, "a: [", "a.yaml")
    write(tmp_path, "no profile", "README.md")
    broken, fine = built_in_profiles(tmp_path)

    assert ("a", "b") == (broken.name, fine.name)
    assert broken.summary.startswith("cannot be read: ")
    assert "The least that a profile needs, on two lines." == fine.summary


def test_a_reference_with_a_slash_or_a_yaml_ending_is_a_path() -> None:
    assert Path("./smoke") == find_profile("./smoke")
    assert Path("smoke.yml") == find_profile("smoke.yml")
    assert "smoke.yaml" == find_profile("smoke").name
