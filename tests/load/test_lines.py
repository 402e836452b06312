"""Lines of a stream, long ones among them."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.load.lines import whole_lines

LIMIT = 20


def read(blocks: list[bytes]) -> tuple[list[bytes], int]:
    """Return the lines of a stream that holds lines of 20 bytes, and how many were too long."""

    async def scenario() -> tuple[list[bytes], int]:
        stream = asyncio.StreamReader(limit=LIMIT)
        too_long: list[None] = []

        async def feed() -> None:
            for block in blocks:
                stream.feed_data(block)
                await asyncio.sleep(0)
            stream.feed_eof()

        feeding = asyncio.create_task(feed())
        lines = [line async for line in whole_lines(stream, lambda: too_long.append(None))]
        await feeding
        return lines, len(too_long)

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("blocks", "lines", "too_long"),
    [
        ([], [], 0),
        ([b"a\nb\n", b"half"], [b"a\n", b"b\n"], 0),
        ([b"a\n", b"x" * 50, b"x" * 50, b"x\nb\n"], [b"a\n", b"b\n"], 1),
        ([b"x" * 50 + b"\nb\n" + b"y" * 50 + b"\n"], [b"b\n"], 2),
        ([b"x" * 50], [], 1),
    ],
)
def test_a_line_that_is_too_long_is_passed_over_whole_and_told_once(
    blocks: list[bytes], lines: list[bytes], too_long: int
) -> None:
    assert (lines, too_long) == read(blocks)


@given(st.lists(st.integers(0, 60), max_size=8), st.integers(1, 30))
def test_however_the_bytes_come_the_short_lines_are_read(lengths: list[int], size: int) -> None:
    lines = [bytes([97 + index]) * length + b"\n" for index, length in enumerate(lengths)]
    whole = b"".join(lines)
    found, too_long = read([whole[at : at + size] for at in range(0, len(whole), size)])

    assert [line for line in lines if len(line) <= LIMIT] == [line for line in found if len(line) <= LIMIT]
    assert len(lines) == len(found) + too_long
