"""Capturing profiles from real local servers, those that answer and those that do not."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from scaletest.core.access import ApiAccess, Credential
from scaletest.core.apiclient import Answer, ApiClient, FakeApiClient
from scaletest.core.journal import MemoryJournal, Record
from scaletest.observe.pprof import PROFILES, TIMEOUT_S, Capture, capture_profiles, longest_s
from tests import servers

GZIPPED = b"\x1f\x8b and so on"


def capture(
    tmp_path: Path, access: ApiAccess, *, timeout_s: float = 5.0, clients: dict[str, FakeApiClient] | None = None
) -> tuple[list[str], list[Record]]:
    journal = MemoryJournal()

    async def main() -> list[str]:
        wanted = Capture("step-4", 1, 4)
        if clients is None:
            return await capture_profiles(wanted, access, tmp_path, journal, timeout_s=timeout_s)

        def connect(server: str, _access: ApiAccess) -> ApiClient:
            return clients[server]

        return await capture_profiles(wanted, access, tmp_path, journal, connect=connect, timeout_s=timeout_s)

    problems = asyncio.run(main())
    assert {"pprof"} == {record["kind"] for record in journal.records}
    return problems, journal.records


def two_fakes(answer: dict[str, Answer]) -> tuple[ApiAccess, dict[str, FakeApiClient]]:
    async def script(path: str) -> Answer:
        return answer.get(path.partition("?")[0].rpartition("/")[2], Answer("ok", 0.1, 200, None, GZIPPED))

    servers_ = ("https://127.0.0.1:31001", "https://127.0.0.1:31002")
    access = ApiAccess(servers_, Path("ca"), Credential("system:masters"))
    return access, {server: FakeApiClient(script) for server in servers_}


def test_every_server_gives_its_three_profiles_on_a_connection_of_its_own(tmp_path: Path) -> None:
    pki = servers.make_pki(tmp_path)
    gave = servers.answering(GZIPPED)
    with servers.serving(gave, tls=pki.server) as one, servers.serving(gave, tls=pki.server) as two:
        problems, records = capture(tmp_path, pki.access(one.url("https"), two.url("https")))

        assert [1, 1] == [len(one.connections), len(two.connections)]

    assert [] == problems
    assert sorted(
        f"profiles/step-4-{server.port}-{each}.pb.gz" for server in (one, two) for each in PROFILES
    ) == sorted(record["path"] for record in records)
    assert all(GZIPPED == (tmp_path / record["path"]).read_bytes() for record in records)
    assert {(True, "ok", len(GZIPPED), 4, "step-4")} == {
        (record["ok"], record["outcome"], record["bytes"], record["step"], record["capture"]) for record in records
    }
    assert {"cpu": 1, "heap": 0, "goroutine": 0} == {record["profile"]: record["seconds"] for record in records}


def test_what_is_asked_for_is_what_go_serves(tmp_path: Path) -> None:
    access, clients = two_fakes({})
    capture(tmp_path, access, clients=clients)

    asked = ["/debug/pprof/profile?seconds=1", "/debug/pprof/heap", "/debug/pprof/goroutine"]
    assert all(asked == client.paths and client.closed for client in clients.values())


def test_one_profile_that_fails_keeps_nothing_from_the_others(tmp_path: Path) -> None:
    busy = Answer("http_500", 0.1, 500, "Could not enable CPU profiling: cpu profiling already in use", b"Could")
    access, clients = two_fakes({"profile": busy, "heap": Answer("ok", 0.1, 200, None, b"not gzipped")})
    problems, records = capture(tmp_path, access, clients=clients)

    assert [f"cpu of {server}: {busy.reason}" for server in access.servers] == problems[::2]
    assert [f"heap of {server}: the answer is no profile" for server in access.servers] == problems[1::2]
    failed = [(record["profile"], record["outcome"], record["path"]) for record in records if not record["ok"]]
    assert {("cpu", "http_500", None), ("heap", "error", None)} == set(failed)
    assert ["goroutine", "goroutine"] == [
        path.name.split("-")[3].split(".")[0] for path in (tmp_path / "profiles").iterdir()
    ]


def test_a_hung_server_costs_its_time_out_and_is_told(tmp_path: Path) -> None:
    pki = servers.make_pki(tmp_path)

    def hung(connection: socket.socket) -> None:
        servers.hanging(connection)

    with servers.serving(hung, tls=pki.server) as server:
        problems, records = capture(tmp_path, pki.access(server.url("https")), timeout_s=0.1)

    assert ["timeout"] * 3 == [record["outcome"] for record in records]
    assert f"heap of {server.url('https')}: timeout" == problems[1]
    assert not (tmp_path / "profiles").exists()


def test_a_profile_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "profiles").write_text("a file where the directory should be")
    access, clients = two_fakes({})
    problems, _ = capture(tmp_path, access, clients=clients)

    assert 6 == len(problems)
    assert "not written: File exists" in problems[0]


def test_no_credential_is_in_what_is_kept(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("very-secret")
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    with servers.serving(servers.answering(GZIPPED)) as server:
        access = ApiAccess((server.url(),), tmp_path / "ca", Credential("system:masters", token_file=token))
        pki = servers.make_pki(tmp_path)
        _, records = capture(run_dir, ApiAccess(access.servers, pki.access("x").ca_file, access.credential))

    kept: list[Any] = [path.read_bytes() for path in run_dir.rglob("*.gz")]
    assert 3 == len(kept)
    assert not any(b"secret" in each for each in [*kept, repr(records).encode()])


@pytest.mark.parametrize("cpu_s", [1, 10])
def test_the_longest_that_it_takes_is_what_it_waits_for(cpu_s: int) -> None:
    assert cpu_s + len(PROFILES) * TIMEOUT_S == longest_s(cpu_s)
