"""The block that the live view is drawn in."""

from __future__ import annotations

import io
import os
import threading
import time

from hypothesis import given
from hypothesis import strategies as st

from scaletest.report.live_screen import Block, Screen, Size, _Above, size_of
from tests.report.emulator import Terminal

SIZE = Size(80, 24)


def test_a_picture_replaces_the_one_before() -> None:
    terminal, block = Terminal(), Block()
    terminal.show("$ scaletest run smoke\n")
    terminal.show(block.draw(["one", "two", "a long third line"], SIZE))
    assert terminal.screen == ["$ scaletest run smoke", "one", "two", "a long third line"]
    assert not terminal.cursor

    terminal.show(block.draw(["eins", "", "drei"], SIZE))
    assert terminal.screen == ["$ scaletest run smoke", "eins", "", "drei"]

    terminal.show(block.draw(["less"], SIZE))
    assert terminal.screen == ["$ scaletest run smoke", "less"]

    terminal.show(block.erase(SIZE))
    terminal.show("the report")
    assert terminal.screen == ["$ scaletest run smoke", "the report"]
    assert terminal.cursor


@given(pictures=st.lists(st.integers(0, 9), min_size=1, max_size=12), above=st.data())
def test_nothing_of_the_block_stays_and_nothing_above_it_is_lost(pictures: list[int], above: st.DataObject) -> None:
    terminal, block, said = Terminal(20, 10), Block(), ["prompt"]
    terminal.show("prompt\n")
    for number, height in enumerate(pictures):
        text = [f"note {number}.{line}" for line in range(above.draw(st.integers(0, 3)))]
        said += text
        terminal.show(block.draw(["x" * 20] * height, Size(20, 10), "".join(f"{line}\n" for line in text)))

        assert [*terminal.scrolled, *terminal.screen] == [*said, *["x" * 20] * height]
    terminal.show(block.erase(Size(20, 10)))

    assert said == [*terminal.scrolled, *terminal.screen]


def test_the_echo_of_ctrl_c_is_overwritten() -> None:
    terminal, block = Terminal(), Block()
    terminal.show(block.draw(["x" * 80] * 23, SIZE))
    terminal.show("^C")
    terminal.show(block.draw(["y" * 80] * 23, SIZE))

    assert terminal.scrolled == []
    assert terminal.screen == ["y" * 80] * 23


def test_after_a_change_of_size_the_screen_has_the_new_picture_alone() -> None:
    terminal, block = Terminal(), Block()
    terminal.show(block.draw(["x" * 80] * 23, SIZE))
    terminal.resize(50, 12)
    terminal.show(block.draw(["y" * 50] * 11, Size(50, 12)))

    assert terminal.screen == ["y" * 50] * 11


def test_a_terminal_that_takes_nothing_holds_nobody_up() -> None:
    reader, writer = os.pipe()
    with open(reader, "rb") as terminal, open(writer, "w", encoding="utf-8") as stream:  # noqa: PTH123
        screen = Screen(stream)
        screen.open()
        for number in range(1_000):
            screen.show([f"picture {number}" + "x" * 70] * 20, SIZE)
            time.sleep(0.0005)
        assert screen.busy

        drain = threading.Thread(target=terminal.read)
        drain.start()
        screen.close()
        stream.close()
        drain.join(10)
        assert not drain.is_alive()


def test_a_terminal_that_went_away_ends_the_view_alone() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb", buffering=0) as raw:  # noqa: PTH123
        screen = Screen(io.TextIOWrapper(raw, write_through=True))
        screen.open()
        screen.show(["one"], SIZE)
        screen.close()
        screen.close()


def test_what_was_made_to_write_above_the_view_can_write_after_it() -> None:
    above: list[str] = []
    kept = io.StringIO()
    stand_in = _Above(kept, above.append)
    stand_in.write("one\ntwo")
    stand_in.close()
    stand_in.write("three\n")

    assert above == ["one", "two"]
    assert kept.getvalue() == "three\n"


def test_a_stream_without_a_size_counts_as_80_by_24() -> None:
    assert size_of(io.StringIO()) == (80, 24)
