"""Characters that a text from elsewhere may hold, and that would break what it is written to."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["encodable", "printable"]

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"

_SURROGATE: Final = re.compile("[\ud800-\udfff]")

_UNPRINTABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters of C0 (but for tab and newline) and C1, that begin escape sequences; marks, embeddings, overrides and isolates
of writing direction (Unicode TR 9, "Directional Formatting Characters"), that make text read as what it is not; line separators; surrogates."""


def encodable(text: str) -> str:
    """Return a text with a replacement character for each lone surrogate, which no encoding can write."""
    return _SURROGATE.sub(_REPLACEMENT, text)


def printable(text: str) -> str:
    """Return a text as a terminal may get it: with a replacement character for each character that would steer the terminal."""
    return _UNPRINTABLE.sub(_REPLACEMENT, text)
