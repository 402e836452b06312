"""One directory per cluster: exclusive, removed when dead, and its processes ended by recorded pid and start time."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import re
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.controlplane import ports as portlib
from scaletest.controlplane import registry
from scaletest.controlplane.cleaning import Done
from scaletest.controlplane.heartbeat import heartbeat_for
from scaletest.controlplane.plan import Limits, run_dir
from scaletest.controlplane.ports import PORT_ROLES, PortRole
from scaletest.controlplane.record import ClusterRecord
from scaletest.controlplane.state import ClusterState, ComponentState, Enforcement, Status, write_state
from scaletest.core.errors import ResourceShortage, UsageError
from scaletest.core.paths import clusters_dir
from scaletest.core.processes import ProcessId

LONG_GONE = ProcessId(2**22 - 1, 1)
"""A pid that the kernel does not give out here, and a start time before any process's."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SCALETEST_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


@contextmanager
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        try:
            yield process
        finally:
            process.kill()


def identify(process: subprocess.Popen[bytes]) -> ProcessId:
    found = ProcessId.of(process.pid)
    assert found is not None
    return found


def create(name: str, ports: dict[PortRole, int] | None = None) -> ClusterRecord:
    return registry.create(
        name,
        wanted_ports=ports or {},
        created_at="2026-11-30T20:00:00+00:00",
        versions={"kubernetes": "1.37.2", "etcd": "3.6.16", "kwok": "0.8.0"},
        heartbeat=heartbeat_for(nodes=50, cores=2, factor="auto"),
        limits={"etcd": {"memory_bytes": 1 << 30, "cpu_cores": None}},
        labels={"made-by": "test"},
    )


def bury_creator(record: ClusterRecord) -> ClusterRecord:
    """Make it look as if the process that made the cluster had died."""
    buried = dataclasses.replace(record, creator=LONG_GONE)
    registry.save(buried)
    return buried


def supervised_by(record: ClusterRecord, supervisor: ProcessId, status: Status, **components: ProcessId) -> None:
    state = ClusterState(record.name, supervisor, status)
    for name, process in components.items():
        enforcement = Enforcement("watchdog", "none")
        state.components[name] = ComponentState(name, Limits(1 << 30), enforcement, process)
    write_state(record.dir, state)


def test_a_cluster_is_recorded_with_everything_in_a_private_directory() -> None:
    record = create("c1")

    assert record == registry.get("c1")
    assert [record] == registry.list_clusters()
    assert 0o700 == stat.S_IMODE(record.dir.stat().st_mode)
    assert 0o600 == stat.S_IMODE((record.dir / "cluster.json").stat().st_mode)
    assert (f"https://127.0.0.1:{record.ports['kube-apiserver']}",) == record.servers


def test_a_cluster_whose_maker_lives_is_starting_and_its_name_in_use() -> None:
    record = create("c1")

    assert "starting" == registry.status_of(record)
    with pytest.raises(UsageError, match="'c1' is starting") as refused:
        create("c1")
    assert "scaletest cluster down c1" in (refused.value.hint or "")


@pytest.mark.parametrize("status", ["starting", "ready", "ending"])
def test_a_cluster_whose_supervisor_lives_is_in_use(status: Status) -> None:
    record = bury_creator(create("c1"))
    supervised_by(record, ProcessId.current(), status)

    with pytest.raises(UsageError, match="'c1' is"):
        create("c1")
    assert [] == registry.clean_dead()


def test_a_cluster_is_ready_only_when_its_maker_has_finished_with_it() -> None:
    record = create("c1")
    supervised_by(record, ProcessId.current(), "ready")
    assert "starting" == registry.status_of(record)

    finished = dataclasses.replace(record, ready_s=5.0)
    registry.save(finished)

    assert "ready" == registry.status_of(finished)


def test_a_cluster_whose_start_failed_is_dead_though_its_maker_lives() -> None:
    record = create("c1")
    supervised_by(record, LONG_GONE, "ended")
    assert [] == registry.clean_dead()

    registry.save(dataclasses.replace(record, given_up=True))

    assert ["c1"] == [cleaned.name for cleaned in registry.clean_dead()]


def test_a_dead_clusters_name_is_free_again() -> None:
    before = bury_creator(create("c1"))
    (before.dir / "data").write_text("old")

    after = create("c1")

    assert not (after.dir / "data").exists()
    assert "starting" == registry.status_of(after)


def test_two_clusters_never_share_a_port_even_while_nothing_listens() -> None:
    one, other = create("c1"), create("c2")

    assert not set(one.ports.values()) & set(other.ports.values())


def test_a_port_of_another_cluster_is_refused_with_its_name() -> None:
    taken = create("c1").ports["etcd"]

    with pytest.raises(ResourceShortage, match=f"port {taken} for kube-apiserver is taken by cluster c1"):
        create("c2", {"kube-apiserver": taken})
    assert ["c1"] == [record.name for record in registry.list_clusters()]


def test_a_port_that_somebody_listens_on_is_refused() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        with pytest.raises(ResourceShortage, match="is taken by pid"):
            create("c1", {"etcd": server.getsockname()[1]})


def _create_and_report(name: str, queue: Any) -> None:
    try:
        queue.put((name, sorted(create(name).ports.values())))
    except UsageError:
        queue.put((name, None))
    # The maker must live until all are done, or its cluster is dead and its name free.
    queue.close()
    queue.join_thread()
    time.sleep(60)


def race(names: list[str]) -> list[tuple[str, list[int] | None]]:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    makers = [context.Process(target=_create_and_report, args=(name, queue)) for name in names]
    for maker in makers:
        maker.start()
    results = [queue.get(timeout=60) for _ in names]
    for maker in makers:
        maker.kill()
        maker.join()
    return results


def test_of_processes_that_want_one_name_at_once_one_gets_it() -> None:
    results = race(["same"] * 4)

    assert 1 == sum(ports is not None for _, ports in results)


def test_processes_that_start_at_once_get_different_ports() -> None:
    results = race(["r1", "r2", "r3", "r4"])

    ports = [port for _, found in results for port in found or ()]
    assert 4 * len(PORT_ROLES) == len(set(ports))


def test_an_unknown_cluster_is_refused_with_the_nearest_name() -> None:
    create("default")

    with pytest.raises(UsageError, match="no cluster is called 'defualt'") as refused:
        registry.get("defualt")
    assert "Did you mean default?" == refused.value.hint


def test_without_clusters_an_unknown_name_says_so() -> None:
    with pytest.raises(UsageError) as refused:
        registry.get("default")

    assert "There is none." == refused.value.hint


@pytest.mark.parametrize("name", ["", "-a", "a_b", "../x", "A", ".hidden", "a" * 64, "a b"])
def test_a_name_that_cannot_be_a_directory_of_ours_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a cluster"):
        create(name)


@given(st.text(max_size=200), st.sampled_from(["", "-0a1b2c"]))
def test_a_safe_name_can_name_a_cluster_whatever_it_was_made_from(text: str, ending: str) -> None:
    name = registry.safe_name(text, ending=ending)

    assert re.fullmatch(registry.NAME_PATTERN, name)
    assert name.endswith(ending)


def test_what_is_left_of_a_dead_cluster_is_ended_by_pid_and_start_time() -> None:
    with sleeper() as component, sleeper() as stranger:
        record = bury_creator(create("c1"))
        # The stranger has a recorded pid, but began later than the process that was recorded.
        recycled = ProcessId(stranger.pid, 1)
        supervised_by(record, LONG_GONE, "ready", etcd=identify(component), other=recycled)

        (cleaned,) = registry.clean_dead()

        assert ("c1", "dead") == (cleaned.name, cleaned.was)
        assert [f"killed etcd {component.pid}"] == [done.said for done in cleaned.done]
        assert "removed cluster c1 (it was dead): 1 process ended" == str(cleaned)
        component.wait(timeout=10)
        assert stranger.poll() is None
        assert not record.dir.exists()


def test_a_dead_cluster_with_an_unreadable_state_is_ended_by_what_its_components_recorded() -> None:
    with sleeper() as component:
        record = bury_creator(create("c1"))
        (record.dir / "state.json").write_text("{half")
        run_dir(record.dir).mkdir()
        found = identify(component)
        (run_dir(record.dir) / "etcd.pid").write_text(f"{found.pid} {found.start_ticks}\n")

        (cleaned,) = registry.clean_dead()

        component.wait(timeout=10)
        assert [f"ended etcd {component.pid}"] == [done.said for done in cleaned.done]


def test_a_directory_without_a_readable_record_is_removed_as_dead(home: Path) -> None:
    (home / "clusters" / "odd").mkdir(parents=True)
    (home / "clusters" / "odd" / "cluster.json").write_text("[]")

    assert ["odd"] == [cleaned.name for cleaned in registry.clean_dead()]
    assert [] == registry.list_clusters()


def test_living_clusters_stay_unless_all_are_wanted_gone() -> None:
    with sleeper() as supervisor:
        record = bury_creator(create("c1"))
        supervised_by(record, identify(supervisor), "ready")
        assert [] == registry.clean_dead()

        (cleaned,) = registry.clean_dead(also_alive=True)

        supervisor.wait(timeout=10)
        assert [f"ended its supervisor {supervisor.pid} and its components"] == [done.said for done in cleaned.done]
        assert "removed cluster c1 (it was ready): ended by its supervisor" == str(cleaned)
        assert not record.dir.exists()


def test_a_cluster_that_has_just_been_reserved_is_left_to_its_maker() -> None:
    record = create("c1")

    assert [] == registry.clean_dead(also_alive=True)
    with pytest.raises(UsageError, match="is being started by process"):
        registry.end("c1")
    assert record.dir.exists()


def test_ending_a_dead_cluster_by_name_removes_it() -> None:
    record = bury_creator(create("c1"))

    assert "removed cluster c1 (it was dead): nothing of it was left but its directory" == str(registry.end("c1"))
    assert not record.dir.exists()


def test_what_was_removed_is_counted_and_what_was_not_is_named() -> None:
    done = [
        *(Done("process", f"killed etcd {pid}") for pid in range(3)),
        *(Done("control group", f"removed /sys/fs/cgroup/{number}") for number in range(40)),
        Done("directory", "removed /tmp/data"),
        Done("directory", "could not remove /tmp/busy", left=True),
    ]

    said = "3 processes ended, 40 control groups and 1 directory removed, could not remove /tmp/busy"
    assert f"removed cluster c1 (it was dead): {said}" == str(registry.Cleaned("c1", "dead", tuple(done)))


def test_removing_twice_is_no_error() -> None:
    create("c1")

    registry.remove("c1")
    registry.remove("c1")

    assert [] == registry.list_clusters()


def test_before_the_first_cluster_there_is_nothing_to_list_or_clean() -> None:
    assert ([], []) == (registry.list_clusters(), registry.clean_dead())
    assert not clusters_dir().exists()


def test_a_record_names_what_other_programs_need() -> None:
    record = create("c1")

    told = json.loads((record.dir / "cluster.json").read_text())

    assert 1 == told["schema_version"]
    assert list(record.servers) == told["servers"]
    assert record.etcd_endpoint == told["etcd_endpoint"]
    assert record.ports == told["ports"]
    assert all(portlib.is_free(port) for port in record.ports.values())
