from __future__ import annotations

from pathlib import Path

import pytest

from scaletest.core.errors import ProfileError
from scaletest.profile.loading import load_profile
from scaletest.runner.versions import refuse_unknown_versions, version_problems
from tests.profile.samples import SMALL


def problems(tmp_path: Path, text: str, *overrides: str) -> list[str]:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL + text)
    found = version_problems(load_profile(str(path), overrides))
    return [str(problem).replace(str(tmp_path), "DIR") for problem in found]


@pytest.mark.parametrize("version", ["1.31", "1.37", "1.37.2", "v1.99.7"])
def test_pinned_minors_and_full_versions_are_known(tmp_path: Path, version: str) -> None:
    assert [] == problems(tmp_path, f'controlPlane: {{kubernetes: "{version}"}}\n')
    assert [] == problems(tmp_path, "")


def test_an_unknown_minor_is_told_with_line_and_key(tmp_path: Path) -> None:
    first, second = problems(tmp_path, 'controlPlane:\n  kubernetes: "1.99"\n  etcd: "2.3"\n')

    assert first.startswith("DIR/small.yaml:8: controlPlane.kubernetes: Kubernetes 1.99: no patch version is pinned")
    assert "known are 1.31," in first
    assert second.startswith("DIR/small.yaml:9: controlPlane.etcd: etcd 2.3:")


def test_an_unknown_minor_of_an_override_is_told_as_it_was_given(tmp_path: Path) -> None:
    parameter = 'parameters: {version: "1.31"}\ncontrolPlane: {kubernetes: "{version}"}\n'

    (by_key,) = problems(tmp_path, "", "controlPlane.kubernetes=1.99")
    (by_parameter,) = problems(tmp_path, parameter, "version=1.99")

    assert by_key.startswith("--set controlPlane.kubernetes=1.99: controlPlane.kubernetes: Kubernetes 1.99:")
    assert by_parameter.startswith("--set version=1.99: controlPlane.kubernetes: Kubernetes 1.99:")
    assert "used in DIR/small.yaml:8" in by_parameter


def test_a_run_is_refused_with_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL + 'controlPlane: {kubernetes: "1.99", etcd: "2.3"}\n')

    with pytest.raises(ProfileError) as caught:
        refuse_unknown_versions(load_profile(str(path)))

    assert 2 == len(caught.value.problems)
