"""Characters that would steer a terminal, or that no encoding can write, are replaced one for one."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from scaletest.core.texts import encodable, printable

STEERING = [
    "\x00",
    "\x07",
    "\x08",
    "\r",
    "\x1b",
    "\x7f",
    "\x85",
    "\x9b",
    "\x9d",
    "\u200f",
    "\u202e",
    "\u2028",
    "\u2066",
    "\ud800",
]


def test_what_steers_a_terminal_is_replaced() -> None:
    assert ["a\ufffdb"] * len(STEERING) == [printable(f"a{item}b") for item in STEERING]


def test_lines_columns_and_writing_of_any_kind_stay() -> None:
    text = "a\n\tb – 日本語 שלום 👩\u200d🚀 \xa0"

    assert text == printable(text) == encodable(text)


@given(st.text(st.characters(codec=None)))
def test_a_text_keeps_its_length_and_can_be_written(text: str) -> None:
    assert len(text) == len(printable(text)) == len(encodable(text))
    encodable(text).encode()
    assert not {item for item in printable(text) if unicodedata.category(item) in {"Cc", "Cs"}} - {"\n", "\t"}
