"""Quantities with units, as people write them in profiles and on the command line.

A duration is ``500ms``, ``20s``, ``1m30s``, ``2h``; a size is ``3.1KB`` (decimal) or ``2GiB``
(binary, as Kubernetes writes ``2Gi``); a rate is ``80/s`` or ``4800/m``; a share is ``1%``.
A bare number has no unit and is refused, except 0. ``parse_`` reads, ``write_`` writes so that
parsing gives the very same value back, ``format_`` rounds for people.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TypeVar

__all__ = [
    "format_bytes",
    "format_count",
    "format_duration",
    "format_numbers",
    "format_share",
    "parse_bytes",
    "parse_duration_s",
    "parse_rate_per_s",
    "parse_share",
    "whole_number",
    "write_bytes",
    "write_duration",
    "write_number",
    "write_rate",
    "write_share",
]

_Quantity = TypeVar("_Quantity", int, float)

_DURATION_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_SIZE_UNITS_BYTES = {
    "B": 1,
    "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
}  # fmt: skip
_NUMBER = r"(?:[0-9]{1,18}(?:\.[0-9]+)?|\.[0-9]+)"
_LARGEST = 1e15  # Every quantity stays finite, and whole ones exact, in a float.
_DURATION_PART = re.compile(rf"({_NUMBER})(us|ms|s|m|h)")
_DURATION = re.compile(rf"(?:{_NUMBER}(?:us|ms|s|m|h))+")
_SIZE = re.compile(rf"({_NUMBER})\s*([A-Za-z]+)")
_RATE = re.compile(rf"({_NUMBER})\s*/\s*(s|m|h)")
_PLAIN = re.compile(_NUMBER)
_SHARE = re.compile(rf"({_NUMBER})\s*%")


def _is_zero(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == 0


def _bounded(value: _Quantity, text: str) -> _Quantity:
    if value > _LARGEST:
        msg = f"{text!r} is too large"
        raise ValueError(msg)
    return value


def parse_duration_s(text: str | float) -> float:
    """Parse a duration into seconds. Raises ValueError with the accepted forms."""
    if _is_zero(text):
        return 0.0
    if isinstance(text, str):
        stripped = text.strip()
        if stripped == "0":
            return 0.0
        if _DURATION.fullmatch(stripped):
            parts = _DURATION_PART.findall(stripped)
            return _bounded(sum(float(number) * _DURATION_UNITS_S[unit] for number, unit in parts), text)
    msg = f"{text!r} is not a duration: write 500ms, 20s, 1m30s or 2h"
    raise ValueError(msg)


def parse_bytes(text: str | float) -> int:
    """Parse a size into bytes. Raises ValueError with the accepted forms."""
    if _is_zero(text):
        return 0
    if isinstance(text, str):
        stripped = text.strip()
        if stripped == "0":
            return 0
        match = _SIZE.fullmatch(stripped)
        if match and match[2] in _SIZE_UNITS_BYTES:
            return _bounded(round(Decimal(match[1]) * _SIZE_UNITS_BYTES[match[2]]), text)
    msg = f"{text!r} is not a size: write 512B, 3KB, 64MiB, 2GiB or 1TiB"
    raise ValueError(msg)


def parse_rate_per_s(text: str | float) -> float:
    """Parse a rate into events per second. Raises ValueError with the accepted forms."""
    if isinstance(text, str) and (match := _RATE.fullmatch(text.strip())):
        return _bounded(float(match[1]) / _DURATION_UNITS_S[match[2]], text)
    msg = f"{text!r} is not a rate: write 80/s or 4800/m"
    raise ValueError(msg)


def parse_share(text: str | float) -> float:
    """Parse a share (``1%`` or a number from 0 to 1) into a fraction. Raises ValueError."""
    share: float | None = None
    if isinstance(text, str) and (match := _SHARE.fullmatch(text.strip())):
        share = float(match[1]) / 100.0
    elif (isinstance(text, str) and _PLAIN.fullmatch(text.strip())) or (
        isinstance(text, int | float) and not isinstance(text, bool)
    ):
        share = float(text)
    if share is not None and 0 <= share <= 1:
        return share
    msg = f"{text!r} is not a share from 0% to 100%: write 1% or a number from 0 to 1"
    raise ValueError(msg)


def whole_number(text: str) -> int | None:
    """Read a count that stands without a unit; None for what is no number of up to nine plain digits (``²`` is a digit, too, to Python)."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def write_number(value: float) -> str:
    """Write a finite number without an exponent, exactly: ``0.00001``, ``80``, ``1.5``."""
    text = f"{Decimal(repr(float(value))):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _write(value: float, parse: Callable[[str], float], forms: list[tuple[float, str]]) -> str | None:
    for factor, unit in forms:
        scaled = value / factor
        # A form counts as readable up to three decimals, and only if it is exact.
        text = f"{write_number(round(scaled, 3))}{unit}"
        if scaled >= 1 and parse(text) == value:
            return text
    return None


def write_duration(seconds: float) -> str:
    """Write seconds in the largest of s, ms, us that reads well: ``90s``, ``800ms``."""
    if seconds == 0:
        return "0s"
    forms = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us")]
    return _write(seconds, parse_duration_s, forms) or f"{write_number(seconds)}s"


def write_bytes(size_bytes: int) -> str:
    """Write bytes in whole binary units or readable decimal ones: ``2GiB``, ``3.1KB``, ``77B``."""
    binary = [(2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB")]
    # 2 GB is 1,953,125 KiB, which nobody would recognise.
    whole = [
        (factor, unit)
        for factor, unit in binary
        if size_bytes % factor == 0 and (size_bytes < factor * 10_240 or unit == "TiB")
    ]
    decimal = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB")]
    return _write(size_bytes, parse_bytes, [*whole, *decimal]) or f"{size_bytes}B"


def write_rate(per_s: float) -> str:
    """Write a rate: ``80/s``; a slow one by the minute or hour where that is exact."""
    if per_s >= 1 or per_s == 0:
        return f"{write_number(per_s)}/s"
    return _write(per_s, parse_rate_per_s, [(1 / 60, "/m"), (1 / 3600, "/h")]) or f"{write_number(per_s)}/s"


def write_share(share: float) -> str:
    """Write a fraction as a percentage, or as the bare fraction where that alone is exact."""
    text = f"{write_number(round(share * 100, 6))}%"
    return text if parse_share(text) == share else write_number(share)


def format_duration(seconds: float) -> str:
    """Format seconds with three significant digits: ``850 µs``, ``12.3 ms``, ``1.25 s``, ``2m05s``."""
    if seconds < 0:
        return "-" + format_duration(-seconds)
    if seconds == 0:
        return "0 s"
    if seconds < 0.9995e-3:
        return f"{_three_digits(seconds * 1e6)} µs"
    if seconds < 0.9995:
        return f"{_three_digits(seconds * 1e3)} ms"
    if seconds < 99.95:
        return f"{_three_digits(seconds)} s"
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    return f"{hours}h{minutes:02d}m{secs:02d}s" if hours else f"{minutes}m{secs:02d}s"


def format_bytes(size_bytes: float) -> str:
    """Format bytes in binary units with three significant digits: ``62.7 MiB``."""
    if size_bytes < 0:
        return "-" + format_bytes(-size_bytes)
    value, unit = float(size_bytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 999.5 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.0f} B" if unit == "B" else f"{_three_digits(value)} {unit}"


def format_count(count: float) -> str:
    """Format a count with thousands separators: ``20,000``; fractions keep three digits."""
    return f"{count:,.0f}" if float(count).is_integer() or abs(count) >= 1000 else _three_digits(count)


def format_numbers(numbers: Sequence[int]) -> str:
    """Format whole numbers in rising order, runs of them as spans: ``0-5, 7``."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    return ", ".join("-".join(str(number) for number in span) for span in spans)


def format_share(share: float) -> str:
    """Format a fraction as a percentage: ``99.4 %``."""
    return f"{share * 100:.3g} %" if share < 0.9995 or share == 1 else f"{share * 100:.2f} %"


def _three_digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
