"""``scaletest cluster`` and ``clean`` as the command line gives them: pools from counts, and clear refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.cli import _clusters
from scaletest.cli._clusters import UpRequest
from scaletest.core.errors import UsageError


def asked(**changes: object) -> UpRequest:
    given: dict[str, object] = {
        "name": "default", "nodes": 0, "pods": None, "pods_per_node": None, "kubernetes": None, "etcd": None,
        "heartbeat_factor": "auto", "ports": (), "binaries": (),
    }  # fmt: skip
    return UpRequest(**{**given, **changes})  # type: ignore[arg-type]


def scaletest(tmp_path: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "SCALETEST_STATE_DIR": str(tmp_path / "state"), "SCALETEST_CACHE_DIR": str(tmp_path / "cache")}
    return subprocess.run(
        [sys.executable, "-m", "scaletest", *argv], env=env, capture_output=True, text=True, check=False, timeout=60
    )


@given(st.integers(1, 100_000), st.integers(0, 1_000_000))
def test_pods_are_spread_over_the_nodes_as_evenly_as_can_be(nodes: int, pods: int) -> None:
    if pods > 1_000 * nodes:
        with pytest.raises(UsageError, match="too many"):
            _clusters._fleet(asked(nodes=nodes, pods=pods))
        return

    fleet = _clusters._fleet(asked(nodes=nodes, pods=pods))

    assert (nodes, pods) == (fleet.node_count, fleet.pod_count)
    each = {pool.pods_per_node for pool in fleet.pools}
    assert max(each) - min(each) <= 1


def test_without_nodes_the_fleet_is_empty() -> None:
    assert [] == _clusters._fleet(asked()).pools


def test_versions_and_heartbeat_default_to_those_of_profiles() -> None:
    spec = _clusters._control_plane(asked())

    assert ("1.37", "3.6", "auto") == (spec.kubernetes, spec.etcd, spec.heartbeat_factor)


def test_a_heartbeat_factor_is_taken_as_a_number() -> None:
    assert 5 == _clusters._control_plane(asked(heartbeat_factor="5")).heartbeat_factor


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("up", "--heartbeat-factor", "0"), "--heartbeat-factor 0: write auto or a whole number from 1 to 60"),
        (("up", "--heartbeat-factor", "fast"), "--heartbeat-factor fast: write auto"),
        (("up", "--heartbeat-factor", "²"), "--heartbeat-factor ²: write auto"),
        (("up", "--kubernetes", "latest"), "--kubernetes latest: write a version such as 1.37"),
        (("up", "--kubernetes", "1.2"), "no patch version is pinned for this minor"),
        (("up", "--pods", "5"), "pods need nodes to stand on"),
        (
            ("up", "--nodes", "2", "--pods", "5", "--pods-per-node", "1"),
            "--pods and --pods-per-node exclude each other",
        ),
        (("up", "--nodes", "2", "--pods-per-node", "2000"), "2000 pods on a node are too many: at most 1,000\n"),
        (("up", "--port", "kubelet=10250"), "--port kubelet=10250: not a component and a port"),
        (("up", "--port", "etcd=99999"), "--port etcd=99999: not a component and a port"),
        (("up", "--port", "etcd=²"), "--port etcd=²: not a component and a port"),
        (("up", "--binary", "etcd"), "etcd"),
        (("up", "--name", "../up"), "'../up' cannot name a cluster"),
        (("status", "nosuch"), "no cluster is called 'nosuch'"),
        (("down",), "no cluster is called 'default'"),
        (("down", "some", "--all"), "give a name or --all, not both"),
    ],
)
def test_what_cannot_be_is_refused_with_exit_code_2_and_no_traceback(
    tmp_path: Path, argv: tuple[str, ...], said: str
) -> None:
    done = scaletest(tmp_path, "cluster", *argv)

    assert (2, "") == (done.returncode, done.stdout)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_too_many_nodes_for_the_host_are_refused_with_how_many_fit(tmp_path: Path) -> None:
    done = scaletest(tmp_path, "cluster", "up", "--nodes", "100000", "--pods-per-node", "1000")

    assert 3 == done.returncode
    assert "too little memory for 100,000 nodes" in done.stderr
    assert "nodes fit" in done.stderr


def test_without_clusters_status_is_empty_for_programs_too(tmp_path: Path) -> None:
    done = scaletest(tmp_path, "cluster", "status", "--format", "json")

    assert (0, []) == (done.returncode, json.loads(done.stdout))


def test_with_nothing_to_clean_clean_says_so(tmp_path: Path) -> None:
    done = scaletest(tmp_path, "clean")

    assert (0, "nothing to clean\n", "") == (done.returncode, done.stdout, done.stderr)


def test_a_dead_cluster_is_cleaned_and_named(tmp_path: Path) -> None:
    (tmp_path / "state" / "clusters" / "old").mkdir(parents=True)

    done = scaletest(tmp_path, "clean")

    assert "removed cluster old (it was dead): nothing of it was left but its directory\n" == done.stdout
    assert not (tmp_path / "state" / "clusters" / "old").exists()
