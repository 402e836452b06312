from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scaletest.controlplane.control import SupervisorClient
from scaletest.controlplane.plan import CONTROL_SOCKET
from scaletest.core.errors import ClusterError
from scaletest.core.journal import JournalReader, Record
from scaletest.core.processes import ProcessId
from tests.controlplane.supervisor.toys import ToyCluster, wait_until


def read(path: Path) -> list[Record]:
    return list(JournalReader(path).read())


def test_a_run_that_attaches_gets_what_runs_now_and_what_happens_then(toy: ToyCluster, tmp_path: Path) -> None:
    client = toy.add("etcd", role="store").add("kcm").up()
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    origin_s = time.monotonic()

    asyncio.run(client.attach(first, origin_s))
    asyncio.run(client.attach(second, origin_s - 1000))
    asyncio.run(client.kill("kcm"))
    toy.wait_record("component.start", 3)
    asyncio.run(client.detach(first))
    asyncio.run(client.end())

    begin = ["component.limit", "component.start"] * 2
    restart = ["component.exit", "component.backoff", "component.start"]
    assert [record["kind"] for record in read(first)] == begin + restart
    assert [record["kind"] for record in read(second)] == [*begin, *restart, "cluster.end"]
    assert [record["src"] for record in read(first)] == ["supervisor"] * 7
    assert 0 <= read(first)[0]["t"] < 60
    assert 1000 <= read(second)[0]["t"] < 1060


def test_attaching_the_same_journal_twice_writes_each_record_once(toy: ToyCluster, tmp_path: Path) -> None:
    client = toy.add("kcm").up()
    journal = tmp_path / "journal.jsonl"

    asyncio.run(client.attach(journal, 0.0))
    asyncio.run(client.attach(journal, 0.0))
    asyncio.run(client.end())

    assert [record["kind"] for record in read(journal)].count("cluster.end") == 1


def test_the_journal_of_a_run_that_died_is_let_go(
    toy: ToyCluster, tmp_path: Path, bystander: subprocess.Popen[bytes]
) -> None:
    client = toy.add("kcm").up()
    journal = tmp_path / "journal.jsonl"
    asyncio.run(client.attach(journal, 0.0, holder=ProcessId.of(bystander.pid)))

    bystander.kill()
    bystander.wait()
    asyncio.run(client.kill("kcm"))
    toy.wait_record("component.start", 2)

    assert [record["kind"] for record in read(journal)] == ["component.limit", "component.start"]


def test_a_journal_that_cannot_be_opened_is_told(toy: ToyCluster, tmp_path: Path) -> None:
    client = toy.add("kcm").up()

    with pytest.raises(ClusterError, match="No such file"):
        asyncio.run(client.attach(tmp_path / "missing" / "journal.jsonl", 0.0))

    assert asyncio.run(client.status()).status == "ready"


def test_events_are_streamed_as_they_happen_and_end_with_the_cluster(toy: ToyCluster) -> None:
    client = toy.add("kcm").up()

    async def collect() -> list[str]:
        kinds = []
        events = client.events()
        following = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.2)
        await client.kill("kcm")
        kinds.append((await following)["kind"])
        async for record in events:
            kinds.append(record["kind"])
            if record["kind"] == "component.start":
                await client.end()
        return kinds

    expected = ["component.exit", "component.backoff", "component.start", "cluster.end"]
    assert asyncio.run(collect()) == expected


def test_a_listener_that_hangs_up_is_forgotten(toy: ToyCluster) -> None:
    client = toy.add("kcm").up()

    async def listen_shortly() -> None:
        events = client.events()
        following = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.1)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await events.aclose()

    asyncio.run(listen_shortly())
    asyncio.run(client.kill("kcm"))

    assert asyncio.run(client.status()).status == "ready"


def test_the_socket_is_for_its_owner_only(toy: ToyCluster) -> None:
    toy.add("kcm").up()

    assert stat.S_IMODE((toy.directory / CONTROL_SOCKET).stat().st_mode) == 0o600
    assert stat.S_IMODE((toy.directory / "plan.json").stat().st_mode) == 0o600


def test_a_directory_with_a_long_path_is_no_obstacle(toy: ToyCluster) -> None:
    toy.directory = toy.directory / ("d" * 100) / ("e" * 100)
    toy.directory.mkdir(parents=True)

    client = toy.add("kcm").up()

    assert asyncio.run(client.status()).name == "toy"


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"op": "dance"}, "unknown request 'dance'"),
        ({}, "bad request"),
        ({"op": "kill", "component": "nobody"}, "no component 'nobody': there are kcm"),
        ({"op": "attach"}, "bad request"),
        ([], "bad request"),
    ],
)
def test_a_bad_request_is_answered_with_what_is_wrong(toy: ToyCluster, request_: object, error: str) -> None:
    toy.add("kcm").up()

    async def ask() -> bytes:
        here = os.getcwd()  # noqa: PTH109, ASYNC240, RUF100
        os.chdir(toy.directory)
        try:
            reader, writer = await asyncio.open_unix_connection(CONTROL_SOCKET)
        finally:
            os.chdir(here)
        writer.write(json.dumps(request_).encode() + b"\n")
        line = await reader.readline()
        writer.close()
        return line

    answer = json.loads(asyncio.run(ask()))

    assert answer["ok"] is False
    assert error in answer["error"]


def test_ending_twice_is_no_error(toy: ToyCluster) -> None:
    client = toy.add("etcd", "deaf", role="store").up()

    async def end_twice() -> None:
        await asyncio.gather(client.end(), client.end())
        await client.end()

    asyncio.run(end_twice())

    assert toy.leftovers() == []


def test_a_supervisor_that_is_gone_is_told(toy: ToyCluster) -> None:
    client = toy.add("kcm").up()
    asyncio.run(client.end())

    with pytest.raises(ClusterError, match="does not answer"):
        asyncio.run(client.status())


def test_a_directory_without_a_cluster_is_told(tmp_path: Path) -> None:
    client = SupervisorClient(tmp_path)

    assert client.state() is None
    with pytest.raises(ClusterError, match="holds no cluster"):
        asyncio.run(client.end())


def test_a_plan_that_cannot_be_read_is_a_supervisor_that_does_not_start(toy: ToyCluster) -> None:
    toy.add("kcm")
    toy.options["name"] = object
    with pytest.raises(TypeError):
        toy.spawn()
    toy.options["name"] = "toy"
    toy.options["components"] = ()
    toy.options["floor_bytes"] = "much"

    client = toy.spawn()

    with pytest.raises(ClusterError):
        asyncio.run(client.wait_ready(10))


def test_the_supervisor_imports_nothing_heavy() -> None:
    script = (
        "import sys, scaletest.controlplane.supervisor.supervise, scaletest.controlplane.supervisor.server\n"
        "heavy = {'pydantic', 'kubernetes', 'typer', 'rich', 'locust', 'gevent', 'platformdirs', 'psutil', 'yaml'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_the_client_is_free_at_once_and_no_process_is_left_to_reap(toy: ToyCluster) -> None:
    client = toy.add("kcm").up()
    asyncio.run(client.end())

    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    wait_until(lambda: toy.leftovers() == [])
