from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from scaletest.observe.hostinfo import host_info, software_versions

V2 = "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
V1 = "33 31 0:30 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
UNIFIED = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_this_host_agrees_with_psutil_and_is_json() -> None:
    info = host_info()

    assert info.cores == os.cpu_count()
    assert info.memory_bytes == psutil.virtual_memory().total
    assert info.kernel == os.uname().release
    assert 0 < info.usable_cores <= info.cores
    assert json.loads(json.dumps(info.to_json())) == info.to_json()


@pytest.mark.parametrize(
    ("mounts", "expected"), [(V2, "v2"), (V1, "v1"), (UNIFIED + V1, "v1"), (UNIFIED, None), ("", None)]
)
def test_the_memory_controller_is_found_where_it_is_mounted(tmp_path: Path, mounts: str, expected: str | None) -> None:
    assert host_info(tree(tmp_path, {"proc/self/mountinfo": mounts})).cgroup == expected


@pytest.mark.parametrize(
    ("files", "limit_bytes", "cores"),
    [
        ({"proc/self/mountinfo": V2, "memory.max": "1073741824\n", "cpu.max": "50000 100000\n"}, 1 << 30, 0.5),
        ({"proc/self/mountinfo": V2, "memory.max": "max\n", "cpu.max": "max 100000\n"}, None, None),
        (
            {
                "proc/self/mountinfo": V1,
                "memory/memory.limit_in_bytes": "2147483648\n",
                "cpu/cpu.cfs_quota_us": "25000\n",
                "cpu/cpu.cfs_period_us": "100000\n",
            },
            2 << 30,
            0.25,
        ),
        (
            {
                "proc/self/mountinfo": V1,
                "memory/memory.limit_in_bytes": "9223372036854771712\n",
                "cpu/cpu.cfs_quota_us": "-1\n",
                "cpu/cpu.cfs_period_us": "100000\n",
            },
            None,
            None,
        ),
    ],
    ids=["v2 limited", "v2 unlimited", "v1 limited", "v1 unlimited"],
)
def test_limits_of_a_container_are_read(
    tmp_path: Path, files: dict[str, str], limit_bytes: int | None, cores: float | None
) -> None:
    in_place = {name if name.startswith("proc/") else f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    info = host_info(tree(tmp_path, {**in_place, "proc/meminfo": "MemTotal: 16777216 kB\n"}))

    assert info.memory_bytes == 16 << 30
    assert info.memory_limit_bytes == limit_bytes
    assert info.usable_cores == (cores if cores is not None else len(os.sched_getaffinity(0)))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({".dockerenv": ""}, "/.dockerenv"),
        ({"run/.containerenv": ""}, "/run/.containerenv"),
        ({"proc/1/cgroup": "9:memory:/kubepods/burstable/pod1\n"}, "/proc/1/cgroup names kubepods"),
        ({"proc/1/cgroup": "0::/init.scope\n"}, None),
    ],
)
def test_a_container_is_told_by_what_it_leaves_lying_about(
    tmp_path: Path, files: dict[str, str], expected: str | None
) -> None:
    assert host_info(tree(tmp_path, files)).container == expected


@pytest.mark.parametrize(("flags", "expected"), [("fpu hypervisor sse", True), ("fpu sse", False)])
def test_a_virtual_machine_is_told_by_its_cpu(tmp_path: Path, flags: str, expected: bool) -> None:
    cpuinfo = f"processor\t: 0\nmodel name\t: AMD EPYC 9R14\nflags\t\t: {flags}\n"
    info = host_info(tree(tmp_path, {"proc/cpuinfo": cpuinfo}))

    assert (info.virtual_machine, info.cpu_model) == (expected, "AMD EPYC 9R14")


def test_versions_are_known_without_importing_what_they_are_of() -> None:
    code = (
        "import sys; from scaletest.observe.hostinfo import software_versions; print(software_versions()['locust']); "
        "sys.exit(sum(name in sys.modules for name in ('locust', 'gevent', 'aiohttp', 'kubernetes')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout.strip()) == (0, software_versions()["locust"])
