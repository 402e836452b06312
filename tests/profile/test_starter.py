"""Every profile that ``scaletest init`` can write is valid, is what was asked for, and explains itself."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.profile.loading import LoadedProfile, load_profile
from scaletest.profile.starter import MOST_NODES, Goal, Load, Start, name_from, starter
from scaletest.runner.versions import version_problems


def written(tmp_path: Path, load: Load, nodes: int, goal: Goal) -> tuple[str, LoadedProfile]:
    path = tmp_path / "mine.yaml"
    text = starter(Start("mine", load, nodes, goal, "1.37", "mine.yaml"))
    path.write_text(text, encoding="utf-8")
    return text, load_profile(str(path))


@pytest.mark.parametrize("nodes", [1, 100, 7000, MOST_NODES])
@pytest.mark.parametrize(("load", "goal"), list(itertools.product(Load, Goal)))
def test_every_combination_is_a_valid_profile(load: Load, goal: Goal, nodes: int, tmp_path: Path) -> None:
    text, loaded = written(tmp_path, load, nodes, goal)
    profile = loaded.profile

    assert [] == [*loaded.warnings, *version_problems(loaded)]
    assert ("mine", goal is Goal.CAPACITY) == (profile.name, profile.search is not None)
    if goal is not Goal.CAPACITY:
        assert nodes == profile.fleet.node_count
    if goal is Goal.CAPACITY and load is not Load.CONTROLLER:
        assert f"search.capacity >= {nodes}\n" in text


def test_what_writes_may_write(tmp_path: Path) -> None:
    for load, goal in itertools.product(Load, Goal):
        flows = written(tmp_path, load, 100, goal)[1].profile.flows.values()
        writing = [flow for flow in flows if flow.arrivals is not None or flow.churn is not None]
        assert [] == [flow.identity for flow in writing if flow.identity.startswith("serviceAccount:")]


def test_every_part_has_a_comment_above_it(tmp_path: Path) -> None:
    for load, goal in itertools.product(Load, Goal):
        text, _ = written(tmp_path, load, 100, goal)
        lines = text.splitlines()
        parts = [number for number, line in enumerate(lines) if re.match(r"[a-zA-Z]+:", line)]
        needed = {"name", "parameters", "controlPlane", "fleet", "flows", "probes", "phases", "objectives"}
        assert needed <= {lines[number].partition(":")[0] for number in parts}
        assert [] == [
            lines[number] for number in parts if lines[number - 1] == "" and not lines[number].startswith("name:")
        ]
        assert max(map(len, lines)) <= 135


@given(st.text(max_size=60))
@settings(max_examples=25)
def test_the_name_of_a_file_becomes_that_of_a_profile(stem: str) -> None:
    name = name_from(stem)
    assert name == "" or re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?", name)


def test_a_name_keeps_what_can_stay() -> None:
    assert "my-agent-2" == name_from("My_Agent 2")
