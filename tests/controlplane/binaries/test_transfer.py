from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scaletest.controlplane.binaries.transfer import Fetcher
from scaletest.controlplane.binaries.web import TransferError, Web
from scaletest.core.errors import ResourceShortage
from tests.controlplane.binaries.programs import RecordedTask
from tests.controlplane.binaries.release_server import ReleaseServer

CONTENT = os.urandom(700_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def fetcher(free_bytes: int = 1 << 40) -> Fetcher:
    return Fetcher(Web(), free_bytes=lambda _: free_bytes, sleep=lambda _: None)


def partial_of(target: Path) -> Path:
    return target.with_name(target.name + ".partial")


def left_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_file_arrives_whole_and_its_bytes_are_counted(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    task = RecordedTask()

    fetcher().fetch(server.base + "/file", tmp_path / "file", sha256=SHA256, task=task)

    assert (tmp_path / "file").read_bytes() == CONTENT
    assert task.updates[-1] == (len(CONTENT), len(CONTENT))
    assert left_in(tmp_path) == ["file"]


def test_a_cut_connection_is_resumed_where_it_broke(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    server.cut_after_bytes.extend([300_000, 100_000])

    fetcher().fetch(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())

    assert (tmp_path / "file").read_bytes() == CONTENT
    assert server.gets("/file") == [None, "bytes=300000-", "bytes=400000-"]


def test_what_came_before_the_connection_died_for_good_is_kept_for_the_next_run(
    server: ReleaseServer, tmp_path: Path
) -> None:
    server.publish("/file", CONTENT)
    server.cut_after_bytes.extend([300_000, 0, 0, 0, 0])

    with pytest.raises(TransferError, match=r"cut after 300,000 of 700,000 bytes; the part that came is kept"):
        fetcher().fetch(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())
    assert partial_of(tmp_path / "file").read_bytes() == CONTENT[:300_000]
    server.cut_after_bytes.clear()
    fetcher().fetch(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())

    assert (tmp_path / "file").read_bytes() == CONTENT
    assert server.gets("/file")[-1] == "bytes=300000-"


def test_a_server_without_ranges_is_asked_for_the_whole_again(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    server.ranges = False
    partial_of(tmp_path / "file").write_bytes(CONTENT[:1000])

    fetcher().fetch(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())

    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_part_that_belongs_to_another_file_is_thrown_away(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    partial_of(tmp_path / "file").write_bytes(b"x" * 1000)

    fetcher().fetch(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())

    assert (tmp_path / "file").read_bytes() == CONTENT
    assert server.gets("/file") == ["bytes=1000-", None]


def test_a_part_that_is_longer_than_the_file_is_thrown_away(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    partial_of(tmp_path / "file").write_bytes(CONTENT + b"x")

    fetcher().fetch(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())

    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_part_that_is_the_whole_file_is_not_fetched_again(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    partial_of(tmp_path / "file").write_bytes(CONTENT)

    fetcher().fetch(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())

    assert (tmp_path / "file").read_bytes() == CONTENT
    assert server.gets("/file") == [f"bytes={len(CONTENT)}-"]


def test_a_file_that_changed_between_two_attempts_is_not_glued_together(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    server.cut_after_bytes.extend([300_000, 0, 0, 0, 0])
    with pytest.raises(TransferError):
        fetcher().fetch(server.base + "/file", tmp_path / "file", sha256=None, task=RecordedTask())
    server.cut_after_bytes.clear()
    changed = CONTENT[::-1]
    server.publish("/file", changed)

    fetcher().fetch(server.base + "/file", tmp_path / "file", sha256=None, task=RecordedTask())

    assert (tmp_path / "file").read_bytes() == changed


def test_without_checksum_and_etag_nothing_is_resumed(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    server.etags = False
    partial_of(tmp_path / "file").write_bytes(CONTENT[:1000])

    fetcher().fetch(server.base + "/file", tmp_path / "file", sha256=None, task=RecordedTask())

    assert server.gets("/file") == [None]


def test_a_file_of_unknown_length_and_checksum_is_not_taken(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    server.content_length = False

    with pytest.raises(TransferError, match="a part would pass for the whole"):
        fetcher().fetch(server.base + "/file", tmp_path / "file", sha256=None, task=RecordedTask())


def test_a_server_that_cuts_here_and_there_for_ever_is_given_up(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    server.ranges = False
    server.cut_after_bytes.extend([1000, 500] * 50)

    with pytest.raises(TransferError, match="the connection was cut"):
        fetcher().fetch(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())

    assert len(server.gets("/file")) <= 8


def test_a_wrong_checksum_leaves_nothing_behind(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)

    with pytest.raises(TransferError, match=rf"has SHA-256 {SHA256}, published is {'0' * 64}; it was thrown away"):
        fetcher().fetch(server.base + "/file", tmp_path / "file", sha256="0" * 64, task=RecordedTask())

    assert left_in(tmp_path) == []


def test_too_little_space_is_said_before_a_byte_is_written(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)

    with pytest.raises(ResourceShortage) as caught:
        fetcher(free_bytes=500_000).fetch(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())

    assert f"no space in {tmp_path}: file needs 684 KiB there, 488 KiB left" == caught.value.message
    assert left_in(tmp_path) == []


def test_only_the_rest_of_a_file_needs_space(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    partial_of(tmp_path / "file").write_bytes(CONTENT[:600_000])

    fetcher(free_bytes=(64 << 20) + 100_000).fetch(
        server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask()
    )

    assert (tmp_path / "file").read_bytes() == CONTENT


def test_an_answer_without_length_is_taken_to_its_end(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish("/file", CONTENT)
    server.content_length = False

    fetcher().fetch(server.base + "/file", tmp_path / "file", sha256=SHA256, task=RecordedTask())

    assert (tmp_path / "file").read_bytes() == CONTENT


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
        fetcher().fetch(server.base + "/file", target, sha256=SHA256, task=RecordedTask())
    except TransferError:
        assert not target.exists()
    else:
        assert target.read_bytes() == CONTENT
