from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from scaletest.core.access import ApiAccess
from scaletest.core.journal import MemoryJournal, Record
from scaletest.observe import Observer, Targets
from scaletest.observe.families import apiserver_fields, etcd_fields
from scaletest.profile.schema import ObserveSpec
from tests import servers

DATA = Path(__file__).parent / "data"
APISERVER = (DATA / "apiserver-1.37.2.txt").read_bytes()
ETCD = (DATA / "etcd-3.6.16.txt").read_bytes()


def observe(
    enough: dict[str, int],
    *,
    access: ApiAccess | None = None,
    etcd: tuple[str, ...] = (),
    pids: Any = dict,
    scrape_timeout_s: float = 10.0,
) -> list[Record]:
    """Observe until there are ``enough`` records of each kind (given with their servers as ``KIND SERVER`` too)."""
    journal = MemoryJournal(clock_origin_s=time.monotonic())
    spec = ObserveSpec.model_validate({"metricsEvery": "100ms", "processesEvery": "100ms"})

    def is_enough() -> bool:
        counts = Counter(record["kind"] for record in journal.records)
        counts.update(f"{record['kind']} {record['server']}" for record in journal.records if "server" in record)
        return all(counts[kind] >= number for kind, number in enough.items())

    async def main() -> None:
        stop = asyncio.Event()
        observer = Observer(spec, Targets(access, etcd, pids), journal, scrape_timeout_s=scrape_timeout_s)
        task = asyncio.create_task(observer.run(stop))
        async with asyncio.timeout(60):
            while not is_enough():  # noqa: ASYNC110 - a journal has no event
                await asyncio.sleep(0.02)
        stop.set()
        await task

    asyncio.run(main())
    return journal.records


def of(records: list[Record], kind: str) -> list[Record]:
    return [record for record in records if record["kind"] == kind]


def without_head(record: Record) -> Record:
    return {key: value for key, value in record.items() if key not in {"v", "t", "kind", "src", "server", "latency_s"}}


def test_api_servers_and_etcd_are_scraped_again_and_again_on_one_connection_each(tmp_path: Path) -> None:
    pki = servers.make_pki(tmp_path)
    metrics, etcd_metrics = servers.answering(APISERVER), servers.answering(ETCD)
    with (
        servers.serving(metrics, tls=pki.server) as one,
        servers.serving(metrics, tls=pki.server) as two,
        servers.serving(etcd_metrics) as etcd,
    ):
        access = pki.access(one.url("https"), two.url("https"))
        enough = {f"metrics.apiserver {server}": 3 for server in access.servers} | {"metrics.etcd": 3}
        records = observe(enough, access=access, etcd=(etcd.url(),))

        assert all(len(server.connections) < 3 for server in (one, two, etcd))

    from_servers, from_etcd = of(records, "metrics.apiserver"), of(records, "metrics.etcd")
    assert {record["server"] for record in from_servers} == set(access.servers)
    assert without_head(from_servers[0]) == apiserver_fields(APISERVER)
    assert without_head(from_etcd[0]) == etcd_fields(ETCD)
    assert of(records, "metrics.gap") == []


def test_a_hung_server_leaves_gaps_and_disturbs_nothing_else(tmp_path: Path) -> None:
    pki = servers.make_pki(tmp_path)
    with (
        servers.serving(servers.hanging, tls=pki.server) as hung,
        servers.serving(servers.answering(ETCD)) as etcd,
    ):
        access = pki.access(hung.url("https"))
        enough = {"metrics.gap": 3, "metrics.etcd": 3, "process": 3}
        records = observe(enough, access=access, etcd=(etcd.url(),), scrape_timeout_s=0.3)

    gaps = of(records, "metrics.gap")
    assert {(gap["target"], gap["server"], gap["outcome"]) for gap in gaps} == {
        ("kube-apiserver", hung.url("https"), "timeout")
    }


def test_every_way_to_have_no_metrics_is_a_gap_with_its_outcome() -> None:
    def cut_short(connection: socket.socket) -> None:
        servers.read_request(connection)
        connection.sendall(servers.response(ETCD)[:-100])

    with (
        servers.serving(cut_short) as cut,
        servers.serving(servers.answering(b"no", status="503 Service Unavailable")) as unavailable,
        servers.serving(servers.answering(b"up 1\n")) as foreign,
    ):
        refused = f"http://127.0.0.1:{servers.closed_port()}"
        etcd = (cut.url(), unavailable.url(), foreign.url(), refused)
        records = observe({f"metrics.gap {url}": 1 for url in etcd}, etcd=etcd)

    assert {(gap["server"], gap["outcome"]) for gap in of(records, "metrics.gap")} == {
        (cut.url(), "cut_short"),
        (unavailable.url(), "http_503"),
        (foreign.url(), "error"),
        (refused, "refused"),
    }
    assert {gap["target"] for gap in of(records, "metrics.gap")} == {"etcd"}


def test_metrics_come_back_after_a_gap() -> None:
    asked: list[str] = []

    def recovers(connection: socket.socket) -> None:
        while (head := servers.read_request(connection)) is not None:
            asked.append(head)
            if len(asked) <= 3:
                return
            connection.sendall(servers.response(ETCD))

    with servers.serving(recovers) as server:
        records = observe({"metrics.gap": 1, "metrics.etcd": 2}, etcd=(server.url(),))

    kinds = [record["kind"] for record in records if record["kind"].startswith("metrics")]
    assert kinds[0] == "metrics.gap"
    assert kinds[-1] == "metrics.etcd"


def test_processes_are_sampled_by_name_and_a_restart_shows_by_its_pid() -> None:
    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)

    first, second = start(), start()
    asked = 0

    def pids() -> dict[str, int | None]:
        nonlocal asked
        asked += 1
        return {"etcd": (first if asked < 4 else second).pid, "kube-scheduler": None, "driver": os.getpid()}

    try:
        records = observe({"process": 6}, pids=pids)
    finally:
        for process in (first, second):
            process.communicate()

    samples = [record["processes"] for record in of(records, "process")]
    assert {tuple(sample) for sample in samples} == {("etcd", "driver", "cli")}
    assert [samples[0]["etcd"]["pid"], samples[-1]["etcd"]["pid"]] == [first.pid, second.pid]
    # This process is `cli` alone, and `driver` with its two children.
    assert samples[0]["cli"]["pid"] == os.getpid()
    assert samples[0]["driver"]["rss_bytes"] > samples[0]["cli"]["rss_bytes"]
    assert samples[0]["cli"]["cpu_s"] > 0


def test_the_host_is_sampled_with_the_processes() -> None:
    records = observe({"host": 1})

    host = of(records, "host")[0]
    assert set(without_head(host)) == {
        "available_bytes", "total_bytes", "cores", "cpu_busy_s", "cpu_idle_s", "cpu_steal_s", "tcp_listen_overflows",
        "tcp_memory_pressures",
    }  # fmt: skip
    assert 0 < host["available_bytes"] < host["total_bytes"]


def test_a_failure_to_find_the_processes_is_a_gap_and_the_host_goes_on() -> None:
    def pids() -> dict[str, int | None]:
        msg = "no state yet"
        raise OSError(msg)

    records = observe({"metrics.gap": 2, "host": 2}, pids=pids)

    gaps = of(records, "metrics.gap")
    assert {(gap["target"], gap["outcome"], gap["reason"]) for gap in gaps} == {
        ("processes", "error", "OSError: no state yet")
    }
