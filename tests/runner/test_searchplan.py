"""What a search will ask for, and how long it can take."""

from __future__ import annotations

from pathlib import Path

from scaletest.profile.loading import load_profile
from scaletest.runner.searchplan import SearchPlan, longest_s, plan_search
from tests.profile.test_search import SEARCH


def plan(directory: Path, most_nodes: int | None = None, beyond: str = "") -> SearchPlan:
    path = directory / "search.yaml"
    path.write_text(SEARCH.replace("  to: 4000\n", f"  to: 4000\n{beyond}"))
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


BEYOND = "  beyond: {parameter: period, to: 2s}\n"


def test_loads_beyond_are_made_by_the_heaviest_that_fits_working_harder(tmp_path: Path) -> None:
    found = plan(tmp_path, beyond=BEYOND)

    assert (4_000, 4_000, 20_000) == (found.made_end, found.space.landing, found.space.end)
    assert {"nodes": 4_000} == found.values(4_000)
    assert {"nodes": 4_000, "period": "3.333s"} == found.values(12_000)
    assert {"nodes": 4_000, "period": "2s"} == found.values(20_000)
    assert ["500", "12000 (derived: nodes 4000, period 3.333s)"] == [found.said(500), found.said(12_000)]


def test_loads_are_derived_from_the_nodes_that_fit(tmp_path: Path) -> None:
    found = plan(tmp_path, 1_000, BEYOND)

    assert 980 <= found.made_end <= 1_000
    assert 5 * found.made_end == found.space.end
    assert {"nodes": int(found.made_end), "period": "5s"} == found.values(2 * found.made_end)


def test_a_rate_makes_loads_beyond_by_rising(tmp_path: Path) -> None:
    found = plan(tmp_path, beyond="  beyond: {parameter: rate, to: 1000/s}\n")

    assert 40_000 == found.space.end
    assert {"nodes": 4_000, "rate": "150/s"} == found.values(6_000)


def test_the_time_is_bounded(tmp_path: Path) -> None:
    found = plan(tmp_path)

    # 50 to 4,000 by twos: 8; from a factor of two to 5 % four halvings and one for tidy numbers; two to confirm.
    assert 15 == found.trials
    assert 15 * 30 <= found.shortest_s < found.longest_s
    assert 3_600 + 120 + (10 + 3 * 10) + 4 * (30 + 120) + 3 * 120 == longest_s(found.spec)
