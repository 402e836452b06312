from __future__ import annotations

import os
from pathlib import Path

import pytest

from scaletest.controlplane.host import MemoryGauge, read_host
from scaletest.controlplane.plan import Limits
from scaletest.controlplane.supervisor.cgroups import (
    Groups,
    GroupsUnavailable,
    Hierarchy,
    cpu_quota_cores,
    find_groups,
    group_name,
    locate_hierarchies,
    make_groups,
    pids_in,
    remove_groups,
)

LIMITS = {"etcd": Limits(512 << 20), "kube-apiserver": Limits(2 << 30, 1.7)}


class FakeRoot:
    """A root directory with /proc/self and a cgroup tree made of ordinary files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "proc/self").mkdir(parents=True)
        self.write("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n")
        self.mountinfo: list[str] = []

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def mount(self, kind: str, mount_point: str, options: str = "rw", mounted_root: str = "/") -> None:
        number = 30 + len(self.mountinfo)
        self.mountinfo.append(f"{number} 25 0:26 {mounted_root} {mount_point} rw,nosuid - {kind} {kind} {options}\n")
        self.write("proc/self/mountinfo", "".join(self.mountinfo))
        (self.root / mount_point.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def own(self, *lines: str) -> None:
        self.write("proc/self/cgroup", "".join(f"{line}\n" for line in lines))

    def read(self, path: str) -> str:
        return (self.root / path).read_text()


@pytest.fixture
def fake(tmp_path: Path) -> FakeRoot:
    return FakeRoot(tmp_path)


def unified(fake: FakeRoot, own: str = "/user.slice/session-3.scope") -> None:
    """A version 2 tree as systemd makes it."""
    fake.mount("cgroup2", "/sys/fs/cgroup")
    fake.own(f"0::{own}")
    for group in ("", "/user.slice", own):
        fake.write(f"sys/fs/cgroup{group}/cgroup.controllers", "cpuset cpu io memory pids\n")
        fake.write(f"sys/fs/cgroup{group}/cgroup.subtree_control", "cpu memory pids\n")
    fake.write(f"sys/fs/cgroup{own}/memory.max", "max\n")
    fake.write(f"sys/fs/cgroup{own}/cpu.max", "max 100000\n")


def test_version_2_limits_memory_without_swap_and_cpu(fake: FakeRoot) -> None:
    unified(fake)
    top = "sys/fs/cgroup/scaletest-demo"
    for component in LIMITS:
        fake.write(f"{top}/{component}/memory.swap.max", "max\n")

    groups = make_groups("scaletest-demo", LIMITS, root=fake.root)

    assert (groups.memory_by, groups.cpu_by) == ("cgroup_v2", "cgroup_v2")
    assert fake.read(f"{top}/etcd/memory.max") == str(512 << 20)
    assert fake.read(f"{top}/etcd/memory.swap.max") == "0"
    assert fake.read(f"{top}/kube-apiserver/cpu.max") == "170000 100000"
    assert not (fake.root / top / "etcd/cpu.max").exists()
    assert fake.read(f"{top}/cpu.weight") == "50"
    assert fake.read(f"{top}/cgroup.subtree_control") == "+memory +cpu"
    assert groups.procs_files("etcd") == [fake.root / top / "etcd/cgroup.procs"]
    assert groups.directories() == [fake.root / top / name for name in ("etcd", "kube-apiserver", "")]


def test_version_2_enables_what_the_parent_does_not_hand_down_yet(fake: FakeRoot) -> None:
    unified(fake)
    fake.write("sys/fs/cgroup/cgroup.subtree_control", "memory\n")

    make_groups("scaletest-demo", LIMITS, root=fake.root)

    assert fake.read("sys/fs/cgroup/cgroup.subtree_control") == "+cpu"


def test_version_2_without_the_cpu_controller_has_no_quota(fake: FakeRoot) -> None:
    unified(fake)
    fake.write("sys/fs/cgroup/cgroup.controllers", "memory pids\n")

    groups = make_groups("scaletest-demo", LIMITS, root=fake.root)

    assert (groups.memory_by, groups.cpu_by) == ("cgroup_v2", "none")
    assert not (fake.root / "sys/fs/cgroup/scaletest-demo/kube-apiserver/cpu.max").exists()


def test_groups_are_made_below_a_group_that_has_a_limit(fake: FakeRoot) -> None:
    unified(fake, "/user.slice/limited/leaf")
    fake.write("sys/fs/cgroup/user.slice/limited/memory.max", f"{6 << 30}\n")
    fake.write("sys/fs/cgroup/user.slice/limited/cgroup.controllers", "cpu memory\n")

    groups = make_groups("scaletest-demo", LIMITS, root=fake.root)

    assert groups.memory == fake.root / "sys/fs/cgroup/user.slice/limited/scaletest-demo"


def test_version_1_limits_memory_with_swap_and_cpu_in_two_hierarchies(fake: FakeRoot) -> None:
    fake.mount("cgroup", "/sys/fs/cgroup/cpu,cpuacct", "rw,cpu,cpuacct")
    fake.mount("cgroup", "/sys/fs/cgroup/memory", "rw,memory")
    fake.mount("cgroup2", "/sys/fs/cgroup/unified")
    fake.own("9:name=systemd:/", "4:memory:/job/7", "1:cpu,cpuacct:/", "0::/")
    fake.write("sys/fs/cgroup/memory/job/7/memory.limit_in_bytes", "9223372036854771712\n")
    fake.write("sys/fs/cgroup/memory/scaletest-demo/etcd/memory.memsw.limit_in_bytes", "9223372036854771712\n")

    groups = make_groups("scaletest-demo", LIMITS, root=fake.root)

    assert (groups.memory_by, groups.cpu_by) == ("cgroup_v1", "cgroup_v1")
    memory, cpu = "sys/fs/cgroup/memory/scaletest-demo", "sys/fs/cgroup/cpu,cpuacct/scaletest-demo"
    assert fake.read(f"{memory}/etcd/memory.limit_in_bytes") == str(512 << 20)
    assert fake.read(f"{memory}/etcd/memory.memsw.limit_in_bytes") == str(512 << 20)
    assert fake.read(f"{cpu}/kube-apiserver/cpu.cfs_quota_us") == "170000"
    assert fake.read(f"{cpu}/cpu.shares") == str(512 * (os.cpu_count() or 1))
    assert groups.procs_files("etcd") == [
        fake.root / memory / "etcd/cgroup.procs",
        fake.root / cpu / "etcd/cgroup.procs",
    ]


def test_a_mount_that_shows_a_subtree_is_understood(fake: FakeRoot) -> None:
    fake.mount("cgroup", "/sys/fs/cgroup/memory", "rw,memory", mounted_root="/docker/abc")
    fake.own("4:memory:/docker/abc/inner")
    (fake.root / "sys/fs/cgroup/memory/inner").mkdir()

    found = locate_hierarchies(fake.root)

    mount = fake.root / "sys/fs/cgroup/memory"
    assert found == {"memory": Hierarchy("cgroup_v1", mount, mount / "inner")}


def test_where_nothing_is_mounted_the_reason_is_told(fake: FakeRoot) -> None:
    fake.mount("tmpfs", "/tmp")
    fake.own("0::/")

    with pytest.raises(GroupsUnavailable, match="no control group hierarchy with the memory controller is mounted"):
        make_groups("scaletest-demo", LIMITS, root=fake.root)


def test_where_groups_may_not_be_made_every_try_is_told(fake: FakeRoot) -> None:
    unified(fake)
    # A file in the way stands for a directory that may not be made: root may make any.
    fake.write("sys/fs/cgroup/scaletest-demo", "")
    fake.write("sys/fs/cgroup/user.slice/scaletest-demo", "")
    fake.write("sys/fs/cgroup/user.slice/session-3.scope/scaletest-demo", "")

    with pytest.raises(GroupsUnavailable) as caught:
        make_groups("scaletest-demo", LIMITS, root=fake.root)

    assert str(caught.value).count("scaletest-demo") == 3


def test_the_next_group_down_is_taken_where_the_first_may_not_be(fake: FakeRoot) -> None:
    unified(fake)
    fake.write("sys/fs/cgroup/scaletest-demo", "")

    groups = make_groups("scaletest-demo", LIMITS, root=fake.root)

    assert groups.memory == fake.root / "sys/fs/cgroup/user.slice/scaletest-demo"


@pytest.mark.parametrize(
    ("version", "file", "text"),
    [
        ("cgroup_v1", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
        ("cgroup_v2", "memory.events", "low 0\nhigh 0\nmax 12\noom 3\noom_kill 3\noom_group_kill 0\n"),
    ],
)
def test_the_kernels_kills_are_counted(tmp_path: Path, version: str, file: str, text: str) -> None:
    (tmp_path / "etcd").mkdir()
    groups = Groups(version, "none", tmp_path, None, ("etcd",))  # type: ignore[arg-type]
    assert groups.oom_kills("etcd") == 0

    (tmp_path / "etcd" / file).write_text(text)

    assert groups.oom_kills("etcd") == 3


def test_processes_of_groups_are_found_and_groups_that_are_gone_have_none(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text("12\n34\n")

    assert pids_in([tmp_path, tmp_path / "gone"]) == {12, 34}


def test_groups_are_found_by_name_children_first(fake: FakeRoot) -> None:
    unified(fake)
    name = group_name("demo", 77)
    parent = fake.root / "sys/fs/cgroup/user.slice" / name
    (parent / "etcd").mkdir(parents=True)
    (fake.root / "sys/fs/cgroup" / group_name("demo", 78)).mkdir()

    assert find_groups(name, root=fake.root) == [parent / "etcd", parent]


def test_groups_that_cannot_be_removed_are_returned(tmp_path: Path) -> None:
    for name in ("empty", "busy"):
        (tmp_path / name).mkdir()
    (tmp_path / "busy/child").mkdir()

    left = remove_groups([tmp_path / "empty", tmp_path / "gone", tmp_path / "busy"], timeout_s=0.1)

    assert left == [tmp_path / "busy"]


def test_real_groups_are_made_limited_and_removed(cgroups_allowed: None) -> None:
    groups = make_groups("scaletest-real-test", LIMITS)
    directories = groups.directories()
    try:
        limit = "memory.limit_in_bytes" if groups.memory_by == "cgroup_v1" else "memory.max"
        assert (groups.memory / "etcd" / limit).read_text() == f"{512 << 20}\n"
        if groups.cpu is not None:
            assert cpu_quota_cores(groups.cpu / "kube-apiserver") == 1.7
            assert cpu_quota_cores(groups.cpu / "etcd") is None
    finally:
        assert remove_groups(directories) == []
    assert not any(directory.exists() for directory in directories)


def test_a_containers_limits_are_the_hosts(fake: FakeRoot) -> None:
    unified(fake, "/")
    fake.write("sys/fs/cgroup/memory.max", f"{4 << 30}\n")
    fake.write("sys/fs/cgroup/memory.current", f"{3 << 30}\n")
    fake.write("sys/fs/cgroup/memory.stat", f"anon 1\ninactive_file {1 << 30}\n")
    fake.write("sys/fs/cgroup/cpu.max", "50000 100000\n")
    gauge = MemoryGauge(fake.root)

    host = read_host(fake.root)

    assert (host.memory_bytes, host.cores) == (4 << 30, 0.5)
    assert gauge.available_bytes() == 2 << 30


def test_without_limits_the_host_is_what_meminfo_says(fake: FakeRoot) -> None:
    unified(fake)

    assert MemoryGauge(fake.root).total_bytes() == 16 << 30
    assert MemoryGauge(fake.root).available_bytes() == 8 << 30


def test_a_host_without_cgroups_is_read_all_the_same(fake: FakeRoot) -> None:
    assert read_host(fake.root).memory_bytes == 16 << 30
    assert MemoryGauge(fake.root).available_bytes() == 8 << 30
