from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.load.http1 import (
    Body,
    ChunkedBody,
    Head,
    HeadReader,
    LengthBody,
    MalformedAnswer,
    UntilCloseBody,
    parse_head,
    plain_answer,
)

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def walk(wire: bytes, cuts: list[int]) -> tuple[Head, bytes, int]:
    """Read an answer from one reused buffer that is filled with pieces of the wire; return head, body, bytes used."""
    buffer, reader, head = bytearray(b"\xee" * (len(wire) + 8)), HeadReader(), None
    seen: list[bytes] = []
    used = 0
    bounds = [0, *sorted(cut % (len(wire) + 1) for cut in cuts), len(wire)]
    for low, high in itertools.pairwise(bounds):
        piece = wire[low:high]
        buffer[: len(piece)] = piece
        position = 0
        if head is None:
            head, position = reader.feed(buffer, 0, len(piece))
        if head is not None and not head.body.done:
            start = position
            position = head.body.feed(buffer, start, len(piece), lambda data, a, b: seen.append(bytes(data[a:b])))
        used += position
        buffer[:] = b"\xee" * len(buffer)
        if head is not None and head.body.done:
            break
    assert head is not None
    return head, b"".join(seen), used


def chunks_of(parts: list[bytes], ending: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts if part) + ending


cuts = st.lists(st.integers(min_value=0), max_size=12)


@given(
    parts=st.lists(st.binary(max_size=40), max_size=8), cuts=cuts, trailer=st.booleans(), rest=st.binary(max_size=10)
)
def test_a_chunked_body_is_the_same_however_it_is_cut(parts: Any, cuts: Any, trailer: Any, rest: Any) -> None:
    ending = b"0\r\nX-Sum: 7\r\n\r\n" if trailer else b"0\r\n\r\n"
    wire = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks_of(parts, ending)

    head, body, used = walk(wire + rest, [cut % (len(wire) + 1) for cut in cuts])

    assert b"".join(parts) == body
    assert len(body) == head.body.received_bytes
    assert head.body.done
    assert len(wire) == used


@given(body=st.binary(max_size=200), cuts=cuts, rest=st.binary(max_size=10))
def test_a_body_of_known_length_ends_there(body: Any, cuts: Any, rest: Any) -> None:
    wire = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body

    head, seen, used = walk(wire + rest, [cut % (len(wire) + 1) for cut in cuts])

    assert body == seen
    assert head.body.done
    assert len(wire) == used


@given(body=st.binary(max_size=200), cuts=cuts)
def test_a_body_without_length_ends_with_the_connection(body: Any, cuts: Any) -> None:
    head, seen, _ = walk(HEAD + b"\r\n" + body, cuts)

    assert body == seen
    assert not head.body.done
    assert head.body.at_eof()
    assert not head.keep_alive


@given(cuts=cuts)
def test_informational_answers_before_the_final_one_are_skipped(cuts: Any) -> None:
    before = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n"

    head, body, _ = walk(before + HEAD + b"Content-Length: 2\r\n\r\nok", cuts)

    assert (200, b"ok") == (head.status, body)


@given(junk=st.binary(min_size=1, max_size=300), cuts=cuts)
def test_anything_else_is_malformed_or_waits_for_more_but_never_crashes(junk: Any, cuts: Any) -> None:
    buffer = bytearray(junk)
    try:
        head, position = HeadReader().feed(buffer, 0, len(buffer))
    except MalformedAnswer:
        return
    assert head is not None or position == len(buffer)


@pytest.mark.parametrize("size", [b"xyz", b"-5", b"", b"0x5", b"5_0", b" 5", b"11111111111111111"])
def test_a_size_that_is_not_hexadecimal_is_malformed(size: Any) -> None:
    wire = bytearray(size + b"\r\nhello\r\n")

    with pytest.raises(MalformedAnswer):
        ChunkedBody().feed(wire, 0, len(wire), None)


def test_a_chunk_longer_than_its_size_is_malformed() -> None:
    wire = bytearray(b"3\r\nhello\r\n0\r\n\r\n")

    with pytest.raises(MalformedAnswer, match="after a chunk"):
        ChunkedBody().feed(wire, 0, len(wire), None)


def test_a_chunk_may_have_extensions_and_upper_case() -> None:
    wire = bytearray(b'A ; name="value"\r\n0123456789\r\n000\r\n\r\n')
    body = ChunkedBody()

    assert len(wire) == body.feed(wire, 0, len(wire), None)
    assert (True, 10) == (body.done, body.received_bytes)


@pytest.mark.parametrize(
    ("lines", "kind", "keep_alive"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5", LengthBody, True),
        (b"HTTP/1.1 200 \r\ncontent-length:5", LengthBody, True),
        (b"HTTP/1.1 200\r\nConnection: Close\r\nContent-Length: 5", LengthBody, False),
        (b"HTTP/1.1 200 OK\r\nConnection: upgrade, close\r\nContent-Length: 5", LengthBody, False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 5", LengthBody, False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5", LengthBody, True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\nContent-Length: 5", ChunkedBody, True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip", UntilCloseBody, False),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 5", LengthBody, True),
        (b"HTTP/1.1 304 Not Modified", LengthBody, True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5", LengthBody, True),
    ],
)
def test_framing_follows_the_head(lines: Any, kind: Any, keep_alive: Any) -> None:
    head = parse_head(lines + b"\r\n\r\n")

    assert head is not None
    assert (kind, keep_alive) == (type(head.body), head.keep_alive)


@pytest.mark.parametrize(
    "lines",
    [
        b"HTTP/2 200 OK",
        b"HTTP/1.1 20 OK",
        b"HTTP/1.1 OK",
        b"HTTP/1.1 101 Switching Protocols",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5",
        b"HTTP/1.1 200 OK\r\nContent-Length: five",
    ],
)
def test_a_head_that_means_nothing_is_malformed(lines: Any) -> None:
    with pytest.raises(MalformedAnswer):
        parse_head(lines + b"\r\n\r\n")


@pytest.mark.parametrize(
    ("value", "seconds"), [(b"3", 3), (b"0", 0), (b"Wed, 21 Oct 2026 07:28:00 GMT", None), (b"-1", None)]
)
def test_retry_after_is_whole_seconds_as_client_go_reads_it(value: Any, seconds: Any) -> None:
    head = parse_head(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: " + value + b"\r\n\r\n")

    assert head is not None
    assert seconds == head.retry_after_s


def test_bodies_without_content_are_done_at_once() -> None:
    bodies: list[Body] = [LengthBody(0), LengthBody(3)]

    assert [True, False] == [body.done for body in bodies]


PLAIN = b"HTTP/1.1 200 OK\r\nDate: x\r\nContent-Type: application/json\r\nContent-Length: 5\r\nVary: y\r\n\r\nhello"


def test_a_whole_plain_answer_is_known_at_once() -> None:
    assert ("200", 5) == plain_answer(bytearray(PLAIN + b"rest"), len(PLAIN))


@pytest.mark.parametrize(
    "answer",
    [
        PLAIN[:-1],
        PLAIN + b"!",
        PLAIN[:40],
        PLAIN.replace(b"200 OK", b"429 Too Many Requests"),
        PLAIN.replace(b"HTTP/1.1", b"HTTP/1.0"),
        PLAIN.replace(b"Vary: y", b"Connection: close"),
        PLAIN.replace(b"Vary: y", b"connection: close"),
        PLAIN.replace(b"Date: x", b"Transfer-Encoding: chunked"),
        PLAIN.replace(b"Date: x", b"Content-Length: 4"),
        PLAIN.replace(b"Content-Length: 5\r\n", b""),
    ],
)
def test_anything_else_is_no_plain_answer(answer: bytes) -> None:
    assert plain_answer(bytearray(answer), len(answer)) is None
