from __future__ import annotations

import asyncio
import json
import socket
import time
from pathlib import Path

from scaletest.core.access import ApiAccess
from scaletest.core.journal import MemoryJournal, Record
from scaletest.probes.probe import FakeProbe, Observation
from scaletest.probes.run import ProbeTask, run_probes
from scaletest.profile.schema import ProbeSpec
from tests import servers

TABLE = b'{"columnDefinitions":[{"name":"Status"}],"rows":[{"cells":["Ready"]},{"cells":["NotReady"]}]}'


def probe_for(seconds: float, probes: dict[str, ProbeSpec], access: ApiAccess) -> list[Record]:
    journal = MemoryJournal(clock_origin_s=time.monotonic())
    asked: list[str] = []

    def access_for(identity: str) -> ApiAccess:
        asked.append(identity)
        return access

    async def main() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(seconds, stop.set)
        await run_probes(probes, access_for, journal, stop)

    asyncio.run(main())
    assert asked == [identity for spec in probes.values() for identity in spec.identities]
    return journal.records


def operator(**keys: object) -> ProbeSpec:
    return ProbeSpec.model_validate({"get": "pods", "every": "100ms", **keys})


def test_every_identity_asks_every_server_on_a_connection_of_its_own(tmp_path: Path) -> None:
    pki = servers.make_pki(tmp_path)
    handler = servers.answering(b"{}")
    with servers.serving(handler, tls=pki.server) as one, servers.serving(handler, tls=pki.server) as two:
        access = pki.access(one.url("https"), two.url("https"))
        records = probe_for(1.0, {"operator": operator(identities=["system:masters", "admin"])}, access)

        assert (len(one.connections), len(two.connections)) == (2, 2)

    assert {(record["identity"], record["server"]) for record in records} == {
        (identity, server) for identity in ("system:masters", "admin") for server in access.servers
    }
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
        records = probe_for(0.5, {"nodes": spec}, pki.access(server.url("https")))

    assert {(r["kind"], r["probe"], r["ready"], r["not_ready"], r["total"]) for r in records} == {
        ("probe.nodes", "nodes", 1, 1, 2)
    }


def test_a_server_that_hangs_is_asked_on_in_its_rhythm_and_every_request_times_out(tmp_path: Path) -> None:
    pki = servers.make_pki(tmp_path)
    with servers.serving(servers.hanging, tls=pki.server) as server:
        spec = operator(timeout="600ms")
        records = probe_for(1.5, {"operator": spec}, pki.access(server.url("https")))

        assert len(server.connections) >= 2

    sent = [record for record in records if record["kind"] == "probe"]
    assert {record["outcome"] for record in sent} == {"timeout"}
    # One every 100 ms, though each takes 600 ms: a closed loop would have sent three.
    assert len(sent) > 5


def test_one_server_that_hangs_does_not_disturb_the_other(tmp_path: Path) -> None:
    pki = servers.make_pki(tmp_path)
    good_handler = servers.answering(b"{}")
    with servers.serving(servers.hanging, tls=pki.server) as bad, servers.serving(good_handler, tls=pki.server) as good:
        access = pki.access(bad.url("https"), good.url("https"))
        records = probe_for(1.0, {"operator": operator(timeout="500ms")}, access)

    outcomes = {(record["server"], record["outcome"]) for record in records if record["kind"] == "probe"}
    assert outcomes == {(bad.url("https"), "timeout"), (good.url("https"), "ok")}


def test_a_server_that_comes_back_is_found_on_a_new_connection(tmp_path: Path) -> None:
    pki = servers.make_pki(tmp_path)
    accepted: list[float] = []

    def restarts(connection: socket.socket) -> None:
        accepted.append(time.monotonic())
        down = accepted[-1] - accepted[0] < 0.4
        while servers.read_request(connection) is not None and not down:
            connection.sendall(servers.response(b"{}"))

    with servers.serving(restarts, tls=pki.server) as server:
        records = probe_for(1.2, {"operator": operator()}, pki.access(server.url("https")))

    outcomes = [record["outcome"] for record in records if record["kind"] == "probe"]
    assert outcomes[0] == "reset"
    assert outcomes[-1] == "ok"


def test_a_refusal_names_the_status_and_its_reason(tmp_path: Path) -> None:
    pki = servers.make_pki(tmp_path)
    body = json.dumps({"kind": "Status", "reason": "Forbidden", "message": "pods is forbidden"}).encode()
    with servers.serving(servers.answering(body, status="403 Forbidden"), tls=pki.server) as server:
        records = probe_for(0.3, {"operator": operator()}, pki.access(server.url("https")))

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
