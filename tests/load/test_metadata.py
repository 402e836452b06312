from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.load.metadata import BodyHead, EdgeKeeper, ListMetadata, failure_text, protobuf_field


def feed(sink: EdgeKeeper | BodyHead, body: bytes, size: int) -> None:
    for at in range(0, len(body), size):
        piece = bytearray(body[at : at + size])
        sink(piece, 0, len(piece))


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value: int) -> bytes:
    data = b""
    while value > 0x7F:
        data += bytes([value & 0x7F | 0x80])
        value >>= 7
    return data + bytes([value])


def typed_list(version: str, next_page: str, items: int) -> bytes:
    metadata = {"resourceVersion": version} | ({"continue": next_page, "remainingItemCount": 5} if next_page else {})
    pods = [{"metadata": {"name": f"p{n}", "resourceVersion": "1"}, "spec": {"x": "y" * 50}} for n in range(items)]
    return json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": pods}).encode()


def custom_list(version: str, next_page: str, items: int) -> bytes:
    whole = json.loads(typed_list(version, next_page, items))
    return json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()


def protobuf_list(version: str, next_page: str, items: int) -> bytes:
    metadata = field(2, version.encode()) + (field(3, next_page.encode()) if next_page else b"")
    pods = b"".join(field(2, field(1, field(1, b"p%d" % n) + field(6, b"1"))) for n in range(items))
    return (
        b"k8s\0"
        + field(1, field(1, b"v1") + field(2, b"PodList"))
        + field(2, field(1, metadata) + pods)
        + field(3, b"")
    )


@pytest.mark.parametrize("form", [typed_list, custom_list, protobuf_list])
@pytest.mark.parametrize("packed", [False, True])
@given(items=st.integers(0, 300), size=st.integers(1, 20_000), next_page=st.sampled_from(["", "eyJ2IjoibWV0YS5r"]))
def test_a_lists_metadata_is_found_whatever_its_form_and_however_it_is_cut(
    form: Any, packed: Any, items: Any, size: Any, next_page: Any
) -> None:
    body = form("123456", next_page, items)
    keeper = EdgeKeeper(gzip=packed)

    feed(keeper, gzip.compress(body, 1) if packed else body, size)

    assert ListMetadata("123456", next_page) == keeper.metadata


@pytest.mark.parametrize("body", [b"", b"{}", b"ok", b'{"kind":"Pod","metadata":', b"k8s\0\xff\xff\xff"])
def test_a_body_without_list_metadata_has_none(body: Any) -> None:
    keeper = EdgeKeeper(gzip=False)
    feed(keeper, body, 3)

    assert keeper.metadata in {None, ListMetadata("", "")}


@given(data=st.binary(max_size=100), path=st.lists(st.integers(1, 8), min_size=1, max_size=4))
def test_walking_garbage_as_protobuf_ends_without_an_exception(data: Any, path: str) -> None:
    assert isinstance(protobuf_field(data, *path), bytes | None)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            b'{"kind":"Status","message":"pods is \\"forbidden\\"","reason":"Forbidden","code":403}',
            ("Forbidden", 'pods is "forbidden"', 403),
        ),
        (b'{"kind":"Status","message":"cut he', (None, "cut he", None)),
        (b"Too many requests, please try again later.\n", (None, "Too many requests, please try again later.", None)),
        (b"", (None, None, None)),
        (b"\xff\xfe<html>", (None, "\ufffd\ufffd<html>", None)),
        (
            b"k8s\0" + field(2, field(3, b"too old") + field(4, b"Expired") + b"\x30" + varint(410)),
            ("Expired", "too old", 410),
        ),
    ],
)
def test_reasons_are_read_from_whatever_was_answered(body: Any, expected: Any) -> None:
    text = failure_text(body)

    assert expected == (text.reason, text.message, text.code)


def test_the_first_kilobyte_of_a_failure_is_kept() -> None:
    sink = BodyHead()
    feed(sink, b"x" * 5000, 300)

    assert b"x" * 1024 == sink.data
