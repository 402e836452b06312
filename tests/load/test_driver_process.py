"""The driver process over its raw protocol, and its client: start, end, death."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from scaletest.core.access import ApiAccess
from scaletest.core.errors import EnvironmentProblem
from scaletest.core.journal import Record
from scaletest.load import protocol
from scaletest.load.client import DriverExit, LocustDriver
from scaletest.load.protocol import FlowStart, SetTarget
from scaletest.profile.schema import FlowSpec
from tests.load.harness import Drivers, TestServer

POLLING = FlowSpec.model_validate(
    {"agents": {"count": 2, "rollout": "100/s"}, "steps": [{"get": "/ok", "every": "20ms"}]}
)


@contextmanager
def process(journal: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A driver process that is ready."""
    with subprocess.Popen(
        [sys.executable, "-m", "scaletest.load"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as driver:
        try:
            tell(driver, protocol.Configure(journal, time.monotonic(), 0.1))
            assert isinstance(hear(driver), protocol.Ready)
            yield driver
        finally:
            driver.kill()


def tell(driver: subprocess.Popen[bytes], command: protocol.Command) -> None:
    assert driver.stdin is not None
    driver.stdin.write(protocol.encode(command))
    driver.stdin.flush()


def hear(driver: subprocess.Popen[bytes]) -> protocol.Report:
    assert driver.stdout is not None
    return protocol.decode_report(driver.stdout.readline())


def wait_for_requests(journal: Path, least: int) -> list[Record]:
    deadline_s = time.monotonic() + 20
    while True:
        records = [json.loads(line) for line in journal.read_text().splitlines()]
        if requests_in(records) >= least:
            return records
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def requests_in(records: list[Record]) -> int:
    steps = [step for record in records if record["kind"] == "flow" for step in record["steps"].values()]
    return sum(step["outcomes"].get("200", 0) for step in steps)


def end_of(driver: subprocess.Popen[bytes], how: str) -> None:
    assert driver.stdin is not None
    if how == "quit":
        tell(driver, protocol.Quit())
    elif how == "eof":
        driver.stdin.close()
    else:
        driver.send_signal(signal.SIGTERM)


@pytest.mark.parametrize(("how", "reason"), [("quit", "asked"), ("eof", "owner_gone"), ("term", "signal")])
def test_every_orderly_end_writes_what_was_measured_and_exits_0(
    tmp_path: Path, server: TestServer, how: str, reason: str
) -> None:
    journal = tmp_path / "journal.jsonl"
    with process(journal) as driver:
        tell(driver, FlowStart(f"ended-{how}", POLLING, server.access, 2))
        wait_for_requests(journal, 5)
        end_of(driver, how)
        assert 0 == driver.wait(20)

    records = [json.loads(line) for line in journal.read_text().splitlines()]
    assert ["driver.ready", "driver.end"] == [records[0]["kind"], records[-1]["kind"]]
    assert reason == records[-1]["reason"]
    # Every request that the server saw is counted, but the one that each agent had in flight at the end.
    seen = len(server.log(f"ended-{how}"))
    assert seen - 2 <= requests_in(records) <= seen
    last = [record for record in records if record["kind"] == "flow"][-1]
    assert (2, 2, 2) == (last["target"], last["started"], last["connected"])


def test_a_killed_driver_leaves_all_but_its_last_interval(tmp_path: Path, server: TestServer) -> None:
    journal = tmp_path / "journal.jsonl"
    with process(journal) as driver:
        tell(driver, FlowStart("killed", POLLING, server.access, 2))
        wait_for_requests(journal, 10)
        driver.kill()
        driver.wait(10)

    records = [json.loads(line) for line in journal.read_text().splitlines()]
    assert 10 <= requests_in(records)


def test_the_driver_ends_when_its_owner_is_killed(tmp_path: Path, server: TestServer) -> None:
    owner = """
import subprocess, sys, time
driver = subprocess.Popen([sys.executable, "-m", "scaletest.load"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
driver.stdin.write(sys.argv[1].encode() + b"\\n"); driver.stdin.flush()
driver.stdout.readline()
print(driver.pid, flush=True)
time.sleep(60)
"""
    configure = protocol.encode(protocol.Configure(tmp_path / "j", time.monotonic())).decode().strip()
    with subprocess.Popen([sys.executable, "-c", owner, configure], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
        parent.wait(10)

    deadline_s = time.monotonic() + 15
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split(") ")[1][:1]:
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    assert "driver.end" in (tmp_path / "j").read_text()


def test_bad_messages_are_answered_and_survived(tmp_path: Path) -> None:
    with process(tmp_path / "j") as driver:
        assert driver.stdin is not None
        driver.stdin.write(b'not json\n{"type":"dance"}\n{"type":"stop_flow"}\n')
        tell(driver, protocol.StopFlow("nothing"))
        errors: list[protocol.DriverError] = []
        while len(errors) < 4:
            report = hear(driver)
            errors += [report] if isinstance(report, protocol.DriverError) else []
        tell(driver, protocol.Quit())
        assert 0 == driver.wait(20)

    assert "no flow 'nothing' is running" == errors[3].message


def test_without_a_journal_the_driver_says_so_and_ends(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "scaletest.load"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as driver:
        tell(driver, protocol.Configure(tmp_path / "none" / "j", 0.0))
        report = hear(driver)
        assert 2 == driver.wait(20)

    assert isinstance(report, protocol.DriverError)
    assert "No such file" in report.message


def test_an_owner_that_does_not_read_does_not_stop_the_driver(tmp_path: Path, server: TestServer) -> None:
    journal = tmp_path / "journal.jsonl"
    with process(journal) as driver:
        tell(driver, FlowStart("unread", POLLING, server.access, 2))
        wait_for_requests(journal, 300)
        tell(driver, protocol.Quit())
        assert 0 == driver.wait(20)


# The client.


def run(scenario: Any) -> Any:
    return asyncio.run(scenario)


def test_the_client_starts_stops_and_hears_records(tmp_path: Path, server: TestServer) -> None:
    async def scenario() -> tuple[list[Record], DriverExit]:
        records: list[Record] = []
        grown = asyncio.Event()

        def hear_record(record: Record) -> None:
            records.append(record)
            if record["kind"] == "flow" and record["started"] == 3:
                grown.set()

        driver = await LocustDriver.spawn(tmp_path / "j", time.monotonic(), hear_record, interval_s=0.1)
        assert driver.process_id.is_alive()
        await driver.start_flow(FlowStart("client", POLLING, server.access, 2))
        await driver.set_target(SetTarget("client", 3))
        await asyncio.wait_for(grown.wait(), 20)
        await driver.stop_flow("client")
        await driver.stop()
        await driver.stop()
        return records, await driver.exited

    records, ended = run(scenario())

    assert {"flow", "driver", "driver.end"} <= {record["kind"] for record in records}
    assert DriverExit(0, expected=True, stderr_tail="") == ended


def test_the_client_notices_a_driver_that_dies(tmp_path: Path) -> None:
    async def scenario() -> tuple[DriverExit, str]:
        driver = await LocustDriver.spawn(tmp_path / "j", time.monotonic(), lambda _record: None)
        os.kill(driver.process_id.pid, signal.SIGKILL)
        ended = await asyncio.wait_for(asyncio.shield(driver.exited), 10)
        with pytest.raises(EnvironmentProblem) as caught:
            await driver.stop_flow("any")
        await driver.stop()
        return ended, caught.value.message

    ended, message = run(scenario())

    assert (-9, False) == (ended.code, ended.expected)
    assert message.startswith("the load driver ended by signal 9")


def test_a_driver_that_cannot_write_its_journal_does_not_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        await LocustDriver.spawn(tmp_path / "none" / "j", time.monotonic(), lambda _record: None)

    with pytest.raises(EnvironmentProblem, match="No such file"):
        run(scenario())


def test_a_flow_that_needs_a_missing_file_does_not_start(drivers: Drivers, server: TestServer, tmp_path: Path) -> None:
    access = ApiAccess((server.url,), tmp_path / "no-ca.crt", server.credential)

    with pytest.raises(EnvironmentProblem, match=r"flow missing: no connection can be made: .*No such file"):
        drivers.start("missing", server, [{"get": "/ok"}], access=access)


def test_a_flow_cannot_be_started_twice(drivers: Drivers, server: TestServer) -> None:
    drivers.start("twice", server, [{"get": "/ok"}])
    with pytest.raises(EnvironmentProblem, match="already running"):
        drivers.start("twice", server, [{"get": "/ok"}])
    drivers.do(drivers.driver.stop_flow("twice"))


def test_a_frozen_driver_is_killed_in_the_end(tmp_path: Path) -> None:
    async def scenario() -> DriverExit:
        driver = await LocustDriver.spawn(tmp_path / "j", time.monotonic(), lambda _record: None)
        driver.process_id.send(signal.SIGSTOP)
        await driver.stop(quit_within_s=0.3, term_within_s=0.3)
        return await driver.exited

    assert -9 == run(scenario()).code


@pytest.mark.parametrize(
    "prints",
    [
        pytest.param("import sys\nsys.stderr.write('x' * (66 << 20))\n", id="66 MiB without a line"),
        pytest.param("import subprocess\nsubprocess.Popen(['sleep', '60'])\n", id="a child that holds the pipes open"),
    ],
)
def test_the_end_of_the_driver_is_noticed_whatever_a_locustfile_does_to_its_pipes(
    tmp_path: Path, server: TestServer, prints: str
) -> None:
    users = "from locust import User, task\nclass U(User):\n    @task\n    def t(self): pass\n"
    (tmp_path / "locustfile.py").write_text(prints + users)
    spec = FlowSpec.model_validate({"locustfile": {"path": "locustfile.py", "users": 1, "spawn": "100/s"}})

    async def scenario() -> DriverExit:
        driver = await LocustDriver.spawn(tmp_path / "j", time.monotonic(), lambda _record: None)
        await driver.start_flow(FlowStart("f", spec, server.access, 1, directory=tmp_path))
        await asyncio.wait_for(driver.stop(), 20)
        return await driver.exited

    ended = run(scenario())

    assert (0, True) == (ended.code, ended.expected)
    assert len(ended.stderr_tail) < 10_000
