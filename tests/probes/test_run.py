from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from scaletest.core.access import ApiAccess
from scaletest.core.journal import MemoryJournal, Record
from scaletest.probes.probe import FakeProbe, Observation
from scaletest.probes.run import ProbeTask, run_probes
from scaletest.profile.schema import ProbeSpec
from tests import servers

TABLE = b'{"columnDefinitions":[{"name":"Status"}],"rows":[{"cells":["Ready"]},{"cells":["NotReady"]}]}'


def probe_until(
    enough: Callable[[list[Record]], bool], probes: dict[str, ProbeSpec], access: ApiAccess
) -> list[Record]:
    journal = MemoryJournal(clock_origin_s=time.monotonic())
    asked: list[str] = []

    def access_for(identity: str) -> ApiAccess:
        asked.append(identity)
        return access

    async def main() -> None:
        stop = asyncio.Event()
        task = asyncio.create_task(run_probes(probes, access_for, journal, stop))
        async with asyncio.timeout(60):
            while not enough(of_probes(journal.records)):  # noqa: ASYNC110 - a journal has no event
                await asyncio.sleep(0.02)
        stop.set()
        await task

    asyncio.run(main())
    assert asked == [identity for spec in probes.values() for identity in spec.identities]
    return of_probes(journal.records)


def of_probes(records: list[Record]) -> list[Record]:
    """Without ``probe.missed``, which a busy machine may bring."""
    return [record for record in records if record["kind"] != "probe.missed"]


def asker(record: Record) -> tuple[str, str]:
    return record["identity"], record["server"]


def count(number: int) -> Callable[[list[Record]], bool]:
    return lambda records: len(records) >= number


def operator(**keys: object) -> ProbeSpec:
    return ProbeSpec.model_validate({"get": "pods", "every": "100ms", **keys})


def test_every_identity_asks_every_server_on_a_connection_of_its_own(tmp_path: Path) -> None:
    pki = servers.make_pki(tmp_path)
    handler = servers.answering(b"{}")
    with servers.serving(handler, tls=pki.server) as one, servers.serving(handler, tls=pki.server) as two:
        access = pki.access(one.url("https"), two.url("https"))
        everyone = {(identity, server) for identity in ("system:masters", "admin") for server in access.servers}
        records = probe_until(
            lambda records: all(Counter(map(asker, records))[each] >= 5 for each in everyone),
            {"operator": operator(every="300ms", identities=["system:masters", "admin"])},
            access,
        )

        # One each; more only where a busy machine let one lie idle for too long. Ten requests went to each server.
        assert 2 <= len(one.connections) < 10
        assert 2 <= len(two.connections) < 10

    assert set(map(asker, records)) == everyone
    assert {(record["kind"], record["probe"], record["ok"], record["outcome"]) for record in records} == {
        ("probe", "operator", True, "ok")
    }
    for record in records:
        assert 0 <= record["sent_t"] <= record["sent_t"] + record["latency_s"] <= record["t"] + 0.001
        assert record["late_s"] >= 0


def test_nodes_are_counted_in_records_of_their_own(tmp_path: Path) -> None:
    pki = servers.make_pki(tmp_path)
    with servers.serving(servers.answering(TABLE), tls=pki.server) as server:
        spec = ProbeSpec.model_validate({"nodeReadiness": True, "every": "200ms"})
        records = probe_until(count(2), {"nodes": spec}, pki.access(server.url("https")))

    assert {(r["kind"], r["probe"], r["ready"], r["not_ready"], r["total"]) for r in records} == {
        ("probe.nodes", "nodes", 1, 1, 2)
    }


def test_a_server_that_hangs_is_asked_on_in_its_rhythm_and_every_request_times_out(tmp_path: Path) -> None:
    pki = servers.make_pki(tmp_path)
    with servers.serving(servers.hanging, tls=pki.server) as server:
        spec = operator(timeout="600ms")
        records = probe_until(count(8), {"operator": spec}, pki.access(server.url("https")))

        assert len(server.connections) >= 2

    assert {record["outcome"] for record in records} == {"timeout"}
    overlaps = sum(later["sent_t"] < earlier["sent_t"] + earlier["latency_s"] for earlier, later in pairwise(records))
    assert overlaps > 0  # in a closed loop none would


def test_one_server_that_hangs_does_not_disturb_the_other(tmp_path: Path) -> None:
    pki = servers.make_pki(tmp_path)
    good_handler = servers.answering(b"{}")
    with servers.serving(servers.hanging, tls=pki.server) as bad, servers.serving(good_handler, tls=pki.server) as good:
        access = pki.access(bad.url("https"), good.url("https"))
        expected = {(bad.url("https"), "timeout"), (good.url("https"), "ok")}
        probe_until(
            lambda records: {(record["server"], record["outcome"]) for record in records} >= expected,
            {"operator": operator(timeout="500ms")},
            access,
        )


def test_a_server_that_comes_back_is_found_on_a_new_connection(tmp_path: Path) -> None:
    pki = servers.make_pki(tmp_path)
    asked: list[str] = []

    def restarts(connection: socket.socket) -> None:
        while (head := servers.read_request(connection)) is not None:
            asked.append(head)
            if len(asked) <= 3:
                return
            connection.sendall(servers.response(b"{}"))

    with servers.serving(restarts, tls=pki.server) as server:
        records = probe_until(
            lambda records: any(record["ok"] for record in records),
            {"operator": operator()},
            pki.access(server.url("https")),
        )

    assert records[0]["outcome"] == "reset"


def test_a_refusal_names_the_status_and_its_reason(tmp_path: Path) -> None:
    pki = servers.make_pki(tmp_path)
    body = json.dumps({"kind": "Status", "reason": "Forbidden", "message": "pods is forbidden"}).encode()
    with servers.serving(servers.answering(body, status="403 Forbidden"), tls=pki.server) as server:
        records = probe_until(count(1), {"operator": operator()}, pki.access(server.url("https")))

    assert (records[0]["outcome"], records[0]["status"], records[0]["reason"]) == (
        "http_403",
        403,
        "Forbidden: pods is forbidden",
    )


def task_of(probe: FakeProbe) -> ProbeTask:
    return ProbeTask("operator", "admin", "https://127.0.0.1:1", probe, every_s=0.1, timeout_s=20.0)


def test_a_request_that_the_end_of_the_run_cuts_off_is_recorded_as_unfinished() -> None:
    async def never() -> Observation:
        await asyncio.sleep(60)
        raise AssertionError

    journal = MemoryJournal(clock_origin_s=time.monotonic())

    async def main() -> None:
        task = asyncio.create_task(task_of(FakeProbe(never)).run(journal, asyncio.Event()))
        await asyncio.sleep(0.3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())

    assert journal.records
    assert {(r["kind"], r["ok"], r["outcome"], r["reason"]) for r in journal.records} == {
        ("probe", False, "unfinished", "the run ended first")
    }


def test_a_probe_with_a_bug_is_an_error_in_the_journal_and_goes_on() -> None:
    async def broken() -> Observation:
        msg = "oops"
        raise RuntimeError(msg)

    journal = MemoryJournal(clock_origin_s=time.monotonic())

    async def main() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(0.5, stop.set)
        await task_of(FakeProbe(broken)).run(journal, stop)

    asyncio.run(main())

    sent = [record for record in journal.records if record["kind"] == "probe"]
    assert len(sent) >= 2
    assert {(record["outcome"], record["reason"]) for record in sent} == {("error", "RuntimeError: oops")}


def test_a_send_that_could_not_take_place_is_recorded_apart_from_answers() -> None:
    async def quick() -> Observation:
        return Observation("ok", 0.0, 200)

    journal = MemoryJournal(clock_origin_s=time.monotonic())

    async def main() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(0.15, time.sleep, 0.6)
        asyncio.get_running_loop().call_later(1.0, stop.set)
        await task_of(FakeProbe(quick)).run(journal, stop)

    asyncio.run(main())

    missed = [record for record in journal.records if record["kind"] == "probe.missed"]
    assert len(missed) >= 3
    assert {record["reason"] for record in missed} == {"not sent: the measuring process was held up"}
    assert "outcome" not in missed[0]
