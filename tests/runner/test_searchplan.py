"""What a search will ask for, and how long it can take."""

from __future__ import annotations

from pathlib import Path

from scaletest.profile.loading import load_profile
from scaletest.runner.searchplan import SearchPlan, longest_s, plan_search
from tests.profile.test_search import SEARCH


def plan(directory: Path, most_nodes: int | None = None) -> SearchPlan:
    path = directory / "search.yaml"
    path.write_text(SEARCH)
    found = plan_search(load_profile(str(path)), most_nodes)
    assert found is not None
    return found


def test_a_profile_without_a_search_has_no_plan() -> None:
    assert plan_search(load_profile("smoke")) is None


def test_a_search_goes_from_the_parameter_s_value_to_the_heaviest_load(tmp_path: Path) -> None:
    assert (50, 4_000) == (plan(tmp_path).space.start, plan(tmp_path).space.end)
    assert (50, 4_000) == (plan(tmp_path, 10_000).space.start, plan(tmp_path, 10_000).space.end)


def test_a_search_ends_at_the_nodes_that_fit(tmp_path: Path) -> None:
    capped = plan(tmp_path, 1_000)

    assert 980 <= capped.space.end <= 1_000
    assert 4_000 == capped.asked_end


def test_the_time_is_bounded(tmp_path: Path) -> None:
    found = plan(tmp_path)

    # 50 to 4,000 by twos: 8; from a factor of two to 5 % four halvings and one for tidy numbers; two to confirm.
    assert 15 == found.trials
    assert 15 * 30 <= found.shortest_s < found.longest_s
    assert 3_600 + 120 + (10 + 3 * 10) + 4 * (30 + 120) + 2 * 120 == longest_s(found.spec)
