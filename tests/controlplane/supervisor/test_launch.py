from __future__ import annotations

import asyncio
import socket
from dataclasses import replace

import pytest

from scaletest.core.errors import ClusterError
from tests.controlplane.supervisor.toys import ToyCluster


def failure(toy: ToyCluster) -> str:
    client = toy.spawn()
    with pytest.raises(ClusterError) as caught:
        asyncio.run(client.wait_ready(40))
    assert toy.leftovers() == []
    assert [record["reason"] for record in toy.records("cluster.end")] == ["start_failed"]
    return caught.value.message


def test_a_launcher_that_fails_is_quoted(toy: ToyCluster) -> None:
    toy.add("etcd", role="store")
    toy.launch_code = 3

    message = failure(toy)

    assert "exited with code 3" in message
    assert f"last lines of {toy.directory / 'launcher.log'}:\n  launching\n  launched" in message


def test_a_launcher_that_cannot_be_executed_is_told(toy: ToyCluster) -> None:
    toy.add("etcd", role="store")
    toy.options["launch"] = replace(toy.plan().launch, argv=("/nonexistent/kwokctl",))

    assert failure(toy) == "/nonexistent/kwokctl cannot be run: No such file or directory"


def test_a_launcher_that_starts_nothing_is_told(toy: ToyCluster) -> None:
    toy.add("etcd", role="store")
    toy.options["launch"] = replace(toy.plan().launch, argv=("/bin/true",))

    assert "true exited with 0 but has not started etcd" in failure(toy)


def test_a_server_that_dies_at_once_is_told_before_a_hanging_launcher_gives_up(toy: ToyCluster) -> None:
    toy.add("etcd", role="store").add("api", "sleep=0.1", "exit=9", role="server")
    toy.launch_seconds = 600

    message = failure(toy)

    assert "the control plane did not start: api exited with code 9" in message
    assert "sleep=0.1 exit=9" in message


def test_a_component_killed_at_its_cap_while_starting_is_told(toy: ToyCluster) -> None:
    toy.add("api", "hog=500", role="server", cap_mib=300)
    toy.launch_seconds = 600

    assert "api was killed at its memory cap of 300 MiB" in failure(toy)


def test_a_controller_may_give_up_once_before_the_cluster_is_ready(toy: ToyCluster, free_port: int) -> None:
    toy.add("api", "sleep=1", f"listen={free_port}", role="server")
    toy.add("kcm", f"once={toy.scratch / 'once'}", "exit=1")
    toy.launch_seconds = 0.5

    toy.up()

    kinds = [record["kind"] for record in toy.records() if record.get("component") == "kcm"]
    assert kinds == ["component.limit", "component.start", "component.exit", "component.backoff", "component.start"]


def test_a_controller_that_keeps_giving_up_is_told(toy: ToyCluster, free_port: int) -> None:
    toy.add("api", "sleep=20", f"listen={free_port}", role="server").add("kcm", "sleep=0.2", "exit=4")

    assert "kcm exited with code 4" in failure(toy)


def test_a_port_that_nobody_listens_on_is_named_after_the_time_out(toy: ToyCluster, free_port: int) -> None:
    toy.add("api", role="server")
    toy.plans[0] = replace(toy.plans[0], tcp_ports=(free_port,))
    toy.options["launch"] = replace(toy.plan().launch, timeout_s=1.5)

    assert f"after 1.5 s still waiting for api (port {free_port})" in failure(toy)


def test_a_launcher_that_hangs_is_ended_after_its_time_out(toy: ToyCluster) -> None:
    toy.add("etcd", role="store")
    toy.launch_seconds = 600
    toy.options["launch"] = replace(toy.plan().launch, timeout_s=1.5)

    message = failure(toy)

    assert "was still running" in message
    assert "launching" in message


def test_a_shim_that_cannot_join_its_group_runs_nothing(toy: ToyCluster) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
    toy.add("etcd", role="store")
    client = toy.up()
    groups = asyncio.run(client.status()).groups
    if not groups:
        pytest.skip("control groups cannot be used here")
    shim = toy.directory / "shims" / "etcd"
    shim.write_text(shim.read_text().replace("cgroup.procs", "cgroup.nothing"))

    asyncio.run(client.kill("etcd"))
    end = toy.wait_record("component.exit", 2)[1]

    assert (end["reason"], end["code"]) == ("exit", 125)
    assert "scaletest: cannot join" in (toy.scratch / "etcd.log").read_text()
