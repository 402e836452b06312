"""The plan of a run on a cluster that is there already: its versions and limits, not those of the profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaletest.cli._running import RunRequest, run_profile
from scaletest.controlplane import registry
from scaletest.controlplane.heartbeat import heartbeat_for
from scaletest.controlplane.plan import Limits
from scaletest.core.errors import ExitCode, UsageError


@pytest.fixture(autouse=True)
def standing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that is being made by this process: it has all that a plan tells, and no processes."""
    monkeypatch.setenv("SCALETEST_STATE_DIR", str(tmp_path / "state"))
    registry.create(
        "ci",
        wanted_ports={},
        created_at="2026-12-01T00:00:00+00:00",
        versions={"kubernetes": "1.31.4", "etcd": "3.6.16", "kwok": "0.8.0"},
        heartbeat=heartbeat_for(nodes=7, cores=2, factor=5),
        labels={},
        limits={"kube-apiserver": Limits(3 << 30, 1.5).to_json(), "etcd": Limits(1 << 30, None).to_json()},
    )


def dry_run(tmp_path: Path, *, cluster: str | None = "ci", binaries: tuple[str, ...] = ()) -> int:
    with pytest.raises(SystemExit) as ended:
        run_profile(
            RunRequest(
                "smoke",
                ["nodes=7", "kubernetes=1.36"],
                None,
                tmp_path / "run",
                cluster,
                keep=False,
                binaries=binaries,
                dry_run=True,
            )
        )
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_the_plan_has_the_versions_and_limits_of_the_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = dry_run(tmp_path)
    said = capsys.readouterr().out

    assert "Control plane: cluster ci, starting, made 2026-12-01" in said
    for words in ("1.31.4", "factor 5", "3.00 GiB, 1.5 cores", "7 nodes, 14 pods", f"Results would go to {tmp_path}"):
        assert words in said
    assert "1.36" not in said
    assert "with set-up" not in said
    # It is not ready: a run would be refused.
    assert ExitCode.ENVIRONMENT == code
    assert not (tmp_path / "run").exists()


def test_a_cluster_that_is_not_there_cannot_be_planned_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no cluster is called 'c'") as caught:
        dry_run(tmp_path, cluster="c")

    assert "Did you mean ci?" == caught.value.hint


def test_binaries_do_not_go_with_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--binary and --cluster exclude each other"):
        dry_run(tmp_path, binaries=("etcd=/bin/true",))
