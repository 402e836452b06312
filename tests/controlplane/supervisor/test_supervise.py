from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from scaletest.controlplane.cleaning import Done, clean_dead_cluster, is_dead_cluster
from scaletest.controlplane.control import SupervisorClient
from scaletest.controlplane.plan import LimitBy, RestartBackoff
from scaletest.controlplane.state import ClusterState
from scaletest.controlplane.supervisor.ending import marked_processes
from scaletest.controlplane.supervisor.lifetime import BEHIND
from scaletest.core.errors import ClusterError
from scaletest.core.processes import ProcessId
from tests.controlplane.supervisor.toys import ToyCluster, wait_until


def test_a_cluster_is_started_reported_and_ended(toy: ToyCluster, free_port: int) -> None:
    toy.add("etcd", f"listen={free_port}", role="store").add("kcm")

    client = toy.up()
    state = asyncio.run(client.status())

    assert state.status == "ready"
    assert [component.process is not None for component in state.components.values()] == [True, True]

    ended = asyncio.run(client.end())

    assert (ended.status, ended.reason) == ("ended", "asked")
    assert toy.leftovers() == []
    kinds = [record["kind"] for record in toy.records()]
    assert kinds == ["component.limit"] * 2 + ["component.start"] * 2 + ["cluster.ready", "cluster.end"]


@pytest.mark.parametrize("limit_by", ["cgroup", "watchdog"])
@pytest.mark.parametrize("rate_mb_s", [100, 1000])
def test_a_hog_is_killed_within_a_tenth_of_its_cap_and_restarted_with_back_off(
    toy: ToyCluster, limit_by: LimitBy, rate_mb_s: int, request: pytest.FixtureRequest
) -> None:
    if limit_by == "cgroup":
        request.getfixturevalue("cgroups_allowed")
    toy.add("hog", "sleep=0.3", f"hog={rate_mb_s}", cap_mib=320)
    toy.options["limit_by"] = limit_by

    toy.spawn()
    exits = toy.wait_record("component.exit", 3)

    assert [exit_["reason"] for exit_ in exits] == ["oom"] * 3
    assert [exit_["signal"] for exit_ in exits] == [signal.SIGKILL] * 3
    for exit_ in exits:
        assert 0.9 * (320 << 20) < exit_["peak_rss_bytes"] < 1.1 * (320 << 20)
        assert exit_["cap_bytes"] == 320 << 20
    waits = [record["wait_s"] for record in toy.wait_record("component.backoff", 3)]
    assert waits[:3] == [0, 0.2, 0.4]
    restarts = [record["restart"] for record in toy.wait_record("component.start", 4)]
    assert restarts == [0, 1, 2, 3]


def test_components_stay_on_their_cpus_when_they_are_started_again(toy: ToyCluster) -> None:
    mine = min(os.sched_getaffinity(0))
    toy.add("kcm")
    toy.options["cpus"] = (mine,)

    toy.up()
    first = toy.pid("kcm")
    assert {mine} == os.sched_getaffinity(first)
    os.kill(first, signal.SIGKILL)
    toy.wait_record("component.start", restart=1)

    assert {mine} == os.sched_getaffinity(toy.pid("kcm"))


def test_shared_memory_counts_for_the_watchdog_too(toy: ToyCluster) -> None:
    toy.add("hog", "shared-hog=300", cap_mib=300)
    toy.options["limit_by"] = "watchdog"

    toy.spawn()

    [first, *_] = toy.wait_record("component.exit")
    assert first["reason"] == "oom"
    assert 0.9 * (300 << 20) < first["peak_rss_bytes"] < 1.1 * (300 << 20)


@pytest.mark.parametrize("seed", range(8))
def test_whoever_is_killed_at_whatever_moment_nothing_is_left(
    toy: ToyCluster, bystander: subprocess.Popen[bytes], seed: int
) -> None:
    chance = random.Random(seed)
    toy.add("etcd", "deaf", role="store").add("api", role="server").add("kcm", "child", "sleep=0.5", "exit=1")
    toy.options["owner"] = ProcessId.of(bystander.pid)
    supervisor = state_of(toy.spawn()).supervisor
    guardian = parent_of(supervisor.pid)

    time.sleep(chance.uniform(0, 1.5))
    victims = {"owner": [bystander.pid], "supervisor": [supervisor.pid], "both": [guardian, supervisor.pid]}
    for pid in victims[chance.choice(sorted(victims))]:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not supervisor.is_alive())
    clean_dead_cluster(toy.directory)

    wait_until(lambda: toy.leftovers() == [])


def test_the_supervisor_goes_before_its_components(toy: ToyCluster) -> None:
    client = toy.add("kcm").up()
    supervisor = state_of(client).supervisor

    asyncio.run(client.kill("kcm"))
    toy.wait_record("component.start", 2)

    # Behind those who measure, who have the priority of this process: at the first start as at a restart.
    behind = min(19, os.getpriority(os.PRIO_PROCESS, 0) + BEHIND)
    wait_until(lambda: os.getpriority(os.PRIO_PROCESS, toy.pid("kcm")) == behind)
    if os.geteuid() == 0:
        assert os.getpriority(os.PRIO_PROCESS, supervisor.pid) == -10


def test_an_owner_killed_takes_its_cluster_with_it(toy: ToyCluster, bystander: subprocess.Popen[bytes]) -> None:
    toy.add("etcd", "deaf", role="store").add("kcm", "child")
    toy.options["owner"] = ProcessId.of(bystander.pid)
    client = toy.up()

    bystander.kill()

    wait_until(lambda: not state_of(client).supervisor.is_alive())
    assert state_of(client).reason == "owner_gone"
    assert toy.leftovers() == []


def test_an_owner_that_is_gone_already_ends_the_cluster(toy: ToyCluster) -> None:
    done = subprocess.Popen([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    owner = ProcessId.of(done.pid)
    done.communicate()
    toy.add("kcm")
    toy.options["owner"] = owner

    client = toy.spawn()

    with pytest.raises(ClusterError, match="its owner is gone"):
        asyncio.run(client.wait_ready(20))


def test_a_cluster_can_be_given_to_another_owner_or_to_none(
    toy: ToyCluster, bystander: subprocess.Popen[bytes]
) -> None:
    toy.add("kcm")
    client = toy.up()

    asyncio.run(client.set_owner(ProcessId.of(bystander.pid)))
    asyncio.run(client.set_owner(None))
    bystander.kill()
    bystander.wait()
    toy.wait_record("cluster.ready")

    assert asyncio.run(client.status()).status == "ready"

    asyncio.run(client.set_owner(ProcessId(bystander.pid, 1)))

    wait_until(lambda: state_of(client).status == "ended")
    assert state_of(client).reason == "owner_gone"


@pytest.mark.parametrize("limit_by", ["auto", "watchdog"])
def test_a_supervisor_killed_leaves_nothing_behind(toy: ToyCluster, limit_by: LimitBy) -> None:
    data = toy.scratch / "data"
    data.mkdir()
    toy.add("etcd", "deaf", role="store").add("kcm", "child")
    toy.options.update(limit_by=limit_by, remove_paths=(str(data),), owner=None)
    client = toy.up()

    state_of(client).supervisor.send(signal.SIGKILL)

    wait_until(lambda: state_of(client).status == "ended")
    assert state_of(client).reason == "supervisor_gone"
    assert toy.leftovers() == []
    assert not data.exists()


def test_cleaning_leaves_nothing_where_supervisor_and_guardian_are_both_killed(toy: ToyCluster) -> None:
    data = toy.scratch / "data"
    data.mkdir()
    toy.add("etcd", "deaf", role="store").add("kcm", "child")
    toy.options.update(remove_paths=(str(data),), owner=None)
    client = toy.up()
    supervisor = state_of(client).supervisor
    guardian = parent_of(supervisor.pid)
    wait_until(lambda: len(marked_processes(supervisor)) == 3)
    os.kill(guardian, signal.SIGKILL)
    supervisor.send(signal.SIGKILL)
    wait_until(lambda: not supervisor.is_alive())
    assert toy.leftovers() != []
    assert is_dead_cluster(toy.directory)

    done = clean_dead_cluster(toy.directory)

    assert toy.leftovers() == []
    assert not data.exists()
    assert Done("directory", f"removed {data}") in done
    assert [one.what for one in done].count("process") == 3
    assert clean_dead_cluster(toy.directory) == []


def test_a_living_cluster_is_not_cleaned(toy: ToyCluster) -> None:
    client = toy.add("kcm").up()

    assert clean_dead_cluster(toy.directory) == []
    assert asyncio.run(client.status()).status == "ready"


def test_a_component_killed_is_restarted_as_it_was_started(toy: ToyCluster) -> None:
    toy.add("kcm", "two words", "", "it's=$HOME", "env=GREETING")
    toy.options["launch"] = replace(toy.plan().launch, env={"GREETING": "good\nday"})
    client = toy.up()
    first = toy.pid("kcm")
    log = toy.scratch / "kcm.log"
    wait_until(lambda: "env GREETING good\nday" in log.read_text())

    asyncio.run(client.kill("kcm"))
    second = toy.wait_record("component.start", 2)[1]

    assert second["restart"] == 1
    [end] = toy.records("component.exit")
    assert (end["pid"], end["reason"], end["signal"], end["code"]) == (first, "signal", signal.SIGKILL, None)
    wait_until(lambda: log.read_text().count("env GREETING good\nday") == 2)
    assert log.read_text().count("two words  it's=$HOME env=GREETING") == 2
    status = asyncio.run(client.status())
    assert status.components["kcm"].restarts == 1
    assert status.components["kcm"].process == ProcessId.of(second["pid"])


def test_an_exit_code_is_told(toy: ToyCluster, tmp_path: Path) -> None:
    toy.add("kcm", "sleep=0.5", f"once={tmp_path / 'once'}", "exit=7")

    toy.up()
    [end] = toy.wait_record("component.exit")

    assert (end["reason"], end["code"], end["signal"]) == ("exit", 7, None)


def test_an_exit_comes_with_the_last_words_of_that_process(toy: ToyCluster) -> None:
    client = toy.add("kcm", "env=GREETING").up()
    log = toy.scratch / "kcm.log"
    pids = []
    for number in (1, 2):
        pids.append(toy.pid("kcm"))
        wait_until(lambda: f"up {pids[-1]}" in log.read_text() and log.read_text().count("env GREETING") == number)  # noqa: B023
        asyncio.run(client.kill("kcm"))
        toy.wait_record("component.start", number + 1)

    ends = toy.records("component.exit")

    assert [end["log_tail"] for end in ends] == [f"up {pid} env=GREETING\nenv GREETING None" for pid in pids]
    assert [end["log"] for end in ends] == ["logs/kcm.log"] * 2


def test_the_host_guard_ends_the_cluster(toy: ToyCluster) -> None:
    toy.add("etcd", "deaf", role="store").add("kcm", "deaf")
    toy.options["floor_bytes"] = 1 << 60

    client = toy.spawn()
    with pytest.raises(ClusterError, match="the host ran out of memory"):
        asyncio.run(client.wait_ready(20))

    [guard] = toy.records("host.guard")
    assert guard["floor_bytes"] == 1 << 60
    assert 0 < guard["available_bytes"] < 1 << 60
    assert [record["reason"] for record in toy.records("cluster.end")] == ["host_guard"]
    wait_until(lambda: toy.leftovers() == [])


def test_frozen_and_deaf_components_are_ended_too(toy: ToyCluster) -> None:
    toy.add("etcd", "deaf", role="store").add("kcm").add("scheduler")
    client = toy.up()
    asyncio.run(client.freeze("etcd"))
    asyncio.run(client.freeze("kcm"))

    asyncio.run(client.end())

    assert toy.leftovers() == []
    assert toy.records("component.exit") == []


def test_a_frozen_component_goes_on_when_thawed(toy: ToyCluster) -> None:
    client = toy.add("kcm").up()
    pid = toy.pid("kcm")

    asyncio.run(client.freeze("kcm"))
    wait_until(lambda: run_state(pid) == "T")
    asyncio.run(client.thaw("kcm"))

    wait_until(lambda: run_state(pid) == "S")


def test_stopping_the_supervisor_ends_the_cluster(toy: ToyCluster) -> None:
    client = toy.add("kcm").up()

    state_of(client).supervisor.send(signal.SIGTERM)

    wait_until(lambda: state_of(client).status == "ended")
    assert state_of(client).reason == "signal"
    assert toy.leftovers() == []


def test_limits_hold_from_the_first_instruction_and_weight_is_lower(toy: ToyCluster, cgroups_allowed: None) -> None:
    toy.add("api", role="server", cap_mib=300, cores=1.5)
    client = toy.up()
    status = asyncio.run(client.status())

    [limit] = toy.records("component.limit")
    joined = Path(f"/proc/{toy.pid('api')}/cgroup").read_text()

    assert (limit["memory_bytes"], limit["cpu_cores"]) == (300 << 20, 1.5)
    assert limit["memory_by"] == status.components["api"].enforcement.memory_by
    assert limit["memory_by"].startswith("cgroup_")
    assert f"scaletest-toy-{status.supervisor.pid}/api" in joined
    assert Path(f"/proc/{toy.pid('api')}/oom_score_adj").read_text() == "800\n"


def test_without_cgroups_the_number_of_threads_is_set_instead_of_a_quota(toy: ToyCluster) -> None:
    toy.add("api", "env=GOMAXPROCS", role="server", cores=1.7)
    toy.options["limit_by"] = "watchdog"
    toy.up()

    [limit] = toy.records("component.limit")

    assert (limit["memory_by"], limit["cpu_by"]) == ("watchdog", "none")
    wait_until(lambda: "env GOMAXPROCS 2" in (toy.scratch / "api.log").read_text())


def test_a_restart_is_not_made_while_the_cluster_ends(toy: ToyCluster) -> None:
    toy.add("etcd", "deaf", role="store").add("kcm", "sleep=0.3", "exit=1")
    toy.options["backoff"] = RestartBackoff(first_s=0.05, factor=1, most_s=0.05)
    client = toy.spawn()
    toy.wait_record("component.start", 2)

    asyncio.run(client.end())
    starts = len(toy.records("component.start"))

    assert toy.leftovers() == []
    assert toy.records()[-1]["kind"] == "cluster.end"
    assert len(toy.records("component.start")) == starts


def state_of(client: SupervisorClient) -> ClusterState:
    state = client.state()
    assert state is not None
    return state


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


def run_state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[0]
