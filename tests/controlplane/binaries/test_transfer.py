from __future__ import annotations

import hashlib
import os
import socket
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scaletest.controlplane.binaries.transfer import NotThere, TransferError, Transfers
from scaletest.core.errors import ResourceShortage
from tests.controlplane.binaries.programs import RecordedTask
from tests.controlplane.binaries.release_server import ReleaseServer, loopback_tls, serving

CONTENT = os.urandom(700_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def transfers(free_bytes: int = 1 << 40) -> Transfers:
    return Transfers(free_bytes=lambda _: free_bytes, sleep=lambda _: None)


def partial_of(target: Path) -> Path:
    return target.with_name(target.name + ".partial")


def left_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_file_arrives_whole_and_its_bytes_are_counted(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    task = RecordedTask()

    transfers().file(server.base + "/file", tmp_path / "file", sha256=SHA256, task=task)

    assert (tmp_path / "file").read_bytes() == CONTENT
    assert task.updates[-1] == (len(CONTENT), len(CONTENT))
    assert left_in(tmp_path) == ["file"]


def test_a_cut_connection_is_resumed_where_it_broke(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    server.cut_after_bytes.extend([300_000, 100_000])

    transfers().file(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())

    assert (tmp_path / "file").read_bytes() == CONTENT
    assert server.gets("/file") == [None, "bytes=300000-", "bytes=400000-"]


def test_what_came_before_the_connection_died_for_good_is_kept_for_the_next_run(
    server: ReleaseServer, tmp_path: Path
) -> None:
    server.publish("/file", CONTENT)
    server.cut_after_bytes.extend([300_000, 0, 0, 0, 0])

    with pytest.raises(TransferError, match=r"cut after 300,000 of 700,000 bytes; the part that came is kept"):
        transfers().file(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())
    assert partial_of(tmp_path / "file").read_bytes() == CONTENT[:300_000]
    server.cut_after_bytes.clear()
    transfers().file(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())

    assert (tmp_path / "file").read_bytes() == CONTENT
    assert server.gets("/file")[-1] == "bytes=300000-"


def test_a_server_without_ranges_is_asked_for_the_whole_again(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    server.ranges = False
    partial_of(tmp_path / "file").write_bytes(CONTENT[:1000])

    transfers().file(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())

    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_part_that_belongs_to_another_file_is_thrown_away(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    partial_of(tmp_path / "file").write_bytes(b"x" * 1000)

    transfers().file(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())

    assert (tmp_path / "file").read_bytes() == CONTENT
    assert server.gets("/file") == ["bytes=1000-", None]


def test_a_part_that_is_longer_than_the_file_is_thrown_away(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    partial_of(tmp_path / "file").write_bytes(CONTENT + b"x")

    transfers().file(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())

    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_part_that_is_the_whole_file_is_not_fetched_again(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    partial_of(tmp_path / "file").write_bytes(CONTENT)

    transfers().file(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())

    assert (tmp_path / "file").read_bytes() == CONTENT
    assert server.gets("/file") == [f"bytes={len(CONTENT)}-"]


def test_a_file_that_changed_between_two_attempts_is_not_glued_together(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    server.cut_after_bytes.extend([300_000, 0, 0, 0, 0])
    with pytest.raises(TransferError):
        transfers().file(server.base + "/file", tmp_path / "file", sha256=None, task=RecordedTask())
    server.cut_after_bytes.clear()
    changed = CONTENT[::-1]
    server.publish("/file", changed)

    transfers().file(server.base + "/file", tmp_path / "file", sha256=None, task=RecordedTask())

    assert (tmp_path / "file").read_bytes() == changed


def test_without_checksum_and_etag_nothing_is_resumed(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    server.etags = False
    partial_of(tmp_path / "file").write_bytes(CONTENT[:1000])

    transfers().file(server.base + "/file", tmp_path / "file", sha256=None, task=RecordedTask())

    assert server.gets("/file") == [None]


def test_a_wrong_checksum_leaves_nothing_behind(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)

    with pytest.raises(TransferError, match=rf"has SHA-256 {SHA256}, published is {'0' * 64}; it was thrown away"):
        transfers().file(server.base + "/file", tmp_path / "file", sha256="0" * 64, task=RecordedTask())

    assert left_in(tmp_path) == []


def test_too_little_space_is_said_before_a_byte_is_written(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)

    with pytest.raises(ResourceShortage) as caught:
        transfers(free_bytes=500_000).file(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())

    assert f"no space in {tmp_path}: file needs 684 KiB there, 488 KiB left" == caught.value.message
    assert left_in(tmp_path) == []


def test_only_the_rest_of_a_file_needs_space(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    partial_of(tmp_path / "file").write_bytes(CONTENT[:600_000])

    transfers(free_bytes=(64 << 20) + 100_000).file(
        server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask()
    )

    assert (tmp_path / "file").read_bytes() == CONTENT


def test_an_answer_without_length_is_taken_to_its_end(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    server.content_length = False

    transfers().file(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())

    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize(("status", "kind"), [(404, NotThere), (403, NotThere), (500, TransferError)])
def test_a_refusal_names_address_and_status(
    server: ReleaseServer, tmp_path: Path, status: int, kind: type[TransferError]
) -> None:
    server.statuses["/file"] = status

    with pytest.raises(kind, match=rf"{server.base}/file: {status} "):
        transfers().file(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())


def test_a_refused_connection_is_remembered(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    one = transfers()

    for _ in range(2):
        with pytest.raises(TransferError, match=f"127.0.0.1:{port}: Connection refused"):
            one.file(f"http://127.0.0.1:{port}/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())
        # Were it asked again, this server would answer.
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_a_host_that_drops_packets_costs_one_short_wait(tmp_path: Path) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        # Linux queues one more connection than the backlog says; then SYNs are dropped.
        port = full.getsockname()[1]
        queued = [socket.socket() for _ in range(4)]
        for client in queued:
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
        one = transfers()
        began_s = time.monotonic()
        for _ in range(6):
            with pytest.raises(TransferError, match=r"no (answer in time|connection within 2\.5 s)"):
                one.text(f"http://127.0.0.1:{port}/file")
        took_s = time.monotonic() - began_s
        for client in queued:
            client.close()

    assert 2.0 < took_s < 5.0


def test_a_name_that_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(TransferError, match=r"^no-such-host\.invalid:443: "):
        transfers().text("https://no-such-host.invalid/file")


def test_an_existing_file_is_known_without_its_content(server: ReleaseServer) -> None:
    server.publish("/file", CONTENT)
    server.redirects["/elsewhere"] = "http://no-such-host.invalid/signed"

    transfers().exists(server.base + "/file")
    transfers().exists(server.base + "/elsewhere")
    with pytest.raises(NotThere):
        transfers().exists(server.base + "/missing")

    assert server.gets("/file") == []


def test_a_redirect_is_followed(server: ReleaseServer) -> None:
    server.files["/there"] = b"text"
    server.redirects["/here"] = server.base + "/there"

    assert transfers().text(server.base + "/here") == "text"


def test_other_schemes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")

    with pytest.raises(TransferError, match="only http and https"):
        transfers().text((tmp_path / "secret").as_uri())


def test_https_is_verified_and_never_left_for_http(server: ReleaseServer, tmp_path: Path) -> None:
    server_tls, client_tls = loopback_tls(tmp_path)
    server.files["/file"] = b"text"
    with serving(server_tls) as secure:
        secure.files["/file"] = b"text"
        secure.redirects["/down"] = server.base + "/file"
        trusting = Transfers(ssl_context=client_tls)

        assert trusting.text(secure.base + "/file") == "text"
        with pytest.raises(TransferError, match="which is not https"):
            trusting.text(secure.base + "/down")
        with pytest.raises(TransferError, match="TLS: self-signed certificate"):
            transfers().text(secure.base + "/file")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(1, 200_000), max_size=6), ranges=st.booleans(), etags=st.booleans())
def test_however_the_connection_is_cut_the_file_is_right_or_not_there(
    server: ReleaseServer, tmp_path: Path, cuts: list[int], ranges: bool, etags: bool
) -> None:
    server.publish("/file", CONTENT)
    server.ranges, server.etags = ranges, etags
    server.cut_after_bytes.clear()
    server.cut_after_bytes.extend(cuts)
    target = tmp_path / "file"
    target.unlink(missing_ok=True)

    try:
        transfers().file(server.base + "/file", target, sha256=SHA256, task=RecordedTask())
    except TransferError:
        assert not target.exists()
    else:
        assert target.read_bytes() == CONTENT
