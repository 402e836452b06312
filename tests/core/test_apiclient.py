from __future__ import annotations

import asyncio
import json
import socket
import ssl
import time
from pathlib import Path

import pytest

from scaletest.core.access import ApiAccess, Credential
from scaletest.core.apiclient import Answer, FakeApiClient, HttpApiClient, status_reason
from tests import servers


def get(url: str, *, times: int = 1, timeout_s: float = 10.0, access: ApiAccess | None = None) -> list[Answer]:
    async def main() -> list[Answer]:
        client = HttpApiClient(url, access=access)
        try:
            return [await client.get("/readyz?verbose=true", timeout_s=timeout_s) for _ in range(times)]
        finally:
            await client.close()

    return asyncio.run(main())


def test_a_complete_2xx_answer_is_ok_with_its_body_and_latency() -> None:
    with servers.serving(servers.answering(b"x" * 300_000)) as server:
        (answer,) = get(server.url())

    assert (answer.ok, answer.outcome, answer.status, answer.reason) == (True, "ok", 200, None)
    assert answer.body == b"x" * 300_000
    assert 0 < answer.latency_s < 10


def test_requests_share_one_kept_connection() -> None:
    with servers.serving(servers.answering(b"{}")) as server:
        answers = get(server.url(), times=5)

        assert [answer.outcome for answer in answers] == ["ok"] * 5
        assert len(server.connections) == 1


def test_the_path_is_sent_as_it_was_given_and_no_compression_is_asked_for() -> None:
    heads: list[str] = []

    def handler(connection: socket.socket) -> None:
        heads.append(servers.read_request(connection) or "")
        connection.sendall(servers.response(b""))

    with servers.serving(handler) as server:
        get(server.url())

    assert heads[0].splitlines()[0] == "GET /readyz?verbose=true HTTP/1.1"
    assert "accept-encoding: identity" in heads[0].lower()


def test_a_kept_connection_that_breaks_between_requests_is_replaced() -> None:
    def once(connection: socket.socket) -> None:
        servers.read_request(connection)
        connection.sendall(servers.response(b"{}"))

    with servers.serving(once) as server:
        answers = get(server.url(), times=3)

        assert [answer.outcome for answer in answers] == ["ok"] * 3
        assert len(server.connections) == 3


def test_a_status_is_named_by_number_with_the_reason_that_the_server_gives() -> None:
    body = json.dumps({"kind": "Status", "reason": "ServiceUnavailable", "message": "apiserver is shutting down"})
    with servers.serving(servers.answering(body.encode(), status="503 Service Unavailable")) as server:
        (answer,) = get(server.url())

    assert (answer.outcome, answer.status) == ("http_503", 503)
    assert answer.reason == "ServiceUnavailable: apiserver is shutting down"


def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    with servers.serving(servers.answering(b"", status="302 Found")) as server:
        (answer,) = get(server.url())

    assert (answer.outcome, answer.reason) == ("http_302", None)


def test_a_server_that_never_answers_is_a_timeout_at_the_time_out() -> None:
    with servers.serving(servers.hanging) as server:
        (answer,) = get(server.url(), timeout_s=0.3)

    assert (answer.outcome, answer.status, answer.reason) == ("timeout", None, None)
    assert 0.29 < answer.latency_s < 10


def test_a_body_that_stalls_is_a_timeout_with_its_status() -> None:
    def stalls(connection: socket.socket) -> None:
        servers.read_request(connection)
        connection.sendall(servers.response(b"x" * 100)[:-1])
        servers.hanging(connection)

    with servers.serving(stalls) as server:
        (answer,) = get(server.url(), timeout_s=0.3)

    assert (answer.outcome, answer.status, answer.reason) == ("timeout", 200, "within the answer")


def test_time_outs_are_not_rounded_up_to_whole_seconds() -> None:
    with servers.serving(servers.hanging) as server:
        began_s = time.monotonic()
        (answer,) = get(server.url(), timeout_s=5.05)

    assert answer.outcome == "timeout"
    assert 5.04 < answer.latency_s <= time.monotonic() - began_s


def test_a_port_on_which_nothing_listens_is_refused() -> None:
    (answer,) = get(f"http://127.0.0.1:{servers.closed_port()}")

    assert (answer.outcome, answer.status) == ("refused", None)


@pytest.mark.parametrize("by", ["RST", "FIN"])
def test_a_connection_that_ends_before_the_answer_is_reset(by: str) -> None:
    def ends(connection: socket.socket) -> None:
        servers.read_request(connection)
        if by == "RST":
            servers.reset(connection)

    with servers.serving(ends) as server:
        (answer,) = get(server.url())

    assert (answer.outcome, answer.status) == ("reset", None)


@pytest.mark.parametrize("by", ["RST", "FIN"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_connection_that_ends_within_the_answer_is_cut_short(by: str, chunked: bool) -> None:
    def ends(connection: socket.socket) -> None:
        servers.read_request(connection)
        if chunked:
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        else:
            connection.sendall(servers.response(b"x" * 1000)[:-500])
        time.sleep(0.1)  # the head must have been read before the RST overtakes it
        if by == "RST":
            servers.reset(connection)

    with servers.serving(ends) as server:
        (answer,) = get(server.url())

    assert (answer.outcome, answer.status) == ("cut_short", 200)
    assert answer.reason


def test_a_garbled_answer_is_an_error_with_its_reason() -> None:
    def garbled(connection: socket.socket) -> None:
        servers.read_request(connection)
        connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    with servers.serving(garbled) as server:
        (answer,) = get(server.url())

    assert answer.outcome == "error"
    assert answer.reason


def test_a_server_of_the_trusted_ca_is_answered_with_our_certificate(tmp_path: Path) -> None:
    pki = servers.make_pki(tmp_path)
    with servers.serving(servers.answering(b"{}"), tls=pki.server) as server:
        (answer,) = get(server.url("https"), access=pki.access(server.url("https")))

    assert answer.outcome == "ok"


def test_a_server_of_another_ca_is_a_tls_failure(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    access = servers.make_pki(ours).access()
    with servers.serving(servers.answering(b"{}"), tls=servers.make_pki(theirs).server) as server:
        (answer,) = get(server.url("https"), access=access)

    assert answer.outcome == "tls"
    assert answer.reason is not None
    assert "certificate verify failed" in answer.reason


def test_a_plain_server_where_tls_is_spoken_is_a_tls_failure(tmp_path: Path) -> None:
    def plain(connection: socket.socket) -> None:
        connection.recv(100)
        connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent no HTTPS\n")
        servers.hanging(connection)

    with servers.serving(plain) as server:
        (answer,) = get(server.url("https"), access=servers.make_pki(tmp_path).access())

    assert answer.outcome == "tls"


def test_a_token_is_sent_as_bearer_and_never_named_in_an_answer(tmp_path: Path) -> None:
    pki = servers.make_pki(tmp_path)
    token_file = tmp_path / "token"
    token_file.write_text("abc.def\n", encoding="ascii")
    heads: list[str] = []
    pki.server.verify_mode = ssl.CERT_NONE

    def handler(connection: socket.socket) -> None:
        heads.append(servers.read_request(connection) or "")
        connection.sendall(servers.response(b"no", status="403 Forbidden"))

    access = ApiAccess((), pki.ca_file, Credential("serviceAccount:a/b", token_file=token_file))
    with servers.serving(handler, tls=pki.server) as server:
        (answer,) = get(server.url("https"), access=access)

    assert "Authorization: Bearer abc.def" in heads[0].splitlines()
    assert answer == Answer("http_403", answer.latency_s, 403, "no", b"no")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"kind":"Status","reason":"Forbidden","message":"no"}', "Forbidden: no"),
        (b'{"kind":"Status","message":"etcdserver: request timed out"}', "etcdserver: request timed out"),
        (b"Too many requests, please try again later.\n", "Too many requests, please try again later."),
        (b"", None),
        (b"[1]", "[1]"),
        (b"\xff\xfe", "��"),
        (b"a\n\n b " * 1000, ("a b " * 1000)[:200]),
    ],
)
def test_the_reason_is_that_of_a_status_or_the_head_of_any_text(body: bytes, expected: str | None) -> None:
    assert expected == status_reason(body)


def test_the_fake_answers_from_its_script_within_the_time_out() -> None:
    async def script(path: str) -> Answer:
        await asyncio.sleep(0 if path == "/quick" else 60)
        return Answer("ok", 0.0, 200)

    async def main() -> list[Answer]:
        client = FakeApiClient(script)
        answers = [await client.get(path, timeout_s=0.05) for path in ("/quick", "/slow")]
        await client.close()
        assert (client.paths, client.closed) == (["/quick", "/slow"], True)
        return answers

    assert [answer.outcome for answer in asyncio.run(main())] == ["ok", "timeout"]
