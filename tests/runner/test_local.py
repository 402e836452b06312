"""What a run on this machine calls its cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaletest.runner.local import LocalOptions


def name(run_dir: Path) -> str:
    return LocalOptions(run_dir, None, None, keep=False).own_cluster_name


def test_equal_variants_of_two_matrices_have_clusters_of_their_own(tmp_path: Path) -> None:
    first, second = (tmp_path / matrix / "nodes=50" for matrix in ("one-matrix", "two-matrix"))

    assert name(first) != name(second)
    assert {"nodes-50-"} == {name(run_dir)[:-6] for run_dir in (first, second)}


def test_a_run_calls_its_cluster_by_one_name_wherever_it_is_asked_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert name(tmp_path / "results" / "a") == name(Path("results/a"))


def test_names_that_are_cut_stay_apart(tmp_path: Path) -> None:
    names = {name(tmp_path / ("x" * 70 + str(number))) for number in range(20)}

    assert 20 == len(names)
    assert 63 == max(map(len, names))
