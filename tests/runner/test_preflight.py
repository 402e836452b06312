from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.controlplane.binaries import Plan
from scaletest.controlplane.host import Host
from scaletest.profile.schema import Profile
from scaletest.runner.preflight import Check, Disk, Level, Machine, judge, look

GIB = 1 << 30
DISK = Disk(Path("/somewhere"), 100 * GIB, writable=True)
GOOD = Machine(
    python=(3, 12, 1),
    system="Linux",
    architecture="x86_64",
    host=Host(64 * GIB, 16.0),
    available_bytes=60 * GIB,
    cache=DISK,
    state=DISK,
    hard_files=1_048_576,
    free_ports=6,
    no_groups=None,
    clusters={},
)
READY = [Plan("etcd", "3.6.16", "cache", Path("/x/etcd"), "in the cache", {})]
FETCHED = Plan("etcd", "3.6.16", "download", None, "would be downloaded from https://example", {})
BUILT = Plan("kube-apiserver", "1.37.2", "build", None, "would be built from k8s.io/kubernetes@v1.37.2", {})
NOWHERE = Plan("kwok", "0.8.0", None, None, "no source has kwok 0.8.0", {})


def profile(*, nodes: int = 100, **control_plane: Any) -> Profile:
    return Profile.model_validate(
        {
            "name": "test",
            "summary": "A profile.",
            "controlPlane": control_plane,
            "fleet": {"pools": [{"name": "gpu", "nodes": nodes, "podsPerNode": 3}]},
            "flows": {
                "agents": {
                    "agents": {"perNode": 1, "rollout": "80/s"},
                    "steps": [{"list": "pods", "every": "60s"}, {"watch": "services"}],
                }
            },
            "phases": [{"name": "only", "for": "10s", "start": ["agents"]}],
            "objectives": ["flow.agents.error_rate < 1%"],
        }
    )


def check(name: str, machine: Machine, of: Profile | None = None, plans: list[Plan] | None = None) -> Check:
    (found,) = [check for check in judge(of, machine, READY if plans is None else plans) if check.name == name]
    return found


@pytest.mark.parametrize("of", [None, profile()], ids=["no profile", "a profile"])
def test_on_a_good_machine_everything_is_ok_and_nothing_needs_mending(of: Profile | None) -> None:
    checks = judge(of, GOOD, READY)

    assert {(item.level, item.remedy) for item in checks} == {(Level.OK, None)}
    assert [item.name for item in checks] == [
        "platform", "binaries", "cache space", "state space", "memory", "cores", "open files", "ports",
        "control groups", "leftovers",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "changes", "level", "detail", "remedy"),
    [
        ("platform", {"system": "Darwin"}, Level.FAIL, "on Linux only", "Linux machine"),
        ("platform", {"python": (3, 10, 9)}, Level.FAIL, "3.11 or later", "pip install"),
        ("state space", {"state": replace(DISK, free_bytes=GIB // 2)}, Level.FAIL, "2.00 GiB", "SCALETEST_STATE_DIR"),
        ("state space", {"state": replace(DISK, free_bytes=GIB)}, Level.WARN, "2.00 GiB", "SCALETEST_STATE_DIR"),
        ("cache space", {"cache": replace(DISK, writable=False)}, Level.FAIL, "written", "SCALETEST_CACHE_DIR"),
        ("memory", {"host": Host(3 * GIB, 4.0), "available_bytes": GIB}, Level.FAIL, "too little", "memory"),
        ("cores", {"host": Host(64 * GIB, 2.0)}, Level.WARN, "2 usable", "4 cores"),
        ("open files", {"hard_files": 150}, Level.FAIL, "25 agents would fit", "ulimit -Hn"),
        ("ports", {"free_ports": 3}, Level.FAIL, "3 of the 6", "cluster down"),
        ("control groups", {"no_groups": "read-only"}, Level.WARN, "watchdog", "Delegate"),
        ("leftovers", {"clusters": {"b": "dead", "a": "ready"}}, Level.WARN, "supervisor: b", "scaletest clean"),
        ("leftovers", {"clusters": {"a": "ready"}}, Level.OK, "take memory and cores: a", None),
    ],
)
def test_what_is_amiss_is_named_with_what_mends_it(
    name: str, changes: dict[str, Any], level: Level, detail: str, remedy: str | None
) -> None:
    found = check(name, replace(GOOD, **changes), profile())

    assert found.level == level
    assert detail in found.detail
    assert (found.remedy is None) if remedy is None else (found.remedy is not None and remedy in found.remedy)


def test_a_fleet_that_does_not_fit_is_told_how_many_nodes_would() -> None:
    found = check("memory", replace(GOOD, host=Host(8 * GIB, 4.0), available_bytes=7 * GIB), profile(nodes=50_000))

    assert found.level is Level.FAIL
    assert "50,000 nodes" in found.detail
    assert found.remedy is not None
    assert "fit on this machine" in found.remedy


def test_memory_that_is_there_but_in_use_does_not_count() -> None:
    found = check("memory", replace(GOOD, available_bytes=6 * GIB), profile(nodes=20_000))

    assert found.level is Level.FAIL
    assert "6.00 GiB available" in found.detail


def test_a_profile_that_insists_on_control_groups_fails_without_them() -> None:
    found = check("control groups", replace(GOOD, no_groups="no hierarchy"), profile(limitBy="cgroup"))

    assert (found.level, found.remedy) == (Level.FAIL, "--set controlPlane.limitBy=watchdog")


def test_binaries_that_come_from_elsewhere_are_said_once_by_source() -> None:
    same = replace(BUILT, component="kube-scheduler")
    checks = [item for item in judge(None, GOOD, [*READY, BUILT, same, NOWHERE]) if item.name == "binaries"]

    assert [item.level for item in checks] == [Level.OK, Level.WARN, Level.FAIL]
    assert checks[1].detail.startswith("kube-apiserver, kube-scheduler: would be built")
    assert checks[1].remedy == "scaletest binaries fetch --kubernetes 1.37 --etcd 3.6"
    assert checks[2].remedy == "scaletest binaries fetch --kubernetes 1.37 --etcd 3.6 --binary kwok=PATH"


@pytest.mark.parametrize(
    ("plans", "free_gib", "level"),
    [(READY, 0, Level.OK), ([FETCHED], 1, Level.OK), ([FETCHED, BUILT], 1, Level.FAIL), ([BUILT], 3, Level.WARN)],
)
def test_the_cache_needs_room_for_what_is_missing_only(plans: list[Plan], free_gib: int, level: Level) -> None:
    machine = replace(GOOD, cache=replace(DISK, free_bytes=free_gib * GIB))

    assert check("cache space", machine, plans=plans).level is level


@given(
    memory_gib=st.floats(0.1, 512),
    available=st.floats(0, 1),
    cores=st.floats(0.1, 256),
    nodes=st.integers(0, 100_000),
    hard_files=st.none() | st.integers(1, 1 << 20),
)
def test_no_machine_is_too_odd_to_be_judged_and_what_is_amiss_always_has_a_remedy(
    memory_gib: float, available: float, cores: float, nodes: int, hard_files: int | None
) -> None:
    host = Host(round(memory_gib * GIB), cores)
    machine = replace(GOOD, host=host, available_bytes=round(available * host.memory_bytes), hard_files=hard_files)

    for item in judge(profile(nodes=nodes), machine, READY):
        assert item.detail
        assert item.level is Level.OK or item.remedy


def test_this_machine_can_be_looked_at_and_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALETEST_CACHE_DIR", str(tmp_path / "not" / "yet"))
    monkeypatch.setenv("SCALETEST_STATE_DIR", str(tmp_path / "nor" / "this"))
    machine = look()

    assert machine.system == "Linux"
    assert 0 < machine.available_bytes <= machine.host.memory_bytes
    assert (machine.cache.path, machine.cache.writable) == (tmp_path / "not" / "yet", True)
    assert machine.clusters == {}
    assert list(tmp_path.iterdir()) == []
    assert list(Path("/sys/fs/cgroup").rglob("scaletest-doctor-*")) == []
